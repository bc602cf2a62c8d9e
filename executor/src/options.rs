//! How a method is loaded.

use std::sync::Arc;

use edgepack_format::limits::Limits;
use edgepack_loader::NamedDataMap;

use crate::arena::Arena;
use crate::delegate::Backends;
use crate::pack_cache::PackCache;

/// How a method is loaded. The default is what most want: our own memory, all rewrites.
#[derive(Clone, Default)]
pub struct Options {
    /// Who runs delegates.
    pub backends: Backends,
    /// Where backends share what they make of weights. Clones of these options share it too.
    pub cache: PackCache,
    /// Where external constants and named data are found, beside the program itself.
    pub data: Vec<Arc<dyn NamedDataMap>>,
    /// Planned memories to use instead of fresh ones, by memory id (1 is the first); each [`Arena`] once. Methods that
    /// name the same one share its content, as programs with shared mutable buffers expect: what one run leaves in
    /// mutable buffers the next run finds, whosever it is. Inputs and outputs are not shared: an output that lies in
    /// such a memory is copied when the run ends, and an input set there is unset once another method has run.
    pub arenas: Vec<(u32, Arena)>,
    /// Keeps the program instruction by instruction: no rewrites, no packed weights. Loading is faster, running slower.
    pub no_optimize: bool,
    /// Threads for kernels: `None` uses the pool the caller runs in.
    pub threads: Option<usize>,
    /// Ceilings; those the program was opened with if `None`.
    pub limits: Option<Limits>,
}
