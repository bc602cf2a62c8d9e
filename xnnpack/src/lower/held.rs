//! Results that a clamp alone reads.
//!
//! Invariant: a clamp is part of the node before it only where the numbers of both mean the same, and nothing else can see what
//! is between them. Then it is the same numbers within narrower bounds, to the bit.

use edgepack_executor::kernel::{KernelError, room};
use edgepack_format::xnnpack::{Datatype, Fields, NodeUnion, Payload};

use super::values::Values;

/// The clamps that are part of the node before them: a role for each node.
pub(super) struct Held(Vec<Role>);

/// A clamp is never held by another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Alone,
    /// A clamp, by number, holds its result.
    HeldBy(u32),
    /// It is such a clamp.
    Part,
}

impl Held {
    /// Finds them.
    pub fn of(payload: &Payload<'_>, values: &Values<'_>) -> Result<Held, KernelError> {
        let nodes = payload.nodes();
        // By value, the only node that makes it, and the number of nodes' inputs that it is.
        let (mut makers, mut reads) =
            (filled(Maker::None, payload.values().len())?, filled(0usize, payload.values().len())?);
        for (index, node) in (0..).zip(nodes) {
            for value in node.outputs().filter_map(|output| payload.index_of(output.id)) {
                makers[value] = if makers[value] == Maker::None { Maker::One(index) } else { Maker::Several };
            }
            for value in node.inputs().filter_map(|input| payload.index_of(input.id)) {
                reads[value] += 1;
            }
        }
        let mut roles = filled(Role::Alone, nodes.len())?;
        for (index, node) in (0..).zip(nodes) {
            let Some(NodeUnion::Clamp(_)) = &node.xnode_union else { continue };
            let (Some(from), Some(to)) = (node.inputs().next(), node.outputs().next()) else { continue };
            let Some(value) = payload.index_of(from.id) else { continue };
            let Maker::One(maker) = makers[value] else { continue };
            let is_bounded =
                nodes.get(maker as usize).is_some_and(|node| node.xnode_union.as_ref().is_some_and(has_bounds));
            if is_bounded
                && reads[value] == 1
                && !values.goes_outside(from.id)
                && mean_the_same(values, [from.id, to.id])
            {
                (roles[maker as usize], roles[index as usize]) = (Role::HeldBy(index), Role::Part);
            }
        }
        Ok(Held(roles))
    }

    /// The clamp that holds the result of a node.
    pub fn by(&self, node: u32) -> Option<u32> {
        match self.0.get(node as usize) {
            Some(Role::HeldBy(clamp)) => Some(*clamp),
            _ => None,
        }
    }

    /// Returns whether a node is part of the one before it.
    pub fn is_part(&self, node: u32) -> bool {
        self.0.get(node as usize) == Some(&Role::Part)
    }
}

/// The nodes that make a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Maker {
    None,
    One(u32),
    Several,
}

/// A list of one thing, or an error if there is no memory.
fn filled<T: Clone>(what: T, len: usize) -> Result<Vec<T>, KernelError> {
    let mut list = room(len)?;
    list.resize(len, what);
    Ok(list)
}

/// Returns whether results of a node on quantised numbers are held within bounds as they are made.
fn has_bounds(union: &NodeUnion<'_>) -> bool {
    match union.fields() {
        Fields::Convolution(_) | Fields::FullyConnected(_) => true,
        Fields::Binary(_) => {
            matches!(union, NodeUnion::Add(_) | NodeUnion::Subtract(_) | NodeUnion::Multiply(_) | NodeUnion::Div(_))
        }
        _ => false,
    }
}

/// Returns whether both values are bytes of one scale and zero point.
fn mean_the_same(values: &Values<'_>, ids: [u32; 2]) -> bool {
    let are_bytes = ids.iter().all(|id| values.datatype(*id).is_ok_and(|datatype| datatype == Datatype::QINT8));
    let [Ok(a), Ok(b)] = ids.map(|id| values.index_of(id)) else { return false };
    are_bytes && values.mean_the_same([a, b]).is_ok_and(|same| same)
}
