//! Fuses element-wise operators into the operator that gives their input: activations, quantising and dequantising.
//!
//! First neighbours that are element-wise become one pass; then that pass becomes part of the product, convolution or sum
//! before it. Only operators move whose input no other instruction reads and whose numbers never change.

use std::sync::Arc;

use edgepack_compute::element::Scalar;
use edgepack_compute::epilogue::{Epilogue, Operation};
use edgepack_compute::number::Number;
use edgepack_compute::quantise::Affine;
use edgepack_executor::kernel::Operator;
use edgepack_executor::plan::{self, PlanGraph, PlanInstructionKind, Rewrite};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::{Value, ValueId};
use edgepack_format::scalar::ScalarType;

use super::chain::{Call, arg, collected, for_each_pair, is, is_private, merge, overlap, own_names, tensor};
use crate::aten::elementwise::arithmetic;
use crate::aten::{conv, matmul};
use crate::fused::{Base, Fused, HARD_SWISH, POINTWISE};
use crate::prelu::{self, PRELU};
use crate::schema::position;

mod hard_swish;

/// Merges operators with the element-wise ones behind them.
pub struct FuseEpilogues;

/// The most operations of one instruction. Every join copies them, so there must be an end to it.
const MOST: usize = 16;

/// Operators that can do operations to their results.
static BASES: &[(&str, &Base)] = &[
    ("aten::convolution.out", &conv::FUSED),
    (conv::SCALED.name, &conv::SCALED_FUSED),
    ("aten::mm.out", &matmul::FUSED_MM),
    ("aten::addmm.out", &matmul::FUSED_ADDMM),
    ("aten::bmm.out", &matmul::FUSED_BMM),
    (matmul::REPEATED.name, &matmul::FUSED_REPEATED),
    ("aten::baddbmm.out", &matmul::FUSED_BADDBMM),
    ("aten::linear.out", &matmul::FUSED_LINEAR),
    ("aten::add.out", &arithmetic::FUSED_ADD),
    ("aten::mul.out", &arithmetic::FUSED_MUL),
    (PRELU.name, &prelu::FUSED),
];

