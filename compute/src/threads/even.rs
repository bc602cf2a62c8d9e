//! Parts that threads end together with.
//!
//! Threads take parts of one size one after the other, and the last of them ends when the last part does: of seven parts on
//! two threads, one of which has four, an eighth of the time is lost. So the number of parts is chosen by what the last
//! thread has to do.

/// Share of a part that a thread is expected to come late by, as one of so many.
const LATE: usize = 8;

/// Parts of a thread that are tried. It is done at each call of a kernel, so they are few.
const ROUNDS: [usize; 8] = [16, 12, 8, 6, 4, 3, 2, 1];

/// Returns how many units a part has, of up to `most` parts of `units`, so that the last of some threads ends early. A
/// part of so many units takes what `time` says; with equal results, parts are short.
///
/// ```text
/// even(14, 8, 2, |units| units)     // 7 parts of 2 take 8, 2 parts of 7 take 7: 7
/// even(784, 8, 2, |units| units)    // 2 parts of 392 take as long as 8 of 98, but one of two may come late: 98
/// ```
pub(crate) fn even(units: usize, most: usize, threads: usize, time: impl Fn(usize) -> usize) -> usize {
    let (most, threads) = (most.clamp(1, units.max(1)), threads.max(1));
    let (mut best, mut least) = (units.max(1), usize::MAX);
    for rounds in ROUNDS.into_iter().skip_while(|rounds| *rounds > most.div_ceil(threads)) {
        let part = units.div_ceil((threads * rounds).min(most)).max(1);
        let rounds = units.div_ceil(part).div_ceil(threads);
        let last = (LATE * rounds + 1).saturating_mul(time(part));
        if last < least {
            (best, least) = (part, last);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::even;

    #[test]
    fn parts_of_equal_time_are_as_many_as_threads_divide() {
        for (units, most, threads, part) in [
            (28, 8, 2, 7),
            (14, 8, 2, 7),
            (20, 8, 2, 5),
            (784, 8, 2, 98),
            (56, 16, 4, 7),
            (3, 3, 2, 1),
            (1, 4, 2, 1),
            (0, 4, 2, 1),
        ] {
            assert_eq!(even(units, most, threads, |units| units), part, "{units} units in up to {most} parts");
        }
    }
}
