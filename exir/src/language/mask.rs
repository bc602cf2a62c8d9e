//! Masks that let each token see the places up to its own: rows of a triangle, or a comparison of places, as truths or as
//! numbers that are added.

use edgepack_format::scalar::ScalarType;

use super::Look;
use crate::archive::Weight;
use crate::graph::{Argument, Node, Size, ValueId};

/// Most numbers of a mask that is looked at: beyond, a model would have to say that it is causal.
const MOST_MASK: usize = 1 << 28;
/// Number that masks add where nothing is to be seen, from here down: what is added to it does not matter.
const HIDDEN: f64 = -1e38;

impl Look<'_, '_> {
    /// Checks that a mask lets every token see the places up to its own: rows of a triangle at the places of the tokens,
    /// or a comparison of all places with those.
    pub(super) fn causal(&self, mask: ValueId, positions: ValueId, places: usize) -> Result<(), &'static str> {
        let wrong = "the mask does not let each token see the places up to its own and no others";
        if self.sizes(mask).and_then(<[Size]>::last).and_then(Size::known) != i64::try_from(places).ok() {
            return Err(wrong);
        }
        let mask = self.plain(mask);
        let (_, node) = self.maker(mask).ok_or(wrong)?;
        let is_compared = self.sees(mask, positions, places) == Some(true) || self.adds(node, positions, places);
        match is_compared || self.indexed(node, positions, places) == Some(true) {
            true => Ok(()),
            false => Err(wrong),
        }
    }

    /// Says whether truths are those of the places that a token sees, or of all others; `None` if they are neither.
    fn sees(&self, value: ValueId, positions: ValueId, places: usize) -> Option<bool> {
        let (mut value, mut seen) = (self.plain(value), true);
        loop {
            let (_, node) = self.maker(value)?;
            if node.calls("aten::logical_not") || node.calls("aten::bitwise_not") {
                (value, seen) = (self.plain(node.value_arg("self")?), !seen);
                continue;
            }
            let compared = |all: &str, own: &str| {
                let (all, own) = (node.value_arg(all)?, node.value_arg(own)?);
                self.is_across(all, own, positions, places).then_some(())
            };
            let (own_first, all_first) = (|| compared("other", "self"), || compared("self", "other"));
            return match () {
                () if node.calls("aten::le.Tensor") => all_first().map(|()| seen),
                () if node.calls("aten::ge.Tensor") => own_first().map(|()| seen),
                () if node.calls("aten::gt.Tensor") => all_first().map(|()| !seen),
                () if node.calls("aten::lt.Tensor") => own_first().map(|()| !seen),
                () => None,
            };
        }
    }

    /// Returns whether all places are along the last dimension, and those of the tokens along the one before.
    fn is_across(&self, all: ValueId, own: ValueId, positions: ValueId, places: usize) -> bool {
        let last = |value: ValueId| self.sizes(value).and_then(<[Size]>::last);
        let across = match self.sizes(own) {
            Some([.., tokens, one]) => one.known() == Some(1) && Some(tokens) == last(positions),
            _ => false,
        };
        across
            && last(all).and_then(Size::known) == i64::try_from(places).ok()
            && self.counts(self.plain(all), places)
            && self.plain(own) == self.plain(positions)
    }

    /// Returns whether a node makes numbers to be added: zero where a token sees, a very low one elsewhere.
    fn adds(&self, node: &Node, positions: ValueId, places: usize) -> bool {
        let operand = |name| node.value_arg(name).filter(|_| node.calls("aten::where.self"));
        let (Some(condition), Some(then), Some(otherwise)) = (operand("condition"), operand("self"), operand("other"))
        else {
            return false;
        };
        let (then, otherwise) = (self.uniform(then), self.uniform(otherwise));
        let hidden = |number: Option<f64>| number.is_some_and(|number| number <= HIDDEN);
        match self.sees(condition, positions, places) {
            Some(true) => then == Some(0.0) && hidden(otherwise),
            Some(false) => hidden(then) && otherwise == Some(0.0),
            None => false,
        }
    }

    /// Returns the number that all elements of a value are.
    fn uniform(&self, value: ValueId) -> Option<f64> {
        let value = self.plain(value);
        if let Some((_, node)) = self.maker(value) {
            let names = [("aten::full", "fill_value"), ("aten::full_like", "fill_value"), ("aten::scalar_tensor", "s")];
            let (_, argument) = names.iter().find(|(name, _)| node.calls(name))?;
            return match node.arg(argument)? {
                Argument::Int(number) => Some(*number as f64),
                Argument::Float(number) => Some(*number),
                _ => None,
            };
        }
        let weight = self.constant(value)?;
        if weight.scalar_type() != ScalarType::FLOAT || weight.sizes().iter().product::<usize>() > MOST_MASK {
            return None;
        }
        let order: Vec<u8> = (0..).take(weight.sizes().len()).collect();
        let bytes = weight.data(&order).ok()?.1.to_vec().ok()?;
        let (first, rest) = bytes.as_chunks::<4>().0.split_first()?;
        rest.iter().all(|other| other == first).then(|| f64::from(f32::from_le_bytes(*first)))
    }

    /// The content of a value that never changes.
    fn constant(&self, value: ValueId) -> Option<&Weight<'_>> {
        let spec = self.program.inputs.iter().find(|spec| spec.arg.value() == Some(value))?;
        let name = spec.kind.tensor().filter(|name| !self.program.changed().any(|changed| changed == *name))?;
        self.program.weights.find(name)
    }

    /// Value without dimensions of one element that were put around it.
    fn plain(&self, value: ValueId) -> ValueId {
        let mut value = value;
        // Nodes are in order, so each step leads to an earlier one.
        while let Some((_, node)) = self.maker(value) {
            let Some(inner) = node.value_arg("self") else { break };
            let long = |value: ValueId| {
                let sizes = self.sizes(value).unwrap_or_default();
                sizes.iter().filter(|size| size.known() != Some(1)).collect::<Vec<_>>()
            };
            let is_copy = node.calls("aten::clone") || node.calls("dim_order_ops::_clone_dim_order");
            let is_view = node.calls("aten::view_copy") && long(inner) == long(value);
            if !(node.calls("aten::unsqueeze_copy") || is_view || is_copy) {
                break;
            }
            value = inner;
        }
        value
    }

    /// Returns whether a value is the numbers from 0 on, one for each place.
    fn counts(&self, value: ValueId, places: usize) -> bool {
        let Some((_, node)) = self.maker(value).filter(|(_, node)| node.calls("aten::arange.start_step")) else {
            return false;
        };
        let number = |name, otherwise| node.arg(name).map_or(Some(otherwise), Argument::as_int);
        let from = (number("start", 0), number("step", 1));
        from == (Some(0), Some(1)) && number("end", -1) == i64::try_from(places).ok()
    }

    /// Returns whether a node takes the rows of a triangle at the places of the tokens.
    fn indexed(&self, node: &Node, positions: ValueId, places: usize) -> Option<bool> {
        let [leading @ .., Argument::Value(last)] = node.arg("indices").map(Argument::items)? else { return None };
        let table = node.value_arg("self").filter(|_| node.calls("aten::index.Tensor"))?;
        let weight = self.constant(table)?;
        let plain = leading.iter().all(|index| *index == Argument::None);
        let rows = *last == positions && leading.len().saturating_add(2) == weight.sizes().len();
        Some(plain && rows && is_triangle(weight, places))
    }
}

