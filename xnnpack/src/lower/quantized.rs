//! Nodes on quantised numbers.

use edgepack_executor::delegate::Local;
use edgepack_executor::kernel::KernelError;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;
use edgepack_format::xnnpack::{Datatype, Node, NodeConv, NodeUnion, Quantization};

use super::float::is_float;
use super::values::{Derived, Lowered};
use super::{Lowering, Made, refused};
use crate::operators::integer::{self, Multiple, Requantize, Sum, Windows};
use crate::operators::rows;

/// A bound of a result as a quantised number.
fn quantized_bound(bound: f32, scale: f32, zero: i32) -> i32 {
    (bound / scale + zero as f32).clamp(-128.0, 127.0).round_ties_even() as i32
}

impl Lowering<'_> {
    /// Scale and zero point of a signed 8-bit value.
    fn signed(&self, index: usize, datatype: Datatype) -> Result<(f32, i32), KernelError> {
        match datatype {
            Datatype::QINT8 => self.values.per_tensor(index),
            other => Err(refused(format!("{} is not run here", other.label().unwrap_or("an unknown type")))),
        }
    }

    fn signed_result(&self, made: Made) -> Result<(f32, i32), KernelError> {
        self.signed(self.values.index_of(made.id)?, self.values.datatype(made.id)?)
    }

    fn bounds_of(&self, node: &Node<'_>, (scale, zero): (f32, i32)) -> [i32; 2] {
        let (least, most) = node.bounds();
        [quantized_bound(least, scale, zero), quantized_bound(most, scale, zero)]
    }

    /// Another element type.
    pub(super) fn convert(&mut self, x: Lowered, made: Made) -> Result<(), KernelError> {
        let to = self.values.datatype(made.id)?;
        if to == Datatype::QDINT8 {
            return self.quantize_rows(x, made);
        }
        if to == x.datatype {
            return self.copy(x, made);
        }
        let out = self.values.make(made)?;
        match (x.datatype, to) {
            (from, to) if is_float(from) && is_float(to) => {
                let all = self.values.all();
                let (blocking, format) = (all.bool(false), all.none());
                self.values.call("aten::_to_copy.out", &[x.local, blocking, format, out.local], self.node)
            }
            (Datatype::FP32, Datatype::QINT8) => {
                let (scale, zero) = self.values.per_tensor(out.index)?;
                let args = self.affine(x.local, scale, zero);
                let args = [&args[..], &[out.local]].concat();
                self.values.call("quantized_decomposed::quantize_per_tensor.out", &args, self.node)
            }
            (Datatype::QINT8, Datatype::FP32) => {
                let (scale, zero) = self.values.per_tensor(x.index)?;
                let args = self.affine(x.local, scale, zero);
                let none = self.values.all().none();
                let args = [&args[..], &[none, out.local]].concat();
                self.values.call("quantized_decomposed::dequantize_per_tensor.out", &args, self.node)
            }
            (from, to) => {
                let label = |datatype: Datatype| datatype.label().unwrap_or("unknown");
                Err(refused(format!("from {} to {}", label(from), label(to))))
            }
        }
    }

    /// The arguments of quantising and dequantising signed bytes.
    fn affine(&mut self, x: Local, scale: f32, zero: i32) -> [Local; 6] {
        let all = self.values.all();
        let (scale, zero) = (all.double(scale.into()), all.int(zero.into()));
        [x, scale, zero, all.int(-128), all.int(127), all.int(ScalarType::CHAR.0.into())]
    }

    fn quantize_rows(&mut self, x: Lowered, made: Made) -> Result<(), KernelError> {
        if !matches!(x.datatype, Datatype::FP32 | Datatype::FP16) {
            return Err(refused("its input is not in floating point"));
        }
        let index = self.values.index_of(made.id)?;
        let Quantization::PerToken { num_nonbatch_dims } = self.values.quantization(index)? else {
            return Err(refused("its result has no rows"));
        };
        let inner = num_nonbatch_dims as usize;
        if self.values.again(x.local, &Derived::Rows(inner), made) {
            return Ok(());
        }
        let out = self.values.make(made)?;
        let outer =
            out.shape.rank().checked_sub(inner).ok_or_else(|| refused("rows of more dimensions than it has"))?;
        let rows = out.shape.dims()[..outer].iter().map(|dim| *dim as usize).product();
        let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[rows, 2]);
        let layout = layout.map_err(|error| refused(error.to_string()))?;
        let params = self.values.all().temporary(layout, out.dynamic);
        let operator = self.values.own(rows::quantize(inner));
        self.values.all().call(operator, &[x.local, out.local, params], self.node);
        let out = Lowered { rows: Some(params), ..out };
        self.values.remember(x.local, Derived::Rows(inner), out);
        self.values.put(made.id, out);
        Ok(())
    }

    /// `scale_x * scale_w / scale_y` for every channel.
    fn requantize(
        &self,
        node: &Node<'_>,
        x: Lowered,
        w: Lowered,
        channel_dim: usize,
        made: Made,
    ) -> Result<Requantize, KernelError> {
        let (sx, zero_x) = self.signed(x.index, x.datatype)?;
        let (sy, zero_y) = self.signed_result(made)?;
        let scales: Vec<f32> = match (w.datatype, self.values.quantization(w.index)?) {
            (Datatype::QCINT8, Quantization::PerChannel { channel_dim: dim, scales, .. })
                if dim as usize == channel_dim =>
            {
                scales.iter().map(|sw| (sx * sw) / sy).collect()
            }
            (Datatype::QINT8, Quantization::PerTensor { scale, zero_point: 0 }) => vec![(sx * scale) / sy],
            _ => return Err(refused("its weights are quantised in another way")),
        };
        // Derived numbers can be anything, whatever they are derived of.
        if !scales.iter().all(|scale| scale.is_normal() && *scale < 256.0) {
            return Err(refused("a scale of its sums is 0, too great or not a number"));
        }
        Ok(Requantize { scales, zero_x, zero_y, bounds: self.bounds_of(node, (sy, zero_y)) })
    }

    /// Bias, or none.
    fn bias(&mut self, inputs: &[Lowered], kinds: &[Datatype]) -> Result<Local, KernelError> {
        match inputs.get(2) {
            None => Ok(self.values.all().none()),
            Some(bias) if kinds.contains(&bias.datatype) && self.values.is_constant(bias.index) => Ok(bias.local),
            Some(_) => Err(refused("its bias is of another type")),
        }
    }

    /// A product of quantised rows with weights.
    pub(super) fn product_bytes(&mut self, node: &Node<'_>, inputs: &[Lowered], made: Made) -> Result<(), KernelError> {
        let (x, w) = (inputs[0], inputs[1]);
        if !self.values.is_constant(w.index) {
            return Err(refused("its weights are not constant"));
        }
        if let Some(params) = x.rows {
            let weights = self.row_weights(w)?;
            let [channels, inner] = *w.shape.dims() else { return Err(refused("its weights have not two dimensions")) };
            let packed = self.values.packed(w.index, weights.bits(), [channels as usize, inner as usize])?;
            let bias = self.bias(inputs, &[Datatype::FP32])?;
            let out = self.float_result(made)?;
            let operator = self.values.own(rows::product(packed, weights, node.bounds()));
            self.values.all().call(operator, &[x.local, params, bias, out.local], self.node);
            return Ok(());
        }
        let how = self.requantize(node, x, w, 0, made)?;
        let bias = self.bias(inputs, &[Datatype::QCINT32, Datatype::QINT32])?;
        let out = self.values.make(made)?;
        let operator = self.values.own(integer::product(how));
        self.values.all().call(operator, &[x.local, w.local, bias, out.local], self.node);
        Ok(())
    }

    fn float_result(&mut self, made: Made) -> Result<Lowered, KernelError> {
        match self.values.datatype(made.id)? {
            Datatype::FP32 => self.values.make(made),
            _ => Err(refused("its result is not in single precision")),
        }
    }

    fn row_weights(&self, w: Lowered) -> Result<rows::Weights, KernelError> {
        Ok(match (w.datatype, self.values.quantization(w.index)?) {
            (Datatype::QCINT8, Quantization::PerChannel { channel_dim: 0, scales, .. }) => {
                rows::Weights::Eight(scales.iter().collect())
            }
            (Datatype::QCINT4, Quantization::PerChannel { channel_dim: 0, scales, .. }) => {
                rows::Weights::Four(scales.iter().collect())
            }
            (Datatype::QBINT4, Quantization::PerGroup { channel_dim: 0, group_size, scales, .. })
                if group_size % 8 == 0 && group_size > 0 =>
            {
                rows::Weights::Blocks(scales.iter().map(|scale| scale.to_bits()).collect(), group_size as usize)
            }
            _ => return Err(refused("its weights are quantised in another way")),
        })
    }

    pub(super) fn convolution_bytes(
        &mut self,
        node: &Node<'_>,
        union: &NodeUnion<'_>,
        fields: &NodeConv,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        let (x, w) = (inputs[0], inputs[1]);
        if !self.values.is_constant(w.index) {
            return Err(refused("its weights are not constant"));
        }
        let pair = |height: u32, width: u32| [height as usize, width as usize];
        let windows = Windows {
            kernel: pair(fields.kernel_height, fields.kernel_width),
            stride: pair(fields.subsampling_height, fields.subsampling_width),
            dilation: pair(fields.dilation_height, fields.dilation_width),
            padding: [pair(fields.padding_top, fields.padding_bottom), pair(fields.padding_left, fields.padding_right)],
            groups: fields.groups as usize,
        };
        if let Some(params) = x.rows {
            let (NodeUnion::Conv2d(_), rows::Weights::Eight(scales)) = (union, self.row_weights(w)?) else {
                return Err(refused("its input is quantised row by row"));
            };
            let bias = self.bias(inputs, &[Datatype::FP32])?;
            let out = self.float_result(made)?;
            let operator = self.values.own(rows::convolution(scales, windows, node.bounds()));
            self.values.all().call(operator, &[x.local, params, w.local, bias, out.local], self.node);
            return Ok(());
        }
        let how = match union {
            NodeUnion::DepthwiseConv2d(_) => self.requantize(node, x, w, 3, made)?,
            _ => self.requantize(node, x, w, 0, made)?,
        };
        let bias = self.bias(inputs, &[Datatype::QCINT32, Datatype::QINT32])?;
        let out = self.values.make(made)?;
        let operator = match union {
            NodeUnion::Conv2d(_) => integer::convolution(how, windows),
            NodeUnion::DepthwiseConv2d(_) => integer::depthwise(how, windows),
            _ if windows.groups == 1 => {
                integer::transposed(how, windows, pair(fields.adjustment_height, fields.adjustment_width))
            }
            _ => return Err(refused("a transposed convolution in groups")),
        };
        let operator = self.values.own(operator);
        self.values.all().call(operator, &[x.local, w.local, bias, out.local], self.node);
        Ok(())
    }

    pub(super) fn binary_bytes(
        &mut self,
        node: &Node<'_>,
        union: &NodeUnion<'_>,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        let (a, b) = (inputs[0], inputs[1]);
        let ((sa, za), (sb, zb)) = (self.signed(a.index, a.datatype)?, self.signed(b.index, b.datatype)?);
        let (sy, zy) = self.signed_result(made)?;
        let bounds = self.bounds_of(node, (sy, zy));
        let operator = match union {
            NodeUnion::Add(_) | NodeUnion::Subtract(_) => {
                let subtract = matches!(union, NodeUnion::Subtract(_));
                let how = Sum::new([sa, sb, sy], [za, zb], zy, subtract, bounds);
                integer::sum(how.ok_or_else(|| refused("its scales are too far apart"))?)
            }
            NodeUnion::Multiply(_) => {
                let scale = (sa * sb) / sy;
                if !(2f32.powi(-16)..256.0).contains(&scale) {
                    return Err(refused("its scales are too far apart"));
                }
                integer::multiple(Multiple { scale, zeros: [za, zb], zero_y: zy, bounds })
            }
            _ => return Err(refused("its inputs are quantised")),
        };
        let out = self.values.make(made)?;
        let operator = self.values.own(operator);
        self.values.all().call(operator, &[a.local, b.local, out.local], self.node);
        Ok(())
    }

    pub(super) fn clamp_bytes(&mut self, node: &Node<'_>, x: Lowered, made: Made) -> Result<(), KernelError> {
        self.expect_same_meaning(&[x], made)?;
        let (scale, zero) = self.signed(x.index, x.datatype)?;
        let [least, most] = self.bounds_of(node, (scale, zero));
        let mut table = [0i8; 256];
        for (entry, number) in table.iter_mut().zip(i8::MIN..=i8::MAX) {
            *entry = i32::from(number).max(least).min(most) as i8;
        }
        let out = self.values.make(made)?;
        let operator = self.values.own(integer::table(table));
        self.values.all().call(operator, &[x.local, out.local], self.node);
        Ok(())
    }

    pub(super) fn mean_bytes(&mut self, x: Lowered, made: Made) -> Result<(), KernelError> {
        let ((sx, zx), (sy, zy)) = (self.signed(x.index, x.datatype)?, self.signed_result(made)?);
        let keep = made.shape.rank() == 4;
        let out = self.values.make(made)?;
        let operator = self.values.own(integer::mean([sx, sy], [zx, zy], keep));
        self.values.all().call(operator, &[x.local, out.local], self.node);
        Ok(())
    }
}
