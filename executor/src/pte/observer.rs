//! Watching a method run, instruction by instruction.

use std::cell::OnceCell;
use std::ops::Range;

use crate::api::context::KernelContext;
use crate::api::tensor::{TensorRef, TensorShape};
use crate::pte::error::Place;

/// Something that wants to know what runs: a profiler, a tracer, a debugger. All methods do nothing by default.
///
/// ```
/// use edgepack_executor::observer::{Event, Observer};
/// use edgepack_executor::{Input, Method, Options, Registry};
/// use edgepack_loader::Program;
///
/// /// Names of what ran, and how many runs there were.
/// #[derive(Default)]
/// struct Names(Vec<String>, usize);
///
/// impl Observer for Names {
///     fn started(&mut self) {
///         self.1 += 1;
///     }
///     fn before(&mut self, event: &Event<'_>) {
///         self.0.push(event.name.to_owned());
///     }
/// }
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/models/multimethod_getters_portable.pte");
/// let program = Program::open(path)?;
/// let mut label = Method::load(&program, "label", &Registry::new(), &Options::default())?;
/// let mut names = Names::default();
/// label.run_observed::<Input>(&[], Some(&mut names))?;
/// assert_eq!(names.1, 1);
/// assert!(names.0.is_empty(), "this method gives a text of the file and runs nothing");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Observer {
    /// A run begins.
    fn started(&mut self) {}

    /// Places of instructions that it wants to see in the run that has begun, as [`Event::position`] counts them: all of them
    /// by default. The others run as if nobody watched. It is asked once in a run.
    fn places(&self) -> Range<usize> {
        0..usize::MAX
    }

    /// An instruction is about to run.
    fn before(&mut self, event: &Event<'_>) {
        let _ = event;
    }

    /// An instruction has run; its arguments hold the results.
    fn after(&mut self, event: &Event<'_>, results: &Results<'_>) {
        let _ = (event, results);
    }

    /// The run is over.
    fn finished(&mut self) {}
}

/// An observer for the length of a run, or none.
pub(crate) type Watcher<'w, 'o> = Option<&'w mut (dyn Observer + Send + 'o)>;

/// The instruction that is observed.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Index of the chain.
    pub chain: usize,
    /// Index of the instruction in its chain, as in the file.
    pub instruction: usize,
    /// Place among all instructions of the plan, which are more than those of the file where they stand for delegates: as in
    /// [`Lifetime`](crate::Lifetime). An instruction that runs several times has one place.
    pub position: usize,
    /// Operator or backend, or the kind of instruction.
    pub name: &'a str,
    /// Index of the delegate, if it is a delegate call or part of one.
    pub delegate: Option<usize>,
    /// Part of the delegate's payload, of instructions that stand for a delegate call: what its backend numbers them by,
    /// `u32::MAX` for copies of arguments.
    pub node: Option<u32>,
}

impl Event<'_> {
    /// As a place of a method.
    pub fn place(&self, method: &str) -> Place {
        Place {
            method: method.to_owned(),
            chain: self.chain,
            instruction: self.instruction,
            what: self.name.to_owned(),
            node: self.node,
            source: None,
        }
    }
}

/// The arguments of an instruction that has run. They are collected when they are first asked for: whoever looks at the
/// clock first measures the instruction alone.
pub struct Results<'a> {
    cx: &'a KernelContext<'a>,
    written: OnceCell<(Vec<TensorRef<'a>>, Vec<Range<usize>>)>,
    read: OnceCell<Vec<TensorShape<'a>>>,
}

impl<'a> Results<'a> {
    /// The tensors it wrote, in argument order.
    pub fn tensors(&self) -> &[TensorRef<'a>] {
        &self.written.get_or_init(|| self.cx.written()).0
    }

    /// Returns which of [`Results::tensors`] are one list together, in order.
    pub fn lists(&self) -> &[Range<usize>] {
        &self.written.get_or_init(|| self.cx.written()).1
    }

    /// The shapes of the tensors it read, in argument order; their memory may hold something else by now.
    pub fn read(&self) -> &[TensorShape<'a>] {
        self.read.get_or_init(|| self.cx.read())
    }

    pub(crate) fn of(cx: &'a KernelContext<'a>) -> Self {
        Results { cx, written: OnceCell::new(), read: OnceCell::new() }
    }
}
