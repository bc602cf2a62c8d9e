//! Nodes on quantised numbers.

use edgepack_compute::qconv::{NarrowConvolution, TransposedConvolution, Windows};
use edgepack_compute::qgemm::Blocks;
use edgepack_executor::delegate::Local;
use edgepack_executor::kernel::{KernelError, room};
use edgepack_format::xnnpack::{Datatype, Node, NodeConv, NodeUnion, Quantization};

use super::values::Lowered;
use super::{Lowering, Made, refused};
use crate::constants::Stored;
use crate::operators::affine::{self, Kind, Weighted};
use crate::operators::bytes::{self, Pair};
use crate::operators::integer::{self, Multiple, Requantize, Sum};
use crate::operators::rows;

/// A bound of a result as a quantised number.
fn quantized_bound(bound: f32, scale: f32, zero: i32) -> i32 {
    (bound / scale + zero as f32).clamp(-128.0, 127.0).round_ties_even() as i32
}

/// Weights as rows of a channel each: how many, and how long; the windows they are for; and the number of columns, if columns
/// are what is stored.
struct Rows {
    sizes: [usize; 2],
    windows: Windows,
    columns: Option<usize>,
}

/// Outputs and weights of each, of weights `[outputs, kh, kw, inputs]`.
fn dense_sizes(w: Lowered) -> Result<[usize; 2], KernelError> {
    let [outputs, kh, kw, inputs] = w.shape.dims() else { return Err(refused("weights have four dimensions")) };
    let inner = [kh, kw, inputs].iter().try_fold(1usize, |inner, size| inner.checked_mul(**size as usize));
    Ok([*outputs as usize, inner.ok_or_else(|| refused("weights beyond all memory"))?])
}

/// Returns whether a transposed convolution with weights `[outputs, kh, kw, inputs]` is split into phases.
fn in_phases(w: Lowered, windows: &Windows, more: [usize; 2]) -> bool {
    let [outputs, _, _, inputs] = w.shape.dims() else { return false };
    TransposedConvolution::bytes([*outputs as usize, *inputs as usize], windows, more).is_some()
}

