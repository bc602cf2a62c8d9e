//! Shuffles of channels read what is put together for them, and write what their results are taken apart into, without
//! the images in between.
//!
//! A shuffle goes through memory in rows of channels. Where these are next to each other, a join of the images before it is
//! no more than several inputs, a split behind it several outputs, and a permutation that moves nothing another name.

use std::sync::Arc;

use edgepack_compute::shuffle::MOST;
use edgepack_executor::kernel::Operator;
use edgepack_executor::plan::{PlanGraph, Rewrite};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::{Value, ValueId};

use super::chain::{Call, arg, dim, for_each_pair, is_private, merge, own_names, shuffle_of, tensor};
use super::permutation::Permutation;
use crate::aten::movement::shuffle::{OUT, Shuffle, TENSORS};
use crate::schema::position;

/// Joins shuffles with what is before and behind them.
pub struct JoinShuffles;

const CAT_TENSORS: usize = position("aten::cat.out", "tensors");
const CAT_DIM: usize = position("aten::cat.out", "dim");
const JOINED: usize = position("aten::cat.out", "out");
const SPLIT_DIM: usize = position("aten::split_with_sizes_copy.out", "dim");
const PARTS: usize = position("aten::split_with_sizes_copy.out", "out");

/// The most instructions before a shuffle that are joined with it, one in each pass.
const PASSES: usize = 3;

/// Splits, whose dimensions and outputs are in the same places.
const SPLITS: &[&str] = &["aten::split_with_sizes_copy.out", "aten::split_copy.Tensor_out"];

impl Rewrite for JoinShuffles {
    fn name(&self) -> &'static str {
        "join shuffles"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        if !(0..graph.operators().len() as u32).any(|operator| shuffle_of(graph, operator).is_some()) {
            return 0;
        }
        let Some(own) = own_names(graph) else { return 0 };
        let Some(uses) = Uses::of(graph) else { return 0 };
        let mut changed = 0;
        // What was joined has another neighbour the next time.
        for _ in 0..PASSES {
            let pass = for_each_pair(graph, |graph, first, second| {
                let name = |call: Call| own.get(call.operator as usize).copied().flatten();
                let joined = match (shuffle_of(graph, first.operator), shuffle_of(graph, second.operator)) {
                    (None, Some(then)) => before(graph, &uses, first, name(first)?, second, then)?,
                    (Some(shuffle), None) => behind(graph, &uses, first, shuffle, second, name(second)?)?,
                    _ => return None,
                };
                joined.replace(graph, first, second)
            });
            changed += pass;
            if pass == 0 {
                break;
            }
        }
        changed
    }
}

/// The items of a list of tensors.
fn items(graph: &PlanGraph<'_>, list: ValueId) -> Option<Vec<ValueId>> {
    match graph.value(list) {
        Value::TensorList(span) => Some(graph.items(span).to_vec()),
        _ => None,
    }
}

/// A shuffle in the place of two instructions.
struct Joined {
    shuffle: Shuffle,
    from: Vec<ValueId>,
    to: Vec<ValueId>,
}

/// A shuffle whose only input another instruction makes.
fn before(graph: &PlanGraph<'_>, uses: &Uses, first: Call, name: &str, second: Call, then: &Shuffle) -> Option<Joined> {
    let (from, to) = (items(graph, arg(graph, second, TENSORS)?)?, items(graph, arg(graph, second, OUT)?)?);
    let [image] = from[..] else { return None };
    if !is_private(graph, uses, image) {
        return None;
    }
    match name {
        "aten::cat.out" if arg(graph, first, JOINED)? == image => {
            let is_along = along(graph, arg(graph, first, CAT_DIM)?, image)? == then.from;
            let from = items(graph, arg(graph, first, CAT_TENSORS)?)?;
            is_along.then(|| Joined { from, to, shuffle: then.clone() })
        }
        _ => {
            let Permutation { from, dims, .. } = unmoved(graph, first, name).filter(|found| found.to == image)?;
            let shuffle = Shuffle { from: *dims.get(then.from)?, ..then.clone() };
            Some(Joined { from: vec![from], to, shuffle })
        }
    }
}

/// A shuffle one of whose outputs another instruction alone reads.
fn behind(
    graph: &PlanGraph<'_>,
    uses: &Uses,
    first: Call,
    shuffle: &Shuffle,
    second: Call,
    name: &str,
) -> Option<Joined> {
    let (from, mut to) = (items(graph, arg(graph, first, TENSORS)?)?, items(graph, arg(graph, first, OUT)?)?);
    let image = arg(graph, second, 0)?;
    let at = to.iter().position(|&item| item == image)?;
    if !is_private(graph, uses, image) {
        return None;
    }
    let mut shuffle = shuffle.clone();
    let channels = *shuffle.to.get(at)?;
    match name {
        name if SPLITS.contains(&name) && along(graph, arg(graph, second, SPLIT_DIM)?, image)? == channels => {
            let parts = items(graph, arg(graph, second, PARTS)?).filter(|parts| parts.len() <= MOST)?;
            shuffle.to.splice(at..=at, parts.iter().map(|_| channels));
            to.splice(at..=at, parts);
        }
        _ => {
            let permutation = unmoved(graph, second, name)?;
            to[at] = permutation.to;
            shuffle.to[at] = permutation.dims.iter().position(|&old| old == channels)?;
        }
    }
    Some(Joined { shuffle, from, to })
}

/// The dimension of an image that a number names.
fn along(graph: &PlanGraph<'_>, number: ValueId, image: ValueId) -> Option<usize> {
    dim(graph, number, graph.tensor(tensor(graph, image)?).bounds().len())
}

/// A permutation of dimensions after which every element is where it was in memory.
fn unmoved(graph: &PlanGraph<'_>, call: Call, name: &str) -> Option<Permutation> {
    Permutation::of(graph, name, graph.args(call.args)).filter(|found| found.is_copy(graph))
}

impl Joined {
    fn replace(self, graph: &mut PlanGraph<'_>, first: Call, second: Call) -> Option<()> {
        let Joined { shuffle, from, to } = self;
        let tensors = |ids: &[ValueId]| ids.iter().map(|&id| tensor(graph, id)).collect::<Option<Vec<u32>>>();
        // An input in the place of a result would have to be copied.
        let (inputs, outputs) = (tensors(&from)?, tensors(&to)?);
        let overlaps = |&out: &u32| inputs.iter().any(|&input| graph.tensor(out).overlaps(&graph.tensor(input)));
        if outputs.iter().any(overlaps) {
            return None;
        }
        let (from, to) = (graph.push_tensors(&from)?, graph.push_tensors(&to)?);
        let args = [from, to, to];
        if !graph.look(&args, |args| shuffle.fits(args))? {
            return None;
        }
        let operator = graph.push_operator(Arc::new(shuffle) as Arc<dyn Operator>).ok()?;
        merge(graph, first, second, operator, &args)
    }
}
