//! Spread of times over runs.

use std::time::Duration;

use serde::Serialize;

use crate::units::duration;

/// Times of runs, in nanoseconds: the middle, and how far the others are from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Spread {
    /// As many runs were faster as were slower.
    pub median_ns: u64,
    /// The fastest.
    pub min_ns: u64,
    /// The slowest.
    pub max_ns: u64,
    /// A quarter of the runs was faster.
    pub lower_quartile_ns: u64,
    /// A quarter of the runs was slower.
    pub upper_quartile_ns: u64,
}

impl Spread {
    /// Returns the spread of these times; of none all zeros.
    pub fn of(mut nanos: Vec<u64>) -> Spread {
        nanos.sort_unstable();
        let last = nanos.len().saturating_sub(1) as f64;
        let at = |share: f64| nanos.get((last * share).round() as usize).copied().unwrap_or(0);
        Spread {
            median_ns: at(0.5),
            min_ns: at(0.0),
            max_ns: at(1.0),
            lower_quartile_ns: at(0.25),
            upper_quartile_ns: at(0.75),
        }
    }

    /// Returns how far the times are apart, in words.
    pub fn in_words(&self) -> String {
        let time = |nanos| duration(Duration::from_nanos(nanos));
        let Spread { median_ns: _, min_ns, max_ns, lower_quartile_ns, upper_quartile_ns } = *self;
        format!(
            "half within {} to {}, all within {} to {}",
            time(lower_quartile_ns),
            time(upper_quartile_ns),
            time(min_ns),
            time(max_ns)
        )
    }
}

/// Nanoseconds of a duration.
pub fn nanos(time: Duration) -> u64 {
    // In words of 64 bits: it is asked of every instruction.
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(time.subsec_nanos().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_times_that_were_measured() {
        let spread = Spread::of(vec![50, 10, 40, 20, 30]);
        let want = Spread { median_ns: 30, min_ns: 10, max_ns: 50, lower_quartile_ns: 20, upper_quartile_ns: 40 };
        assert_eq!(spread, want);
        assert_eq!(Spread::of(Vec::new()), Spread::default());
        assert_eq!(spread.in_words(), "half within 20 ns to 40 ns, all within 10 ns to 50 ns");
    }
}
