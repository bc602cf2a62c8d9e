//! Resampling along one dimension after the other, for forms without a kernel: elements are picked by index and weighed.

use edgepack_format::scalar::ScalarType;

use super::maker::Maker;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, Size, ValueId};

/// Form of interpolation between elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taps {
    /// The element at the place rounded down.
    Nearest,
    /// The element whose middle is nearest.
    NearestMiddle,
    Two,
    Four,
}

pub(super) fn find(name: &str) -> Option<Rule> {
    Some(match name {
        "upsample_nearest1d" | "upsample_nearest1d.vec" | "upsample_nearest3d" | "upsample_nearest3d.vec" => {
            |make, node| resample(make, node, Taps::Nearest)
        }
        "_upsample_nearest_exact1d"
        | "_upsample_nearest_exact1d.vec"
        | "_upsample_nearest_exact2d"
        | "_upsample_nearest_exact2d.vec"
        | "_upsample_nearest_exact3d"
        | "_upsample_nearest_exact3d.vec" => |make, node| resample(make, node, Taps::NearestMiddle),
        "upsample_linear1d" | "upsample_linear1d.vec" | "upsample_trilinear3d" | "upsample_trilinear3d.vec" => {
            |make, node| resample(make, node, Taps::Two)
        }
        "upsample_bicubic2d" | "upsample_bicubic2d.vec" => |make, node| resample(make, node, Taps::Four),
        "_upsample_bilinear2d_aa.vec" => |make, node| antialiased(make, node, "_upsample_bilinear2d_aa"),
        "_upsample_bicubic2d_aa.vec" => |make, node| antialiased(make, node, "_upsample_bicubic2d_aa"),
        "_upsample_lanczos2d_aa.vec" => |make, node| antialiased(make, node, "_upsample_lanczos2d_aa"),
        "grid_sampler" => |make, node| {
            let core = if make.rank(node.value("input")?)? == 4 { "grid_sampler_2d" } else { "grid_sampler_3d" };
            let names = ["input", "grid", "interpolation_mode", "padding_mode", "align_corners"];
            one(make.call(core, names.map(|name| (name, node.arg(name))))?)
        },
        _ => return None,
    })
}

/// The form that says sizes and factors one by one.
fn antialiased(make: &mut Maker<'_>, node: &Composite<'_>, core: &str) -> Answer {
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let sizes = make.sizes(result)?;
    let wanted = make.size_args(sizes.get(2..).unwrap_or_default())?;
    let factors = node.arg("scale_factors");
    let factor = |at: usize| factors.items().get(at).cloned().unwrap_or(Argument::None);
    let args = [
        ("self", node.arg("input")),
        ("output_size", wanted),
        ("align_corners", node.arg("align_corners")),
        ("scales_h", factor(0)),
        ("scales_w", factor(1)),
    ];
    one(make.call(core, args)?)
}

fn resample(make: &mut Maker<'_>, node: &Composite<'_>, taps: Taps) -> Answer {
    let mut value = if node.has("input") { node.value("input")? } else { node.value("self")? };
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let rank = make.rank(value)?;
    // Factors that were given count, also where sizes were rounded.
    let mut factors: Vec<Option<f64>> = node
        .arg("scale_factors")
        .items()
        .iter()
        .map(|item| match item {
            Argument::Float(factor) => Some(*factor),
            _ => None,
        })
        .collect();
    for name in ["scales_d", "scales_h", "scales_w", "scales"] {
        if node.has(name) {
            factors.push(node.number(name));
        }
    }
    for dim in 2..rank {
        let at = i64::try_from(dim).unwrap_or(0);
        let (from, to) = (make.known_size(value, at)?, make.known_size(result, at)?);
        let factor = factors.get(dim.saturating_sub(2)).copied().flatten();
        let corners = node.flag("align_corners");
        if from != to || corners {
            value = along(make, value, at, (from, to), factor, corners, taps)?;
        }
    }
    one(value)
}

