//! Delegates: parts of a program that a backend runs by itself.
//!
//! A [`Backend`] is found by the id a program names. It makes a [`Delegate`] of the bytes it produced at export. For every
//! call of it the delegate answers at load in one of two ways: with what runs the call ([`Delegate::prepare`]), as a kernel
//! does, or with [`Instructions`] that the method runs in its place. Those share the memory plan, the rewrites, the
//! threads, the observers and the account of memory with the rest of the method.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use edgepack_compute::threads::Threads;
use edgepack_format::limits::Limits;
use edgepack_loader::{Bytes, NamedDataMap};

use super::error::KernelError;
use super::kernel::{Prepare, Run};
use super::packing::{PackCache, Packer};

pub use super::instructions::{Instructions, Local, LocalOperator};

/// Something that can run delegates.
///
/// ```
/// use std::ops::Range;
///
/// use edgepack_builder::args;
/// use edgepack_builder::pte::{ProgramBuilder, TensorSpec};
/// use edgepack_executor::delegate::{Backend, Backends, Delegate, DelegateInit};
/// use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};
/// use edgepack_executor::{Method, Options, Registry};
/// use edgepack_format::{scalar::ScalarType, tensor::TensorView};
/// use edgepack_loader::Program;
///
/// /// Multiplies by the number that its payload is.
/// struct Scaler;
///
/// impl Backend for Scaler {
///     fn id(&self) -> &str {
///         "Scaler"
///     }
///     fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
///         let factor = cx.processed.first().ok_or_else(|| KernelError::argument("the payload is empty"))?;
///         Ok(Box::new(Scaled(f32::from(*factor))))
///     }
/// }
///
/// struct Scaled(f32);
///
/// impl Delegate for Scaled {
///     fn outputs(&self, count: usize) -> Range<usize> {
///         1..count // of the arguments; the first is the input
///     }
///     fn prepare(&self, call: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
///         call.expect_len(2)?;
///         let factor = self.0;
///         Ok(Box::new(move |cx: &mut KernelContext<'_>| {
///             let views = cx.views();
///             let (x, mut y) = (views.tensor(0)?, views.out(1)?);
///             y.as_mut_slice::<f32>()?.iter_mut().zip(x.as_slice::<f32>()?).for_each(|(y, x)| *y = x * factor);
///             Ok(())
///         }))
///     }
/// }
///
/// let mut program = ProgramBuilder::new();
/// let mut forward = program.method("forward");
/// let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [2]))?;
/// let delegate = forward.delegate("Scaler", &[3], &[])?;
/// let y = forward.call_delegate(delegate, args![x], TensorSpec::like(x))?;
/// forward.output(y)?;
/// let program = Program::from_bytes(program.finish()?.to_bytes()?)?;
///
/// let options = Options { backends: Backends::new().with(Scaler), ..Options::default() };
/// let mut forward = Method::load(&program, "forward", &Registry::new(), &options)?;
/// let outputs = forward.run(&[TensorView::from_slice(&[2], &[1.0f32, -2.0])?.untyped()])?;
/// assert_eq!(outputs.get(0).unwrap().tensor().unwrap().as_slice::<f32>()?, [3.0, -6.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Backend: Send + Sync {
    /// The id programs name it by.
    fn id(&self) -> &str;

    /// Returns whether it can run here and now.
    fn is_available(&self) -> bool {
        true
    }

    /// Makes a delegate.
    fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError>;
}

/// Everything that a backend gets to make a delegate from.
pub struct DelegateInit<'a> {
    /// The bytes the backend produced at export. Dropping them releases their memory, if no other handle holds it.
    pub processed: Bytes,
    /// Options given at export, in order.
    pub compile_specs: Vec<(String, Vec<u8>)>,
    /// Data by key, inside the program and in the data files it was loaded with. A delegate may keep the map and ask
    /// for data later; what it gets is read-only and released when dropped.
    pub named_data: Arc<dyn NamedDataMap>,
    /// The place of the processed bytes: the same for all delegates that have them, and in all loads of the program.
    pub place: String,
    /// Packed weights of other delegates, by keys of the backend. Several programs may share it.
    pub cache: &'a PackCache,
    /// Packs weights, or finds what another delegate or method of the program made of them.
    pub packer: &'a Arc<Packer>,
    /// The threads the method runs on, if it has its own.
    pub threads: Option<&'a Threads>,
    /// Name of the method.
    pub method: &'a str,
    /// Ceilings of the method: a delegate keeps what it reads and makes of its bytes below them.
    pub limits: Limits,
    /// Options that the caller sets for the backend (see [`Backends::with_option`]), in the order they were set.
    pub options: &'a [(String, OptionValue)],
}

