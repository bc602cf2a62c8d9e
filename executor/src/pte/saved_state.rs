//! Saving the state of a method, and restoring it into another load of the same method.
//!
//! An image holds numbers that instructions write, sizes of the tensors that outlive a run, and the bytes of the state,
//! without blocks of zeros. It is for the plan it was made of: whoever stores it notes which program that is. Invariant: an
//! image is read to its end and found to fit before the first byte of the method changes.
//!
//! All numbers are little-endian: version, counts of numbers, tensors and pieces (`u32` each); per number its kind (a
//! byte) and 8 bytes; per tensor a byte that says whether it was freed and its sizes (`u64` each); per piece its length
//! (`u64`), then per block of [`BLOCK`] bytes, the last of a piece may be shorter, a byte that says whether the block
//! follows.

use edgepack_format::finding::ErrorCode;
use edgepack_format::tensor::Dims;

use crate::api::room::{OutOfMemory, grow};
use crate::api::state::Value;
use crate::api::storage::Region;
use crate::pte::error::RunError;
use crate::pte::lasting::Lasting;
use crate::pte::method::Method;
use crate::pte::run::Running;

/// Version of the image.
const VERSION: u32 = 1;

/// Bytes that are left out together if all of them are zero.
const BLOCK: usize = 4096;

/// Memory that a saved state covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateScope {
    /// State that belongs to the method alone.
    Own,
    /// That, and the arenas that it shares with other methods ([`Options::arenas`](crate::Options::arenas)), whole. Of
    /// several methods that share arenas one is saved and restored with them, the others without.
    WithShared,
}

impl Method {
    /// Returns the indices of the values that are state: tensors, such as mutable buffers, that instructions write and
    /// that a later run finds as they were left, those in shared memories among them. Values beyond those of the program
    /// belong to instructions that stand for delegates.
    pub fn state_values(&self) -> Result<Vec<usize>, RunError> {
        let Lasting { written, .. } = Lasting::of(self).map_err(no_memory)?;
        let is_state = |value: &Value| matches!(value, Value::Tensor(tensor) if written.binary_search(tensor).is_ok());
        let values = self.state.values.iter().enumerate();
        Ok(values.filter(|(_, value)| is_state(value)).map(|(index, _)| index).collect())
    }

    /// Returns the number of bytes that [`Method::save_state`] writes now. It depends on the state: blocks of zeros take one
    /// byte each.
    pub fn state_len(&mut self, scope: StateScope) -> Result<u64, RunError> {
        let mut bytes = 0u64;
        self.save_state(scope, |piece| {
            bytes += piece.len() as u64;
            Ok::<_, RunError>(())
        })?;
        Ok(bytes)
    }

    /// Returns the largest number of bytes that [`Method::save_state`] can write, whatever the state.
    pub fn most_state_bytes(&self, scope: StateScope) -> Result<u64, RunError> {
        let parts = Parts::of(self, scope)?;
        let head = 16 + 9 * self.numbers.len() as u64;
        let sizes = parts.tensors.iter().map(|&tensor| 1 + 8 * u64::from(self.state.tensors[tensor as usize].rank));
        let piece = |piece: &Region| 8 + (piece.len() + piece.len().div_ceil(BLOCK)) as u64;
        Ok(head + sizes.sum::<u64>() + parts.pieces.iter().map(piece).sum::<u64>())
    }

