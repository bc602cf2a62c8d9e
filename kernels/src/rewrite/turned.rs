//! Constants that are transposed for a product of matrices are not copied: products read a matrix by its strides.
//!
//! Exported linear layers transpose their weight in every run. Run once at load, the transposition would leave two
//! copies of the weight, and packing a third; here its result becomes another look at the bytes that are there. Who else
//! reads the result might want it dense, so only results that products alone read are changed.

use edgepack_executor::graph::{Graph, InstructionKind, Rewrite};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::{Dynamism, NONE, Span, Value, ValueId};

use super::chain::own_names;

/// Makes transposed constants views, where only products of matrices read them.
pub struct ViewTransposed;

/// Products, and which argument may lie in any order.
const PRODUCTS: &[(&str, usize)] = &[("aten::mm.out", 1), ("aten::addmm.out", 2), ("aten::linear.out", 1)];

impl Rewrite for ViewTransposed {
    fn name(&self) -> &'static str {
        "view transposed weights"
    }

    fn apply(&self, graph: &mut Graph<'_>) -> usize {
        let Some(uses) = Uses::of(graph) else { return 0 };
        let names = own_names(graph);
        let elsewhere = read_elsewhere(graph, &uses, &names);
        let mut changed = 0;
        for chain in 0..graph.chains.len() {
            for index in 0..graph.chains[chain].len() {
                let InstructionKind::Kernel { operator, args } = graph.chains[chain][index].kind else { continue };
                let Some((from, out)) = transposition(graph, names[operator as usize], args) else { continue };
                if view(graph, &uses, &elsewhere, from, out).is_some() {
                    graph.chains[chain][index].kind = InstructionKind::Nop;
                    changed += 1;
                }
            }
        }
        changed
    }
}

/// By tensor: whether anything but a product reads it, or shows its bytes.
fn read_elsewhere(graph: &Graph<'_>, uses: &Uses, names: &[Option<&str>]) -> Vec<bool> {
    let mut elsewhere = vec![false; graph.state.tensors.len()];
    uses.views().for_each(|(_, base)| elsewhere[base as usize] = true);
    let mut mark = |id: ValueId| match graph.state.values[id as usize] {
        Value::Tensor(tensor) => elsewhere[tensor as usize] = true,
        Value::TensorList(span) | Value::OptionalTensorList(span) => {
            for &item in graph.state.ids[span.range()].iter().filter(|&&id| id != NONE) {
                if let Value::Tensor(tensor) = graph.state.values[item as usize] {
                    elsewhere[tensor as usize] = true;
                }
            }
        }
        _ => {}
    };
    for instruction in graph.chains.iter().flatten() {
        match instruction.kind {
            InstructionKind::Kernel { operator, args } => {
                let name = names[operator as usize];
                let product = PRODUCTS.iter().find(|(product, _)| name == Some(*product)).map(|&(_, weight)| weight);
                let outs = graph.operators[operator as usize].info.outs();
                let ids = graph.args[args.range()].iter().take(graph.operators[operator as usize].info.arity());
                let reads = ids.enumerate().filter(|&(arg, _)| outs >> arg & 1 == 0 && Some(arg) != product);
                reads.for_each(|(_, &id)| mark(id));
            }
            InstructionKind::Delegate { args, .. } => graph.args[args.range()].iter().for_each(|&id| mark(id)),
            InstructionKind::Move { from, to } => [from, to].into_iter().for_each(&mut mark),
            InstructionKind::JumpFalse { condition, .. } => mark(condition),
            InstructionKind::Free { value } => mark(value),
            InstructionKind::Nop => {}
        }
    }
    elsewhere
}

/// What an instruction transposes, and the value it makes, if it transposes a matrix.
fn transposition(graph: &Graph<'_>, name: Option<&str>, args: Span) -> Option<(u32, ValueId)> {
    let ids = &graph.args[args.range()];
    let number = |id: ValueId| match graph.state.values[id as usize] {
        Value::Int(number) if !graph.variable[id as usize] => Some(number.rem_euclid(2)),
        _ => None,
    };
    let (turns, out) = match name? {
        "aten::t_copy.out" => (true, 1),
        "aten::transpose_copy.int_out" => (number(*ids.get(1)?)? != number(*ids.get(2)?)?, 3),
        "aten::permute_copy.out" => match graph.state.values[*ids.get(1)? as usize] {
            Value::IntList(span) => match graph.state.ids[span.range()] {
                [first, second] => ((number(first)?, number(second)?) == (1, 0), 2),
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    };
    match graph.state.values[*ids.first()? as usize] {
        Value::Tensor(from) if turns => Some((from, *ids.get(out)?)),
        _ => None,
    }
}

/// Lets a value show the bytes of the constant `from`, rows as columns. `None`, and nothing changed, if it cannot.
fn view(graph: &mut Graph<'_>, uses: &Uses, elsewhere: &[bool], from: u32, out: ValueId) -> Option<()> {
    let Value::Tensor(to) = graph.state.values[out as usize] else { return None };
    let (state, how) = (&graph.state, uses.of_tensor(to));
    let (source, target) = (state.tensors[from as usize], state.tensors[to as usize]);
    let (&[rows, columns], &[outermost, innermost]) = (state.bounds(&source), state.dim_order(&source)) else {
        return None;
    };
    let fits = source.constant
        && (source.dynamism, target.dynamism) == (Dynamism::Static, Dynamism::Static)
        && source.dtype == target.dtype
        && *state.bounds(&target) == [columns, rows]
        && (how.writes, how.pinned, how.view_of) == (1, false, None)
        && !elsewhere[to as usize];
    if !fits {
        return None;
    }
    graph.state.reorder(to, &[1 - outermost, 1 - innermost]);
    let target = &mut graph.state.tensors[to as usize];
    target.region = source.region.prefix(target.region.len()).frozen();
    target.constant = true;
    graph.variable[out as usize] = false;
    Some(())
}
