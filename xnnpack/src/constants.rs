//! The bytes of a payload's constants, borrowed from where they are: the payload, the program's named data, or a data file.
//!
//! Every key is asked for once in a load, so what was verified is what is used. Weights are packed once for all payloads
//! of a program that name them.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use edgepack_compute::Error;
use edgepack_compute::qconv;
use edgepack_compute::qgemm::{self, Bits, Blocks};
use edgepack_executor::kernel::{KernelError, Retained, room};
use edgepack_executor::packing::{Packer, Packing};
use edgepack_format::finding::ErrorCode;
use edgepack_format::xnnpack::{Constant, ConstantBytes, Payload};
use edgepack_loader::Bytes;

/// The bytes of all constants, by index.
pub(crate) struct Weights {
    entries: Vec<Option<Entry>>,
    /// The place of the payload in the program.
    payload: String,
    packer: Arc<Packer>,
}

/// Weights as a payload stores them.
#[derive(Clone, Copy)]
pub(crate) struct Stored {
    /// Index into the constants of the payload.
    pub index: u32,
    /// Bytes, if they can be counted.
    pub len: Option<usize>,
    /// True if they are bytes from 0 on, which are bytes from -128 on here.
    pub is_unsigned: bool,
    /// The number of columns, where those of a matrix are what is packed as rows.
    pub columns: Option<usize>,
}

impl Stored {
    /// The rows to pack.
    fn rows<'w>(&self, weights: &'w [u8]) -> Result<Cow<'w, [u8]>, KernelError> {
        let mut rows = Cow::Borrowed(weights);
        if let Some(columns) = self.columns {
            let mut exchanged = room(weights.len())?;
            (0..columns).for_each(|column| exchanged.extend(weights.iter().skip(column).step_by(columns)));
            rows = Cow::Owned(exchanged);
        }
        if self.is_unsigned {
            let mut signed = room(weights.len())?;
            signed.extend(rows.iter().map(|weight| weight ^ 0x80));
            rows = Cow::Owned(signed);
        }
        Ok(rows)
    }
}

/// Makes packed weights of bytes as [`Restore`](edgepack_executor::packing::Restore) does, or says why it cannot.
type TryRestore<'f, T> = dyn Fn(&mut dyn FnMut(&mut [u8]) -> bool) -> Result<Option<T>, Error> + 'f;

/// A kind of packed weights, and the functions that make it.
struct Form<'f, T> {
    stored: Stored,
    numbers: &'f [u8],
    layout: &'f str,
    sizes: &'f [usize],
    /// Bytes of the result, if they can be counted.
    bytes: Option<usize>,
    pack: &'f (dyn Fn(&[u8]) -> Result<T, Error> + Sync),
    content: fn(&T) -> &[u8],
    restore: &'f TryRestore<'f, T>,
}

struct Entry {
    bytes: Bytes,
    /// Number of bytes that the payload says.
    size: usize,
    place: Place,
}

/// The place of a constant in the program.
enum Place {
    /// So many bytes behind the start of the payload.
    Inside(usize),
    Key(String),
}

impl Weights {
    /// Asks for every constant of a payload, which is stored in `processed`, at this place of the program.
    pub fn of(
        payload: &Payload<'_>,
        processed: &Bytes,
        place: &str,
        packer: &Arc<Packer>,
    ) -> Result<Self, KernelError> {
        let mut entries = room(payload.constant_list().len())?;
        for constant in payload.constant_list() {
            entries.push(match constant {
                Constant::Inline(part) => inside(processed, part).map(|(start, bytes)| Entry {
                    size: bytes.len(),
                    bytes,
                    place: Place::Inside(start),
                }),
                Constant::Named { key, size } => {
                    let found = packer.data(key).map_err(|error| {
                        KernelError::new(ErrorCode::InvalidExternalData, format!("the key {}: {error}", &**key))
                    })?;
                    let size = usize::try_from(*size).unwrap_or(usize::MAX);
                    found.map(|bytes| Entry { bytes, size, place: Place::Key(key.to_string()) })
                }
                _ => None,
            });
        }
        Ok(Weights { entries, payload: place.to_owned(), packer: Arc::clone(packer) })
    }

    /// Packs weights of four bits, rows of a channel each, or finds them packed; charged to the method.
    pub fn four_bits(
        &self,
        index: u32,
        sizes: [usize; 2],
        blocks: Option<Blocks<'_>>,
        retained: Retained<'_>,
    ) -> Result<Arc<qgemm::Weights>, KernelError> {
        let [channels, inner] = sizes;
        let stored = Stored { index, len: channels.checked_mul(inner.div_ceil(2)), is_unsigned: false, columns: None };
        let inputs = blocks.map(|blocks| blocks.inputs);
        self.packed(
            &Form {
                stored,
                numbers: blocks.map_or(&[], |blocks| bytemuck::cast_slice(blocks.scales)),
                layout: &format!("{}, {:?} bits", qgemm::Weights::LAYOUT, Bits::Four),
                sizes: &[channels, inner, inputs.unwrap_or(0)],
                bytes: qgemm::Weights::packed_len(Bits::Four, sizes, inputs),
                pack: &|weights| match blocks {
                    Some(blocks) => qgemm::Weights::four_bits_in_blocks(weights, sizes, blocks),
                    None => qgemm::Weights::four_bits(weights, sizes),
                },
                content: qgemm::Weights::packed,
                restore: &|fill| qgemm::Weights::of_packed(Bits::Four, sizes, inputs, fill),
            },
            retained,
        )
    }

