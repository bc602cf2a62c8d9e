//! Rewrites that the library applies to a method before it is frozen. Each rule is one small rewrite. Results stay the
//! same bit for bit, but for sums of floats in another order: see `Options::no_optimize`.

mod batch_norm;
mod chain;
mod epilogue;
mod layout;
mod places;
mod transposed;

use edgepack_executor::Registry;
use edgepack_executor::rewrite::{FoldConstants, ShareEqual};
use edgepack_format::operators;

/// Adds the rules, in the order they run.
pub(crate) fn with_rewrites(registry: Registry) -> Registry {
    registry
        // Before constants are folded, which would copy what need not be copied.
        .with_rewrite(transposed::ViewTransposed)
        .with_rewrite(FoldConstants::new(is_pure))
        .with_rewrite(ShareEqual::new(is_pure))
        .with_rewrite(batch_norm::FoldBatchNorm)
        .with_rewrite(places::DropPlaces)
        .with_rewrite(epilogue::FuseEpilogues)
        .with_rewrite(layout::ChannelsLast)
}

/// Returns whether calling an operator at load gives the result of calling it at each run; false for an unknown
/// operator.
fn is_pure(full_name: &str) -> bool {
    operators::find(full_name).is_some_and(operators::Operator::is_pure)
}
