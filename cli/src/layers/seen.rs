//! Results of instructions: where each came from, its type, and a few of its elements to tell it by.

use edgepack_executor::tensor::TensorRef;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{LayoutError, TensorBuf, TensorLayout, element_count, write_strides};

/// The most elements of a result that are looked at to find its match.
const SAMPLED: usize = 48;

/// Meaning of the integers of a tensor: `scale * (q - zero_point)`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Affine {
    /// Real distance of two integers next to each other.
    pub scale: f64,
    /// Integer that means 0.
    pub zero_point: f64,
}

/// One result of one instruction, as it was seen in a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Seen {
    /// Index of the chain.
    pub chain: usize,
    /// Index of the instruction in its chain, as in the file.
    pub instruction: usize,
    /// Index of the delegate, if it is part of one.
    pub delegate: Option<usize>,
    /// Node of the delegate's payload; `u32::MAX` for copies of arguments.
    pub node: Option<u32>,
    /// Times that the instruction or node was reached before, in loops.
    pub visit: usize,
    /// Index of the call among those that stand for the instruction or node in this visit.
    pub call: usize,
    /// Index among the results of the call.
    pub output: usize,
    /// Operator or backend.
    pub operator: String,
    /// Name of the node in the exported program, where it is known.
    pub name: Option<String>,
    /// Debug handle that the exporter gave, where the file has one.
    pub handle: Option<u32>,
    /// Line of the model's source, where the file says it.
    pub source: Option<String>,
    /// Element type.
    pub dtype: ScalarType,
    /// Elements along each dimension.
    pub sizes: Vec<usize>,
    /// Meaning of its integers, where the file says it.
    pub affine: Option<Affine>,
    /// Some elements in index order.
    pub sample: Vec<f32>,
    /// Some elements in the index order of images, if the four dimensions may be those of an image with channels last.
    pub turned: Vec<f32>,
}

/// A place in a program: chain, instruction, node.
pub type Place = (usize, usize, Option<u32>);

impl Seen {
    /// The place of the result.
    pub fn place(&self) -> Place {
        (self.chain, self.instruction, self.node)
    }

    /// Returns whether the elements have meanings as real numbers, so that other types can be compared with them.
    pub fn is_real(&self) -> bool {
        self.affine.is_some() || self.dtype.is_floating()
    }

    /// Takes samples of a tensor.
    pub fn look(&mut self, strides: &[usize], bytes: &[u8]) {
        self.sample = sample(self.dtype, &self.sizes, strides, bytes);
        if let (&[n, h, w, c], &[sn, sh, sw, sc]) = (self.sizes.as_slice(), strides) {
            self.turned = sample(self.dtype, &[n, c, h, w], &[sn, sc, sh, sw], bytes);
        }
    }

    /// Samples as real numbers.
    pub fn reals(&self, turned: bool) -> impl Iterator<Item = f64> + '_ {
        let sample = if turned { &self.turned } else { &self.sample };
        sample.iter().map(|&element| match self.affine {
            Some(affine) => affine.scale * (f64::from(element) - affine.zero_point),
            None => f64::from(element),
        })
    }
}

/// Evenly spaced elements, in index order.
fn sample(dtype: ScalarType, sizes: &[usize], strides: &[usize], bytes: &[u8]) -> Vec<f32> {
    let Some(count) = element_count(sizes) else { return Vec::new() };
    let width = dtype.size().unwrap_or(1);
    let taken = count.min(SAMPLED);
    let one = |index: usize| {
        let (mut rest, mut at) = ((index as u128 * count as u128 / taken as u128) as usize, 0usize);
        for (size, stride) in sizes.iter().zip(strides).rev() {
            at = at.saturating_add((rest % size).saturating_mul(*stride));
            rest /= size;
        }
        let element = at.checked_mul(width).and_then(|at| bytes.get(at..)?.get(..width));
        element.and_then(|bytes| number(dtype.part(), bytes)).unwrap_or(f64::NAN) as f32
    };
    (0..taken).map(one).collect()
}

/// An element as a double; `None` for types that are no numbers.
pub fn number(dtype: ScalarType, bytes: &[u8]) -> Option<f64> {
    Some(match dtype {
        ScalarType::BYTE => f64::from(*bytes.first()?),
        ScalarType::CHAR => f64::from(*bytes.first()? as i8),
        ScalarType::BOOL => f64::from(u8::from(*bytes.first()? != 0)),
        ScalarType::SHORT => f64::from(i16::from_le_bytes(*bytes.first_chunk()?)),
        ScalarType::UINT16 => f64::from(u16::from_le_bytes(*bytes.first_chunk()?)),
        ScalarType::INT => f64::from(i32::from_le_bytes(*bytes.first_chunk()?)),
        ScalarType::UINT32 => f64::from(u32::from_le_bytes(*bytes.first_chunk()?)),
        ScalarType::LONG => i64::from_le_bytes(*bytes.first_chunk()?) as f64,
        ScalarType::UINT64 => u64::from_le_bytes(*bytes.first_chunk()?) as f64,
        float => float.read_float(bytes)?,
    })
}

/// Copies the elements of a tensor, in index order. `turned` reads the sizes as those of an image with channels last, and
/// answers with channels in front.
///
/// # Errors
///
/// A layout that makes no sense.
pub fn elements(tensor: &TensorRef<'_>, turned: bool) -> Result<TensorBuf, LayoutError> {
    let layout = TensorLayout::new(tensor.dtype, tensor.sizes, tensor.dim_order)?;
    ordered(TensorBuf::from_bytes(layout, tensor.bytes().to_vec())?, turned)
}

/// The elements of a tensor in index order, as [`elements`] gives them.
///
/// # Errors
///
/// A layout that makes no sense.
pub fn ordered(tensor: TensorBuf, turned: bool) -> Result<TensorBuf, LayoutError> {
    let mut strides = vec![0; tensor.layout().sizes().len()];
    write_strides(tensor.layout().sizes(), &(0..).take(strides.len()).collect::<Vec<u8>>(), &mut strides);
    let tensor = if *tensor.layout().strides() == *strides { tensor } else { tensor.contiguous()? };
    match (turned, tensor.layout().sizes()) {
        (true, &[n, h, w, c]) => {
            let image = TensorLayout::new(tensor.layout().scalar_type(), &[n, c, h, w], &[0, 2, 3, 1])?;
            TensorBuf::from_bytes(image, tensor.into_data())?.contiguous()
        }
        _ => Ok(tensor),
    }
}
