//! Tensors whose bytes change with those of others, because a file stores them once.

use std::collections::BTreeSet;

use super::error::Error;
use super::join::entries_of;
use super::package::Package;
use super::patch::{NewTensor, Place, located};
use super::program::{constant_place, each_tensor};
use super::root::Root;

/// Bytes of a tensor in a file.
struct Held {
    name: String,
    place: Place,
    len: u64,
}

impl Held {
    fn overlaps(&self, other: &Held) -> bool {
        match (&self.place, &other.place) {
            (Place::Inline(one), Place::Inline(other)) => one == other,
            (Place::Segment { segment, offset }, Place::Segment { segment: second, offset: start }) => {
                let ends = [offset.saturating_add(self.len), start.saturating_add(other.len)];
                segment == second && *offset < ends[1] && *start < ends[0]
            }
            _ => false,
        }
    }
}

/// Returns the names of other tensors whose data [`patch`](super::patch()) changes with those of `tensors`: a file may store
/// bytes once for several.
pub fn sharers(package: &Package<'_>, tensors: &[NewTensor<'_>]) -> Result<Vec<String>, Error> {
    let held = held(package)?;
    let is_new = |held: &&Held| tensors.iter().any(|new| new.name == held.name);
    let (new, others): (Vec<&Held>, Vec<&Held>) = held.iter().partition(is_new);
    let changed = others.into_iter().filter(|other| new.iter().any(|new| new.overlaps(other)));
    Ok(changed.map(|other| other.name.clone()).collect::<BTreeSet<_>>().into_iter().collect())
}

/// The data of every tensor that has some in the file. One whose place is missing has none.
fn held(package: &Package<'_>) -> Result<Vec<Held>, Error> {
    let mut held = Vec::new();
    match (&package.root, package.program()) {
        (Root::Program(_), Some(program)) => {
            let constants = constant_place(program)?;
            each_tensor(program, |at, tensor| {
                if let Ok(Some((name, place, layout))) = located(program, constants.as_ref(), at, tensor, |_| true) {
                    held.push(Held { name, place, len: layout.byte_len() as u64 });
                }
                Ok(())
            })?;
        }
        _ => held.extend(entries_of(package)?.into_iter().map(|entry| {
            let (segment, offset) = entry.place;
            Held { name: entry.key, place: Place::Segment { segment, offset }, len: entry.content.len() }
        })),
    }
    Ok(held)
}