/// An operator that is an operation: it maps every element of its first argument by itself.
struct Pointwise {
    name: &'static str,
    /// The position of an argument that must be this text.
    text: Option<(usize, &'static str)>,
    /// The positions of its numbers.
    numbers: &'static [usize],
    out: usize,
    /// Makes the operation of the numbers, those that are `None` included, and of the element types of input and output.
    operation: fn(&[Option<Scalar>], [ScalarType; 2]) -> Option<Operation>,
}

/// Rows `"operator" ["number"…] ("argument" = "text")? => |numbers, types| operation`.
macro_rules! pointwise {
    ($($name:literal [$($number:literal),*] $(($argument:literal = $text:literal))? => $operation:expr;)*) => {
        &[$(Pointwise {
            name: $name,
            text: pointwise!(@text $($name, $argument, $text)?),
            numbers: &[$(position($name, $number)),*],
            out: position($name, "out"),
            operation: $operation,
        }),*]
    };
    (@text) => { None };
    (@text $name:literal, $argument:literal, $text:literal) => { Some((position($name, $argument), $text)) };
}

static OPERATIONS: &[Pointwise] = pointwise! {
    "aten::clamp.out" ["min", "max"] => |n, _| {
        let bound = |at: usize, none: f32| n[at].map_or(none, f32::from_scalar);
        Some(Operation::Clamp { least: bound(0, f32::NEG_INFINITY), greatest: bound(1, f32::INFINITY) })
    };
    "aten::hardtanh.out" ["min_val", "max_val"] =>
        |n, _| Some(Operation::Clamp { least: float(n[0])?, greatest: float(n[1])? });
    "aten::relu.out" [] => |_, _| Some(Operation::Relu);
    "aten::leaky_relu.out" ["negative_slope"] => |n, _| Some(Operation::LeakyRelu { slope: float(n[0])? });
    "aten::elu.out" ["alpha", "scale", "input_scale"] =>
        |n, _| Some(Operation::Elu { alpha: float(n[0])?, scale: float(n[1])?, input_scale: float(n[2])? });
    "aten::sigmoid.out" [] => |_, _| Some(Operation::Sigmoid);
    "aten::gelu.out" [] ("approximate" = "none") => |_, _| Some(Operation::Gelu);
    "aten::gelu.out" [] ("approximate" = "tanh") => |_, _| Some(Operation::GeluTanh);
    "aten::tanh.out" [] => |_, _| Some(Operation::Tanh);
    "aten::exp.out" [] => |_, _| Some(Operation::Exp);
    "aten::neg.out" [] => |_, _| Some(Operation::Neg);
    "aten::abs.out" [] => |_, _| Some(Operation::Abs);
    "aten::sqrt.out" [] => |_, _| Some(Operation::Sqrt);
    "aten::rsqrt.out" [] => |_, _| Some(Operation::Rsqrt);
    "quantized_decomposed::quantize_per_tensor.out" ["scale", "zero_point", "quant_min", "quant_max"] => |n, [_, to]| {
        let affine =
            Affine { scale: n[0]?.to_f64() as f32, zero: whole(n[1])?, least: whole(n[2])?, greatest: whole(n[3])? };
        Some(Operation::Quantize { to, affine })
    };
    "quantized_decomposed::dequantize_per_tensor.out" ["scale", "zero_point"] => |n, [from, _]| {
        Some(Operation::Dequantize { from, scale: n[0]?.to_f64() as f32, zero: whole(n[1])? })
    };
};

/// A number as loops of FLOAT take it.
fn float(number: Option<Scalar>) -> Option<f32> {
    number.map(f32::from_scalar)
}

fn whole(number: Option<Scalar>) -> Option<i64> {
    match number {
        Some(Scalar::Int(number)) => Some(number),
        _ => None,
    }
}

impl Rewrite for FuseEpilogues {
    fn name(&self) -> &'static str {
        "fuse epilogues"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        let Some(uses) = Uses::of(graph) else { return 0 };
        let Some(mut operators) = Operators::of(graph) else { return 0 };
        let copied = copies(graph, &mut operators);
        let swished = copied + hard_swish::replace(graph, &uses, &mut operators);
        let Some(uses) = Uses::of(graph) else { return swished };
        let gated = for_each_pair(graph, |graph, first, second| {
            let (input, out) = gate(graph, &uses, &operators, first, second)?;
            let silu = Epilogue::new(ScalarType::FLOAT, &[Operation::Silu]).ok()?;
            let operator = operators.fused(graph, &POINTWISE, Arc::new(silu))?;
            merge(graph, first, second, operator, &[input, out, out])
        });
        // What was read twice may be read once now.
        let Some(uses) = Uses::of(graph) else { return swished + gated };
        let joined = for_each_pair(graph, |graph, first, second| {
            let (before, after) = (operators.operations(graph, first)?, operators.operations(graph, second)?);
            let middle = follows(graph, &uses, before.out, &after)?;
            alike(graph, [before.input, middle, after.out])?;
            if overlap(graph, before.input, after.out)? || before.epilogue.len() + after.epilogue.len() > MOST {
                return None;
            }
            let epilogue = before.epilogue.followed_by(&after.epilogue).ok()?;
            let operator = operators.fused(graph, &POINTWISE, Arc::new(epilogue))?;
            merge(graph, first, second, operator, &[before.input, after.out, after.out])
        });
        let absorbed = for_each_pair(graph, |graph, first, second| {
            let base = operators.roles[first.operator as usize].base?;
            let after = operators.operations(graph, second)?;
            let middle = follows(graph, &uses, arg(graph, first, base.out)?, &after)?;
            alike(graph, [middle, after.out])?;
            if !fits(base, graph, first, &after)? {
                return None;
            }
            let operator = operators.fused(graph, base, after.epilogue)?;
            let mut args = graph.args(first.args).get(..base.out)?.to_vec();
            args.extend([after.out, after.out]);
            merge(graph, first, second, operator, &args)
        });
        swished + gated + joined + absorbed
    }
}

