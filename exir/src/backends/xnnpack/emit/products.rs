//! Convolutions and products in payloads.

use edgepack_builder::content::Data;
use edgepack_builder::xnnpack::{Quant, Scales as Constants, ValueSpec};
use edgepack_format::scalar::ScalarType;
use edgepack_format::xnnpack::{Datatype, FullyConnected, NO_ID, Node2x1, NodeConv, NodeUnion};

use super::super::op::{Conv, Filter, Input, Linear, Scales};
use super::super::weights;
use super::values::{Emitter, image, plain};
use crate::archive::Weight;
use crate::error::Error;
use crate::graph::{Size, ValueId};

/// Result of a product, and the range that it is held to.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) result: ValueId,
    pub(super) bounds: Option<(f32, f32)>,
}

impl Emitter<'_, '_, '_> {
    pub(super) fn linear(&mut self, linear: &Linear, target: Target) -> Result<(), Error> {
        let x = linear.input.value();
        let rank = self.facts.rank(x);
        let order = Some(self.order(x)).filter(|order| order.last() == rank.checked_sub(1).as_ref());
        let order = order.unwrap_or_else(|| plain(rank));
        let input1_id = match linear.input {
            Input::Dynamic(x) => self.rows(x, &order, 1)?,
            Input::Float(x) | Input::Static(x) => self.get(x, &order)?,
        };
        let Some((name, weight)) = self.facts.constant(linear.filter.value) else {
            return Err(self.failure(linear.filter.value, "it is not a constant"));
        };
        let by_output = if linear.by_input { [1, 0] } else { [0, 1] };
        let dims: Vec<u32> =
            by_output.iter().map(|dim| weight.sizes().get(*dim).map_or(0, |size| *size as u32)).collect();
        let data = weights::data(weight, &by_output)?;
        let filter_id = self.filter(&linear.filter, linear.input, name, dims, data, 0)?;
        let bias_id = self.bias(linear.bias, linear.input, &linear.filter)?;
        let output_id = self.make(target.result, &order)?;
        let node = FullyConnected { input1_id, filter_id, bias_id, output_id, flags: 0 };
        self.node(NodeUnion::FullyConnected(node), target.bounds);
        Ok(())
    }

    pub(super) fn product(&mut self, a: ValueId, b: ValueId, result: ValueId) -> Result<(), Error> {
        let order = plain(self.facts.rank(result));
        let (input1_id, input2_id) = (self.get(a, &order)?, self.get(b, &order)?);
        let output_id = self.make(result, &order)?;
        self.node(NodeUnion::BatchMatrixMultiply(Node2x1 { input1_id, input2_id, output_id, flags: 0 }), None);
        Ok(())
    }

    pub(super) fn conv(&mut self, conv: &Conv, target: Target) -> Result<(), Error> {
        let (x, result) = (conv.input.value(), target.result);
        let order = image(self.facts.rank(x));
        let mut input1_id = match conv.input {
            Input::Dynamic(x) => self.rows(x, &order, 3)?,
            Input::Float(x) | Input::Static(x) => self.get(x, &order)?,
        };
        if conv.flat {
            let sizes = self.rows_of_images(x);
            let flat = self.hidden(self.spec_of(x, self.flat_dims(x)?))?;
            self.reshaped(&sizes, input1_id, flat.id());
            input1_id = flat.id();
        }
        let Some((name, weight)) = self.facts.constant(conv.filter.value) else {
            return Err(self.failure(conv.filter.value, "it is not a constant"));
        };
        let (weight, from, dims) =
            turned(conv, weight).ok_or_else(|| self.failure(conv.filter.value, "its groups do not fit"))?;
        let data = weights::data(&weight, &from)?;
        let channel_dim = if conv.is_depthwise() { 3 } else { 0 };
        let (filter_id, bias_id) = match conv.transposed && weight.scalar_type() == ScalarType::HALF {
            true => self.single(conv, name, dims, &data.to_vec()?)?,
            false => {
                let filter = self.filter(&conv.filter, conv.input, name, dims, data, channel_dim)?;
                (filter, self.bias(conv.bias, conv.input, &conv.filter)?)
            }
        };
        let output_id = match conv.flat {
            true => self.hidden(self.spec_of(result, self.flat_dims(result)?))?.id(),
            false => self.make(result, &order)?,
        };
        let [outer, inner, kernel_height, kernel_width] = conv.sizes.map(|size| size as u32);
        let groups = conv.groups as u32;
        let of_group = |channels: u32| channels.checked_div(groups).unwrap_or(0);
        let (group_input_channels, group_output_channels) = match conv.transposed {
            true => (of_group(outer), inner),
            false => (inner, of_group(outer)),
        };
        let [padding_height, padding_width] = conv.padding;
        let node = NodeConv {
            padding_top: padding_height,
            padding_right: padding_width,
            padding_bottom: padding_height,
            padding_left: padding_width,
            kernel_height,
            kernel_width,
            subsampling_height: conv.stride[0],
            subsampling_width: conv.stride[1],
            dilation_height: conv.dilation[0],
            dilation_width: conv.dilation[1],
            group_input_channels,
            group_output_channels,
            groups,
            adjustment_height: conv.adjustment[0],
            adjustment_width: conv.adjustment[1],
            input1_id,
            filter_id,
            bias_id,
            output_id,
            flags: 0,
        };
        let kind = match (conv.transposed, conv.is_depthwise()) {
            (true, _) => NodeUnion::ConvTranspose2d(node),
            (_, true) => NodeUnion::DepthwiseConv2d(node),
            _ => NodeUnion::Conv2d(node),
        };
        self.node(kind, target.bounds);
        if conv.flat {
            let sizes: Vec<Size> =
                order.iter().filter_map(|dim| self.facts.graph.tensor(result)?.sizes.get(*dim).cloned()).collect();
            let rows = self.make(result, &order)?;
            self.reshaped(&sizes, output_id, rows);
        }
        Ok(())
    }

    /// Adds filter and bias of a transposed convolution of half precision: its node takes them in single precision.
    fn single(&mut self, conv: &Conv, name: &str, dims: Vec<u32>, bytes: &[u8]) -> Result<(u32, u32), Error> {
        let numbers = weights::halves(bytes);
        let spec = ValueSpec::new(Datatype::FP32, dims);
        let filter = self.constant_of(name, spec, weights::of_floats(&numbers))?.id();
        let Some((name, weight)) = conv.bias.and_then(|bias| self.facts.constant(bias)) else {
            return Ok((filter, NO_ID));
        };
        let numbers = weights::floats(weight)?;
        let spec = ValueSpec::new(Datatype::FP32, vec![u32::try_from(numbers.len()).unwrap_or(u32::MAX)]);
        Ok((filter, self.constant_of(name, spec, weights::of_floats(&numbers))?.id()))
    }

    /// Returns the sizes of a batch of rows as images of one row.
    fn rows_of_images(&self, x: ValueId) -> Vec<Size> {
        let sizes = self.facts.graph.tensor(x).map(|meta| meta.sizes.clone()).unwrap_or_default();
        let at = |dim: usize| sizes.get(dim).cloned().unwrap_or(Size::Known(1));
        vec![at(0), Size::Known(1), at(2), at(1)]
    }

    fn flat_dims(&self, x: ValueId) -> Result<Vec<u32>, Error> {
        let mut dims = self.dims(x, &image(3))?;
        dims.insert(1, 1);
        Ok(dims)
    }

    /// Adds a filter of this content, in the form that its scales ask for.
    fn filter(
        &mut self,
        filter: &Filter,
        input: Input,
        name: &str,
        dims: Vec<u32>,
        data: Data<'static>,
        channel_dim: i32,
    ) -> Result<u32, Error> {
        let row = dims.last().map_or(1, |row| *row as usize);
        let (spec, data) = match filter.scales {
            Scales::None => (self.spec_of(filter.value, dims), data),
            Scales::Tensor(scale) => {
                let quant = Quant::PerTensor { scale: scale as f32, zero_point: 0 };
                (ValueSpec::new(Datatype::QINT8, dims).quantized(quant), data)
            }
            Scales::Channel { scales, four_bits } => {
                let scales = self.channel_scales(scales)?;
                let quant = Quant::PerChannel { channel_dim, scales };
                match four_bits && matches!(input, Input::Dynamic(_)) {
                    true => (ValueSpec::new(Datatype::QCINT4, dims).quantized(quant), weights::packed(data, row)),
                    false => (ValueSpec::new(Datatype::QCINT8, dims).quantized(quant), data),
                }
            }
            Scales::Group { scales, size } => {
                let (scale_name, numbers) = self.scales(scales)?;
                let scales = self.scales_of(&scale_name, weights::of_blocks(&numbers), numbers.len())?;
                let group_size = i32::try_from(size).unwrap_or(i32::MAX);
                let quant = Quant::PerGroup { group_size, scales };
                (ValueSpec::new(Datatype::QBINT4, dims).quantized(quant), weights::packed(data, row))
            }
        };
        Ok(self.constant_of(name, spec, data)?.id())
    }

    fn scales(&self, scales: ValueId) -> Result<(String, Vec<f32>), Error> {
        let found = self.facts.constant(scales).ok_or_else(|| self.failure(scales, "it is not a constant"))?;
        Ok((found.0.to_owned(), weights::floats(found.1)?))
    }

    fn channel_scales(&mut self, scales: ValueId) -> Result<Constants, Error> {
        let (name, numbers) = self.scales(scales)?;
        self.scales_of(&name, weights::of_floats(&numbers), numbers.len())
    }

    /// Adds a bias: floats, or whole numbers of the scales of a product of bytes.
    fn bias(&mut self, bias: Option<ValueId>, input: Input, filter: &Filter) -> Result<u32, Error> {
        let Some(bias) = bias else { return Ok(NO_ID) };
        let Some((name, weight)) = self.facts.constant(bias) else {
            return Err(self.failure(bias, "it is not a constant"));
        };
        let count = weight.sizes().iter().product::<usize>();
        let dims = vec![u32::try_from(count).unwrap_or(u32::MAX)];
        let (Input::Static(x), Some(params)) = (input, self.params(input.value())) else {
            let bytes = weights::bytes(weight, &plain(weight.sizes().len()))?;
            let spec = self.spec_of(bias, dims);
            return Ok(self.constant_of(name, spec, bytes)?.id());
        };
        let numbers = weights::floats(weight)?;
        let (spec, scales) = match filter.scales {
            Scales::Tensor(scale) => {
                let scale = (scale * params.scale) as f32;
                let quant = Quant::PerTensor { scale, zero_point: 0 };
                (ValueSpec::new(Datatype::QINT32, dims).quantized(quant), vec![scale])
            }
            Scales::Channel { scales, .. } | Scales::Group { scales, .. } => {
                let (scale_name, own) = self.scales(scales)?;
                let product: Vec<f32> = own.iter().map(|scale| scale * params.scale as f32).collect();
                let scales = self.scales_of(&scale_name, weights::of_floats(&product), product.len())?;
                (
                    ValueSpec::new(Datatype::QCINT32, dims).quantized(Quant::PerChannel { channel_dim: 0, scales }),
                    product,
                )
            }
            Scales::None => return Err(self.failure(x, "bytes meet a filter of floats")),
        };
        Ok(self.constant_of(name, spec, weights::bias(&numbers, &scales))?.id())
    }
}

