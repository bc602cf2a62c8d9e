//! Backends of the caller's.

use std::ffi::{c_char, c_void};
use std::ops::Range;
use std::sync::Arc;

use edgepack::executor::delegate;
use edgepack::executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack::loader::Bytes;

use crate::borrowed::{EdgepackDrop, EdgepackRelease, Owned, State};
use crate::call::{EdgepackCall, EdgepackInit, Init, Running, View, with};
use crate::failure::Failure;
use crate::pointer::{In, Out};
use crate::text::Terminated;

/// A callback that makes a delegate of a payload. It puts what the others are to be given into `delegate`, which is null
/// before; if it fails, what it put there is not used.
pub type EdgepackMakeDelegate =
    Option<extern "C-unwind" fn(user: Out<c_void>, init: EdgepackInit, delegate: Out<Out<c_void>>) -> i32>;

/// A callback that says which of the `count` arguments of a call are written: this one and those behind it.
pub type EdgepackFirstOutput =
    Option<extern "C-unwind" fn(user: Out<c_void>, delegate: Out<c_void>, count: usize) -> usize>;

/// A callback that looks at a call of a delegate when its method is loaded, as EdgepackPrepare does.
pub type EdgepackPrepareDelegate = Option<
    extern "C-unwind" fn(user: Out<c_void>, delegate: Out<c_void>, call: EdgepackCall, state: Out<Out<c_void>>) -> i32,
>;

/// A callback that runs a call of a delegate.
pub type EdgepackRunDelegate = Option<
    extern "C-unwind" fn(user: Out<c_void>, delegate: Out<c_void>, state: Out<c_void>, call: EdgepackCall) -> i32,
>;

/// A backend of the caller's.
///
/// Callbacks answer, and are called, as those of EdgepackKernel: for one delegate one at a time.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EdgepackBackend {
    /// The id that programs name it by.
    pub id: In<c_char>,
    /// Data of the caller's, given to every callback.
    pub user: Out<c_void>,
    /// Makes a delegate of a payload, when a method is loaded. A payload is input of strangers: refuse what makes no sense.
    pub init: EdgepackMakeDelegate,
    /// Says which arguments are written; null if it is the last one.
    pub first_output: EdgepackFirstOutput,
    /// Looks at a call when a method is loaded; may be null.
    pub prepare: EdgepackPrepareDelegate,
    /// Runs a call.
    pub run: EdgepackRunDelegate,
    /// Takes back what `prepare` made; may be null.
    pub drop_state: EdgepackDrop,
    /// Takes back what `init` made, after all states of its calls; may be null.
    pub drop_delegate: EdgepackDrop,
    /// Takes back `user`; may be null.
    pub release: EdgepackRelease,
}

/// Functions of a backend.
#[derive(Clone, Copy)]
struct Functions {
    init: extern "C-unwind" fn(Out<c_void>, EdgepackInit, Out<Out<c_void>>) -> i32,
    first_output: EdgepackFirstOutput,
    prepare: EdgepackPrepareDelegate,
    run: extern "C-unwind" fn(Out<c_void>, Out<c_void>, Out<c_void>, EdgepackCall) -> i32,
    drop_state: EdgepackDrop,
    drop_delegate: EdgepackDrop,
}

/// A backend, as methods are loaded with it.
pub(crate) struct Backend {
    id: String,
    functions: Functions,
    owner: Arc<Owned>,
}

/// A backend that was looked at, before the caller's data are taken over.
pub(crate) struct Checked {
    id: String,
    functions: Functions,
    user: Out<c_void>,
    release: EdgepackRelease,
}

impl Backend {
    /// Looks at a backend; nothing is taken over.
    pub fn checked(backend: &EdgepackBackend) -> Result<Checked, Failure> {
        let id = backend.id.text("the backend's id")?.to_owned();
        let missing = |what: &str| Failure::argument(format!("{id}: {what} is null"));
        let functions = Functions {
            init: backend.init.ok_or_else(|| missing("init"))?,
            first_output: backend.first_output,
            prepare: backend.prepare,
            run: backend.run.ok_or_else(|| missing("run"))?,
            drop_state: backend.drop_state,
            drop_delegate: backend.drop_delegate,
        };
        Ok(Checked { id, functions, user: backend.user, release: backend.release })
    }
}

impl Checked {
    /// Takes the caller's data over.
    pub fn hold(self) -> Backend {
        let owner = Arc::new(Owned::new(self.user, self.release));
        Backend { id: self.id, functions: self.functions, owner }
    }
}

impl delegate::Backend for Backend {
    fn id(&self) -> &str {
        &self.id
    }

    fn init(&self, cx: delegate::DelegateInit<'_>) -> Result<Box<dyn delegate::Delegate>, KernelError> {
        let mut init = Init {
            payload: cx.processed,
            specs: cx.compile_specs.into_iter().map(|(key, value)| (Terminated::new(key), value)).collect(),
            named_data: cx.named_data,
            options: cx.options.to_vec(),
            texts: Vec::new(),
            method: Terminated::new(cx.method),
            held: Vec::new(),
        };
        let mut made: Out<c_void> = Out::NULL;
        let (user, place) = (self.owner.user(), Out::to(&raw mut made));
        with(View::Init(&mut init), |id| (self.functions.init)(user, EdgepackInit { id }, place))?;
        let Init { payload, held, .. } = init;
        let made = State::new(self.owner.clone(), made, self.functions.drop_delegate);
        let made = Made { state: made, owner: self.owner.clone(), _payload: payload, _held: held };
        Ok(Box::new(Delegate { made: Arc::new(made), functions: self.functions }))
    }
}

/// State that `init` made, dropped before the bytes that it may lead to.
struct Made {
    state: State,
    owner: Arc<Owned>,
    _payload: Bytes,
    _held: Vec<Bytes>,
}

struct Delegate {
    made: Arc<Made>,
    functions: Functions,
}

/// A call of a delegate: what `prepare` made of it, dropped before the delegate.
struct Call {
    state: State,
    made: Arc<Made>,
    run: extern "C-unwind" fn(Out<c_void>, Out<c_void>, Out<c_void>, EdgepackCall) -> i32,
}

impl Run for Call {
    fn run(&mut self, context: &mut KernelContext<'_>) -> Result<(), KernelError> {
        let view = View::Run(Running { context, taken: 0, viewed: false, scratch: false });
        let (user, made, state) = (self.state.user(), self.made.state.state(), self.state.state());
        with(view, |id| (self.run)(user, made, state, EdgepackCall { id }))
    }
}

impl Delegate {
    fn pointers(&self) -> (Out<c_void>, Out<c_void>) {
        (self.made.state.user(), self.made.state.state())
    }
}

impl delegate::Delegate for Delegate {
    fn outputs(&self, count: usize) -> Range<usize> {
        let (user, made) = self.pointers();
        let first = self.functions.first_output.map(|first| first(user, made, count));
        first.unwrap_or(count.saturating_sub(1)).min(count)..count
    }

    fn prepare(&self, call: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        let (user, made) = self.pointers();
        let mut state: Out<c_void> = Out::NULL;
        if let Some(prepare) = self.functions.prepare {
            let place = Out::to(&raw mut state);
            with(View::Prepare(call), |id| prepare(user, made, EdgepackCall { id }, place))?;
        }
        let drop_state = self.functions.drop_state.filter(|_| self.functions.prepare.is_some());
        let state = State::new(self.made.owner.clone(), state, drop_state);
        Ok(Box::new(Call { state, made: self.made.clone(), run: self.functions.run }))
    }
}
