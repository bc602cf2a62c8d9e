//! Phases of transposed convolutions: places of the output that are a stride apart are reached by the same taps.

use super::Windows;
use crate::simd::dot::CHANNELS;

/// Phases, at most: a stride of 8 in both directions.
pub(super) const MOST: usize = 64;

/// The phase of one side: which taps reach its places, and the window they make.
#[derive(Clone, Copy)]
pub(super) struct Side {
    /// The tap that reaches the places first, and the distance to the next, which is a smaller one.
    tap: usize,
    step: usize,
    /// Taps of weight 0 that stand in front, and those that follow.
    front: usize,
    count: usize,
    dilation: usize,
    padding: [usize; 2],
}

impl Side {
    /// The places `phase`, `phase + stride`, and so on; `None` if numbers are out of proportion.
    fn of(windows: &Windows, side: usize, phase: usize, more: usize) -> Option<Side> {
        let number = |number: usize| i64::try_from(number).ok().filter(|number| *number < 1 << 31);
        let (stride, dilation) = (number(windows.stride[side])?, number(windows.dilation[side])?);
        let [before, after] = [number(windows.padding[side][0])?, number(windows.padding[side][1])?];
        let (kernel, phase, more) = (number(windows.kernel[side])?, number(phase)?, number(more)?);
        let reaches = |tap: &i64| (phase + before - tap * dilation).rem_euclid(stride) == 0;
        let mut taps = (0..kernel).rev().filter(reaches);
        let last = taps.next();
        let count = last.map_or(0, |_| 1 + taps.clone().count());
        let step = last.zip(taps.next()).map_or(0, |(tap, next)| tap - next);
        // Of the input place that a tap reaches, from the number of a place in the phase on.
        let first = last.map_or(0, |tap| (phase + before - tap * dilation) / stride);
        let distance = if step == 0 { 1 } else { step * dilation / stride };
        let front = if first > 0 { (first + distance - 1) / distance } else { 0 };
        let front = if count == 0 { front.max(1) } else { front };
        if front > 2 * kernel + 2 {
            return None;
        }
        let padded = front * distance - first;
        let reach = (front + count as i64 - 1) * distance + 1;
        // Places of a phase that there are more of than of the image.
        let whole = more + (kernel - 1) * dilation + 1 - stride - before - after;
        let places = -(phase - whole).div_euclid(stride);
        let behind = (places - padded + reach - 1).max(0);
        let size = |number: i64| usize::try_from(number).ok();
        Some(Side {
            tap: size(last.unwrap_or(0))?,
            step: size(step)?,
            front: size(front)?,
            count,
            dilation: size(distance)?,
            padding: [size(padded)?, size(behind)?],
        })
    }

    /// Taps of the phase.
    fn taps(&self) -> usize {
        self.front + self.count
    }

    /// The tap in a place of the phase; `None` if it has weight 0.
    fn tap(&self, place: usize) -> Option<usize> {
        place.checked_sub(self.front).map(|place| self.tap - place * self.step)
    }
}

/// All phases of a side at once: each place of a line of the image makes `stride` neighbouring places of the output, which see
/// the same inputs; taps that do not reach a place have weight 0 there.
#[derive(Clone, Copy)]
pub(super) struct Line {
    kernel: usize,
    stride: usize,
    dilation: usize,
    /// Inputs that places see.
    count: usize,
    padding: [usize; 2],
    /// Places in front of the first of the output.
    cut: usize,
}

impl Line {
    /// The columns of an output; `None` if numbers are out of proportion.
    fn of(windows: &Windows, more: usize) -> Option<Line> {
        let [kernel, stride, dilation] = [windows.kernel[1], windows.stride[1], windows.dilation[1]];
        let [before, after] = windows.padding[1];
        let reach = (kernel - 1).checked_mul(dilation)?.checked_add(1)?;
        let count = reach.div_ceil(stride);
        let skipped = (before / stride).min(count - 1);
        let cut = before - skipped * stride;
        let behind = more.checked_add(reach)?.saturating_sub(1 + after) / stride;
        let is_little = count <= 2 * kernel + 2 && cut <= reach && behind <= 2 * count;
        let padding = [count - 1 - skipped, behind];
        is_little.then_some(Line { kernel, stride, dilation, count, padding, cut })
    }
}

