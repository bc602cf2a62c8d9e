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
        let (input_id, output_id) = (self.get(windows.x, &order)?, self.make(result, &order)?);
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
        Ok(())
    }

    pub(super) fn mean(&mut self, x: ValueId, result: ValueId) -> Result<(), Error> {
        let order = image(4);
        let input_id = self.get(x, &order)?;
        let keeps = self.facts.rank(result) == 4;
        let output_id = match keeps {
            true => self.make(result, &order)?,
            false => {
                let dims = self.dims(x, &order)?;
                let dims = dims.iter().enumerate().map(|(place, dim)| if [1, 2].contains(&place) { 1 } else { *dim });
                self.hidden(self.spec_of(result, dims.collect()))?.id()
            }
        };
        self.node(NodeUnion::GlobalAvgPooling2d(Node1x1 { input_id, output_id, flags: KEEP_DIMS }), None);
        if !keeps {
            let sizes = self.facts.graph.tensor(result).map(|meta| meta.sizes.clone()).unwrap_or_default();
            let made = self.make(result, &[0, 1])?;
            self.reshaped(&sizes, output_id, made);
        }
        Ok(())
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