/// Returns the filter of a convolution, the order its bytes are written in, and their dimensions.
fn turned<'w>(conv: &Conv, weight: &Weight<'w>) -> Option<(Weight<'w>, Vec<usize>, Vec<u32>)> {
    let [outer, inner, height, width] = conv.sizes;
    let square = weight.reviewed(|sizes, strides, _| {
        if conv.flat {
            sizes.insert(2, 1);
            strides.insert(2, 0);
        }
        Some(())
    })?;
    let (weight, order, dims) = match (conv.transposed, conv.is_depthwise()) {
        (true, _) => {
            let of_group = outer.checked_div(conv.groups)?;
            let grouped = square.reviewed(|sizes, strides, _| {
                let stride = *strides.first()?;
                strides.insert(0, stride.checked_mul(of_group)?);
                *sizes = vec![conv.groups, of_group, inner, height, width];
                Some(())
            })?;
            (grouped, vec![0, 2, 3, 4, 1], [conv.groups.checked_mul(inner)?, height, width, of_group])
        }
        (_, true) => (square, vec![1, 2, 3, 0], [1, height, width, outer]),
        _ => (square, vec![0, 2, 3, 1], [outer, height, width, inner]),
    };
    let dims = dims.map(u32::try_from).into_iter().collect::<Result<Vec<u32>, _>>().ok()?;
    Some((weight, order, dims))
}
