//! Fourier transforms: lengths, normalisation and symmetry are said here, the core transforms compute.

use edgepack_format::scalar::ScalarType;

use super::arrange::conjugate;
use super::maker::Maker;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, ListKind, Size, ValueId};

pub(super) fn find(name: &str) -> Option<Rule> {
    Some(match name {
        "fft_fft" | "fft_fft2" | "fft_fftn" => |make, node| complex(make, node, Direction::Forward),
        "fft_ifft" | "fft_ifft2" | "fft_ifftn" => |make, node| complex(make, node, Direction::Inverse),
        "fft_rfft" | "fft_rfft2" | "fft_rfftn" => real_to_half,
        "fft_irfft" | "fft_irfft2" | "fft_irfftn" => half_to_real,
        "fft_hfft" | "fft_hfft2" | "fft_hfftn" => hermitian_to_real,
        "fft_ihfft" | "fft_ihfft2" | "fft_ihfftn" => real_to_hermitian,
        "stft" => stft,
        "istft" => istft,
        _ => return None,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Inverse,
}

/// The number by which the core transforms know a normalisation.
fn normalisation(node: &Composite<'_>, direction: Direction) -> Result<Argument, Error> {
    Ok(Argument::Int(match (node.text("norm").as_deref(), direction) {
        (Some("ortho"), _) => 1,
        (None | Some("backward"), Direction::Forward) | (Some("forward"), Direction::Inverse) => 0,
        (None | Some("backward"), Direction::Inverse) | (Some("forward"), Direction::Forward) => 2,
        _ => return Err(node.wrong("norm")),
    }))
}

/// The dimensions that are transformed, with the length each is cut or filled up to.
fn lengths(make: &Maker<'_>, node: &Composite<'_>, x: ValueId) -> Result<Vec<(i64, Option<i64>)>, Error> {
    let rank = i64::try_from(make.rank(x)?).unwrap_or(0);
    let name = if node.has("s") { "s" } else { "n" };
    let sizes = if node.has(name) { node.ints(name)? } else { Vec::new() };
    let dims = match (node.has("dim"), sizes.len()) {
        (true, _) => node.ints("dim")?,
        (false, 0) => (0..rank).collect(),
        (false, count) => (rank.saturating_sub(i64::try_from(count).unwrap_or(0))..rank).collect(),
    };
    let length = |at: usize| sizes.get(at).copied().filter(|length| *length != -1);
    Ok(dims.into_iter().enumerate().map(|(at, dim)| (dim, length(at))).collect())
}

/// Cuts a dimension, or fills it up with zeros.
fn fitted(make: &mut Maker<'_>, x: ValueId, dim: i64, length: Option<i64>) -> Result<ValueId, Error> {
    let Some(length) = length else { return Ok(x) };
    let have = make.known_size(x, dim)?;
    if length <= have {
        return if length == have { Ok(x) } else { make.slice(x, dim, 0, length) };
    }
    let rank = make.rank(x)?;
    let at = make.dim(dim, rank)?;
    let before = rank.saturating_sub(at).saturating_sub(1);
    let mut pad = vec![0i64; before.saturating_mul(2)];
    pad.extend([0, length.saturating_sub(have)]);
    make.call("constant_pad_nd", [("self", x.into()), ("pad", Argument::ints(pad)), ("value", Argument::Int(0))])
}

/// The input as numbers that are transformed: whole ones become floats, and all become complex if asked for.
fn numbers(make: &mut Maker<'_>, node: &Composite<'_>, to_complex: bool) -> Result<ValueId, Error> {
    let x = node.value("self")?;
    let scalar_type = make.meta(x)?.scalar_type;
    if scalar_type.is_complex() || scalar_type.is_floating() && !to_complex {
        return Ok(x);
    }
    let x = if scalar_type.is_floating() { x } else { make.cast(x, ScalarType::FLOAT)? };
    if !to_complex {
        return Ok(x);
    }
    let meta = make.meta(x)?;
    let zeros = make.full(&meta.sizes, Argument::Float(0.0), meta.scalar_type)?;
    make.call("complex", [("real", x.into()), ("imag", zeros.into())])
}

/// Dimensions counted from the front, as runtimes take them.
fn counted(make: &Maker<'_>, x: ValueId, dims: &[i64]) -> Result<Argument, Error> {
    let rank = make.rank(x)?;
    let front = |dim: &i64| make.dim(*dim, rank).map(|dim| i64::try_from(dim).unwrap_or(0));
    Ok(Argument::ints(dims.iter().map(front).collect::<Result<Vec<_>, _>>()?))
}

fn c2c(make: &mut Maker<'_>, x: ValueId, dims: &[i64], norm: Argument, direction: Direction) -> Result<ValueId, Error> {
    if dims.is_empty() {
        return Ok(x);
    }
    let forward = Argument::Bool(direction == Direction::Forward);
    let dim = counted(make, x, dims)?;
    make.call("_fft_c2c", [("self", x.into()), ("dim", dim), ("normalization", norm), ("forward", forward)])
}

fn r2c(make: &mut Maker<'_>, x: ValueId, dims: &[i64], norm: Argument, onesided: bool) -> Result<ValueId, Error> {
    let dim = counted(make, x, dims)?;
    let args = [("self", x.into()), ("dim", dim), ("normalization", norm), ("onesided", onesided.into())];
    make.call("_fft_r2c", args)
}

fn c2r(make: &mut Maker<'_>, x: ValueId, dims: &[i64], norm: Argument, length: i64) -> Result<ValueId, Error> {
    let dim = counted(make, x, dims)?;
    let args = [("self", x.into()), ("dim", dim), ("normalization", norm), ("last_dim_size", length.into())];
    make.call("_fft_c2r", args)
}

fn complex(make: &mut Maker<'_>, node: &Composite<'_>, direction: Direction) -> Answer {
    let mut x = numbers(make, node, false)?;
    let mut dims = Vec::new();
    for (dim, length) in lengths(make, node, x)? {
        x = fitted(make, x, dim, length)?;
        dims.push(dim);
    }
    let norm = normalisation(node, direction)?;
    if make.meta(x)?.scalar_type.is_complex() {
        return one(c2c(make, x, &dims, norm, direction)?);
    }
    // Real numbers: the last dimension first, and the others of what that gives.
    let Some((last, rest)) = dims.split_last() else { return Ok(None) };
    let x = r2c(make, x, &[*last], norm.clone(), false)?;
    let x = if direction == Direction::Inverse { conjugate(make, x)? } else { x };
    one(c2c(make, x, rest, norm, direction)?)
}

fn real_to_half(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let mut x = numbers(make, node, false)?;
    let mut dims = Vec::new();
    for (dim, length) in lengths(make, node, x)? {
        x = fitted(make, x, dim, length)?;
        dims.push(dim);
    }
    let norm = normalisation(node, Direction::Forward)?;
    let Some((last, rest)) = dims.split_last() else { return Ok(None) };
    let x = r2c(make, x, &[*last], norm.clone(), true)?;
    one(c2c(make, x, rest, norm, Direction::Forward)?)
}

/// Input of half the spectrum: fitted, with the length of the real result.
fn half_spectrum(make: &mut Maker<'_>, node: &Composite<'_>) -> Result<(ValueId, Vec<i64>, i64), Error> {
    let mut x = numbers(make, node, true)?;
    let all = lengths(make, node, x)?;
    let (mut dims, mut result) = (Vec::new(), 0);
    for (at, (dim, length)) in all.iter().enumerate() {
        let last = at.saturating_add(1) == all.len();
        let wanted = if last {
            let bins = make.known_size(x, *dim)?;
            result = length.unwrap_or(bins.saturating_sub(1).saturating_mul(2));
            Some(result.checked_div(2).unwrap_or(0).saturating_add(1))
        } else {
            *length
        };
        x = fitted(make, x, *dim, wanted)?;
        dims.push(*dim);
    }
    Ok((x, dims, result))
}

fn half_to_real(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (x, dims, length) = half_spectrum(make, node)?;
    let norm = normalisation(node, Direction::Inverse)?;
    let Some((last, rest)) = dims.split_last() else { return Ok(None) };
    let x = c2c(make, x, rest, norm.clone(), Direction::Inverse)?;
    one(c2r(make, x, &[*last], norm, length)?)
}

fn hermitian_to_real(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (x, dims, length) = half_spectrum(make, node)?;
    let norm = normalisation(node, Direction::Forward)?;
    let Some((last, rest)) = dims.split_last() else { return Ok(None) };
    let x = c2c(make, x, rest, norm.clone(), Direction::Forward)?;
    let x = conjugate(make, x)?;
    one(c2r(make, x, &[*last], norm, length)?)
}

fn real_to_hermitian(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let mut x = numbers(make, node, false)?;
    let mut dims = Vec::new();
    for (dim, length) in lengths(make, node, x)? {
        x = fitted(make, x, dim, length)?;
        dims.push(dim);
    }
    let norm = normalisation(node, Direction::Inverse)?;
    let Some((last, rest)) = dims.split_last() else { return Ok(None) };
    let x = r2c(make, x, &[*last], norm.clone(), true)?;
    let x = conjugate(make, x)?;
    one(c2c(make, x, rest, norm, Direction::Inverse)?)
}

/// The window, with zeros around it as long as a frame.
fn window(make: &mut Maker<'_>, node: &Composite<'_>, frame: i64) -> Result<Option<ValueId>, Error> {
    let length = if node.has("win_length") { node.int("win_length")? } else { frame };
    let before = frame.saturating_sub(length).checked_div(2).unwrap_or(0);
    let after = frame.saturating_sub(length).saturating_sub(before);
    let given = match node.arg("window").value() {
        Some(window) => window,
        None if length == frame => return Ok(None),
        None => make.full(&[Size::Known(length)], Argument::Float(1.0), ScalarType::FLOAT)?,
    };
    if length == frame {
        return Ok(Some(given));
    }
    let pad = Argument::ints([before, after]);
    let args = [("self", given.into()), ("pad", pad), ("value", Argument::Int(0))];
    make.call("constant_pad_nd", args).map(Some)
}

fn hop(node: &Composite<'_>, frame: i64) -> Result<i64, Error> {
    if node.has("hop_length") { node.int("hop_length") } else { Ok(frame.checked_div(4).unwrap_or(1)) }
}

/// Spectra of frames that overlap.
fn stft(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (x, frame) = (node.value("self")?, node.int("n_fft")?);
    if node.flag("align_to_window") {
        return Err(node.wrong("align_to_window"));
    }
    let step = hop(node, frame)?;
    let windowed = make.call(
        "unfold",
        [("self", x.into()), ("dimension", (-1i64).into()), ("size", frame.into()), ("step", step.into())],
    )?;
    let mut frames = windowed;
    if let Some(window) = window(make, node, frame)? {
        frames = make.binary("mul.Tensor", frames, window)?;
    }
    let complex = make.meta(frames)?.scalar_type.is_complex();
    let onesided = if node.has("onesided") { node.flag("onesided") } else { !complex };
    let norm = Argument::Int(i64::from(node.flag("normalized")));
    let spectrum = match complex {
        true => c2c(make, frames, &[-1], norm, Direction::Forward)?,
        false => r2c(make, frames, &[-1], norm, onesided)?,
    };
    let turned = make.transpose(spectrum, -1, -2)?;
    one(if node.flag("return_complex") { turned } else { make.unary("view_as_real", turned)? })
}

/// Frames added where they overlap, over what windows add up to.
fn istft(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (x, frame) = (node.value("self")?, node.int("n_fft")?);
    let step = hop(node, frame)?;
    let rank = make.rank(x)?;
    let (bins, frames) = (make.known_size(x, -2)?, make.known_size(x, -1)?);
    let onesided = if node.has("onesided") { node.flag("onesided") } else { bins != frame };
    let turned = make.transpose(x, -1, -2)?;
    let norm = Argument::Int(if node.flag("normalized") { 1 } else { 2 });
    let mut pieces = if node.flag("return_complex") {
        c2c(make, turned, &[-1], norm, Direction::Inverse)?
    } else {
        // Of both sides one is enough for real numbers.
        let half = frame.checked_div(2).unwrap_or(0).saturating_add(1);
        let turned = if onesided { turned } else { make.slice(turned, -1, 0, half)? };
        c2r(make, turned, &[-1], norm, frame)?
    };
    if rank == 2 {
        pieces = make.unsqueeze(pieces, 0)?;
    }
    let window = match window(make, node, frame)? {
        Some(window) => window,
        None => make.full(&[Size::Known(frame)], Argument::Float(1.0), ScalarType::FLOAT)?,
    };
    let weighed = make.binary("mul.Tensor", pieces, window)?;
    let square = make.binary("mul.Tensor", window, window)?;
    let square = make.expand(square, &[Size::Known(1), Size::Known(frames), Size::Known(frame)])?;
    let start = make.count(&Size::Known(frames))?;
    let start = make.binary("mul.Tensor", start, step)?;
    let start = make.unsqueeze(start, 1)?;
    let inside = make.count(&Size::Known(frame))?;
    let places = make.binary("add.Tensor", start, inside)?;
    let total = frames.saturating_sub(1).saturating_mul(step).saturating_add(frame);
    let (begin, half) = match node.flag("center") {
        true => (frame.checked_div(2).unwrap_or(0), frame.checked_div(2).unwrap_or(0)),
        false => (0, 0),
    };
    let end = match node.has("length") {
        true => begin.saturating_add(node.int("length")?),
        false => total.saturating_sub(half),
    };
    let mut overlapped = |values: ValueId| -> Result<ValueId, Error> {
        let meta = make.meta(values)?;
        let batch = make.size(values, 0)?;
        let zeros = make.full(&[batch, Size::Known(total)], Argument::Int(0), meta.scalar_type)?;
        let args = [
            ("self", zeros.into()),
            ("indices", Argument::List(ListKind::OptionalTensors, vec![Argument::None, places.into()])),
            ("values", values.into()),
            ("accumulate", true.into()),
        ];
        let sum = make.call("index_put", args)?;
        make.slice(sum, 1, begin, end.min(total))
    };
    let (signal, envelope) = (overlapped(weighed)?, overlapped(square)?);
    let mut result = make.binary("div.Tensor", signal, envelope)?;
    if end > total {
        let pad = Argument::ints([0, end.saturating_sub(total)]);
        result = make.call("constant_pad_nd", [("self", result.into()), ("pad", pad), ("value", Argument::Int(0))])?;
    }
    one(if rank == 2 { make.squeeze(result, &[0])? } else { result })
}
