//! Calls of operators and backends of the caller's, while their callbacks run.
//!
//! Invariant: a handle of a call works on the thread of its callback until that callback returns; anywhere else, and any
//! time later, it answers with an error. So the views of the library that it leads to are alive whenever they are used.
#![allow(unsafe_code, reason = "views of the library cross a callback here; each block says why they are alive")]

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use edgepack::executor::kernel::{KernelContext, KernelError, Prepare};
use edgepack::format::finding::ErrorCode;
use edgepack::loader::{Bytes, NamedDataMap};

use crate::failure::Failure;
use crate::text::Terminated;

/// A call of an operator or of a delegate, as its callback sees it: valid on the thread of the callback, until that returns.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgepackCall {
    /// Number of the call.
    pub id: u64,
}

/// A delegate in the making, as its backend's callback sees it: valid on the thread of the callback, until that returns.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgepackInit {
    /// Number of the call.
    pub id: u64,
}

/// Things that a callback may look at.
pub(crate) enum View<'a, 'm> {
    /// An instruction, when its method is loaded.
    Prepare(&'a Prepare<'a>),
    /// An instruction that runs.
    Run(Running<'a, 'm>),
    /// A delegate that is made.
    Init(&'a mut Init),
}

/// An instruction that runs.
pub(crate) struct Running<'a, 'm> {
    pub context: &'a mut KernelContext<'m>,
    /// Bit per argument: outputs that were handed out.
    pub taken: u128,
    /// True if memory was handed out: sizes do not change any more.
    pub viewed: bool,
    /// True if scratch was handed out.
    pub scratch: bool,
}

/// A delegate that is made.
pub(crate) struct Init {
    pub payload: Bytes,
    pub specs: Vec<(Terminated, Vec<u8>)>,
    pub named_data: std::sync::Arc<dyn NamedDataMap>,
    pub options: Vec<(String, edgepack::executor::delegate::OptionValue)>,
    /// Texts of options that were handed out.
    pub texts: Vec<Terminated>,
    pub method: Terminated,
    /// Named data that were handed out; the delegate holds them.
    pub held: Vec<Bytes>,
}

struct Frame {
    id: u64,
    /// On the stack of [`with`], which pops this frame before it returns.
    view: *mut View<'static, 'static>,
    /// Reason that the callback, or a function that it called, gave.
    failure: Option<Failure>,
}

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

/// Numbers of calls; none is used twice.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Pops the frame, however its callback ends.
struct Popped;

impl Drop for Popped {
    fn drop(&mut self) {
        // While a thread ends its frames are gone already.
        let _ = FRAMES.try_with(|frames| frames.borrow_mut().pop());
    }
}

/// Runs a callback, which returns a code, with a view that it may look at.
pub(crate) fn with(view: View<'_, '_>, callback: impl FnOnce(u64) -> i32) -> Result<(), KernelError> {
    let mut view = view;
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let pointer = &raw mut view;
    FRAMES.with_borrow_mut(|frames| frames.push(Frame { id, view: pointer.cast(), failure: None }));
    let popped = Popped;
    let code = callback(id);
    let failure = FRAMES.with_borrow_mut(|frames| frames.last_mut().and_then(|frame| frame.failure.take()));
    drop(popped);
    match ErrorCode::from_number(code.cast_unsigned()) {
        Some(ErrorCode::Ok) => Ok(()),
        Some(code) => {
            let message = failure.map_or_else(|| "the callback gave no reason".to_owned(), |failure| failure.message);
            Err(KernelError::new(code, message))
        }
        None => Err(KernelError::new(ErrorCode::Internal, format!("the callback returned {code}, which is no code"))),
    }
}

/// Looks at the view of a call that is running on this thread. A failure is the callback's reason if it gives up for it.
pub(crate) fn look<R>(id: u64, look: impl FnOnce(&mut View<'_, '_>) -> Result<R, Failure>) -> Result<R, ErrorCode> {
    let none = || Err(ErrorCode::InvalidArgument);
    let found = FRAMES.try_with(|frames| {
        // No callback runs while the frames are borrowed: what is looked at here calls nothing of the caller's.
        let Ok(mut frames) = frames.try_borrow_mut() else { return none() };
        let Some(frame) = frames.iter_mut().rev().find(|frame| frame.id == id) else { return none() };
        // SAFETY: the frame is in the list, so `with` has not returned on this thread, and its view is alive and used by
        // nobody: `with` itself waits for the callback, and the list is borrowed by this function alone. The lifetime is
        // shortened to this call: nothing of it is returned but what `R` copies out, since `look` takes any lifetime.
        let view = unsafe { &mut *frame.view };
        look(view).map_err(|failure| {
            let code = failure.code;
            frame.failure = Some(failure);
            code
        })
    });
    found.unwrap_or_else(|_| none())
}

/// Notes a reason of the caller's.
pub(crate) fn give_reason(id: u64, message: &str) -> Result<(), ErrorCode> {
    let noted = FRAMES.try_with(|frames| {
        let Ok(mut frames) = frames.try_borrow_mut() else { return false };
        let frame = frames.iter_mut().rev().find(|frame| frame.id == id);
        frame.is_some_and(|frame| {
            frame.failure = Some(Failure::new(ErrorCode::Internal, message));
            true
        })
    });
    if noted.unwrap_or(false) { Ok(()) } else { Err(ErrorCode::InvalidArgument) }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl NamedDataMap for Nothing {
        fn data(&self, _: &str) -> Result<Option<Bytes>, edgepack::loader::Error> {
            Ok(None)
        }
        fn layout(&self, _: &str) -> Result<Option<edgepack::format::tensor::TensorLayout>, edgepack::loader::Error> {
            Ok(None)
        }
        fn len(&self) -> usize {
            0
        }
        fn key(&self, _: usize) -> Option<&str> {
            None
        }
        fn contains(&self, _: &str) -> bool {
            false
        }
    }

    fn init() -> Init {
        Init {
            payload: Bytes::from([1, 2, 3]),
            specs: Vec::new(),
            named_data: std::sync::Arc::new(Nothing),
            options: Vec::new(),
            texts: Vec::new(),
            method: Terminated::new("forward"),
            held: Vec::new(),
        }
    }

    fn payload(id: u64) -> Result<usize, ErrorCode> {
        look(id, |view| match view {
            View::Init(init) => Ok(init.payload.len()),
            _ => Err(Failure::state("another view")),
        })
    }

    #[test]
    fn calls_end_with_their_callback_and_stay_on_their_thread() {
        let (mut outer, mut inner) = (init(), init());
        let mut seen = 0;
        with(View::Init(&mut outer), |id| {
            seen = id;
            assert_eq!(payload(id), Ok(3));
            let elsewhere = std::thread::spawn(move || payload(id)).join().unwrap();
            assert_eq!(elsewhere, Err(ErrorCode::InvalidArgument));
            with(View::Init(&mut inner), |second| {
                assert_ne!(id, second);
                assert_eq!((payload(id), payload(second)), (Ok(3), Ok(3)));
                0
            })
            .unwrap();
            0
        })
        .unwrap();
        assert_eq!(payload(seen), Err(ErrorCode::InvalidArgument));
        let panicked = std::panic::catch_unwind(|| with(View::Init(&mut init()), |_| panic!("on purpose")));
        assert!(panicked.is_err() && FRAMES.with_borrow(Vec::is_empty));
    }

    #[test]
    fn codes_of_callbacks_are_errors_with_their_reason() {
        let failed = |code, reason: Option<&'static str>| {
            let failed = with(View::Init(&mut init()), |id| {
                if let Some(reason) = reason {
                    give_reason(id, reason).unwrap();
                }
                code
            });
            failed.unwrap_err()
        };
        assert_eq!(failed(0x10, Some("no such thing")).to_string(), "no such thing (NotSupported)");
        assert_eq!(failed(0x12, None).to_string(), "the callback gave no reason (InvalidArgument)");
        assert_eq!(failed(-7, Some("lost")).code, ErrorCode::Internal);
        assert_eq!(give_reason(0, "nobody"), Err(ErrorCode::InvalidArgument));
    }
}
