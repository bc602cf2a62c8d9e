//! Conversions between element types, and the numbers of constants as other types.

use edgepack_executor::delegate::Local;
use edgepack_executor::kernel::{KernelError, room};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;
use edgepack_format::xnnpack::{Datatype, Quantization, Shape};

use super::values::{Derived, Lowered, contiguous};
use super::{Lowering, Made, refused};
use crate::operators::{bytes, integer};

impl Lowering<'_> {
    /// Another element type.
    pub(super) fn convert(&mut self, x: Lowered, made: Made) -> Result<(), KernelError> {
        let to = self.values.datatype(made.id)?;
        if to == Datatype::QDINT8 {
            return self.quantize_rows(x, made);
        }
        if to == x.datatype && (to.is_float() || self.expect_same_meaning(&[x], made).is_ok()) {
            return self.copy(x, made);
        }
        if (x.datatype, to) == (Datatype::FP32, Datatype::QINT8) {
            return self.quantize(x, made);
        }
        let out = self.values.make(made)?;
        match (x.datatype, to) {
            (from, to) if from.is_float() && to.is_float() => self.values.convert_float(x.local, out.local, self.node),
            (Datatype::QINT8, Datatype::FP32) => {
                let (scale, zero) = self.values.per_tensor(x.index)?;
                let args = self.affine(x.local, scale, zero);
                let none = self.values.all().none();
                let args = [&args[..], &[none, out.local]].concat();
                self.values.call("quantized_decomposed::dequantize_per_tensor.out", &args, self.node)
            }
            (Datatype::QINT8, Datatype::QINT8) => {
                let table = bytes::sloped(self.meaning(x.index)?, self.meaning(out.index)?, 1.0);
                let table = table.ok_or_else(|| refused("its scales are too far apart"))?;
                let operator = self.values.own(integer::table(table));
                self.values.all().call(operator, &[x.local, out.local], self.node);
                Ok(())
            }
            (from, to) => {
                let label = |datatype: Datatype| datatype.label().unwrap_or("unknown");
                Err(refused(format!("from {} to {}", label(from), label(to))))
            }
        }
    }

    /// Scale and zero point of a value, as operators take them.
    pub(super) fn meaning(&self, index: usize) -> Result<bytes::Affine, KernelError> {
        let (scale, zero) = self.values.per_tensor(index)?;
        Ok(bytes::Affine { scale, zero, less: self.values.less(index) })
    }

    fn quantize(&mut self, x: Lowered, made: Made) -> Result<(), KernelError> {
        let (scale, zero) = self.values.per_tensor(self.values.index_of(made.id)?)?;
        let derived = Derived::Quantized(scale.to_bits(), zero);
        if self.values.again(x.local, &derived, made) {
            return Ok(());
        }
        let out = self.values.make(made)?;
        self.values.remember(x.local, derived, out);
        let args = self.affine(x.local, scale, zero);
        let args = [&args[..], &[out.local]].concat();
        self.values.call("quantized_decomposed::quantize_per_tensor.out", &args, self.node)
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
        let Quantization::PerToken { num_nonbatch_dims } = self.values.quantization(self.values.index_of(made.id)?)?
        else {
            return Err(refused("its result has no rows"));
        };
        let derived = Derived::Rows(num_nonbatch_dims as usize);
        if self.values.again(x.local, &derived, made) {
            return Ok(());
        }
        let out = self.values.rows(x, num_nonbatch_dims as usize, self.node)?;
        self.values.remember(x.local, derived, out);
        self.values.put(made.id, out);
        Ok(())
    }

    /// Lowers a result that `compute` makes in single precision, and converts it to the floating type that the result
    /// has.
    pub(super) fn in_single(
        &mut self,
        made: Made,
        compute: impl FnOnce(&mut Self, Lowered) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let out = self.values.make(made)?;
        match out.datatype {
            Datatype::FP32 => compute(self, out),
            datatype if datatype.is_float() => {
                let local = self.values.temporary(Datatype::FP32, &out.shape, out.dynamic)?;
                compute(self, Lowered { local, datatype: Datatype::FP32, writable: true, ..out })?;
                self.values.convert_float(local, out.local, self.node)
            }
            _ => Err(refused("its result is not in floating point")),
        }
    }

    /// Constant weights with a scale for each channel of dimension `channel`, as numbers in single precision. They are
    /// computed at load, and charged to the method.
    pub(super) fn dequantized(&mut self, w: Lowered, channel: usize) -> Result<Local, KernelError> {
        let scales: Vec<f32> = match (w.datatype, self.values.quantization(w.index)?) {
            (Datatype::QCINT8 | Datatype::QCINT4, Quantization::PerChannel { channel_dim, scales, .. })
                if channel_dim as usize == channel =>
            {
                scales.iter().collect()
            }
            _ => return Err(refused("its weights are quantised in another form")),
        };
        let dims = w.shape.dims();
        if dims[..channel.min(dims.len().saturating_sub(2))].iter().any(|size| *size != 1) {
            return Err(refused("weights of several batches"));
        }
        let stored = self.values.elements(w.index, &contiguous(w.datatype, dims)?)?;
        let layout = contiguous(Datatype::FP32, dims)?;
        self.values.reserve(layout.byte_len())?;
        let mut numbers = room(layout.byte_len())?;
        let width = dims.last().map_or(1, |dim| *dim as usize);
        let behind: usize = dims[channel + 1..].iter().map(|dim| *dim as usize).product();
        for place in 0..layout.byte_len() / size_of::<f32>() {
            let number = match w.datatype {
                Datatype::QCINT4 => {
                    let (row, column) = (place / width, place % width);
                    i32::from(stored[row * width.div_ceil(2) + column / 2] >> (column % 2 * 4) & 15) - 8
                }
                _ => i32::from(stored[place] as i8),
            };
            let scale = scales[place / behind.max(1) % scales.len()];
            numbers.extend((number as f32 * scale).to_le_bytes());
        }
        Ok(self.values.all().constant(layout, numbers.into()))
    }

    /// A constant matrix with rows and columns exchanged: `[K, N]` becomes `[N, K]`. It is copied, and charged to the method.
    pub(super) fn exchanged(&mut self, w: Lowered) -> Result<Lowered, KernelError> {
        let [rows, columns] = *w.shape.dims() else { return Err(refused("weights have two dimensions")) };
        let of = |first: u32, second: u32| contiguous(w.datatype, &[first, second]);
        let (from, to): (TensorLayout, TensorLayout) = (of(rows, columns)?, of(columns, rows)?);
        if from.byte_len() != to.byte_len() || matches!(w.datatype, Datatype::QCINT4 | Datatype::QBINT4) {
            return Err(refused("four-bit weights that are transposed"));
        }
        let stored = self.values.elements(w.index, &from)?;
        self.values.reserve(to.byte_len())?;
        let mut turned = room(to.byte_len())?;
        let size = from.scalar_type().size().unwrap_or(1);
        let (rows, columns) = (rows as usize, columns as usize);
        for (column, row) in (0..columns).flat_map(|column| (0..rows).map(move |row| (column, row))) {
            turned.extend_from_slice(&stored[(row * columns + column) * size..][..size]);
        }
        let local = self.values.all().constant(to, turned.into());
        let shape = Shape::new([columns as u32, rows as u32]).unwrap_or_default();
        Ok(Lowered { local, shape, ..w })
    }
}
