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

use super::chain::{Call, arg, for_each_pair, is_private, merge, own_names, shuffle_of, tensor};
use crate::aten::movement::shuffle::{OUT, Shuffle, TENSORS};
use crate::schema::position;

/// Joins shuffles with what is before and behind them.
pub struct JoinShuffles;

const CAT_TENSORS: usize = position("aten::cat.out", "tensors");
const CAT_DIM: usize = position("aten::cat.out", "dim");
const JOINED: usize = position("aten::cat.out", "out");
const SPLIT_DIM: usize = position("aten::split_with_sizes_copy.out", "dim");
const PARTS: usize = position("aten::split_with_sizes_copy.out", "out");
const DIMS: usize = position("aten::permute_copy.out", "dims");
const PERMUTED: usize = position("aten::permute_copy.out", "out");

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
        "aten::permute_copy.out" if arg(graph, first, PERMUTED)? == image => {
            let input = arg(graph, first, 0)?;
            let dims = unmoved(graph, first, input, image)?;
            let shuffle = Shuffle { from: *dims.get(then.from)?, ..then.clone() };
            Some(Joined { from: vec![input], to, shuffle })
        }
        _ => None,
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
    let dim = *shuffle.to.get(at)?;
    match name {
        "aten::permute_copy.out" => {
            let out = arg(graph, second, PERMUTED)?;
            let dims = unmoved(graph, second, image, out)?;
            to[at] = out;
            shuffle.to[at] = dims.iter().position(|&old| old == dim)?;
        }
        name if SPLITS.contains(&name) && along(graph, arg(graph, second, SPLIT_DIM)?, image)? == dim => {
            let parts = items(graph, arg(graph, second, PARTS)?).filter(|parts| parts.len() <= MOST)?;
            shuffle.to.splice(at..=at, parts.iter().map(|_| dim));
            to.splice(at..=at, parts);
        }
        _ => return None,
    }
    Some(Joined { shuffle, from, to })
}

/// The dimension that a number names.
fn along(graph: &PlanGraph<'_>, number: ValueId, image: ValueId) -> Option<usize> {
    let rank = graph.tensor(tensor(graph, image)?).bounds().len() as i64;
    match graph.value(number) {
        Value::Int(dim) if !graph.is_variable(number) && (-rank..rank).contains(&dim) => {
            Some(dim.rem_euclid(rank) as usize)
        }
        _ => None,
    }
}

/// The dimensions of the input that those of the output are, if every element stays where it is in memory.
fn unmoved(graph: &PlanGraph<'_>, permutation: Call, input: ValueId, out: ValueId) -> Option<Vec<usize>> {
    let Value::IntList(list) = graph.value(arg(graph, permutation, DIMS)?) else { return None };
    let dims: Option<Vec<usize>> = graph.items(list).iter().map(|&number| along(graph, number, input)).collect();
    let (dims, input, out) = (dims?, graph.tensor(tensor(graph, input)?), graph.tensor(tensor(graph, out)?));
    let of_input = |&dim: &u8| dims.get(usize::from(dim)).copied();
    let stays = dims.len() == input.bounds().len()
        && out.dim_order().iter().map(of_input).eq(input.dim_order().iter().map(|&dim| Some(usize::from(dim))));
    (stays && input.dtype() == out.dtype()).then_some(dims)
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
