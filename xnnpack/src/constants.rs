//! The bytes of a payload's constants, borrowed from where they are: the payload, the program's named data, or a data file.
//!
//! Every key is asked for once in a load, so what was verified is what is used. Weights are packed once for all payloads
//! of a program that name them.

use std::sync::Arc;

use edgepack_compute::qgemm::{self, Bits};
use edgepack_executor::kernel::{KernelError, Retained};
use edgepack_executor::packing::{Packer, Packing};
use edgepack_format::finding::ErrorCode;
use edgepack_format::xnnpack::{Constant, ConstantBytes, Payload};
use edgepack_loader::Bytes;

/// The bytes of all constants, by index.
pub(crate) struct Weights {
    entries: Vec<Option<Entry>>,
    packer: Arc<Packer>,
}

struct Entry {
    bytes: Bytes,
    /// Number of bytes that the payload says.
    size: usize,
    named: bool,
    /// The place in the program.
    place: String,
}

impl Weights {
    /// Asks for every constant of a payload, which is stored in `processed`, at this place of the program.
    pub fn of(
        payload: &Payload<'_>,
        processed: &Bytes,
        place: &str,
        packer: &Arc<Packer>,
    ) -> Result<Self, KernelError> {
        let mut entries = edgepack_executor::kernel::room(payload.constant_list().len())?;
        for constant in payload.constant_list() {
            entries.push(match constant {
                Constant::Inline(part) => inside(processed, part).map(|(start, bytes)| {
                    let place = format!("{place}+{start}");
                    Entry { size: bytes.len(), bytes, named: false, place }
                }),
                Constant::Named { key, size } => {
                    let found = packer.data(key).map_err(|error| {
                        KernelError::new(ErrorCode::InvalidExternalData, format!("the key {}: {error}", &**key))
                    })?;
                    let size = usize::try_from(*size).unwrap_or(usize::MAX);
                    found.map(|bytes| Entry { bytes, size, named: true, place: format!("key {}", &**key) })
                }
                _ => None,
            });
        }
        Ok(Weights { entries, packer: Arc::clone(packer) })
    }

    /// Packs a constant, rows of weights of a channel each, or finds it packed; charged to the method.
    pub fn packed(
        &self,
        index: u32,
        bits: Bits,
        sizes: [usize; 2],
        retained: Retained<'_>,
    ) -> Result<Arc<qgemm::Weights>, KernelError> {
        let [channels, inner] = sizes;
        let row = match bits {
            Bits::Eight => inner,
            Bits::Four => inner.div_ceil(2),
        };
        let weights = channels.checked_mul(row).and_then(|len| self.shared(index, len));
        let (weights, place) =
            weights.zip(self.entry(index)).map(|(weights, entry)| (weights, &entry.place)).ok_or_else(|| {
                KernelError::new(ErrorCode::InvalidProgram, format!("constant {index} is shorter than its weights"))
            })?;
        let bytes = qgemm::Weights::packed_len(bits, sizes);
        self.packer.pack(
            &Packing {
                place,
                weights: &weights,
                layout: &format!("{}, {bits:?} bits", qgemm::Weights::LAYOUT),
                sizes: &sizes,
                bytes: bytes.ok_or_else(|| KernelError::unsupported("weights beyond all memory"))?,
                pack: &|| {
                    Ok(match bits {
                        Bits::Eight => qgemm::Weights::eight_bits(bytemuck::cast_slice(&weights), sizes)?,
                        Bits::Four => qgemm::Weights::four_bits(&weights, sizes)?,
                    })
                },
                content: qgemm::Weights::packed,
                restore: &|fill| qgemm::Weights::of_packed(bits, sizes, fill).ok().flatten(),
            },
            retained,
        )
    }

    /// Tells the sources of all constants that they were looked at: scales were copied, weights packed.
    pub fn release(&self) {
        self.entries.iter().flatten().for_each(|entry| entry.bytes.release());
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

impl ConstantBytes for Weights {
    fn bytes(&self, index: u32) -> Option<&[u8]> {
        let entry = self.entry(index)?;
        entry.bytes.get(..entry.size)
    }

    fn found(&self, index: u32) -> Option<&[u8]> {
        self.entry(index).filter(|entry| entry.named).map(|entry| &*entry.bytes)
    }
}

/// A part of some bytes, as bytes of its own, and where it starts.
fn inside(whole: &Bytes, part: &[u8]) -> Option<(usize, Bytes)> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    Some((start, whole.slice(start..start.checked_add(part.len())?)?))
}
