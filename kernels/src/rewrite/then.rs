//! What is done element by element behind an operator is done with it, while its results are in the cache: activations,
//! and quantising and dequantising.
//!
//! First neighbours that are element-wise become one pass; then that pass becomes part of the product, convolution or sum
//! before it. Only results move that nobody else reads.

use edgepack_executor::kernel::Kernel;
use edgepack_executor::plan::{PlanGraph, Rewrite};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::{Value, ValueId};
use edgepack_format::scalar::ScalarType;

use super::chain::{Call, arg, collected, for_each_pair, is_private, merge, own_names, tensor};
use crate::aten::elementwise::arithmetic::{ADD_THEN, MUL_THEN};
use crate::aten::{conv, matmul};
use crate::steps::{OUT, POINTWISE, Pointwise, SEPARATOR, SILU, STEPS, Steps};

/// Merges operators with the element-wise ones behind them.
pub struct FuseSteps;

/// The most steps of one instruction. Joining reads all of them again, so there must be an end to it.
const MOST: usize = 16;

/// An operator that can do steps to its results.
struct Head {
    plain: &'static str,
    then: &'static Kernel,
    /// Where its output stands; in `then` the steps follow.
    out: usize,
    /// Results are computed where they stay, so the steps must give FLOAT again.
    in_place: bool,
}

const fn product(plain: &'static str, then: &'static Kernel, out: usize) -> Head {
    Head { plain, then, out, in_place: true }
}

static HEADS: &[Head] = &[
    product("aten::convolution.out", &conv::CONVOLUTION_THEN, conv::OUT),
    product("aten::mm.out", &matmul::MM_THEN, 2),
    product("aten::addmm.out", &matmul::ADDMM_THEN, 5),
    product("aten::bmm.out", &matmul::BMM_THEN, 2),
    product("aten::baddbmm.out", &matmul::BADDBMM_THEN, 5),
    product("aten::linear.out", &matmul::LINEAR_THEN, 3),
    Head { plain: "aten::add.out", then: &ADD_THEN, out: 3, in_place: false },
    Head { plain: "aten::mul.out", then: &MUL_THEN, out: 2, in_place: false },
];

impl Head {
    /// Whether it can compute what both calls do.
    fn fits(&self, graph: &PlanGraph<'_>, first: Call, after: &Instruction) -> Option<bool> {
        let float = |id: ValueId| Some(dtype(graph, id)? == ScalarType::FLOAT);
        if self.in_place {
            return Some(float(after.input)? && float(after.out)?);
        }
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
}

impl Rewrite for FuseSteps {
    fn name(&self) -> &'static str {
        "fuse steps"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        let Some(uses) = Uses::of(graph) else { return 0 };
        let Some(mut operators) = Operators::of(graph) else { return 0 };
        let gated = for_each_pair(graph, |graph, first, second| {
            let (input, out) = gate(graph, &uses, &operators, first, second)?;
            let (operator, text) = (operators.index(graph, &STEPS)?, graph.push_text(SILU));
            merge(graph, first, second, operator, &[input, out, text, out])
        });
        // What was read twice may be read once now.
        let Some(uses) = Uses::of(graph) else { return gated };
        let joined = for_each_pair(graph, |graph, first, second| {
            let (before, after) = (operators.steps(graph, first)?, operators.steps(graph, second)?);
            let middle = follows(graph, &uses, before.out, &after)?;
            alike(graph, [before.input, middle, after.out])?;
            if overlap(graph, before.input, after.out)? {
                return None;
            }
            let steps = [before.steps, after.steps].join(SEPARATOR);
            if steps.matches(SEPARATOR).count() >= MOST {
                return None;
            }
            let operator = operators.index(graph, &STEPS)?;
            let (text, result) = (graph.push_text(&steps), after.out);
            merge(graph, first, second, operator, &[before.input, result, text, result])
        });
        let absorbed = for_each_pair(graph, |graph, first, second| {
            let head = operators.role(first).head?;
            let after = operators.steps(graph, second)?;
            let middle = follows(graph, &uses, arg(graph, first, head.out)?, &after)?;
            alike(graph, [middle, after.out])?;
            if !head.fits(graph, first, &after)? {
                return None;
            }
            let operator = operators.index(graph, head.then)?;
            let mut args = graph.args(first.args).get(..head.out)?.to_vec();
            args.extend([after.out, graph.push_text(&after.steps), after.out]);
            merge(graph, first, second, operator, &args)
        });
        gated + joined + absorbed
    }
}

/// How an operator can be steps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// It has them as text.
    Text,
    Quantize,
    Dequantize,
    /// It is one of [`POINTWISE`].
    Pointwise,
}

/// What an operator of a graph is to this rewrite.
#[derive(Clone, Copy, Default)]
struct Role {
    head: Option<&'static Head>,
    steps: Option<How>,
}

