//! Instructions that give the dimensions of a tensor another order.

use edgepack_executor::plan::PlanGraph;
use edgepack_executor::state::{Value, ValueId};

use super::chain::{dim, tensor};
use crate::schema::position;

const DIMS: usize = position("aten::permute_copy.out", "dims");
const DIM0: usize = position("aten::transpose_copy.int_out", "dim0");
const DIM1: usize = position("aten::transpose_copy.int_out", "dim1");

/// Instruction that orders the dimensions of its input anew, whatever kernel runs it.
pub struct Permutation {
    /// Its input.
    pub from: ValueId,
    /// Its output.
    pub to: ValueId,
    /// The dimensions of the input that those of the output are.
    pub dims: Vec<usize>,
}

impl Permutation {
    /// Looks at a call of an operator of this name; `None` if it is another one, or dimensions may change.
    pub fn of(graph: &PlanGraph<'_>, name: &str, args: &[ValueId]) -> Option<Permutation> {
        let from = *args.first()?;
        let rank = graph.tensor(tensor(graph, from)?).bounds().len();
        let named = |at: usize| dim(graph, *args.get(at)?, rank);
        let swapped = |a: usize, b: usize| {
            let mut dims: Vec<usize> = (0..rank).collect();
            dims.swap(a, b);
            dims
        };
        let (dims, out) = match name {
            "aten::t_copy.out" if rank == 2 => (swapped(0, 1), const { position("aten::t_copy.out", "out") }),
            "aten::transpose_copy.int_out" => {
                (swapped(named(DIM0)?, named(DIM1)?), const { position("aten::transpose_copy.int_out", "out") })
            }
            "aten::permute_copy.out" => {
                let Value::IntList(list) = graph.value(*args.get(DIMS)?) else { return None };
                let dims: Option<Vec<usize>> = graph.items(list).iter().map(|&id| dim(graph, id, rank)).collect();
                let dims = dims.filter(|dims| dims.len() == rank)?;
                (dims, const { position("aten::permute_copy.out", "out") })
            }
            _ => return None,
        };
        Some(Permutation { from, to: *args.get(out)?, dims })
    }

    /// Returns whether every element stays where it is in memory, if the input and the output are stored in these orders.
    pub fn moves_nothing(&self, graph: &PlanGraph<'_>, from: &[u8], to: &[u8]) -> bool {
        let Some(input) = tensor(graph, self.from) else { return false };
        let sizes = graph.tensor(input).bounds();
        // A dimension of one element is anywhere.
        let counts = |dim: &usize| sizes.get(*dim).is_some_and(|&size| size != 1);
        let stored = from.iter().map(|&dim| usize::from(dim)).filter(counts);
        to.iter().filter_map(|&dim| self.dims.get(usize::from(dim)).copied()).filter(counts).eq(stored)
    }

    /// Returns whether this copies all elements of the input in the order in which they are in memory.
    pub fn is_copy(&self, graph: &PlanGraph<'_>) -> bool {
        let [input, out] = [self.from, self.to].map(|id| tensor(graph, id).map(|index| graph.tensor(index)));
        let (Some(input), Some(out)) = (input, out) else { return false };
        let sizes = self.dims.iter().map(|&dim| input.bounds().get(dim)).eq(out.bounds().iter().map(Some));
        sizes && input.dtype() == out.dtype() && self.moves_nothing(graph, input.dim_order(), out.dim_order())
    }
}
