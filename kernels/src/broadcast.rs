//! Shapes that must fit together, and walks of inputs in the order an output lies in memory.

use edgepack_executor::kernel::KernelError;

pub use edgepack_compute::layout::broadcast;
pub use edgepack_compute::walk::{Axis, Cursor, Walk};

/// An error unless `sizes` stretch to `target`.
pub fn expect_stretch(name: &str, sizes: &[usize], target: &[usize]) -> Result<(), KernelError> {
    if broadcast(sizes, target).is_some_and(|common| *common == *target) {
        return Ok(());
    }
    Err(KernelError::argument(format!("`{name}` has sizes {sizes:?}, which do not broadcast to {target:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stretch_to_a_target_or_are_refused() {
        assert!(expect_stretch("src", &[3], &[2, 3]).is_ok());
        assert!(expect_stretch("src", &[2, 3], &[3]).is_err());
    }
}
