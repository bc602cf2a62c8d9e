//! Scales of channels and blocks: positive, and within what integer arithmetic takes.

use alloc::format;
use alloc::vec::Vec;

use super::report::Report;
use crate::room;
use crate::rules::xnnpack as rule;
use crate::xnnpack::constants::{Constant, ConstantBytes};
use crate::xnnpack::quant::{ChannelScales, GroupScales};
use crate::xnnpack::tables::{QuantParams, Value};

/// Returns whether a number can be a scale.
pub(super) fn is_scale(scale: f32) -> bool {
    scale.is_normal() && scale > 0.0
}

/// The least and the greatest scale of a value.
pub(super) type Extremes = Option<(f32, f32)>;

/// Scales that the payload has itself: the extremes of every value.
pub(super) fn inline(report: &mut Report<'_, '_>) -> room::Result<Vec<Extremes>> {
    check(Source::Payload, report)
}

/// Scales that are named data: the extremes of values that have such.
pub(super) fn named(constants: &dyn ConstantBytes, report: &mut Report<'_, '_>) -> room::Result<Vec<Extremes>> {
    check(Source::Named(constants), report)
}

/// The place that scales are taken from: each is looked at once.
#[derive(Clone, Copy)]
enum Source<'c> {
    Payload,
    Named(&'c dyn ConstantBytes),
}

fn check(source: Source<'_>, report: &mut Report<'_, '_>) -> room::Result<Vec<Extremes>> {
    let payload = report.payload;
    let mut extremes: Vec<Extremes> = room::with_room(payload.values.len())?;
    for (index, value) in payload.values.iter().enumerate() {
        let of_value = if report.out.is_spent() { None } else { of_value(index, value, source, report) };
        extremes.push(of_value);
    }
    if let Source::Payload = source {
        for (place, value) in extremes.iter_mut().zip(&payload.values) {
            *place = place.or(value.per_tensor().map(|(scale, _)| (scale, scale)));
        }
    }
    Ok(extremes)
}

fn of_value(index: usize, value: &Value<'_>, source: Source<'_>, report: &mut Report<'_, '_>) -> Extremes {
    let shape = value.tensor()?.shape()?;
    match value.quant_params()? {
        QuantParams::PerChannelQuant(params) => {
            let want = usize::try_from(params.scale_count(Some(shape.dims()))?).ok()?;
            let scales = match (params.scale_buffer_idx, source) {
                (0, Source::Payload) => ChannelScales::inline(params.scale.as_ref()?),
                (0, Source::Named(_)) => return None,
                (constant, _) => ChannelScales::from_bytes(bytes(constant, source, report)?),
            };
            scan(index, want, scales.iter(), report)
        }
        QuantParams::PerChannelGroupQuant(params) => {
            let want = usize::try_from(params.scale_count(Some(shape.dims()))?).ok()?;
            let scales = match (params.scale_buffer_idx, source) {
                (0, Source::Payload) => GroupScales::inline(params)?,
                (0, Source::Named(_)) => return None,
                (constant, _) => GroupScales::from_bytes(bytes(constant, source, report)?),
            };
            scan(index, want, scales.iter().map(f32::from), report)
        }
        _ => None,
    }
}

fn bytes<'c>(index: u32, source: Source<'c>, report: &Report<'c, '_>) -> Option<&'c [u8]> {
    let constant = report.payload.constants.get(usize::try_from(index).ok()?)?;
    match (constant, source) {
        (Constant::Inline(bytes), Source::Payload) => Some(bytes),
        (Constant::Named { .. }, Source::Named(constants)) => constants.bytes(index),
        _ => None,
    }
}

/// The extremes of a value's scales, if all of them are scales.
fn scan(index: usize, want: usize, scales: impl Iterator<Item = f32> + Clone, report: &mut Report<'_, '_>) -> Extremes {
    // Scales are in the order of their bits, and so is what can be none: below all of them, or above.
    let (mut least, mut most, mut count) = (u32::MAX, 0, 0usize);
    for bits in scales.clone().take(want).map(f32::to_bits) {
        (least, most, count) = (least.min(bits), most.max(bits), count.wrapping_add(1));
    }
    // Values may share a constant, so each look at it is paid.
    if let Err(error) = report.out.budget().charge_bytes(count.saturating_mul(size_of::<f32>()), 0) {
        report.out.unreadable(report.path, error);
    }
    let (least, most) = (f32::from_bits(least), f32::from_bits(most));
    if is_scale(least) && is_scale(most) {
        return Some((least, most));
    }
    if let Some((place, scale)) = scales.take(want).enumerate().find(|(_, scale)| !is_scale(*scale)) {
        report.whole_params(&rule::SCALES, index, format!("scale {place} is {scale}"));
    }
    None
}
