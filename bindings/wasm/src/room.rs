//! Room for a file: filled piece by piece, so that it is in memory once.

use edgepack::loader::AlignedBytes;
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use crate::failure::usage;

/// Bytes of a file that is being read.
#[wasm_bindgen]
pub struct Room {
    bytes: AlignedBytes,
}

#[wasm_bindgen]
impl Room {
    /// Makes room for so many bytes, which are zeros at first. Throws if there is no memory for them.
    #[wasm_bindgen(constructor)]
    pub fn new(length: f64) -> Result<Room, JsValue> {
        let no_memory = || usage(format!("there is no memory for a file of {length} bytes"));
        if !(0.0..=f64::from(u32::MAX)).contains(&length) || length.fract() != 0.0 {
            return Err(no_memory());
        }
        Ok(Room { bytes: AlignedBytes::zeroed(length as usize).ok_or_else(no_memory)? })
    }

    /// Copies a piece to where it belongs in the file.
    pub fn write(&mut self, offset: f64, piece: &Uint8Array) -> Result<(), JsValue> {
        let (start, length) = (offset as usize, piece.length() as usize);
        let room = self.bytes.as_mut_slice();
        let whole = room.len();
        let end = start.checked_add(length).filter(|_| offset >= 0.0 && offset.fract() == 0.0);
        match end.and_then(move |end| room.get_mut(start..end)) {
            Some(place) => {
                piece.copy_to(place);
                Ok(())
            }
            None => Err(usage(format!("{length} bytes at {offset} are not inside of a file of {whole} bytes"))),
        }
    }
}

impl Room {
    /// Returns the bytes.
    pub(crate) fn into_bytes(self) -> AlignedBytes {
        self.bytes
    }
}