/// One dimension with another number of elements.
fn along(
    make: &mut Maker<'_>,
    input: ValueId,
    dim: i64,
    (from, to): (i64, i64),
    factor: Option<f64>,
    corners: bool,
    taps: Taps,
) -> Result<ValueId, Error> {
    let step = match (corners, factor) {
        (true, _) if to > 1 => from.saturating_sub(1) as f64 / to.saturating_sub(1) as f64,
        (true, _) => 0.0,
        (false, Some(factor)) => 1.0 / factor,
        (false, None) => from as f64 / to as f64,
    };
    let place = make.count(&Size::Known(to))?;
    let place = make.cast(place, ScalarType::FLOAT)?;
    let half = matches!(taps, Taps::NearestMiddle) || matches!(taps, Taps::Two | Taps::Four) && !corners;
    let place = if half { make.binary("add.Tensor", place, 0.5)? } else { place };
    let mut place = make.binary("mul.Tensor", place, step)?;
    if half && taps != Taps::NearestMiddle {
        place = make.binary("sub.Tensor", place, 0.5)?;
    }
    if taps == Taps::Two && !corners {
        place = make.call("clamp", [("self", place.into()), ("min", 0.0.into())])?;
    }
    let floor = make.unary("floor", place)?;
    let base = make.cast(floor, ScalarType::LONG)?;
    let pick = |make: &mut Maker<'_>, off: i64| -> Result<ValueId, Error> {
        let index = if off == 0 { base } else { make.binary("add.Tensor", base, off)? };
        let last = Argument::Int(from.saturating_sub(1));
        let index = make.call("clamp", [("self", index.into()), ("min", Argument::Int(0)), ("max", last)])?;
        make.call("index_select", [("self", input.into()), ("dim", dim.into()), ("index", index.into())])
    };
    if matches!(taps, Taps::Nearest | Taps::NearestMiddle) {
        return pick(make, 0);
    }
    let part = make.binary("sub.Tensor", place, floor)?;
    let weights = if taps == Taps::Two { linear(make, part)? } else { cubic(make, part)? };
    let mut shape = vec![Size::Known(1); make.rank(input)?];
    let at = make.dim(dim, shape.len())?;
    if let Some(size) = shape.get_mut(at) {
        *size = Size::Known(to);
    }
    let scalar_type = make.meta(input)?.scalar_type;
    let mut sum: Option<ValueId> = None;
    for (off, weight) in weights {
        let weight = make.view(weight, &shape)?;
        let weight = make.cast(weight, scalar_type)?;
        let picked = pick(make, off)?;
        let product = make.binary("mul.Tensor", picked, weight)?;
        sum = Some(match sum {
            Some(sum) => make.binary("add.Tensor", sum, product)?,
            None => product,
        });
    }
    sum.ok_or_else(|| make.error("no taps"))
}

/// A polynomial, its highest coefficient first.
fn polynomial(make: &mut Maker<'_>, x: ValueId, coefficients: [f64; 4]) -> Result<ValueId, Error> {
    let [first, rest @ ..] = coefficients;
    let mut value = make.binary("mul.Tensor", x, first)?;
    for (at, coefficient) in rest.into_iter().enumerate() {
        if coefficient != 0.0 {
            value = make.binary("add.Tensor", value, coefficient)?;
        }
        if at < 2 {
            value = make.binary("mul.Tensor", value, x)?;
        }
    }
    Ok(value)
}

fn linear(make: &mut Maker<'_>, part: ValueId) -> Result<Vec<(i64, ValueId)>, Error> {
    let rest = make.unary("neg", part)?;
    let rest = make.binary("add.Tensor", rest, 1.0)?;
    Ok(vec![(0, rest), (1, part)])
}

/// Weights of the four elements around a place, as Keys' cubic with a = -0.75 has them.
fn cubic(make: &mut Maker<'_>, part: ValueId) -> Result<Vec<(i64, ValueId)>, Error> {
    let a = -0.75;
    let near = [a + 2.0, -(a + 3.0), 0.0, 1.0];
    let far = [a, -5.0 * a, 8.0 * a, -4.0 * a];
    let rest = make.unary("neg", part)?;
    let rest = make.binary("add.Tensor", rest, 1.0)?;
    let (beyond, before) = (make.binary("add.Tensor", rest, 1.0)?, make.binary("add.Tensor", part, 1.0)?);
    Ok(vec![
        (-1, polynomial(make, before, far)?),
        (0, polynomial(make, part, near)?),
        (1, polynomial(make, rest, near)?),
        (2, polynomial(make, beyond, far)?),
    ])
}
