//! A shuffle of channels is one instruction.
//!
//! Exported programs cut the channels of an image into groups by a view, swap the two dimensions that makes, and join them
//! by another view. Images with their channels innermost have no such views, so the three are one instruction, which reads
//! and writes images in any order.

use std::rc::Rc;
use std::sync::Arc;

use edgepack_executor::kernel::Operator;
use edgepack_executor::plan::{self, PlanGraph, PlanInstructionKind, Rewrite};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::{Dynamism, NONE, ValueId};

use super::chain::{Call, collected, is_private, own_names, tensor};
use super::copies;
use super::permutation::Permutation;
use crate::aten::movement::shuffle::Shuffle;

/// Recognises shuffles of channels.
pub struct ShuffleChannels;

impl Rewrite for ShuffleChannels {
    fn name(&self) -> &'static str {
        "shuffle channels"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        // Who has none need not be looked at closely.
        let Some(names) = own_names(graph) else { return 0 };
        let mut swaps = Vec::new();
        for chain in 0..graph.chains().len() {
            for index in 0..graph.chains()[chain].len() {
                let Some(call) = call(graph, chain, index) else { continue };
                if let Some(swap) = swap(graph, &names, call) {
                    swaps.push((call, swap));
                }
            }
        }
        if swaps.is_empty() {
            return 0;
        }
        let Some(values) = Values::new(graph) else { return 0 };
        let found: Vec<Found> =
            swaps.into_iter().filter_map(|(call, swap)| Found::new(graph, &values, &names, call, swap)).collect();
        found.into_iter().filter_map(|found| found.replace(graph)).count()
    }
}

fn call(graph: &PlanGraph<'_>, chain: usize, index: usize) -> Option<Call> {
    match graph.chains()[chain][index].kind {
        PlanInstructionKind::Kernel { operator, args } => Some(Call { chain, index, operator, args }),
        _ => None,
    }
}

/// Returns whether an instruction is still the call that it was.
fn is_unchanged(graph: &PlanGraph<'_>, known: &Call) -> bool {
    call(graph, known.chain, known.index).is_some_and(|call| (call.operator, call.args) == (known.operator, known.args))
}

/// Returns the first of two neighbouring dimensions that an instruction swaps, its input and its output; `None` if it
/// does anything else.
fn swap(graph: &PlanGraph<'_>, names: &[Option<&str>], call: Call) -> Option<(usize, ValueId, ValueId)> {
    // Operators that were added since are not exported ones.
    let name = (*names.get(call.operator as usize)?)?;
    let Permutation { from, to, mut dims } = Permutation::of(graph, name, graph.args(call.args))?;
    let first = dims.iter().zip(0..).position(|(&dim, place)| dim != place)?;
    dims.get(first + 1)?;
    dims.swap(first, first + 1);
    dims.into_iter().eq(0..graph.tensor(tensor(graph, from)?).bounds().len()).then_some((first, from, to))
}

/// A shuffle of channels that was found.
struct Found {
    dim: usize,
    groups: usize,
    from: ValueId,
    to: ValueId,
    /// The instructions that it is made of, in order; nothing is between them.
    calls: Vec<Call>,
}

impl Found {
    /// Looks before and behind an instruction that swaps two dimensions of an input into an output.
    fn new(
        graph: &PlanGraph<'_>,
        values: &Values,
        names: &[Option<&str>],
        swap: Call,
        (dim, mut from, mut to): (usize, ValueId, ValueId),
    ) -> Option<Found> {
        let split = plain(graph, from)?;
        plain(graph, to)?;
        let (&groups, &each) = (split.get(dim)?, split.get(dim + 1)?);
        if groups < 2 || each < 2 {
            return None;
        }
        let is_joined = |id: ValueId| {
            plain(graph, id).is_some_and(|sizes| {
                sizes.len() + 1 == split.len()
                    && sizes[..dim] == split[..dim]
                    && groups.checked_mul(each) == Some(sizes[dim])
                    && sizes[dim + 1..] == split[dim + 2..]
            })
        };
        let mut calls = vec![swap];
        from = match shown(graph, values, from, is_joined) {
            Some(base) => base,
            None => {
                let copy = (0..swap.index).rev().find_map(|index| next(graph, swap.chain, index))??;
                let (input, _) = copied(graph, names, copy).filter(|&(_, out)| out == from)?;
                if !is_private(graph, &values.uses, from) {
                    return None;
                }
                calls.insert(0, copy);
                if is_joined(input) { input } else { shown(graph, values, input, is_joined)? }
            }
        };
        let count = graph.chains()[swap.chain].len();
        while !is_joined(to) {
            if let Some(view) = only_view(graph, values, to, is_joined) {
                to = view;
                break;
            }
            let last = calls.last()?.index;
            let copy = (last + 1..count).find_map(|index| next(graph, swap.chain, index))??;
            let (_, out) = copied(graph, names, copy).filter(|&(input, _)| input == to)?;
            if !is_private(graph, &values.uses, to) {
                return None;
            }
            calls.push(copy);
            to = out;
        }
        let (source, result) = (graph.tensor(tensor(graph, from)?), graph.tensor(tensor(graph, to)?));
        let fits = source.dtype() == result.dtype() && !source.overlaps(&result) && !source.is_constant();
        fits.then_some(Found { dim, groups, from, to, calls })
    }