/// Makes copies of FLOAT to the same order in memory operations, none of them: those are part of what computes their input, or
/// at least have no order of their own. Returns how many there were.
fn copies(graph: &mut PlanGraph<'_>, operators: &mut Operators) -> usize {
    let Some(names) = own_names(graph) else { return 0 };
    let mut changed = 0;
    for chain in 0..graph.chains().len() {
        for index in 0..graph.chains()[chain].len() {
            let PlanInstructionKind::Kernel { operator, args } = graph.chains()[chain][index].kind else { continue };
            if names.get(operator as usize).copied().flatten() != Some(COPY) {
                continue;
            }
            let ids = graph.args(args);
            let (Some(&from), Some(&to)) = (ids.first(), ids.get(COPIED)) else { continue };
            let float = dtype(graph, from) == Some(ScalarType::FLOAT) && dtype(graph, to) == Some(ScalarType::FLOAT);
            if !float || alike(graph, [from, to]).is_none() || overlap(graph, from, to) != Some(false) {
                continue;
            }
            let Ok(nothing) = Epilogue::new(ScalarType::FLOAT, &[]) else { return changed };
            let Some(operator) = operators.fused(graph, &POINTWISE, Arc::new(nothing)) else { return changed };
            let call = plan::Call::Kernel { operator, args: &[from, to, to] };
            changed += usize::from(graph.replace(chain, index, call).is_ok());
        }
    }
    changed
}

const COPY: &str = "dim_order_ops::_clone_dim_order.out";
const COPIED: usize = position(COPY, "out");

/// Returns whether the operator of a call can do the operations behind it.
fn fits(base: &Base, graph: &PlanGraph<'_>, first: Call, after: &Operations) -> Option<bool> {
    let float = |id: ValueId| Some(dtype(graph, id)? == ScalarType::FLOAT);
    if base.in_place {
        return Some(float(after.input)? && float(after.out)?);
    }
    // Of sums, products and slopes; all have their operands first.
    let (a, b) = (arg(graph, first, 0)?, arg(graph, first, 1)?);
    // An operand in the place of the result would have to be copied: no less than the pass that is saved.
    Some(
        float(a)?
            && float(b)?
            && float(after.input)?
            && !overlap(graph, a, after.out)?
            && !overlap(graph, b, after.out)?,
    )
}

/// An operator of a graph as this rewrite sees it.
#[derive(Clone, Default)]
struct Role {
    /// The operator, if it can do operations to its results.
    base: Option<&'static Base>,
    /// The operations it is, if it is element-wise.
    pointwise: Option<How>,
}

/// Operations an operator can be.
#[derive(Clone)]
enum How {
    /// The operations of the rows of [`OPERATIONS`] with this name.
    Row(&'static str),
    /// The operations of this epilogue.
    Fused(Arc<Epilogue>),
}

/// The operators of a graph: looked at once, so that instructions need no names.
struct Operators {
    roles: Vec<Role>,
    /// The operators that were added, in order.
    added: Vec<(&'static Base, Arc<Epilogue>, u32)>,
}

/// Number of the operators added last that are searched for an equal one.
const RECENT: usize = 8;

impl Operators {
    fn of(graph: &PlanGraph<'_>) -> Option<Self> {
        let names = own_names(graph)?;
        let roles = (0..).zip(&names).map(|(operator, &name)| {
            let Some(name) = name else {
                let known = is(graph, operator, &HARD_SWISH);
                return Role { base: None, pointwise: known.then_some(How::Row(HARD_SWISH.name)) };
            };
            let base = BASES.iter().find(|(plain, _)| *plain == name).map(|&(_, base)| base);
            let row = OPERATIONS.iter().find(|row| row.name == name);
            Role { base, pointwise: row.map(|row| How::Row(row.name)) }
        });
        Some(Operators { roles: collected(names.len(), roles)?, added: Vec::new() })
    }

