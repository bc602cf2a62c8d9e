//! Pooling in other forms than the core ones.

use super::maker::Maker;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, ValueId};

pub(super) fn find(name: &str) -> Option<Rule> {
    Some(match name {
        "max_pool2d" => |make, node| largest(make, node, "max_pool2d_with_indices"),
        "max_pool3d" => |make, node| largest(make, node, "max_pool3d_with_indices"),
        "max_pool1d" => max_pool1d,
        "avg_pool1d" => avg_pool1d,
        "adaptive_avg_pool1d" => |make, node| {
            let input = make.unsqueeze(node.value("self")?, -2)?;
            let width = node.ints("output_size")?.first().copied().unwrap_or(1);
            let result = adaptive(make, input, &[1, width])?;
            one(make.squeeze(result, &[-2])?)
        },
        "adaptive_avg_pool2d" => |make, node| {
            let wanted = node.ints("output_size")?;
            one(adaptive(make, node.value("self")?, &wanted)?)
        },
        "adaptive_avg_pool3d" => |make, node| {
            let input = node.value("self")?;
            let wanted = node.ints("output_size")?;
            if wanted.iter().all(|size| *size == 1) {
                return one(make.mean(input, &[-1, -2, -3], true)?);
            }
            let args = [("self", input.into()), ("output_size", Argument::ints(wanted))];
            one(make.call("_adaptive_avg_pool3d", args)?)
        },
        _ => return None,
    })
}

fn largest(make: &mut Maker<'_>, node: &Composite<'_>, core: &str) -> Answer {
    let names = ["kernel_size", "stride", "padding", "dilation", "ceil_mode"];
    let [kernel, stride, padding, dilation, ceil] = names.map(|name| (name, node.arg(name)));
    let args = [("self", node.arg("self")), kernel, stride, padding, dilation, ceil];
    Ok(Some(make.calls(core, args)?.into_iter().take(1).map(Argument::Value).collect()))
}

/// Returns the numbers of an argument, with one for a leading dimension of one.
fn with_front(node: &Composite<'_>, name: &str, front: i64) -> Result<Argument, Error> {
    let numbers = node.ints(name)?;
    Ok(match numbers.first() {
        Some(number) => Argument::ints([front, *number]),
        None => Argument::ints([]),
    })
}

fn max_pool1d(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let input = make.unsqueeze(node.value("self")?, -2)?;
    let args = [
        ("self", input.into()),
        ("kernel_size", with_front(node, "kernel_size", 1)?),
        ("stride", with_front(node, "stride", 1)?),
        ("padding", with_front(node, "padding", 0)?),
        ("dilation", with_front(node, "dilation", 1)?),
        ("ceil_mode", node.arg("ceil_mode")),
    ];
    let result = make.call("max_pool2d_with_indices", args)?;
    one(make.squeeze(result, &[-2])?)
}

fn avg_pool1d(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let input = make.unsqueeze(node.value("self")?, -2)?;
    let args = [
        ("self", input.into()),
        ("kernel_size", with_front(node, "kernel_size", 1)?),
        ("stride", with_front(node, "stride", 1)?),
        ("padding", with_front(node, "padding", 0)?),
        ("ceil_mode", node.arg("ceil_mode")),
        ("count_include_pad", node.arg("count_include_pad")),
    ];
    let result = make.call("avg_pool2d", args)?;
    one(make.squeeze(result, &[-2])?)
}

/// Means over areas: a plain mean where there is one, plain windows where areas are equal.
fn adaptive(make: &mut Maker<'_>, input: ValueId, wanted: &[i64]) -> Result<ValueId, Error> {
    if wanted.iter().all(|size| *size == 1) {
        return make.mean(input, &[-1, -2], true);
    }
    let [height, width] = wanted else { return Err(make.error("adaptive pooling to other than two sizes")) };
    let sizes = (make.size(input, -2)?.known(), make.size(input, -1)?.known());
    if let (Some(rows), Some(columns)) = sizes
        && *height > 0
        && *width > 0
        && rows.checked_rem(*height) == Some(0)
        && columns.checked_rem(*width) == Some(0)
    {
        let kernel = [rows.checked_div(*height).unwrap_or(1), columns.checked_div(*width).unwrap_or(1)];
        let args =
            [("self", input.into()), ("kernel_size", Argument::ints(kernel)), ("stride", Argument::ints(kernel))];
        return make.call("avg_pool2d", args);
    }
    make.call("_adaptive_avg_pool2d", [("self", input.into()), ("output_size", Argument::ints([*height, *width]))])
}