    fn replace(self, graph: &mut PlanGraph<'_>) -> Option<()> {
        let Found { dim, groups, from, to, calls } = self;
        let shuffle = Shuffle { groups, from: dim, to: vec![dim] };
        let (from, to) = (graph.push_tensors(&[from])?, graph.push_tensors(&[to])?);
        let args = [from, to, to];
        if !calls.iter().all(|call| is_unchanged(graph, call)) {
            return None;
        }
        if !graph.look(&args, |args| shuffle.fits(args))? {
            return None;
        }
        let operator = graph.push_operator(Arc::new(shuffle) as Arc<dyn Operator>).ok()?;
        let (last, others) = calls.split_last()?;
        graph.replace(last.chain, last.index, plan::Call::Kernel { operator, args: &args }).ok()?;
        others.iter().try_for_each(|call| graph.replace(call.chain, call.index, plan::Call::Nothing).ok())
    }
}

/// The sizes of a tensor that never change and whose elements are in index order.
fn plain<'g>(graph: &'g PlanGraph<'_>, id: ValueId) -> Option<&'g [usize]> {
    let tensor = graph.tensor(tensor(graph, id)?);
    let in_order = tensor.dim_order().iter().zip(0..).all(|(&dim, at)| dim == at);
    (in_order && tensor.dynamism() == Dynamism::Static).then_some(tensor.bounds())
}

/// The instruction at an index: `None` if there is nothing, `Some(None)` if it is not a call of a kernel.
fn next(graph: &PlanGraph<'_>, chain: usize, index: usize) -> Option<Option<Call>> {
    match graph.chains()[chain][index].kind {
        PlanInstructionKind::Nop => None,
        _ => Some(call(graph, chain, index)),
    }
}

/// The input and the output of an instruction that copies elements as they are.
fn copied(graph: &PlanGraph<'_>, names: &[Option<&str>], call: Call) -> Option<(ValueId, ValueId)> {
    let name = (*names.get(call.operator as usize)?)?;
    let [input, out] = copies::copied(graph, name, graph.args(call.args))?;
    plain(graph, input)?;
    plain(graph, out)?;
    Some((input, out))
}

/// Values by what they are.
struct Values {
    uses: Rc<Uses>,
    /// By tensor: the value that it is.
    of: Vec<ValueId>,
    /// By tensor: the tensor that alone shows its bytes, if there is one.
    view: Vec<View>,
}

#[derive(Clone, Copy)]
enum View {
    No,
    Only(u32),
    Several,
}

impl Values {
    fn new(graph: &PlanGraph<'_>) -> Option<Values> {
        let uses = Uses::of(graph)?;
        let count = graph.tensor_count();
        let mut of = collected(count, std::iter::repeat(NONE))?;
        for id in 0..graph.value_count() as ValueId {
            if let Some(tensor) = tensor(graph, id) {
                of[tensor as usize] = id;
            }
        }
        let mut view = collected(count, std::iter::repeat(View::No))?;
        for (tensor, base) in uses.views() {
            let view = &mut view[base as usize];
            *view = if let View::No = view { View::Only(tensor) } else { View::Several };
        }
        Some(Values { uses, of, view })
    }

    fn of_tensor(&self, tensor: u32) -> Option<ValueId> {
        self.of.get(tensor as usize).copied().filter(|&id| id != NONE)
    }
}

/// A value whose bytes a value shows, and that is as wanted.
fn shown(graph: &PlanGraph<'_>, values: &Values, id: ValueId, wanted: impl Fn(ValueId) -> bool) -> Option<ValueId> {
    let base = values.uses.of_tensor(tensor(graph, id)?).view_of?;
    values.of_tensor(base).filter(|&base| wanted(base))
}

/// The value through which alone a value is read, if it is as wanted.
fn only_view(graph: &PlanGraph<'_>, values: &Values, id: ValueId, wanted: impl Fn(ValueId) -> bool) -> Option<ValueId> {
    let tensor = tensor(graph, id)?;
    let View::Only(view) = values.view[tensor as usize] else { return None };
    let (base, how) = (values.uses.of_tensor(tensor), values.uses.of_tensor(view));
    // What is pinned is known to others by its place.
    let is_only = (base.writes, base.pinned, base.view_of) == (1, false, None)
        && (how.writes, how.pinned, how.reads) == (0, false, base.reads);
    values.of_tensor(view).filter(|&view| is_only && wanted(view))
}