impl DelegateInit<'_> {
    /// The option of this name; of several the last.
    pub fn option(&self, name: &str) -> Option<&OptionValue> {
        self.options.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

/// The value of an option that a backend is given when a method is loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OptionValue {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Text.
    Text(String),
}

impl From<bool> for OptionValue {
    fn from(value: bool) -> Self {
        OptionValue::Bool(value)
    }
}

impl From<i64> for OptionValue {
    fn from(value: i64) -> Self {
        OptionValue::Int(value)
    }
}

impl From<&str> for OptionValue {
    fn from(value: &str) -> Self {
        OptionValue::Text(value.to_owned())
    }
}

/// A part of a method, before its calls are prepared.
///
/// ```
/// use std::ops::Range;
///
/// use edgepack_executor::delegate::Delegate;
/// use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};
///
/// /// Doubles its one input.
/// struct Double;
///
/// impl Delegate for Double {
///     fn outputs(&self, count: usize) -> Range<usize> {
///         1..count
///     }
///
///     fn prepare(&self, call: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
///         call.expect_len(2)?;
///         Ok(Box::new(|cx: &mut KernelContext<'_>| {
///             let sizes = cx.meta(0)?.sizes.to_vec();
///             cx.resize(1, &sizes)?;
///             let views = cx.views();
///             let (input, mut out) = (views.tensor(0)?, views.out(1)?);
///             for (out, x) in out.as_mut_slice::<f32>()?.iter_mut().zip(input.as_slice::<f32>()?) {
///                 *out = 2.0 * x;
///             }
///             Ok(())
///         }))
///     }
/// }
/// ```
pub trait Delegate: Send {
    /// Returns the range of the `count` arguments that it writes. It only reads the others.
    fn outputs(&self, count: usize) -> Range<usize>;

    /// Returns the instructions that stand for one call, or `None` if [`prepare`](Delegate::prepare) is to be asked.
    ///
    /// Asked once per call, before the method is rewritten. Shapes are upper bounds for dynamic tensors. Scratch memory asked
    /// for here is not given: each operator asks for its own when it is prepared. What is reserved of
    /// [`Prepare::retained`] stays charged to the method.
    fn instructions(&self, call: &Prepare<'_>) -> Result<Option<Instructions>, KernelError> {
        let _ = call;
        Ok(None)
    }

    /// Looks at one call and returns what will run it: arguments are the inputs, then the outputs. What calls share
    /// (weights, state), each of them holds.
    fn prepare(&self, call: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError>;
}

/// The backends a method is loaded with.
#[derive(Clone, Default)]
pub struct Backends {
    list: Vec<Arc<dyn Backend>>,
    options: BTreeMap<String, Vec<(String, OptionValue)>>,
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

    /// Gives the backend of this id an option, which its delegates see in [`DelegateInit::options`]. Which options there are
    /// is the backend's to say; one that it does not know it refuses or leaves alone.
    ///
    /// ```
    /// use edgepack_executor::delegate::Backends;
    ///
    /// let backends = Backends::new().with_option("MyBackend", "threads", 2).with_option("MyBackend", "trace", true);
    /// assert_eq!(backends.options("MyBackend").len(), 2);
    /// ```
    pub fn with_option(mut self, id: &str, name: &str, value: impl Into<OptionValue>) -> Self {
        self.options.entry(id.to_owned()).or_default().push((name.to_owned(), value.into()));
        self
    }

    /// The options of a backend.
    pub fn options(&self, id: &str) -> &[(String, OptionValue)] {
        self.options.get(id).map_or(&[], Vec::as_slice)
    }

    /// The backend of this id, if it is available.
    pub fn find(&self, id: &str) -> Option<&dyn Backend> {
        self.list.iter().find(|backend| backend.id() == id && backend.is_available()).map(|backend| &**backend)
    }
}
