//! Two runs at the same pace: elements of one pair are in memory at a time, whatever the size of the models.
//!
//! The first source runs in a thread and waits for the second before it hands over its next result.

use std::sync::mpsc::sync_channel;
use std::thread;

use edgepack_format::tensor::TensorBuf;

use super::measure::{Bounds, Distance, Side, measure};
use super::pair::{Pair, Turned};
use super::seen::Seen;
use super::source::{Source, Wanted};
use crate::status::Failure;

/// Measures the distance of every pair.
///
/// # Errors
///
/// A run failed, or went another way than when it was described.
pub fn distances(
    [left, right]: [&mut dyn Source; 2],
    [left_seen, right_seen]: [&[Seen]; 2],
    pairs: &[Pair],
    bounds: Bounds,
) -> Result<Vec<Distance>, Failure> {
    let wanted_left: Vec<Wanted> = pairs.iter().map(|pair| (pair.left, pair.turned == Turned::Left)).collect();
    let wanted_right: Vec<Wanted> = pairs.iter().map(|pair| (pair.right, pair.turned == Turned::Right)).collect();
    let (send, receive) = sync_channel::<TensorBuf>(0);
    let mut found = Vec::with_capacity(pairs.len());
    let taken = &mut found;
    let (first, second) = thread::scope(|scope| {
        // Nobody takes what is left if the other side failed.
        let give = move || left.give(&wanted_left, &mut |_, elements| drop(send.send(elements)));
        let first = thread::Builder::new().spawn_scoped(scope, give);
        let first = first.map_err(|error| Failure::cannot_run(format!("a thread cannot be started: {error}")))?;
        let mut take = move |at: usize, have: TensorBuf| {
            let (Some(pair), Ok(want)) = (pairs.get(at), receive.recv()) else { return };
            let want = Side { tensor: &want, affine: left_seen[pair.left].affine };
            let have = Side { tensor: &have, affine: right_seen[pair.right].affine };
            taken.push(measure(want, have, bounds));
        };
        let second = right.give(&wanted_right, &mut take);
        drop(take);
        Ok::<_, Failure>((first.join(), second))
    })?;
    first.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    second?;
    match found.len() == pairs.len() {
        true => Ok(found),
        false => Err(Failure::cannot_run("the second run went another way than the first")),
    }
}
