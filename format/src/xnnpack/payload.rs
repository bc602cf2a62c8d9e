//! A payload as a whole: its container, its graph, and what both say about each other.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use super::constants::{Constant, Constants, ConstantsError};
use super::header::Header;
use super::node::Node;
use super::tables::{Graph, NO_ID, Value};
use crate::room;

/// A payload that satisfies the rules, borrowed from its bytes.
#[derive(Clone)]
pub struct Payload<'a> {
    pub(super) header: Option<Header>,
    pub(super) identifier: [u8; 4],
    pub(super) graph: Graph<'a>,
    pub(super) values: Vec<Value<'a>>,
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) constants: Vec<Constant<'a>>,
    pub(super) ids: ValueIds,
    pub(super) order: Vec<u32>,
}

impl<'a> Payload<'a> {
    /// The header; `None` for a bare flatbuffer.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// The identifier of the flatbuffer.
    pub fn identifier(&self) -> [u8; 4] {
        self.identifier
    }

    /// The root row.
    pub fn graph(&self) -> &Graph<'a> {
        &self.graph
    }

    /// The values, in the order of the file.
    pub fn values(&self) -> &[Value<'a>] {
        &self.values
    }

    /// The nodes, in the order of the file.
    pub fn nodes(&self) -> &[Node<'a>] {
        &self.nodes
    }

    /// Indices of the nodes in an order in which they can run: the order of the file where that is one.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Index of the value that nodes call so.
    pub fn index_of(&self, id: u32) -> Option<usize> {
        self.ids.find(id)
    }

    /// The value that nodes call so.
    pub fn value(&self, id: u32) -> Option<&Value<'a>> {
        self.values.get(self.index_of(id)?)
    }

    /// The constants by index; entry 0 is reserved.
    pub fn constant_list(&self) -> &[Constant<'a>] {
        &self.constants
    }

    /// Values that come from outside, by position among the arguments of the delegate call.
    pub fn inputs(&self) -> room::Result<Vec<(u32, &Value<'a>)>> {
        self.external(|value| value.tensor().is_some_and(|tensor| tensor.is_input()))
    }

    /// Values that go outside, by position among the arguments of the delegate call.
    pub fn outputs(&self) -> room::Result<Vec<(u32, &Value<'a>)>> {
        self.external(|value| value.tensor().is_some_and(|tensor| tensor.is_output()))
    }

    fn external(&self, chosen: impl Fn(&Value<'a>) -> bool) -> room::Result<Vec<(u32, &Value<'a>)>> {
        let position = |value: &Value<'a>| value.tensor().and_then(|tensor| tensor.position());
        let values = self.values.iter().filter(|value| chosen(value));
        let mut list = room::collect(values.filter_map(|value| Some((position(value)?, value))))?;
        list.sort_unstable_by_key(|(position, _)| *position);
        Ok(list)
    }

    /// The bytes of all constants: each key is asked for once, in the order of the file.
    pub fn constants<D: Deref<Target = [u8]>, E>(
        &self,
        lookup: impl FnMut(&str) -> Result<Option<D>, E>,
    ) -> Result<Constants<'_, D>, ConstantsError<E>> {
        Constants::resolve(&self.constants, lookup)
    }
}

impl fmt::Debug for Payload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (values, nodes) = (self.values.len(), self.nodes.len());
        write!(f, "Payload({values} values, {nodes} nodes, {} constants)", self.constants.len())
    }
}

/// The index of each value by its id.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueIds {
    /// Pairs by id; the first of an id is before the others.
    pairs: Vec<(u32, u32)>,
}

impl ValueIds {
    /// The ids of these values.
    pub fn of(values: &[Value<'_>]) -> room::Result<Self> {
        let id = |value: &Value<'_>| value.tensor().map_or(NO_ID, |tensor| tensor.id_out);
        // A list of the file has fewer than 2^32 entries.
        let mut pairs = room::collect(values.iter().enumerate().map(|(index, value)| (id(value), index as u32)))?;
        // Ids of exporters rise already; sorting such a list is one look.
        pairs.sort_unstable();
        Ok(ValueIds { pairs })
    }

    /// The first value of this id.
    pub fn find(&self, id: u32) -> Option<usize> {
        if id == NO_ID {
            return None;
        }
        // Where ids count from 0, the place is the id.
        let guess = usize::try_from(id).ok()?;
        let before = guess.checked_sub(1).and_then(|before| self.pairs.get(before));
        match self.pairs.get(guess) {
            Some((have, index)) if *have == id && before.is_none_or(|(have, _)| *have != id) => Some(*index as usize),
            _ => {
                let place = self.pairs.partition_point(|(have, _)| *have < id);
                self.pairs.get(place).filter(|(have, _)| *have == id).map(|(_, index)| *index as usize)
            }
        }
    }

    /// Values whose id stands for another value already, as pairs of the first index and theirs.
    pub fn repeated(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let pairs = self.pairs.iter().zip(self.pairs.iter().skip(1));
        let mut first = None;
        pairs.filter_map(move |(one, next)| {
            if one.0 != next.0 || one.0 == NO_ID {
                first = None;
                return None;
            }
            let first = *first.get_or_insert(one.1 as usize);
            Some((first, next.1 as usize))
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::super::tables::{TensorValue, ValueUnion};
    use super::*;

    fn ids(list: &[u32]) -> ValueIds {
        let value = |id: &u32| {
            let tensor = TensorValue { id_out: *id, ..TensorValue::default() };
            Value { xvalue_union: Some(ValueUnion::TensorValue(tensor)) }
        };
        ValueIds::of(&list.iter().map(value).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn values_are_found_by_id() {
        for list in [vec![0, 1, 2], vec![2, 0, 1], vec![7, 1, 900]] {
            let ids = ids(&list);
            for (index, id) in list.iter().enumerate() {
                assert_eq!(ids.find(*id), Some(index), "{list:?}");
            }
            assert_eq!((ids.find(5), ids.find(NO_ID)), (None, None));
            assert_eq!(ids.repeated().count(), 0);
        }
    }

    #[test]
    fn the_first_of_an_id_counts() {
        let ids = ids(&[1, 1, 0, 1, NO_ID, NO_ID]);
        assert_eq!((ids.find(1), ids.find(0)), (Some(0), Some(2)));
        assert_eq!(ids.repeated().collect::<Vec<_>>(), [(0, 1), (0, 3)]);
    }
}
