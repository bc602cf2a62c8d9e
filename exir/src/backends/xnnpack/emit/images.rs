//! Pooling, resizing and padding in payloads.

use edgepack_format::xnnpack::{Node1x1, NodeUnion, Pooling2D, StaticConstantPad, StaticResizeBilinear2D};

use super::super::op::Windows;
use super::values::{Emitter, image};
use crate::error::Error;
use crate::graph::ValueId;

/// Keeps dimensions that were reduced.
const KEEP_DIMS: u32 = 0x40;
/// Lets corners of images stay where they are.
const ALIGN_CORNERS: u32 = 8;

impl Emitter<'_, '_, '_> {
    pub(super) fn pool(&mut self, windows: &Windows, greatest: bool, result: ValueId) -> Result<(), Error> {
        let order = image(4);
        let input_id = self.get(windows.x, &order)?;
        let output_id = self.reduced(windows.x, windows.size, result)?;
        let node = Pooling2D {
            padding_top: windows.before[0],
            padding_right: windows.after[1],
            padding_bottom: windows.after[0],
            padding_left: windows.before[1],
            pooling_height: windows.size[0],
            pooling_width: windows.size[1],
            stride_height: windows.stride[0],
            stride_width: windows.stride[1],
            dilation_height: windows.dilation[0],
            dilation_width: windows.dilation[1],
            input_id,
            output_id,
            flags: KEEP_DIMS,
        };
        self.node(if greatest { NodeUnion::MaxPooling2d(node) } else { NodeUnion::AvgPooling2d(node) }, None);
        self.without_reduced(output_id, result)
    }

    /// Returns what a node makes of images that are reduced in windows. A result without the dimensions of one element is
    /// made of it behind the node.
    fn reduced(&mut self, x: ValueId, size: [u32; 2], result: ValueId) -> Result<u32, Error> {
        let order = image(4);
        if self.facts.rank(result) == order.len() {
            return self.make(result, &order);
        }
        let mut dims = self.dims(x, &order)?;
        for (dim, size) in dims.iter_mut().skip(1).zip(size) {
            *dim = dim.checked_div(size).unwrap_or(1);
        }
        Ok(self.hidden(self.spec_of(result, dims))?.id())
    }

    fn without_reduced(&mut self, output_id: u32, result: ValueId) -> Result<(), Error> {
        let rank = self.facts.rank(result);
        if rank == 4 {
            return Ok(());
        }
        let order = image(rank);
        let all = self.facts.graph.tensor(result).map(|meta| meta.sizes.clone()).unwrap_or_default();
        let sizes: Vec<_> = order.iter().filter_map(|dim| all.get(*dim).cloned()).collect();
        let made = self.make(result, &order)?;
        self.reshaped(&sizes, output_id, made);
        Ok(())
    }

    pub(super) fn mean(&mut self, x: ValueId, result: ValueId) -> Result<(), Error> {
        let order = image(4);
        let (input_id, dims) = (self.get(x, &order)?, self.dims(x, &order)?);
        let whole = [dims.get(1).copied().unwrap_or(1), dims.get(2).copied().unwrap_or(1)];
        let output_id = self.reduced(x, whole, result)?;
        self.node(NodeUnion::GlobalAvgPooling2d(Node1x1 { input_id, output_id, flags: KEEP_DIMS }), None);
        self.without_reduced(output_id, result)
    }

    pub(super) fn resize(&mut self, x: ValueId, align_corners: bool, result: ValueId) -> Result<(), Error> {
        let order = image(4);
        let dims = self.dims(result, &order)?;
        let (new_height, new_width) = (dims.get(1).copied().unwrap_or(1), dims.get(2).copied().unwrap_or(1));
        let (input_id, output_id) = (self.get(x, &order)?, self.make(result, &order)?);
        let flags = if align_corners { ALIGN_CORNERS } else { 0 };
        let node = StaticResizeBilinear2D { new_height, new_width, input_id, output_id, flags };
        self.node(NodeUnion::StaticResizeBilinear2D(node), None);
        Ok(())
    }

    pub(super) fn pad(
        &mut self,
        x: ValueId,
        before: &[u32],
        after: &[u32],
        padding_value: f32,
        result: ValueId,
    ) -> Result<(), Error> {
        let order = self.order(x);
        let (input_id, output_id) = (self.get(x, &order)?, self.make(result, &order)?);
        let turned =
            |pads: &[u32]| -> Vec<u32> { order.iter().map(|dim| pads.get(*dim).copied().unwrap_or(0)).collect() };
        let node = StaticConstantPad {
            pre_paddings: Some(turned(before).into()),
            post_paddings: Some(turned(after).into()),
            padding_value,
            input_id,
            output_id,
            flags: 0,
        };
        self.node(NodeUnion::StaticConstantPad(node), None);
        Ok(())
    }
}
