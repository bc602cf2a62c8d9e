//! Calls that move numbers, in payloads.

use edgepack_format::xnnpack::{Cat, NO_ID, Node1x1, NodeUnion, StaticSlice};

use super::super::op::Range;
use super::values::{Emitter, Order, plain};
use crate::error::Error;
use crate::graph::{Size, ValueId};

/// Inputs of one node that puts tensors behind each other.
const MOST_INPUTS: usize = 5;

impl Emitter<'_, '_, '_> {
    pub(super) fn softmax(&mut self, x: ValueId, dim: usize, result: ValueId) -> Result<(), Error> {
        let order = Some(self.order(x)).filter(|order| order.last() == Some(&dim));
        let moved = || plain(self.facts.rank(x)).into_iter().filter(|other| *other != dim).chain([dim]).collect();
        let order: Order = order.unwrap_or_else(moved);
        let (input_id, output_id) = (self.get(x, &order)?, self.make(result, &order)?);
        self.node(NodeUnion::Softmax(Node1x1 { input_id, output_id, flags: 0 }), None);
        Ok(())
    }

    pub(super) fn cat(&mut self, items: &[ValueId], dim: usize, result: ValueId) -> Result<(), Error> {
        let made = items.iter().find(|item| self.facts.constant(**item).is_none());
        let order = made.map_or_else(|| plain(self.facts.rank(result)), |item| self.order(*item));
        let axis = place(&order, dim);
        let mut ids = Vec::with_capacity(items.len());
        let mut total = 0u32;
        for item in items {
            ids.push(self.get(*item, &order)?);
        }
        let length = |this: &Self, item: &ValueId| -> Result<u32, Error> {
            Ok(this.dims(*item, &order)?.get(axis as usize).copied().unwrap_or(0))
        };
        let (mut left, mut items) = (ids.as_slice(), items);
        let mut behind: Option<u32> = None;
        loop {
            let count = MOST_INPUTS.saturating_sub(usize::from(behind.is_some())).min(left.len());
            let (now, later) = left.split_at(count);
            let (these, others) = items.split_at(count.min(items.len()));
            for item in these {
                total = total.saturating_add(length(self, item)?);
            }
            let output_id = match later.is_empty() {
                true => self.make(result, &order)?,
                false => {
                    let mut dims = self.dims(result, &order)?;
                    if let Some(dim) = dims.get_mut(axis as usize) {
                        *dim = total;
                    }
                    self.hidden(self.spec_of(result, dims))?.id()
                }
            };
            let inputs: Vec<u32> = behind.into_iter().chain(now.iter().copied()).collect();
            self.node(joined(&inputs, axis, output_id), None);
            if later.is_empty() {
                return Ok(());
            }
            (left, items, behind) = (later, others, Some(output_id));
        }
    }

    pub(super) fn slice(&mut self, x: ValueId, dim: usize, parts: &[Range], results: &[ValueId]) -> Result<(), Error> {
        let order = self.order(x);
        for (part, result) in parts.iter().zip(results).filter(|(_, result)| !self.facts.is_unused(**result)) {
            let (input_id, output_id) = (self.get(x, &order)?, self.make(*result, &order)?);
            let node = self.part(x, &order, dim, *part, input_id, output_id);
            self.node(node, None);
        }
        Ok(())
    }

    pub(super) fn select(&mut self, x: ValueId, dim: usize, index: u32, result: ValueId) -> Result<(), Error> {
        let order = self.order(x);
        let mut dims = self.dims(x, &order)?;
        if let Some(dim) = dims.get_mut(place(&order, dim) as usize) {
            *dim = 1;
        }
        let input_id = self.get(x, &order)?;
        let hidden = self.hidden(self.spec_of(result, dims))?.id();
        let node = self.part(x, &order, dim, Range { start: index, len: 1 }, input_id, hidden);
        self.node(node, None);
        let without: Order = order
            .iter()
            .filter(|other| **other != dim)
            .map(|other| if *other > dim { other.saturating_sub(1) } else { *other })
            .collect();
        let sizes = self.sizes(result, &without);
        let output_id = self.make(result, &without)?;
        self.reshaped(&sizes, hidden, output_id);
        Ok(())
    }

    fn part(
        &self,
        x: ValueId,
        order: &[usize],
        dim: usize,
        range: Range,
        input_id: u32,
        output_id: u32,
    ) -> NodeUnion<'static> {
        // 0 stands for all there is.
        let size = |size: &Size| size.known().and_then(|size| u32::try_from(size).ok()).unwrap_or(0);
        let mut sizes: Vec<u32> = self.sizes(x, order).iter().map(size).collect();
        let mut offsets = vec![0; sizes.len()];
        let place = place(order, dim) as usize;
        if let (Some(size), Some(offset)) = (sizes.get_mut(place), offsets.get_mut(place)) {
            (*size, *offset) = (range.len, range.start);
        }
        let num_dims = sizes.len() as u32;
        let (offsets, sizes) = (Some(offsets.into()), Some(sizes.into()));
        NodeUnion::StaticSlice(StaticSlice { num_dims, offsets, sizes, input_id, output_id, flags: 0 })
    }

    /// Returns the sizes of a tensor in an order.
    fn sizes(&self, value: ValueId, order: &[usize]) -> Vec<Size> {
        let sizes = self.facts.graph.tensor(value).map(|meta| meta.sizes.as_slice()).unwrap_or_default();
        order.iter().filter_map(|dim| sizes.get(*dim).cloned()).collect()
    }

    /// Another order of dimensions is the same value by other names, until something asks for an order.
    pub(super) fn permute(&mut self, x: ValueId, dims: &[usize], result: ValueId) -> Result<(), Error> {
        self.alias(result, x, |order| order.iter().map(|dim| place(dims, *dim) as usize).collect())
    }

    pub(super) fn reshape(&mut self, x: ValueId, result: ValueId) -> Result<(), Error> {
        let order = plain(self.facts.rank(result));
        let sizes = self.sizes(result, &order);
        let input_id = self.get_in_order(x)?;
        let output_id = self.make(result, &order)?;
        self.reshaped(&sizes, input_id, output_id);
        Ok(())
    }
}

/// Returns where a dimension is in an order.
fn place(order: &[usize], dim: usize) -> u32 {
    order.iter().position(|other| *other == dim).map_or(0, |place| place as u32)
}

fn joined(inputs: &[u32], axis: u32, output_id: u32) -> NodeUnion<'static> {
    let at = |index: usize| inputs.get(index).copied().unwrap_or(NO_ID);
    let node = Cat {
        axis,
        input1_id: at(0),
        input2_id: at(1),
        input3_id: at(2),
        input4_id: at(3),
        output_id,
        flags: 0,
        input5_id: at(4),
    };
    match inputs.len() {
        2 => NodeUnion::Concatenate2(node),
        3 => NodeUnion::Concatenate3(node),
        4 => NodeUnion::Concatenate4(node),
        _ => NodeUnion::Concatenate5(node),
    }
}