/// Returns whether a mask lets row `i` see columns 0 to `i` and nothing else.
fn is_triangle(mask: &Weight<'_>, places: usize) -> bool {
    let [leading @ .., rows, columns] = mask.sizes() else { return false };
    let fits = leading.iter().all(|size| *size == 1) && *columns == places && *rows <= places;
    if !fits || rows.saturating_mul(*columns) > MOST_MASK {
        return false;
    }
    let order: Vec<u8> = (0..).take(mask.sizes().len()).collect();
    let Some(bytes) = mask.data(&order).ok().and_then(|(_, data)| data.to_vec().ok()) else { return false };
    let seen: Option<Vec<bool>> = match mask.scalar_type() {
        ScalarType::BOOL => Some(bytes.iter().map(|byte| *byte != 0).collect()),
        ScalarType::FLOAT => {
            let one = |four: &[u8; 4]| match f32::from_le_bytes(*four) {
                0.0 => Some(true),
                f32::NEG_INFINITY => Some(false),
                _ => None,
            };
            bytes.as_chunks::<4>().0.iter().map(one).collect()
        }
        _ => None,
    };
    let row = |(row, seen): (usize, &[bool])| seen.iter().enumerate().all(|(column, seen)| *seen == (column <= row));
    seen.is_some_and(|seen| seen.chunks((*columns).max(1)).enumerate().all(row))
}
