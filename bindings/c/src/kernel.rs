//! Operators of the caller's.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use edgepack::executor::OperatorInfo;
use edgepack::executor::kernel::{KernelContext, KernelError, Operator, Prepare, Run};

use crate::borrowed::{EdgepackDrop, EdgepackRelease, Owned, State};
use crate::call::{EdgepackCall, Running, View, with};
use crate::failure::Failure;
use crate::pointer::{In, Out};

/// A callback that looks at a call when its method is loaded. It may put what `run` is to be given into `state`, which is
/// null before; if it fails, what it put there is not used.
pub type EdgepackPrepare =
    Option<extern "C-unwind" fn(user: Out<c_void>, call: EdgepackCall, state: Out<Out<c_void>>) -> i32>;

/// A callback that runs a call.
pub type EdgepackRun = Option<extern "C-unwind" fn(user: Out<c_void>, state: Out<c_void>, call: EdgepackCall) -> i32>;

/// An operator of the caller's.
///
/// Callbacks return an EdgepackCode; edgepack_call_fail gives the reason in words. They are called on the thread that loads or
/// runs a method, or on one of the method's own: for one state one at a time, for different methods at the same time. They
/// must not throw: an exception that leaves one ends the process. They may call any function of the library; the method that
/// is running is in use, and refuses.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EdgepackKernel {
    /// Name and arguments: `my::leaky.out(Tensor self, float slope, *, Tensor(a!) out) -> Tensor(a!)`.
    pub schema: In<c_char>,
    /// 1 if name and arguments determine the result: calls on constants are then made once, when a method is loaded.
    pub pure: u32,
    /// Data of the caller's, given to every callback.
    pub user: Out<c_void>,
    /// Looks at a call when a method is loaded; may be null.
    pub prepare: EdgepackPrepare,
    /// Runs a call.
    pub run: EdgepackRun,
    /// Takes back what `prepare` made; may be null.
    pub drop_state: EdgepackDrop,
    /// Takes back `user`; may be null.
    pub release: EdgepackRelease,
}

/// An operator, as methods are loaded with it.
pub(crate) struct Kernel {
    name: String,
    schema: String,
    pure: bool,
    prepare: EdgepackPrepare,
    run: extern "C-unwind" fn(Out<c_void>, Out<c_void>, EdgepackCall) -> i32,
    drop_state: EdgepackDrop,
    owner: Arc<Owned>,
}

/// An operator that was looked at, before the caller's data are taken over.
pub(crate) struct Checked {
    kernel: Kernel,
    user: Out<c_void>,
    release: EdgepackRelease,
}

impl Kernel {
    /// Looks at an operator; nothing is taken over.
    pub fn checked(kernel: &EdgepackKernel) -> Result<Checked, Failure> {
        let text = kernel.schema.text("the schema")?;
        let at = text.find('(').ok_or_else(|| Failure::argument(format!("the schema has no arguments: {text}")))?;
        let (name, schema) = text.split_at(at);
        let run = kernel.run.ok_or_else(|| Failure::argument(format!("{name}: run is null")))?;
        let ours = Kernel {
            name: name.trim().to_owned(),
            schema: schema.to_owned(),
            pure: kernel.pure != 0,
            prepare: kernel.prepare,
            run,
            drop_state: kernel.drop_state,
            owner: Arc::new(Owned::new(kernel.user, None)),
        };
        OperatorInfo::parse(&ours).map_err(|error| Failure::argument(error.message))?;
        Ok(Checked { kernel: ours, user: kernel.user, release: kernel.release })
    }
}

impl Checked {
    /// Takes the caller's data over.
    pub fn hold(self) -> Kernel {
        Kernel { owner: Arc::new(Owned::new(self.user, self.release)), ..self.kernel }
    }
}

impl Operator for Kernel {
    fn name(&self) -> &str {
        &self.name
    }
    fn schema(&self) -> &str {
        &self.schema
    }
    fn is_pure(&self) -> bool {
        self.pure
    }
    fn prepare(&self, args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        let mut state: Out<c_void> = Out::NULL;
        let user = self.owner.user();
        if let Some(prepare) = self.prepare {
            let place = Out::to(&raw mut state);
            with(View::Prepare(args), |id| prepare(user, EdgepackCall { id }, place))?;
        }
        let state = State::new(self.owner.clone(), state, self.drop_state.filter(|_| self.prepare.is_some()));
        let run = self.run;
        Ok(Box::new(move |context: &mut KernelContext<'_>| {
            let view = View::Run(Running { context, taken: 0, viewed: false, scratch: false });
            with(view, |id| run(state.user(), state.state(), EdgepackCall { id }))
        }))
    }
}
