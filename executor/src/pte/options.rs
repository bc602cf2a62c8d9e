//! Options of loading a method.

use std::path::Path;
use std::sync::Arc;

use edgepack_format::limits::Limits;
use edgepack_loader::NamedDataMap;

use crate::api::delegate::Backends;
use crate::api::packing::{PackCache, PackFolder};
use crate::private_folder::FolderError;
use crate::pte::arena::Arena;

/// Options of loading a method. The default suits most callers: memory of its own, all rewrites.
///
/// ```
/// use std::sync::Arc;
///
/// use edgepack_executor::Options;
/// use edgepack_loader::DataFile;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/data/tensors.ptd");
/// let weights = Arc::new(DataFile::open(path)?);
/// let options = Options { threads: Some(2), data: vec![weights], ..Options::default() };
/// # assert_eq!(options.data.len(), 1);
/// # Ok::<(), edgepack_loader::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Options {
    /// Backends that run delegates.
    pub backends: Backends,
    /// Cache in which backends share packed weights. Clones of these options share it too.
    pub cache: PackCache,
    /// Folder in which backends store packed weights for later loads (see [`Options::pack_cache`]).
    pub folder: Option<PackFolder>,
    /// Maps in which external constants and named data are found, besides the program itself.
    pub data: Vec<Arc<dyn NamedDataMap>>,
    /// Planned memories to use instead of fresh ones, by memory id (1 is the first); each [`Arena`] once. Methods that
    /// name the same one share its content, as programs with shared mutable buffers expect: what one run leaves in
    /// mutable buffers the next run finds, of whichever method. Inputs and outputs are not shared: an output that is in
    /// such a memory is copied when the run ends, and an input set there is unset once another method has run.
    pub arenas: Vec<(u32, Arena)>,
    /// Keeps the program instruction by instruction: no rewrites, no packed weights. Loading is faster, running slower.
    ///
    /// Results are the same bit for bit unless an instruction sums floats in another order: products of matrices,
    /// convolutions, a batch norm that became part of one, means. Each of these is off the exact sum of its
    /// terms by at most γ = n·2⁻²⁴/(1 − n·2⁻²⁴) times the sum of their absolute values in `f32`, where n counts the
    /// roundings a term goes through: at most the number of terms and four more, eight more for a folded batch norm. So two
    /// orders are at most twice that apart. What is computed from such sums follows from them.
    pub no_optimize: bool,
    /// Threads for kernels. `None` uses those that the caller runs in (`compute::threads::Threads::run`), or outside of any
    /// the thread of the caller, with threads of the process, as many as the machine has, for what repays handing it
    /// over. Where the platform cannot start threads, as in `wasm32-unknown-unknown`, the caller's does all the work,
    /// whatever is asked for. Results do not depend on their number.
    pub threads: Option<usize>,
    /// Ceilings; those the program was opened with if `None`.
    pub limits: Option<Limits>,
}

impl Options {
    /// Stores packed weights in a folder, which is made if it does not exist: another load of the same weights, of this or
    /// another process, reads them instead of packing again. Entries are found by a digest of everything they were made
    /// of, and checked when they are read. A full disk, or damaged entries, only mean that weights are packed again.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, belongs to another user, or others may write to it.
    pub fn pack_cache(mut self, folder: impl AsRef<Path>) -> Result<Self, FolderError> {
        self.folder = Some(PackFolder::open(folder)?);
        Ok(self)
    }
}