/// Columns of an output that are computed together.
#[derive(Clone, Copy)]
pub(super) enum Columns {
    /// Those that are a stride apart.
    Phase(Side),
    /// All.
    Line(Line),
}

impl Columns {
    /// The columns for so many outputs, either all or phase by phase; `None` if numbers are out of proportion.
    fn all(windows: &Windows, more: usize, outputs: usize) -> Option<Vec<Columns>> {
        let stride = windows.stride[1];
        let sides: Option<Vec<Side>> = (0..stride).map(|phase| Side::of(windows, 1, phase, more)).collect();
        let sides = sides?;
        // Inputs times tiles of channels: a quarter more are computed in less time than results are put in between each other.
        let apart = sides.iter().map(Side::taps).sum::<usize>().checked_mul(outputs.div_ceil(CHANNELS))?;
        let together = |line: &Line| line.count.checked_mul(outputs.checked_mul(stride)?.div_ceil(CHANNELS));
        let line = Line::of(windows, more);
        Some(match line.filter(|line| together(line).is_some_and(|together| together / 5 <= apart / 4)) {
            Some(line) => vec![Columns::Line(line)],
            None => sides.into_iter().map(Columns::Phase).collect(),
        })
    }

    /// Places of the output for each place that is computed.
    pub fn places(&self) -> usize {
        match self {
            Columns::Phase(_) => 1,
            Columns::Line(line) => line.stride,
        }
    }

    /// Places that are computed in front of the first of the output.
    pub fn cut(&self) -> usize {
        match self {
            Columns::Phase(_) => 0,
            Columns::Line(line) => line.cut,
        }
    }

    /// The tap in a place of the window for one of the places of the output; `None` if it has weight 0.
    fn tap(&self, of: usize, place: usize) -> Option<usize> {
        match self {
            Columns::Phase(side) => side.tap(place),
            Columns::Line(line) => {
                let distance = of + (line.count - 1 - place) * line.stride;
                let tap = distance / line.dilation;
                (distance.is_multiple_of(line.dilation) && tap < line.kernel).then_some(tap)
            }
        }
    }
}

/// A part of a transposed convolution, which is a convolution: rows of the output that are a stride apart, and columns.
#[derive(Clone, Copy)]
pub(super) struct Phase {
    pub rows: Side,
    pub columns: Columns,
}

impl Phase {
    /// The parts for so many outputs, row by row; `None` if there are too many, or numbers are out of proportion.
    pub fn all(windows: &Windows, more: [usize; 2], outputs: usize) -> Option<Vec<Phase>> {
        let [down, right] = windows.stride;
        let fits = windows.check().is_ok() && windows.groups == 1;
        if !fits || down.checked_mul(right).is_none_or(|count| count > MOST) {
            return None;
        }
        let across = Columns::all(windows, more[1], outputs)?;
        let mut all = Vec::new();
        for phase in 0..down {
            let rows = Side::of(windows, 0, phase, more[0])?;
            all.extend(across.iter().map(|&columns| Phase { rows, columns }));
        }
        Some(all)
    }

    /// The windows of the convolution.
    pub fn windows(&self) -> Windows {
        let rows = &self.rows;
        let (count, dilation, padding) = match self.columns {
            Columns::Phase(side) => (side.taps(), side.dilation, side.padding),
            Columns::Line(line) => (line.count, 1, line.padding),
        };
        Windows {
            kernel: [rows.taps(), count],
            dilation: [rows.dilation, dilation],
            padding: [rows.padding, padding],
            ..Windows::ONE
        }
    }

    /// The tap in a place of the windows, for one of the places of the output; `None` if it has weight 0.
    pub fn tap(&self, of: usize, [y, x]: [usize; 2]) -> Option<[usize; 2]> {
        Some([self.rows.tap(y)?, self.columns.tap(of, x)?])
    }
}