/// The operators of a graph: looked at once, so that instructions need no names.
struct Operators {
    roles: Vec<Role>,
    added: Vec<(&'static Kernel, u32)>,
}

impl Operators {
    fn of(graph: &PlanGraph<'_>) -> Option<Self> {
        let names = own_names(graph)?;
        let roles = names.iter().map(|&name| {
            let Some(name) = name else { return Role::default() };
            let steps = match name {
                "quantized_decomposed::quantize_per_tensor.out" => Some(How::Quantize),
                "quantized_decomposed::dequantize_per_tensor.out" => Some(How::Dequantize),
                _ => POINTWISE.iter().any(|row| row.operator == name).then_some(How::Pointwise),
            };
            Role { head: HEADS.iter().find(|head| head.plain == name), steps }
        });
        Some(Operators { roles: collected(names.len(), roles)?, added: Vec::new() })
    }

    fn role(&self, call: Call) -> Role {
        self.roles[call.operator as usize]
    }

    /// The index of a kernel that programs do not name, added if it is not there yet.
    fn index(&mut self, graph: &mut PlanGraph<'_>, kernel: &'static Kernel) -> Option<u32> {
        if let Some((_, index)) = self.added.iter().find(|(known, _)| std::ptr::eq(*known, kernel)) {
            return Some(*index);
        }
        let index = graph.push_operator(kernel).ok()?;
        self.added.push((kernel, index));
        self.roles.push(Role { head: None, steps: std::ptr::eq(kernel, &STEPS).then_some(How::Text) });
        Some(index)
    }

    /// The instruction as steps, if it is element-wise on one tensor with numbers that never change.
    fn steps(&self, graph: &PlanGraph<'_>, call: Call) -> Option<Instruction> {
        let (steps, out) = match self.role(call).steps? {
            How::Text => (graph.text(arg(graph, call, OUT + 1)?)?.to_owned(), OUT),
            How::Quantize => {
                let to = dtype(graph, arg(graph, call, 6)?)?;
                (format!("quantize {} {}", to.0, numbers(graph, call, 1..=4)?), 6)
            }
            How::Dequantize => {
                let of = dtype(graph, arg(graph, call, 0)?)?;
                (format!("dequantize {} {}", of.0, numbers(graph, call, 1..=2)?), 7)
            }
            How::Pointwise => {
                let name = &*graph.operators()[call.operator as usize].name;
                let row = POINTWISE.iter().find(|row| row.operator == name && text_fits(graph, call, row))?;
                let numbers = numbers(graph, call, row.numbers())?;
                let step = row.step;
                (if numbers.is_empty() { step.to_owned() } else { format!("{step} {numbers}") }, row.spec.out)
            }
        };
        let (input, out) = (arg(graph, call, 0)?, arg(graph, call, out)?);
        // Whatever the operator would refuse when it runs is left to it.
        let parsed = Steps::parse(&steps, dtype(graph, input)?).ok()?;
        (parsed.result() == dtype(graph, out)?).then_some(Instruction { input, steps, out })
    }
}

/// An instruction that is steps.
struct Instruction {
    input: ValueId,
    steps: String,
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
    let is_product = operators.role(second).head.is_some_and(|head| head.plain == "aten::mul.out");
    let name = &*graph.operators()[first.operator as usize].name;
    if !is_product || operators.role(first).steps != Some(How::Pointwise) || name != "aten::sigmoid.out" {
        return None;
    }
    let [input, sigmoid, out] = [arg(graph, first, 0)?, arg(graph, first, 1)?, arg(graph, second, 2)?];
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

/// The numbers of a call as words, if all are fixed and in the range of FLOAT.
fn numbers(graph: &PlanGraph<'_>, call: Call, places: impl IntoIterator<Item = usize>) -> Option<String> {
    let words = places.into_iter().map(|at| {
        let id = arg(graph, call, at)?;
        let word = match graph.value(id) {
            Value::Int(number) => number.to_string(),
            Value::Double(number) if number.is_finite() && !(number as f32).is_finite() => return None,
            // With a point, so that it is read as a float again.
            Value::Double(number) => format!("{number:?}"),
            Value::Null => "none".to_owned(),
            _ => return None,
        };
        (!graph.is_variable(id)).then_some(word)
    });
    Some(words.collect::<Option<Vec<_>>>()?.join(" "))
}

/// The tensor between two neighbours, if the second reads it and nobody else does.
fn follows(graph: &PlanGraph<'_>, uses: &Uses, middle: ValueId, after: &Instruction) -> Option<ValueId> {
    (after.input == middle && is_private(graph, uses, middle)).then_some(middle)
}

/// `Some` if the tensors have the same sizes and lie in memory in the same order.
fn alike<const N: usize>(graph: &PlanGraph<'_>, ids: [ValueId; N]) -> Option<()> {
    let layout = |id: ValueId| {
        let tensor = graph.tensor(tensor(graph, id)?);
        Some((tensor.bounds(), tensor.dim_order()))
    };
    let first = layout(ids[0])?;
    ids.iter().all(|&id| layout(id) == Some(first)).then_some(())
}

/// Whether two tensors share bytes.
fn overlap(graph: &PlanGraph<'_>, a: ValueId, b: ValueId) -> Option<bool> {
    Some(graph.tensor(tensor(graph, a)?).overlaps(&graph.tensor(tensor(graph, b)?)))
}

fn dtype(graph: &PlanGraph<'_>, id: ValueId) -> Option<ScalarType> {
    Some(graph.tensor(tensor(graph, id)?).dtype())
}
