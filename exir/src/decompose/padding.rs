//! Padding with elements at the edge or beyond it, by index.

use super::maker::Maker;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, ValueId};

/// Content beyond the edge.
#[derive(Clone, Copy)]
enum Beyond {
    Edge,
    Mirror,
    Around,
}

pub(super) fn find(name: &str) -> Option<Rule> {
    Some(match name {
        "pad" => |make, node| {
            let beyond = match node.text("mode").as_deref() {
                Some("constant") | None => {
                    let value = match node.arg("value") {
                        Argument::None => Argument::Int(0),
                        value => value,
                    };
                    let args = [("self", node.arg("self")), ("pad", node.arg("pad")), ("value", value)];
                    return one(make.call("constant_pad_nd", args)?);
                }
                Some("replicate") => Beyond::Edge,
                Some("reflect") => Beyond::Mirror,
                Some("circular") => Beyond::Around,
                Some(_) => return Err(node.wrong("mode")),
            };
            one(pad(make, node.value("self")?, &node.ints("pad")?, beyond)?)
        },
        "_pad_enum" => |make, node| {
            let beyond = match node.int("mode")? {
                0 => {
                    let value = if node.has("value") { node.arg("value") } else { Argument::Int(0) };
                    let args = [("self", node.arg("self")), ("pad", node.arg("pad")), ("value", value)];
                    return one(make.call("constant_pad_nd", args)?);
                }
                1 => Beyond::Mirror,
                2 => Beyond::Edge,
                3 => Beyond::Around,
                _ => return Err(node.wrong("mode")),
            };
            one(pad(make, node.value("self")?, &node.ints("pad")?, beyond)?)
        },
        "_pad_circular" => |make, node| one(pad(make, node.value("self")?, &node.ints("pad")?, Beyond::Around)?),
        "replication_pad1d" | "replication_pad2d" | "replication_pad3d" => by_index,
        "reflection_pad1d" | "reflection_pad2d" | "reflection_pad3d" => by_index,
        _ => return None,
    })
}

/// Forms that are no core operators; those that are stay.
fn by_index(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let core = node.node.target.operator().is_some_and(|op| make.operators.traits(op).core);
    if core {
        return Ok(None);
    }
    let mirror = node.node.target.to_string().contains("reflection");
    let beyond = if mirror { Beyond::Mirror } else { Beyond::Edge };
    one(pad(make, node.value("self")?, &node.ints("padding")?, beyond)?)
}

/// Picks, along each padded dimension, the element that every place of the result shows.
fn pad(make: &mut Maker<'_>, input: ValueId, padding: &[i64], beyond: Beyond) -> Result<ValueId, Error> {
    let mut value = input;
    for (dim, pair) in (1i64..).map(i64::saturating_neg).zip(padding.chunks(2)) {
        let [before, after] = pair else { return Err(make.error("padding without an end")) };
        if (*before, *after) == (0, 0) {
            continue;
        }
        // Negative padding is left out first: what goes around goes around what is left.
        let (mut before, mut after) = (*before, *after);
        if matches!(beyond, Beyond::Around) && (before < 0 || after < 0) {
            let len = make.known_size(value, dim)?;
            let (start, end) = (before.min(0).saturating_neg(), len.saturating_add(after.min(0)));
            value = make.slice(value, dim, start, end)?;
            (before, after) = (before.max(0), after.max(0));
        }
        let len = make.known_size(value, dim)?;
        let last = len.saturating_sub(1);
        let args = [
            ("start", Argument::Int(before.saturating_neg())),
            ("end", Argument::Int(len.saturating_add(after))),
            ("dtype", Argument::ScalarType(edgepack_format::scalar::ScalarType::LONG)),
        ];
        let places = make.call("arange.start_step", args)?;
        let index = match beyond {
            Beyond::Edge => {
                let args = [("self", places.into()), ("min", Argument::Int(0)), ("max", Argument::Int(last))];
                make.call("clamp", args)?
            }
            Beyond::Mirror => {
                // last - |last - |place||
                let place = make.unary("abs", places)?;
                let off = make.binary("sub.Tensor", place, Argument::Int(last))?;
                let off = make.unary("abs", off)?;
                let off = make.unary("neg", off)?;
                make.binary("add.Tensor", off, Argument::Int(last))?
            }
            Beyond::Around => {
                // Shifted by one turn, so that the remainder is of what is not negative.
                let shifted = make.binary("add.Tensor", places, Argument::Int(len))?;
                make.binary("fmod.Scalar", shifted, Argument::Int(len))?
            }
        };
        let args = [("self", value.into()), ("dim", dim.into()), ("index", index.into())];
        value = make.call("index_select", args)?;
    }
    Ok(value)
}
