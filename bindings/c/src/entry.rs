//! The way in: every function of the header runs its body here, where a panic ends and an error becomes an object.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use edgepack::format::finding::ErrorCode;

use crate::error::{EdgepackCode, EdgepackError, report};
use crate::failure::Failure;
use crate::pointer::Out;

/// Runs the body of a function. `error` receives zero, or the error, if it leads anywhere.
pub(crate) fn call(error: Out<EdgepackError>, body: impl FnOnce() -> Result<(), Failure>) -> EdgepackCode {
    // What a panic leaves behind is not looked at again: methods refuse to go on, all else is not changed in halves.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        error.write_if_wanted(EdgepackError::NONE, "error")?;
        body()
    }));
    let failure = match outcome {
        Ok(Ok(())) => return EdgepackCode::Ok,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::new(ErrorCode::Internal, format!("the library panicked: {}", words(panic))),
    };
    catch_unwind(AssertUnwindSafe(|| report(failure, error))).unwrap_or(EdgepackCode::Internal)
}

/// Runs the body of a function that cannot fail but by a panic, after which it returns `otherwise`.
pub(crate) fn plain<R>(body: impl FnOnce() -> R, otherwise: R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        words(panic);
        otherwise
    })
}

/// Message of a panic. What a panic carries may panic when it is dropped; it is left where it is then.
fn words(panic: Box<dyn Any + Send>) -> String {
    let words = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(words), _) => (*words).to_owned(),
        (_, Some(words)) => words.clone(),
        _ => "it does not say why".to_owned(),
    };
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(second);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_end_here() {
        struct Loud;
        impl Drop for Loud {
            fn drop(&mut self) {
                panic!("again");
            }
        }
        let mut error = EdgepackError::NONE;
        let out = Out::to(&raw mut error);
        assert_eq!(call(out, || panic!("on purpose")), EdgepackCode::Internal);
        assert_ne!(error, EdgepackError::NONE);
        crate::error::edgepack_error_close(error);
        assert_eq!(call(out, || std::panic::panic_any(Loud)), EdgepackCode::Internal);
        crate::error::edgepack_error_close(error);
        assert_eq!(plain(|| panic!("on purpose"), 7), 7);
        assert_eq!(call(out, || Ok(())), EdgepackCode::Ok);
        assert_eq!(error, EdgepackError::NONE);
    }
}