    /// Writes the state that a later run would find: what runs left in mutable buffers, and numbers. Outputs and inputs are
    /// not part of it. `write` gets the bytes in pieces.
    ///
    /// ```
    /// # use edgepack_executor::{Method, RunError, StateScope};
    /// # fn demo(method: &mut Method) -> Result<(), RunError> {
    /// let mut image = Vec::new();
    /// method.save_state(StateScope::WithShared, |bytes| {
    ///     image.extend_from_slice(bytes);
    ///     Ok::<_, RunError>(())
    /// })?;
    /// // Later, or in a second load of the same method:
    /// method.restore_state(StateScope::WithShared, &image)
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Another method runs on a shared memory, there is no memory, or `write` fails.
    pub fn save_state<E: From<RunError>>(
        &mut self,
        scope: StateScope,
        mut write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let running = Running::begin(self)?;
        let method = running.method();
        let parts = Parts::of(method, scope)?;
        for count in [VERSION, method.numbers.len() as u32, parts.tensors.len() as u32, parts.pieces.len() as u32] {
            write(&count.to_le_bytes())?;
        }
        for &(id, _) in &method.numbers {
            let (tag, bits) = encoded(method.state.values[id as usize]);
            write(&[tag])?;
            write(&bits.to_le_bytes())?;
        }
        for &tensor in &parts.tensors {
            let tensor = &method.state.tensors[tensor as usize];
            write(&[tensor.freed as u8])?;
            for &size in method.state.sizes(tensor) {
                write(&(size as u64).to_le_bytes())?;
            }
        }
        for piece in &parts.pieces {
            write(&(piece.len() as u64).to_le_bytes())?;
            // SAFETY: the method is exclusively borrowed and holds the locks of its shared memories, so nothing writes
            // there while `running` lives.
            for block in unsafe { piece.bytes() }.chunks(BLOCK) {
                let zero = block.iter().all(|&byte| byte == 0);
                write(&[!zero as u8])?;
                if !zero {
                    write(block)?;
                }
            }
        }
        Ok(())
    }

    /// Fails as [`Method::restore_state`] would if an image does not fit, and changes nothing.
    pub fn check_state(&self, scope: StateScope, image: &[u8]) -> Result<(), RunError> {
        let parts = Parts::of(self, scope)?;
        Image::parse(self, &parts, image).map(|_| ())
    }

    /// Brings back a state that [`Method::save_state`] wrote for the same method of the same program, loaded with the same
    /// options. Inputs that were set no longer are; outputs are those of the next run.
    ///
    /// # Errors
    ///
    /// The image does not fit this method, or another one runs on a shared memory; then nothing has changed.
    pub fn restore_state(&mut self, scope: StateScope, image: &[u8]) -> Result<(), RunError> {
        let mut running = Running::begin(self)?;
        let method = running.method_mut();
        let parts = Parts::of(method, scope)?;
        let image = Image::parse(method, &parts, image)?;
        for (&(id, _), value) in method.numbers.iter().zip(image.numbers) {
            method.state.values[id as usize] = value;
        }
        for (&tensor, (freed, sizes)) in parts.tensors.iter().zip(image.tensors) {
            // `parse` found that they fit.
            let _ = method.state.resize(tensor, &sizes);
            method.state.tensors[tensor as usize].freed = freed;
        }
        for (piece, content) in parts.pieces.iter().zip(image.pieces) {
            let (mut rest, mut content) = (*piece, content);
            while let (false, Some((&stored, after))) = (rest.is_empty(), content.split_first()) {
                let block = rest.prefix(BLOCK);
                content = after;
                // SAFETY: the method is exclusively borrowed and holds the locks of its shared memories; the image is the
                // caller's, who can have borrowed nothing of this memory.
                let bytes = unsafe { block.bytes_mut() };
                match content.split_at_checked(if stored == 0 { 0 } else { block.len() }) {
                    Some((from, after)) if stored != 0 => {
                        bytes.copy_from_slice(from);
                        content = after;
                    }
                    _ => bytes.fill(0),
                }
                rest = rest.after(BLOCK);
            }
        }
        for slot in &mut method.inputs {
            slot.set = matches!(method.state.values[slot.value as usize], Value::Null);
        }
        Ok(())
    }
}

/// State of one scope.
struct Parts {
    pieces: Vec<Region>,
    tensors: Vec<u32>,
}

impl Parts {
    fn of(method: &Method, scope: StateScope) -> Result<Self, RunError> {
        let Lasting { mut pieces, tensors, .. } = Lasting::of(method).map_err(no_memory)?;
        if scope == StateScope::WithShared {
            for (_, arena) in method.memory.arenas.shared() {
                grow(&mut pieces, 1).map_err(no_memory)?;
                pieces.extend(arena.region(0, arena.len()));
            }
        }
        Ok(Parts { pieces, tensors })
    }
}

/// An image that fits a method.
struct Image<'i> {
    numbers: Vec<Value>,
    tensors: Vec<(bool, Dims)>,
    /// Per piece its blocks, each after the byte that says whether it is there.
    pieces: Vec<&'i [u8]>,
}