/// Returns whether a convolution with weights of these sizes has so few channels that windows are computed together.
fn is_narrow(x: Lowered, sizes: [usize; 2], windows: &Windows) -> bool {
    let [_, h, w, _] = x.shape.dims() else { return false };
    !x.dynamic && NarrowConvolution::bytes(sizes, windows, [*h as usize, *w as usize]).is_some()
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

    /// Bounds of results, as quantised numbers.
    pub(super) fn bounds_of(&self, node: &Node<'_>, (scale, zero): (f32, i32)) -> [i32; 2] {
        let bounds = |node: &Node<'_>| {
            let (least, most) = node.bounds();
            [quantized_bound(least, scale, zero), quantized_bound(most, scale, zero)]
        };
        match self.held_by().map(bounds) {
            Some([least, most]) => bounds(node).map(|bound| bound.max(least).min(most)),
            None => bounds(node),
        }
    }

    /// `scale_x * scale_w / scale_y` for every channel along a dimension of the weights, and the weight that represents
    /// zero.
    pub(super) fn requantize(
        &self,
        node: &Node<'_>,
        x: Lowered,
        w: Lowered,
        channel_dim: usize,
        made: Made,
    ) -> Result<Weighted, KernelError> {
        let (sx, zero_x) = self.signed(x.index, x.datatype)?;
        let (sy, zero_y) = self.signed_result(made)?;
        let (scales, zero): (Vec<f32>, i32) = match (w.datatype, self.values.quantization(w.index)?) {
            (Datatype::QCINT8, Quantization::PerChannel { channel_dim: dim, scales, .. })
                if dim as usize == channel_dim =>
            {
                (scales.iter().map(|sw| (sx * sw) / sy).collect(), 0)
            }
            (Datatype::QINT8, Quantization::PerTensor { .. }) => {
                let (scale, zero) = self.values.per_tensor(w.index)?;
                (vec![(sx * scale) / sy], zero)
            }
            _ => return Err(refused("its weights are quantised in another form")),
        };
        // Derived numbers can be anything, whatever they are derived of.
        if !scales.iter().all(|scale| scale.is_normal() && (0.0..256.0).contains(scale)) {
            return Err(refused("a scale of its sums is 0, too great or not a number"));
        }
        Ok(Weighted { how: Requantize { scales, zero_x, zero_y, bounds: self.bounds_of(node, (sy, zero_y)) }, zero })
    }

    /// Bias, or none.
    fn bias(&mut self, inputs: &[Lowered], kinds: &[Datatype]) -> Result<Local, KernelError> {
        match inputs.get(2) {
            None => Ok(self.values.all().none()),
            Some(bias) if kinds.contains(&bias.datatype) && self.values.is_constant(bias.index) => Ok(bias.local),
            Some(_) => Err(refused("its bias is of another type")),
        }
    }

    pub(super) fn expect_constant(&self, w: Lowered) -> Result<(), KernelError> {
        match self.values.is_constant(w.index) {
            true => Ok(()),
            false => Err(refused("its weights are not constant")),
        }
    }

    /// A product of quantised rows with weights.
    pub(super) fn product_bytes(
        &mut self,
        node: &Node<'_>,
        inputs: &[Lowered],
        transposed: bool,
        made: Made,
    ) -> Result<(), KernelError> {
        let (x, w) = (inputs[0], inputs[1]);
        self.expect_constant(w)?;
        let channel = usize::from(transposed);
        let &[first, second] = w.shape.dims() else {
            return Err(refused("its weights have not two dimensions"));
        };
        let [first, second] = [first as usize, second as usize];
        let (sizes, columns) = if transposed { ([second, first], Some(second)) } else { ([first, second], None) };
        if let Some(params) = x.rows {
            let weights = self.row_weights(w, channel, Rows { sizes, windows: Windows::ONE, columns })?;
            let bias = self.bias(inputs, &[Datatype::FP32])?;
            return self.in_single(made, |this, out| {
                let operator = this.values.own(rows::product(weights, node.bounds()));
                this.values.all().call(operator, &[x.local, params, w.local, bias, out.local], this.node);
                Ok(())
            });
        }
        let weighted = self.requantize(node, x, w, channel, made)?;
        let bias = self.bias(inputs, &[Datatype::QCINT32, Datatype::QINT32])?;
        let (w, operator) = if weighted.zero == 0 {
            let stored = self.values.stored(w, columns)?;
            let packed = self.values.weights.convolution(stored, sizes, &Windows::ONE, self.values.call.retained())?;
            (w, integer::product(weighted.how, packed))
        } else {
            let w = if transposed { self.exchanged(w)? } else { self.values.placed(w)? };
            (w, affine::product(weighted))
        };
        let out = self.values.make(made)?;
        let operator = self.values.own(operator);
        self.values.all().call(operator, &[x.local, w.local, bias, out.local], self.node);
        Ok(())
    }

    /// Weights of products with rows `[channels, inner]`, whose channels are dimension `channel`, packed.
    fn row_weights(&self, w: Lowered, channel: usize, rows: Rows) -> Result<rows::Weights, KernelError> {
        let Rows { sizes, windows, columns } = rows;
        let (stored, retained) = (self.values.stored(w, columns)?, self.values.call.retained());
        if columns.is_some() && matches!(w.datatype, Datatype::QCINT4 | Datatype::QBINT4) {
            return Err(refused("four-bit weights that are transposed"));
        }
        Ok(match (w.datatype, self.values.quantization(w.index)?) {
            (Datatype::QCINT8, Quantization::PerChannel { channel_dim, scales, .. })
                if channel_dim as usize == channel =>
            {
                let packed = self.values.weights.convolution(stored, sizes, &windows, retained)?;
                rows::Weights::Eight(packed, scales.iter().collect())
            }
            (Datatype::QCINT4, Quantization::PerChannel { channel_dim: 0, scales, .. }) => {
                let packed = self.values.weights.four_bits(stored.index, sizes, None, retained)?;
                rows::Weights::Four(packed, scales.iter().collect())
            }
            (Datatype::QBINT4, Quantization::PerGroup { channel_dim: 0, group_size, scales, .. })
                if group_size % 2 == 0 && group_size > 0 =>
            {
                let mut halves: Vec<u16> = room(scales.len())?;
                halves.extend(scales.iter().map(|scale| scale.to_bits()));
                let blocks = Blocks { inputs: group_size as usize, scales: &halves };
                rows::Weights::Blocks(self.values.weights.four_bits(stored.index, sizes, Some(blocks), retained)?)
            }
            _ => return Err(refused("its weights are quantised in another form")),
        })
    }

    /// A convolution of quantised numbers.
    pub(super) fn convolution_bytes(
        &mut self,
        node: &Node<'_>,
        union: &NodeUnion<'_>,
        fields: &NodeConv,
        windows: Windows,
        inputs: &[Lowered],
        made: Made,
    ) -> Result<(), KernelError> {
        let (x, w) = (inputs[0], inputs[1]);
        self.expect_constant(w)?;
        if let Some(params) = x.rows {
            if !matches!((union, w.datatype), (NodeUnion::Conv2d(_), Datatype::QCINT8)) {
                return Err(refused("its input is quantised row by row"));
            }
            let rows = Rows { sizes: dense_sizes(w)?, windows, columns: None };
            let rows::Weights::Eight(packed, scales) = self.row_weights(w, 0, rows)? else {
                return Err(refused("its input is quantised row by row"));
            };
            let bias = self.bias(inputs, &[Datatype::FP32])?;
            return self.in_single(made, |this, out| {
                let operator = this.values.own(rows::convolution(packed, scales, windows, node.bounds()));
                this.values.all().call(operator, &[x.local, params, w.local, bias, out.local], this.node);
                Ok(())
            });
        }
        let more = [fields.adjustment_height as usize, fields.adjustment_width as usize];
        let (kind, channel) = match union {
            NodeUnion::DepthwiseConv2d(_) => (Kind::Depthwise, 3),
            NodeUnion::ConvTranspose2d(_) => (Kind::Transposed(more), 0),
            _ => (Kind::Dense, 0),
        };
        let weighted = self.requantize(node, x, w, channel, made)?;
        let bias = self.bias(inputs, &[Datatype::QCINT32, Datatype::QINT32])?;
        let retained = self.values.call.retained();
        let stored = self.values.stored(w, None)?;
        let (w, operator) = match kind {
            Kind::Dense if weighted.zero == 0 && is_narrow(x, dense_sizes(w)?, &windows) => {
                (self.values.placed(w)?, integer::narrow(weighted.how, windows))
            }
            Kind::Dense if weighted.zero == 0 => {
                let packed = self.values.weights.convolution(stored, dense_sizes(w)?, &windows, retained)?;
                (w, integer::convolution(weighted.how, windows, packed))
            }
            Kind::Depthwise if weighted.zero == 0 => {
                let [inputs, outputs] = [x, w].map(|of| of.shape.dims().last().map_or(0, |dim| *dim as usize));
                if inputs == outputs {
                    let packed = self.values.weights.depthwise(stored, outputs, &windows, retained)?;
                    (w, integer::depthwise(weighted.how, windows, packed))
                } else {
                    // A channel with several outputs is a group of one input; weights are stored tap by tap.
                    let windows = Windows { groups: inputs, ..windows };
                    let stored = Stored { columns: Some(outputs), ..stored };
                    let sizes = [outputs, windows.kernel[0].saturating_mul(windows.kernel[1])];
                    let packed = self.values.weights.convolution(stored, sizes, &windows, retained)?;
                    (w, integer::convolution(weighted.how, windows, packed))
                }
            }
            Kind::Transposed(more) if weighted.zero == 0 && in_phases(w, &windows, more) => {
                (self.values.placed(w)?, integer::transposed(weighted.how, windows, more))
            }
            _ => (self.values.placed(w)?, affine::convolution(weighted, windows, kind)),
        };
        let out = self.values.make(made)?;
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
        let meanings = [self.meaning(a.index)?, self.meaning(b.index)?, self.meaning(self.values.index_of(made.id)?)?];
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
            NodeUnion::Div(_) => bytes::pair(Pair::Quotient, meanings, bounds),
            NodeUnion::PReLU(_) => bytes::pair(Pair::Slope, meanings, [-128, 127]),
            _ => return Err(refused("its inputs are quantised")),
        };
        let out = self.values.make(made)?;
        let operator = self.values.own(operator);
        self.values.all().call(operator, &[a.local, b.local, out.local], self.node);
        Ok(())
    }

    /// A node with one input and a function of single numbers: a table.
    pub(super) fn unary_bytes(
        &mut self,
        node: &Node<'_>,
        union: &NodeUnion<'_>,
        x: Lowered,
        made: Made,
    ) -> Result<(), KernelError> {
        self.signed(x.index, x.datatype)?;
        self.signed_result(made)?;
        if let NodeUnion::Clamp(_) = union
            && self.expect_same_meaning(&[x], made).is_ok()
        {
            let bounds = self.bounds_of(node, self.values.per_tensor(x.index)?);
            let out = self.values.make(made)?;
            return self.held(bounds, x.local, out.local);
        }
        let (least, most) = node.bounds();
        let (from, to) = (self.meaning(x.index)?, self.meaning(self.values.index_of(made.id)?)?);
        // In double precision, rounded once.
        let table = |function: &dyn Fn(f64) -> f64| bytes::tabulated(from, to, |x| function(x.into()) as f32);
        let table = match union {
            NodeUnion::Clamp(_) => bytes::tabulated(from, to, |x| x.max(least).min(most)),
            NodeUnion::Sigmoid(_) => table(&|x| 1.0 / (1.0 + (-x).exp())),
            NodeUnion::Tanh(_) => table(&f64::tanh),
            NodeUnion::Exp(_) => table(&f64::exp),
            NodeUnion::Log(_) => table(&f64::ln),
            NodeUnion::Sin(_) => table(&f64::sin),
            NodeUnion::Cos(_) => table(&f64::cos),
            NodeUnion::LeakyReLU(fields) => {
                let table = bytes::sloped(from, to, fields.negative_slope);
                table.ok_or_else(|| refused("its scales are too far apart"))?
            }
            NodeUnion::ELU(fields) => table(&|x| if x < 0.0 { f64::from(fields.alpha) * x.exp_m1() } else { x }),
            _ => return Err(refused("its input is quantised")),
        };
        let out = self.values.make(made)?;
        let operator = self.values.own(integer::table(table));
        self.values.all().call(operator, &[x.local, out.local], self.node);
        Ok(())
    }

    /// Holds stored numbers within bounds.
    fn held(&mut self, [least, most]: [i32; 2], from: Local, to: Local) -> Result<(), KernelError> {
        let mut table = [0i8; 256];
        for (entry, number) in table.iter_mut().zip(i8::MIN..=i8::MAX) {
            *entry = i32::from(number).max(least).min(most) as i8;
        }
        let operator = self.values.own(integer::table(table));
        self.values.all().call(operator, &[from, to], self.node);
        Ok(())
    }

    pub(super) fn mean_bytes(&mut self, x: Lowered, made: Made) -> Result<(), KernelError> {
        let ((sx, zx), (sy, zy)) = (self.signed(x.index, x.datatype)?, self.signed_result(made)?);
        if !(sx / sy).is_normal() {
            return Err(refused("its scales are too far apart"));
        }
        let keep = made.shape.rank() == 4;
        let out = self.values.make(made)?;
        let operator = self.values.own(integer::mean([sx, sy], [zx, zy], keep));
        self.values.all().call(operator, &[x.local, out.local], self.node);
        Ok(())
    }
}
