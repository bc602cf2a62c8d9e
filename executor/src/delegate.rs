//! Delegates: parts of a program that a backend runs in its own way.
//!
//! A [`Backend`] is found by the id a program names. It makes a [`Delegate`] of the bytes it produced at export; the
//! delegate then executes on typed views, like a kernel.

use std::ops::Range;
use std::sync::Arc;

use edgepack_loader::{Bytes, NamedDataMap};

use crate::kernel::{KernelContext, KernelError};
use crate::pack_cache::PackCache;

/// Something that can run delegates.
pub trait Backend: Send + Sync {
    /// The id programs name it by.
    fn id(&self) -> &str;

    /// Whether it can run here and now.
    fn is_available(&self) -> bool {
        true
    }

    /// Makes a delegate.
    fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError>;
}

/// What a backend gets to make a delegate of.
pub struct DelegateInit<'a> {
    /// The bytes the backend produced at export. Dropping them releases their memory, if nobody else holds it.
    pub processed: Bytes,
    /// Options given at export, in order.
    pub compile_specs: Vec<(String, Vec<u8>)>,
    /// Data by key, inside the program and in the data files it was loaded with. A delegate may keep the map and ask
    /// for data later; what it gets is read-only and released when dropped.
    pub named_data: Arc<dyn NamedDataMap>,
    /// What other delegates made of the same weights.
    pub cache: &'a PackCache,
    /// The threads the method runs on, if it has its own.
    pub pool: Option<&'a Arc<rayon::ThreadPool>>,
    /// Name of the method.
    pub method: &'a str,
}

/// A part of a method, ready to run.
pub trait Delegate: Send {
    /// Which of `count` arguments it writes. Everything else it only reads.
    fn outputs(&self, count: usize) -> Range<usize>;

    /// Executes once: arguments are the inputs, then the outputs.
    fn execute(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError>;
}

/// The backends a method is loaded with.
#[derive(Clone, Default)]
pub struct Backends {
    list: Vec<Arc<dyn Backend>>,
}

impl Backends {
    /// No backends.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one; it goes before an earlier one of the same id.
    pub fn with(mut self, backend: impl Backend + 'static) -> Self {
        self.list.insert(0, Arc::new(backend));
        self
    }

    /// The backend of this id, if it is available.
    pub fn find(&self, id: &str) -> Option<&dyn Backend> {
        self.list.iter().find(|backend| backend.id() == id && backend.is_available()).map(|backend| &**backend)
    }
}
