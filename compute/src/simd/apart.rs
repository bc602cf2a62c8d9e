//! Parts of computations that are functions of their own.

/// A part of a computation with the instructions of a token `T`. Inlined into a large function, it would not keep its numbers
/// in registers. `run` must be inlined, and so must what it calls.
pub(crate) trait Apart<T> {
    fn run(self, token: T);
}
