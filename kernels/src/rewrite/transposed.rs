//! Constants that are transposed for a product of matrices are not copied: products read a matrix by its strides.
//!
//! Exported linear layers transpose their weight in every run. Run once at load, the transposition would leave two
//! copies of the weight, and packing a third; here its result becomes another look at the bytes that are there. Who else
//! reads the result might want it dense, so only results are changed that nothing reads but products and what repeats a matrix for them.

use edgepack_executor::plan::{Call, PlanGraph, PlanInstructionKind, Rewrite};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::{Dynamism, NONE, Span, Value, ValueId};

use super::chain::{collected, own_names, tensor};
use super::permutation::Permutation;
use crate::schema::position;

/// Makes transposed constants views, where only products of matrices, or what repeats them for these, read them.
pub struct ViewTransposed;

/// Products and what repeats a matrix for them: the argument that may be stored in any order.
const READERS: &[(&str, usize)] = &[
    ("aten::expand_copy.out", position("aten::expand_copy.out", "self")),
    ("aten::mm.out", position("aten::mm.out", "mat2")),
    ("aten::addmm.out", position("aten::addmm.out", "mat2")),
    ("aten::linear.out", position("aten::linear.out", "weight")),
];

impl Rewrite for ViewTransposed {
    fn name(&self) -> &'static str {
        "view transposed weights"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        let Some(uses) = Uses::of(graph) else { return 0 };
        let Some(names) = own_names(graph) else { return 0 };
        let Some(elsewhere) = read_elsewhere(graph, &uses, &names) else { return 0 };
        let mut changed = 0;
        for chain in 0..graph.chains().len() {
            for index in 0..graph.chains()[chain].len() {
                let PlanInstructionKind::Kernel { operator, args } = graph.chains()[chain][index].kind else {
                    continue;
                };
                let Some((from, out)) = transposition(graph, names[operator as usize], args) else { continue };
                let shown = view(graph, &uses, &elsewhere, from, out);
                if shown.is_some() && graph.replace(chain, index, Call::Nothing).is_ok() {
                    changed += 1;
                }
            }
        }
        changed
    }
}

/// Returns, by tensor, whether anything but [`READERS`] reads it, or shows its bytes.
fn read_elsewhere(graph: &PlanGraph<'_>, uses: &Uses, names: &[Option<&str>]) -> Option<Vec<bool>> {
    let mut elsewhere = collected(graph.tensor_count(), std::iter::repeat(false))?;
    uses.views().for_each(|(_, base)| elsewhere[base as usize] = true);
    let mut mark = |id: ValueId| match graph.value(id) {
        Value::Tensor(tensor) => elsewhere[tensor as usize] = true,
        Value::TensorList(span) | Value::OptionalTensorList(span) => {
            for &item in graph.items(span).iter().filter(|&&id| id != NONE) {
                if let Value::Tensor(tensor) = graph.value(item) {
                    elsewhere[tensor as usize] = true;
                }
            }
        }
        _ => {}
    };
    for instruction in graph.chains().iter().flatten() {
        match instruction.kind {
            PlanInstructionKind::Kernel { operator, args } => {
                let name = names[operator as usize];
                let reader = READERS.iter().find(|(reader, _)| name == Some(*reader)).map(|&(_, weight)| weight);
                let outs = graph.operators()[operator as usize].info.outs();
                let ids = graph.args(args).iter().take(graph.operators()[operator as usize].info.arity());
                let reads = ids.enumerate().filter(|&(arg, _)| outs >> arg & 1 == 0 && Some(arg) != reader);
                reads.for_each(|(_, &id)| mark(id));
            }
            PlanInstructionKind::Delegate { args, .. } => graph.args(args).iter().for_each(|&id| mark(id)),
            PlanInstructionKind::Move { from, to } => [from, to].into_iter().for_each(&mut mark),
            PlanInstructionKind::JumpFalse { condition, .. } => mark(condition),
            PlanInstructionKind::Free { value } => mark(value),
            PlanInstructionKind::Nop => {}
        }
    }
    Some(elsewhere)
}

/// Returns the tensor that an instruction transposes and the value it makes; `None` if it does not transpose a matrix.
fn transposition(graph: &PlanGraph<'_>, name: Option<&str>, args: Span) -> Option<(u32, ValueId)> {
    let Permutation { from, to, dims } = Permutation::of(graph, name?, graph.args(args))?;
    if dims == [1, 0] { Some((tensor(graph, from)?, to)) } else { None }
}

/// Lets a value show the bytes of the constant `from`, rows as columns. `None`, and nothing changed, if it cannot.
fn view(graph: &mut PlanGraph<'_>, uses: &Uses, elsewhere: &[bool], from: u32, out: ValueId) -> Option<()> {
    let Value::Tensor(to) = graph.value(out) else { return None };
    let (source, target, how) = (graph.tensor(from), graph.tensor(to), uses.of_tensor(to));
    let (&[rows, columns], &[outermost, innermost]) = (source.bounds(), source.dim_order()) else {
        return None;
    };
    let fits = source.is_constant()
        && (source.dynamism(), target.dynamism()) == (Dynamism::Static, Dynamism::Static)
        && source.dtype() == target.dtype()
        && *target.bounds() == [columns, rows]
        && (how.writes, how.pinned, how.view_of) == (1, false, None)
        && !elsewhere[to as usize];
    (fits && graph.reorder(to, &[1 - outermost, 1 - innermost]) && graph.show_constant(out, from)).then_some(())
}
