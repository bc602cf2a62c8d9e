//! Contents that are stored once however often they are added.
//!
//! Two contents are the same if length and SHA-256 agree. A digest is only taken when there are two of a length, so a
//! large weight of a length of its own is never read before it is written.

use std::collections::BTreeMap;
use std::io;

use crate::content::{Data, Digest};

/// A list of distinct contents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool<'d> {
    items: Vec<Data<'d>>,
    by_len: BTreeMap<u64, SameLength>,
}

/// The contents of one length.
#[derive(Clone, Debug, Default)]
struct SameLength {
    /// The first of them, as long as there is no other.
    alone: Option<usize>,
    by_digest: BTreeMap<Digest, usize>,
}

impl<'d> Pool<'d> {
    /// The place of this content: that of an equal one, or the next.
    pub(crate) fn intern(&mut self, data: Data<'d>) -> io::Result<usize> {
        let next = self.items.len();
        let group = self.by_len.entry(data.len()).or_default();
        if group.alone.is_none() && group.by_digest.is_empty() {
            group.alone = Some(next);
            self.items.push(data);
            return Ok(next);
        }
        if let Some(alone) = group.alone {
            if data.is_empty() {
                return Ok(alone);
            }
            if let Some(first) = self.items.get(alone) {
                group.by_digest.insert(first.digest()?, alone);
            }
            group.alone = None;
        }
        let digest = data.digest()?;
        if let Some(&found) = group.by_digest.get(&digest) {
            return Ok(found);
        }
        group.by_digest.insert(digest, next);
        self.items.push(data);
        Ok(next)
    }

    /// The distinct contents, in the order they were first added.
    pub(crate) fn items(&self) -> &[Data<'d>] {
        &self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_contents_have_one_place() {
        let mut pool = Pool::default();
        let mut add = |data: Data<'static>| pool.intern(data).unwrap();
        assert_eq!(add(Data::from(vec![1; 40])), 0);
        assert_eq!(add(Data::from(vec![0; 40])), 1);
        assert_eq!(add(Data::zeros(40)), 1);
        assert_eq!(add(Data::from(vec![1; 40])), 0);
        assert_eq!(add(Data::zeros(41)), 2);
        assert_eq!(add(Data::zeros(0)), 3);
        assert_eq!(add(Data::from(Vec::new())), 3);
        assert_eq!(pool.items().len(), 4);
    }

    #[test]
    fn contents_that_begin_alike_are_not_mixed_up() {
        let mut pool = Pool::default();
        let tail = |last: u8| Data::from([vec![7; 64], vec![last]].concat());
        let places: Vec<_> = [1, 2, 1, 3, 2].map(|last| pool.intern(tail(last)).unwrap()).to_vec();
        assert_eq!(places, [0, 1, 0, 2, 1]);
    }
}
