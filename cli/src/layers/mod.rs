//! Comparison of two runs, result by result: where they come apart first, and how far apart each layer is.
//!
//! Each side runs twice. The first time its results are listed with a few elements each, and matched; the second time both
//! sides run at the same pace and hand over one pair of results at a time, so no run is kept in memory.
//!
//! Invariant: memory is that of both methods, of the list (its first [`source::MOST`] results), and of three results.

mod lockstep;
mod measure;
pub mod page;
mod pair;
pub mod recorded;
mod report;
pub mod seen;
pub mod source;

use crate::status::Failure;

pub use measure::{Bounds, Verdict};
pub use pair::Relation;
pub use report::Report;
use source::Source;

/// Compares two runs; the first is the one that the other is compared with.
///
/// # Errors
///
/// A run failed, or went another way the second time.
pub fn compare(
    left: &mut dyn Source,
    right: &mut dyn Source,
    relation: Relation,
    bounds: Bounds,
) -> Result<Report, Failure> {
    let (left_seen, left_more) = left.describe().map_err(|failure| failure.about("the left run"))?;
    let (right_seen, right_more) = right.describe().map_err(|failure| failure.about("the right run"))?;
    let pairs = pair::pairs(&left_seen, &right_seen, relation);
    let seen = [left_seen.as_slice(), &right_seen];
    let distances = lockstep::distances([left, right], seen, &pairs, bounds)?;
    Ok(Report::new(seen, &pairs, distances, left_more || right_more))
}