impl<'i> Image<'i> {
    fn parse(method: &Method, parts: &Parts, bytes: &'i [u8]) -> Result<Self, RunError> {
        let mut rest = Rest(bytes);
        let expected = [
            ("version", VERSION),
            ("count of numbers", method.numbers.len() as u32),
            ("count of tensors", parts.tensors.len() as u32),
            ("count of pieces", parts.pieces.len() as u32),
        ];
        for (what, want) in expected {
            let have = u32::from_le_bytes(rest.array()?);
            if have != want {
                return Err(misfit(format!("{what} {have}, the method has {want}")));
            }
        }
        let mut image = Image { numbers: Vec::new(), tensors: Vec::new(), pieces: Vec::new() };
        for &(id, _) in &method.numbers {
            let (tag, bits) = (rest.byte()?, u64::from_le_bytes(rest.array()?));
            image.numbers.push(decoded(method.state.values[id as usize], tag, bits)?);
        }
        for &tensor in &parts.tensors {
            let facts = &method.state.tensors[tensor as usize];
            let freed = rest.flag()?;
            let mut sizes = Dims::new();
            for _ in 0..facts.rank {
                let size = usize::try_from(u64::from_le_bytes(rest.array()?)).ok();
                size.and_then(|size| sizes.push(size)).ok_or_else(|| misfit("a size beyond all memory".into()))?;
            }
            if method.state.check_sizes(tensor, &sizes).is_err() {
                let bounds = method.state.bounds(facts);
                return Err(misfit(format!("tensor {tensor} has sizes {sizes:?}, the method has room for {bounds:?}")));
            }
            image.tensors.push((freed, sizes));
        }
        for (index, piece) in parts.pieces.iter().enumerate() {
            let len = u64::from_le_bytes(rest.array()?);
            if len != piece.len() as u64 {
                let message = format!("piece {index} of {len} bytes, the method's has {}", piece.len());
                return Err(misfit(message));
            }
            let start = rest.0;
            let mut left = piece.len();
            while left > 0 {
                let block = left.min(BLOCK);
                if rest.flag()? {
                    rest.take(block)?;
                }
                left -= block;
            }
            image.pieces.push(&start[..start.len() - rest.0.len()]);
        }
        match rest.0.len() {
            0 => Ok(image),
            more => Err(misfit(format!("{more} bytes after its end"))),
        }
    }
}

/// Rest of an image that is to be read.
struct Rest<'i>(&'i [u8]);

impl<'i> Rest<'i> {
    fn take(&mut self, len: usize) -> Result<&'i [u8], RunError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(|| misfit("it ends too early".into()))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RunError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn byte(&mut self) -> Result<u8, RunError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Result<bool, RunError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(misfit(format!("a byte {other} that has to be 0 or 1"))),
        }
    }
}

const INT: u8 = 1;
const BOOL: u8 = 2;
const DOUBLE: u8 = 3;

/// A number as kind and bits; anything else stays as it is, and has neither.
fn encoded(value: Value) -> (u8, u64) {
    match value {
        Value::Int(value) => (INT, value as u64),
        Value::Bool(value) => (BOOL, value as u64),
        Value::Double(value) => (DOUBLE, value.to_bits()),
        _ => (0, 0),
    }
}

fn decoded(now: Value, tag: u8, bits: u64) -> Result<Value, RunError> {
    match (tag, now.is_number()) {
        (INT, true) => Ok(Value::Int(bits as i64)),
        (BOOL, true) if bits <= 1 => Ok(Value::Bool(bits == 1)),
        (DOUBLE, true) => Ok(Value::Double(f64::from_bits(bits))),
        (0, false) if bits == 0 => Ok(now),
        _ => Err(misfit(format!("a number of kind {tag} where the method has a {}", now.kind()))),
    }
}

fn no_memory(error: OutOfMemory) -> RunError {
    wrong(ErrorCode::MemoryAllocationFailed, error.into_message())
}

fn misfit(message: String) -> RunError {
    wrong(ErrorCode::InvalidArgument, message)
}

fn wrong(code: ErrorCode, message: String) -> RunError {
    RunError::State { code, message }
}
