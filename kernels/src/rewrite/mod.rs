//! What the library changes in a method before it is frozen. Each rule is one small rewrite with a test that the
//! outputs stay what they were.

mod pure;

use edgepack_executor::kernel::Registry;
use edgepack_executor::rewrite::FoldConstants;

/// Adds the rules, in the order they run.
pub(crate) fn with_rewrites(registry: Registry) -> Registry {
    registry.with_rewrite(FoldConstants::new(pure::is_pure))
}