    /// The index of an operator with operations, added unless one of the last is the same.
    fn fused(&mut self, graph: &mut PlanGraph<'_>, base: &'static Base, epilogue: Arc<Epilogue>) -> Option<u32> {
        let same =
            |(known, of, _): &&(&'static Base, Arc<Epilogue>, u32)| std::ptr::eq(*known, base) && *of == epilogue;
        if let Some((_, _, index)) = self.added.iter().rev().take(RECENT).find(same) {
            return Some(*index);
        }
        let operator: Arc<dyn Operator> = Arc::new(Fused::new(base, epilogue.clone()));
        let index = graph.push_operator(operator).ok()?;
        let alone = std::ptr::eq(base, &POINTWISE).then(|| How::Fused(epilogue.clone()));
        self.roles.push(Role { base: None, pointwise: alone });
        self.added.push((base, epilogue, index));
        Some(index)
    }

    /// The instruction as operations, if it is element-wise on one tensor with numbers that never change.
    fn operations(&self, graph: &PlanGraph<'_>, call: Call) -> Option<Operations> {
        let (name, input) = match self.roles[call.operator as usize].pointwise.as_ref()? {
            How::Row(name) if *name == HARD_SWISH.name => {
                let epilogue = Epilogue::new(ScalarType::FLOAT, &[Operation::HardSwish]).ok()?;
                let (input, out) = (arg(graph, call, 0)?, arg(graph, call, POINTWISE.out)?);
                return Some(Operations { input, epilogue: Arc::new(epilogue), out });
            }
            How::Row(name) => (*name, arg(graph, call, 0)?),
            How::Fused(epilogue) => {
                let (input, out) = (arg(graph, call, 0)?, arg(graph, call, POINTWISE.out)?);
                return Some(Operations { input, epilogue: epilogue.clone(), out });
            }
        };
        let row = OPERATIONS.iter().find(|row| row.name == name && text_fits(graph, call, row))?;
        let out = arg(graph, call, row.out)?;
        let types = [dtype(graph, input)?, dtype(graph, out)?];
        let operation = (row.operation)(&numbers(graph, call, row.numbers)?, types)?;
        // Whatever the operator would refuse when it runs is left to it.
        let epilogue = Epilogue::new(types[0], &[operation]).ok()?;
        (epilogue.output() == types[1]).then(|| Operations { input, epilogue: Arc::new(epilogue), out })
    }
}

/// An instruction that is operations.
struct Operations {
    input: ValueId,
    epilogue: Arc<Epilogue>,
    out: ValueId,
}

/// Input and output of a sigmoid and a product of it with what it was computed from.
fn gate(
    graph: &PlanGraph<'_>,
    uses: &Uses,
    operators: &Operators,
    first: Call,
    second: Call,
) -> Option<(ValueId, ValueId)> {
    let base = operators.roles[second.operator as usize].base?;
    let is_sigmoid = matches!(operators.roles[first.operator as usize].pointwise, Some(How::Row("aten::sigmoid.out")));
    if !std::ptr::eq(base, &arithmetic::FUSED_MUL) || !is_sigmoid {
        return None;
    }
    let [input, sigmoid, out] = [arg(graph, first, 0)?, arg(graph, first, 1)?, arg(graph, second, base.out)?];
    let factors = [arg(graph, second, 0)?, arg(graph, second, 1)?];
    let gates = factors == [input, sigmoid] || factors == [sigmoid, input];
    let floats = [input, sigmoid, out].into_iter().all(|id| dtype(graph, id) == Some(ScalarType::FLOAT));
    if !gates || !floats || !is_private(graph, uses, sigmoid) || overlap(graph, input, out)? {
        return None;
    }
    alike(graph, [input, sigmoid, out])?;
    Some((input, out))
}

fn text_fits(graph: &PlanGraph<'_>, call: Call, row: &Pointwise) -> bool {
    row.text.is_none_or(|(at, text)| arg(graph, call, at).and_then(|id| graph.text(id)) == Some(text))
}

/// The numbers of a call, if all are fixed and in the range of FLOAT; `None` among them for those that are not given.
fn numbers(graph: &PlanGraph<'_>, call: Call, places: &[usize]) -> Option<Vec<Option<Scalar>>> {
    let number = |&at: &usize| {
        let id = arg(graph, call, at)?;
        let number = match graph.value(id) {
            Value::Int(number) => Some(Scalar::Int(number)),
            Value::Double(number) if number.is_finite() && !(number as f32).is_finite() => return None,
            Value::Double(number) => Some(Scalar::Double(number)),
            Value::Null => None,
            _ => return None,
        };
        (!graph.is_variable(id)).then_some(number)
    };
    places.iter().map(number).collect()
}

/// Returns the tensor between two neighbours, if the second reads it and no other instruction does.
fn follows(graph: &PlanGraph<'_>, uses: &Uses, middle: ValueId, after: &Operations) -> Option<ValueId> {
    (after.input == middle && is_private(graph, uses, middle)).then_some(middle)
}

/// `Some` if the tensors have the same sizes and are stored in memory in the same order.
fn alike<const N: usize>(graph: &PlanGraph<'_>, ids: [ValueId; N]) -> Option<()> {
    let layout = |id: ValueId| {
        let tensor = graph.tensor(tensor(graph, id)?);
        Some((tensor.bounds(), tensor.dim_order()))
    };
    let first = layout(ids[0])?;
    ids.iter().all(|&id| layout(id) == Some(first)).then_some(())
}

fn dtype(graph: &PlanGraph<'_>, id: ValueId) -> Option<ScalarType> {
    Some(graph.tensor(tensor(graph, id)?).dtype())
}
