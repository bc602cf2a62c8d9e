//! A constant matrix that is repeated for a product of stacks is not repeated: rows of all matrices are multiplied with it once.
//!
//! Exporters write a linear layer on a tensor that is not contiguous, and a matrix times a stack, as `expand_copy` and `bmm`. Run
//! once at load, the repetition would leave as many copies as there are matrices, none of them packed.

use edgepack_executor::plan::{self, PlanGraph, PlanInstructionKind, Rewrite};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::{Dynamism, ValueId};
use edgepack_format::scalar::ScalarType;

use super::chain::{collected, own_names, tensor};
use crate::aten::matmul;
use crate::schema::position;

/// Multiplies with a repeated matrix as one matrix.
pub struct MultiplyOnce;

const EXPAND: &str = "aten::expand_copy.out";
const FROM: usize = position(EXPAND, "self");
const TO: usize = position(EXPAND, "out");
const PRODUCT: &str = "aten::bmm.out";
const ROWS: usize = position(PRODUCT, "self");
const MATRIX: usize = position(PRODUCT, "mat2");
const OUT: usize = position(PRODUCT, "out");

impl Rewrite for MultiplyOnce {
    fn name(&self) -> &'static str {
        "multiply with a repeated matrix once"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        let Some(names) = own_names(graph) else { return 0 };
        if ![EXPAND, PRODUCT].iter().all(|wanted| names.contains(&Some(wanted))) {
            return 0;
        }
        let Some(uses) = Uses::of(graph) else { return 0 };
        let Some(mut repeats) = collected(graph.tensor_count(), std::iter::repeat(None)) else { return 0 };
        let (mut changed, mut once) = (0, None);
        for chain in 0..graph.chains().len() {
            for index in 0..graph.chains()[chain].len() {
                let PlanInstructionKind::Kernel { operator, args } = graph.chains()[chain][index].kind else {
                    continue;
                };
                match names.get(operator as usize) {
                    Some(Some(EXPAND)) => {
                        if let Some((to, from)) = repeated(graph, &uses, graph.args(args)) {
                            repeats[to as usize] = Some((from, [chain, index]));
                        }
                    }
                    Some(Some(PRODUCT)) => {
                        let found = product(graph, &uses, graph.args(args), &repeats);
                        let Some((from, [chain_of, index_of], mut args)) = found else { continue };
                        let Some(operator) = once.or_else(|| graph.push_operator(&matmul::REPEATED).ok()) else {
                            return changed;
                        };
                        once = Some(operator);
                        args[MATRIX] = from;
                        let call = plan::Call::Kernel { operator, args: &args };
                        if graph.replace(chain, index, call).is_ok()
                            && graph.replace(chain_of, index_of, plan::Call::Nothing).is_ok()
                        {
                            changed += 1;
                        }
                    }
                    _ => {}
                }
            }
        }
        changed
    }
}

/// Returns the tensor that a matrix is repeated to, and the matrix, where it is a constant and one read of the former
/// follows.
fn repeated(graph: &PlanGraph<'_>, uses: &Uses, args: &[ValueId]) -> Option<(u32, ValueId)> {
    let from = *args.get(FROM)?;
    let to = tensor(graph, *args.get(TO)?)?;
    let (source, target, how) = (graph.tensor(tensor(graph, from)?), graph.tensor(to), uses.of_tensor(to));
    let &[_, ref matrix @ ..] = target.bounds() else { return None };
    let fits = source.is_constant()
        && target.dynamism() == Dynamism::Static
        && matrix.len() == 2
        && (source.bounds() == matrix || matches!(*source.bounds(), [1, ref rest @ ..] if rest == matrix))
        && (how.writes, how.reads, how.pinned, how.view_of) == (1, 1, false, None);
    fits.then_some((to, from))
}

/// The matrix, the place of the instruction that repeats it, and the arguments, of a product with a repeated matrix.
type Found = (ValueId, [usize; 2], Vec<ValueId>);

fn product(
    graph: &PlanGraph<'_>,
    uses: &Uses,
    args: &[ValueId],
    repeats: &[Option<(ValueId, [usize; 2])>],
) -> Option<Found> {
    let of = |at: usize| tensor(graph, *args.get(at)?);
    let (rows, stack, out) = (graph.tensor(of(ROWS)?), of(MATRIX)?, graph.tensor(of(OUT)?));
    let base = uses.of_tensor(stack).view_of.unwrap_or(stack);
    let (from, place) = (*repeats.get(base as usize)?)?;
    let plain = |order: &[u8]| order.iter().enumerate().all(|(at, &dim)| at == dim as usize);
    let fits = graph.tensor(stack).bounds() == graph.tensor(base).bounds()
        && plain(graph.tensor(stack).dim_order())
        && plain(graph.tensor(base).dim_order())
        && [rows.dtype(), out.dtype(), graph.tensor(stack).dtype()] == [ScalarType::FLOAT; 3]
        && [rows.dynamism(), out.dynamism()] == [Dynamism::Static; 2]
        && plain(rows.dim_order())
        && plain(out.dim_order())
        && rows.bounds().first() == graph.tensor(stack).bounds().first();
    let args = collected(args.len(), args.iter().copied())?;
    fits.then_some((from, place, args))
}
