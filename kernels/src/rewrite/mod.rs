//! Rewrites that the library applies to a method before it is frozen. Each rule is one small rewrite. Results stay the
//! same bit for bit, but for sums of floats in another order: see `Options::no_optimize`.

mod added;
mod batch_norm;
mod chain;
mod copies;
mod epilogue;
mod joined_shuffle;
mod layout;
mod pair;
mod permutation;
mod places;
mod prelu;
mod repeated;
mod shuffle;
mod transposed;
mod unmoved;

use edgepack_executor::Registry;
use edgepack_executor::rewrite::{DetachPlanned, FoldConstants, ShareEqual};

/// Adds the rules, in the order they run.
pub(crate) fn with_rewrites(registry: Registry) -> Registry {
    registry
        // Before constants are folded, which would copy what need not be copied.
        .with_rewrite(transposed::ViewTransposed)
        .with_rewrite(repeated::MultiplyOnce)
        .with_rewrite(FoldConstants)
        .with_rewrite(DetachPlanned)
        .with_rewrite(ShareEqual)
        .with_rewrite(batch_norm::FoldBatchNorm)
        .with_rewrite(places::DropPlaces)
        .with_rewrite(shuffle::ShuffleChannels)
        .with_rewrite(prelu::FormPrelu)
        .with_rewrite(epilogue::FuseEpilogues)
        .with_rewrite(layout::ChannelsLast)
        // Where images have found their order.
        .with_rewrite(joined_shuffle::JoinShuffles)
        .with_rewrite(pair::PairConvolutions)
        .with_rewrite(added::AddResults)
        .with_rewrite(unmoved::DropCopies)
}
