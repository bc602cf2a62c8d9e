//! The run side: layers run back to back on weights that all methods share, on the library's products of matrices.

use std::ops::Range;
use std::sync::Arc;

use edgepack::compute::gemm::{Bias, Fast, Gemm, Mat, Operand, Terms};
use edgepack::executor::delegate::{Backend, Delegate, DelegateInit};
use edgepack::executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack::format::finding::ErrorCode;
use edgepack::format::row::Table;
use edgepack::format::wire;
use edgepack::loader::Bytes;

use super::export::BACKEND;
use super::payload::{Block, Layer};

/// The run half of the backend.
pub struct FusedMlp;

impl Backend for FusedMlp {
    fn id(&self) -> &str {
        BACKEND
    }

    fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
        let unreadable = |error: wire::ReadError| {
            KernelError::new(ErrorCode::InvalidProgram, format!("the payload of {}: {error}", cx.method))
        };
        let block = wire::Table::root(&cx.processed).and_then(Block::decode).map_err(unreadable)?;
        let mut layers = Vec::new();
        let mut widest = 0;
        for layer in block.layers.unwrap_or_default().iter() {
            let layer = layer.map_err(unreadable)?;
            let (inputs, outputs) = (layer.inputs as usize, layer.outputs as usize);
            if let Some(Ready { outputs: before, .. }) = layers.last()
                && *before != inputs
            {
                return Err(KernelError::argument(format!(
                    "a layer of {inputs} inputs behind one of {before} outputs"
                )));
            }
            widest = widest.max(outputs);
            layers.push(Ready {
                weight: weight(&cx, &layer)?,
                bias: find(&cx, layer.bias.as_deref(), [outputs, 1])?,
                inputs,
                outputs,
                relu: layer.relu,
            });
        }
        // The payload is not needed any more; returning from here releases it.
        Ok(Box::new(Fused { layers: layers.into(), widest }))
    }
}

/// Data of a key, checked against the payload.
fn find(cx: &DelegateInit<'_>, key: Option<&str>, [rows, columns]: [usize; 2]) -> Result<Bytes, KernelError> {
    let key = key.unwrap_or_default();
    let want = rows.checked_mul(columns).and_then(|count| count.checked_mul(size_of::<f32>()));
    let data = cx.named_data.data(key).map_err(|error| {
        KernelError::new(ErrorCode::AccessFailed, format!("the key {key} of {}: {error}", cx.method))
    })?;
    match data {
        Some(data) if Some(data.len()) == want && bytemuck::try_cast_slice::<u8, f32>(&data).is_ok() => Ok(data),
        Some(data) => {
            let have = data.len();
            let message =
                format!("the key {key} of {} has {have} bytes, {rows}x{columns} floats are wanted", cx.method);
            Err(KernelError::new(ErrorCode::InvalidExternalData, message))
        }
        None => Err(KernelError::new(ErrorCode::NotFound, format!("no data under the key {key} of {}", cx.method))),
    }
}

/// A weight and what was made of it, shared by all users of one key and shape.
struct Weight {
    data: Bytes,
    packed: Option<<Fast as Gemm<f32>>::Packed>,
}

fn weight(cx: &DelegateInit<'_>, layer: &Layer<'_>) -> Result<Arc<Weight>, KernelError> {
    let size = [layer.inputs as usize, layer.outputs as usize];
    let key = layer.weight.as_deref();
    let data = find(cx, key, size)?;
    let make = || {
        let packed = Fast::pack(Mat::new(floats(&data), size, [size[1], 1])?)?;
        Ok(Weight { data: data.clone(), packed })
    };
    let known = cx.cache.entry(&format!("{BACKEND}/{}/{size:?}", key.unwrap_or_default()), make)?;
    // Another program may have other numbers under the same key.
    if *known.data == *data { Ok(known) } else { make().map(Arc::new) }
}

fn floats(bytes: &[u8]) -> &[f32] {
    bytemuck::cast_slice(bytes)
}

struct Ready {
    weight: Arc<Weight>,
    bias: Bytes,
    inputs: usize,
    outputs: usize,
    relu: bool,
}

/// A block. Each of its calls shares the layers.
#[derive(Clone)]
struct Fused {
    layers: Arc<[Ready]>,
    /// The most numbers a row has between layers.
    widest: usize,
}

impl Delegate for Fused {
    fn outputs(&self, count: usize) -> Range<usize> {
        1..count
    }

    fn prepare(&self, call: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        call.expect_len(2)?;
        // What goes from layer to layer: two buffers, in memory that all instructions share.
        let rows = call.tensor(0)?.meta.sizes.first().copied().unwrap_or(0);
        call.scratch(self.widest.saturating_mul(rows).saturating_mul(2 * size_of::<f32>()));
        Ok(Box::new(self.clone()))
    }
}

impl Run for Fused {
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        let views = cx.views();
        let (x, mut y) = (views.tensor(0)?, views.out(1)?);
        let (first, last) = (self.layers.first().map(|l| l.inputs), self.layers.last().map(|l| l.outputs));
        let (&[rows, inputs], &[out_rows, outputs]) = (x.sizes, y.sizes) else {
            return Err(KernelError::argument("matrices are wanted"));
        };
        if (Some(inputs), Some(outputs), out_rows) != (first, last, rows) {
            let message =
                format!("{rows}x{inputs} in and {out_rows}x{outputs} out, the block is {first:?} to {last:?}");
            return Err(KernelError::argument(message));
        }
        let buffers: &mut [f32] = bytemuck::cast_slice_mut(views.scratch()?);
        let (mut from, mut to) = buffers.split_at_mut(rows * self.widest);
        let (x, y) = (x.as_slice::<f32>()?, y.as_mut_slice::<f32>()?);
        let end = self.layers.len() - 1;
        for (index, layer) in self.layers.iter().enumerate() {
            let source = if index == 0 { x } else { &from[..rows * layer.inputs] };
            let lhs = Mat::new(source, [rows, layer.inputs], [layer.inputs, 1])?;
            let mat = Mat::new(floats(&layer.weight.data), [layer.inputs, layer.outputs], [layer.outputs, 1])?;
            let rhs = Operand { mat, packed: layer.weight.packed.as_ref() };
            let terms = Terms { bias: Bias::Row(floats(&layer.bias)), ..Terms::default() };
            let out = if index == end { &mut *y } else { &mut to[..rows * layer.outputs] };
            Fast::multiply(out, lhs, rhs, terms)?;
            if layer.relu {
                out.iter_mut().for_each(|x| *x = x.max(0.0));
            }
            std::mem::swap(&mut from, &mut to);
        }
        Ok(())
    }
}