    /// Packs weights of eight bits `[outputs, inner]` of a convolution with these windows, or finds them packed; charged to
    /// the method.
    pub fn convolution(
        &self,
        stored: Stored,
        sizes: [usize; 2],
        windows: &qconv::Windows,
        retained: Retained<'_>,
    ) -> Result<Arc<qconv::Packed>, KernelError> {
        let qconv::Windows { kernel, dilation, .. } = *windows;
        self.packed(
            &Form {
                stored,
                numbers: &[],
                layout: qconv::Packed::layout(),
                sizes: &[sizes[0], sizes[1], kernel[0], kernel[1], windows.groups, dilation[1]],
                bytes: qconv::Packed::packed_len(sizes, windows),
                pack: &|weights| qconv::Packed::new(bytemuck::cast_slice(weights), sizes, windows),
                content: qconv::Packed::packed,
                restore: &|fill| qconv::Packed::of_packed(sizes, windows, fill),
            },
            retained,
        )
    }

    /// Packs weights of eight bits `[taps, channels]` of one channel each, or finds them packed; charged to the method.
    pub fn depthwise(
        &self,
        stored: Stored,
        channels: usize,
        windows: &qconv::Windows,
        retained: Retained<'_>,
    ) -> Result<Arc<qconv::PackedTaps>, KernelError> {
        let sizes = [windows.kernel[0].saturating_mul(windows.kernel[1]), channels];
        self.packed(
            &Form {
                stored,
                numbers: &[],
                layout: &qconv::PackedTaps::layout(channels, windows),
                sizes: &sizes,
                bytes: qconv::PackedTaps::packed_len(channels, windows),
                pack: &|weights| qconv::PackedTaps::new(bytemuck::cast_slice(weights), channels, windows),
                content: qconv::PackedTaps::packed,
                restore: &|fill| qconv::PackedTaps::of_packed(channels, windows, fill),
            },
            retained,
        )
    }

    fn packed<T: Any + Send + Sync>(&self, form: &Form<'_, T>, retained: Retained<'_>) -> Result<Arc<T>, KernelError> {
        let Form { stored, numbers, layout, sizes, .. } = *form;
        let Stored { index, is_unsigned, columns, .. } = stored;
        let weights = stored.len.and_then(|len| self.shared(index, len));
        let (weights, entry) = weights.zip(self.entry(index)).ok_or_else(|| {
            KernelError::new(ErrorCode::InvalidProgram, format!("constant {index} is shorter than its weights"))
        })?;
        let place = match &entry.place {
            Place::Inside(start) => format!("{}+{start}", self.payload),
            Place::Key(key) => ["key ", key].concat(),
        };
        let layout = match (is_unsigned, columns.is_some()) {
            (false, false) => Cow::Borrowed(layout),
            (true, false) => format!("{layout}, unsigned").into(),
            (false, true) => format!("{layout}, by columns").into(),
            (true, true) => format!("{layout}, unsigned, by columns").into(),
        };
        self.packer.pack(
            &Packing {
                place: &place,
                weights: &weights,
                numbers,
                layout: &layout,
                sizes,
                bytes: form.bytes.ok_or_else(|| KernelError::unsupported("weights beyond all memory"))?,
                pack: &|| Ok((form.pack)(&stored.rows(&weights)?)?),
                content: form.content,
                restore: &|fill| (form.restore)(fill).ok().flatten(),
            },
            retained,
        )
    }

    /// The first `len` bytes of a constant, borrowed.
    pub fn shared(&self, index: u32, len: usize) -> Option<Bytes> {
        let entry = self.entry(index).filter(|entry| len <= entry.size)?;
        entry.bytes.slice(0..len)
    }

    fn entry(&self, index: u32) -> Option<&Entry> {
        self.entries.get(usize::try_from(index).ok()?)?.as_ref()
    }
}

/// The sources of all constants are told when a method is loaded: scales were copied, weights packed.
impl Drop for Weights {
    fn drop(&mut self) {
        Bytes::release_all(self.entries.iter().flatten().map(|entry| &entry.bytes));
    }
}

impl ConstantBytes for Weights {
    fn bytes(&self, index: u32) -> Option<&[u8]> {
        let entry = self.entry(index)?;
        entry.bytes.get(..entry.size)
    }

    fn found(&self, index: u32) -> Option<&[u8]> {
        self.entry(index).filter(|entry| matches!(entry.place, Place::Key(_))).map(|entry| &*entry.bytes)
    }
}

/// A part of some bytes, as bytes of its own, and where it starts.
fn inside(whole: &Bytes, part: &[u8]) -> Option<(usize, Bytes)> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    Some((start, whole.slice(start..start.checked_add(part.len())?)?))
}
