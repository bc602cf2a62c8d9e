//! The discrete Fourier transform of a line of any length, in double precision.
//!
//! Lengths of small prime factors are split by them; a length with a large prime factor becomes a convolution of a power
//! of two. Either way the time is that of `n log n`, so no length that a program asks for makes it hang.

use std::f64::consts::TAU;

use crate::complex::{Complex, conjugate, plus, times};
use crate::error::{Error, room};

/// The greatest prime factor that is split by its definition.
const SMALL: usize = 31;

/// A transform of one length.
pub struct Transform {
    length: usize,
    way: Way,
}

enum Way {
    /// Prime factors, and the roots of unity of the whole length.
    Split { factors: Vec<usize>, roots: Vec<Complex<f64>> },
    /// A convolution with a chirp.
    Chirp { chirp: Vec<Complex<f64>>, spectrum: Vec<Complex<f64>>, inner: Box<Transform> },
}

/// The root of unity at `index / length` of a turn, forward.
fn root(index: usize, length: usize) -> Complex<f64> {
    let (sin, cos) = (-TAU * (index % length) as f64 / length as f64).sin_cos();
    [cos, sin]
}

impl Transform {
    /// The transform of lines of `length`, at least 1. An error if there is no memory for it.
    pub fn new(length: usize) -> Result<Transform, Error> {
        let mut factors = Vec::new();
        let (mut rest, mut factor) = (length, 2);
        while rest > 1 && factor <= SMALL {
            if rest.is_multiple_of(factor) {
                factors.push(factor);
                rest /= factor;
            } else {
                factor += 1;
            }
        }
        if rest <= 1 {
            let mut roots = room(length)?;
            roots.extend((0..length).map(|index| root(index, length)));
            return Ok(Transform { length, way: Way::Split { factors, roots } });
        }
        let inner = Transform::new((2 * length - 1).next_power_of_two())?;
        // The square of the index, modulo two lengths: it would not stay exact as a float.
        let turn = |index: usize| {
            let square = (index as u128 * index as u128) % (2 * length as u128);
            root(square as usize, 2 * length)
        };
        let mut chirp: Vec<Complex<f64>> = room(length)?;
        chirp.extend((0..length).map(turn));
        let mut spectrum = room(inner.length)?;
        spectrum.resize(inner.length, [0.0; 2]);
        for (index, &x) in chirp.iter().enumerate() {
            spectrum[index] = conjugate(x);
            spectrum[(inner.length - index) % inner.length] = conjugate(x);
        }
        let mut scratch = room(inner.scratch())?;
        scratch.resize(inner.scratch(), [0.0; 2]);
        inner.run(&mut spectrum, &mut scratch);
        Ok(Transform { length, way: Way::Chirp { chirp, spectrum, inner: Box::new(inner) } })
    }

    /// The length of the lines.
    pub fn length(&self) -> usize {
        self.length
    }

    /// How many numbers of scratch memory [`run`](Self::run) needs.
    pub fn scratch(&self) -> usize {
        match &self.way {
            Way::Split { .. } => self.length,
            Way::Chirp { inner, .. } => inner.length + inner.scratch(),
        }
    }

    /// How many numbers of scratch memory a transform of any line up to `length` needs.
    pub fn most_scratch(length: usize) -> usize {
        2usize.saturating_mul(length.saturating_mul(2).checked_next_power_of_two().unwrap_or(usize::MAX))
    }

    /// Transforms a line in place, forward and without a factor.
    pub fn run(&self, line: &mut [Complex<f64>], scratch: &mut [Complex<f64>]) {
        match &self.way {
            Way::Split { factors, roots } => {
                let scratch = &mut scratch[..line.len()];
                scratch.copy_from_slice(line);
                split(scratch, 1, line, factors, roots);
            }
            Way::Chirp { chirp, spectrum, inner } => {
                let (work, scratch) = scratch.split_at_mut(inner.length);
                work.fill([0.0; 2]);
                for ((work, &x), &turn) in work.iter_mut().zip(&*line).zip(chirp) {
                    *work = times(x, turn);
                }
                inner.run(work, scratch);
                // The inverse is the conjugate of the transform of the conjugate.
                work.iter_mut().zip(spectrum).for_each(|(work, &by)| *work = conjugate(times(*work, by)));
                inner.run(work, scratch);
                let scale = 1.0 / inner.length as f64;
                for ((x, &work), &turn) in line.iter_mut().zip(&*work).zip(chirp) {
                    *x = times(conjugate(work), turn).map(|part| part * scale);
                }
            }
        }
    }

    /// Transforms a line in place, backward and without a factor.
    pub fn run_backward(&self, line: &mut [Complex<f64>], scratch: &mut [Complex<f64>]) {
        line.iter_mut().for_each(|x| *x = conjugate(*x));
        self.run(line, scratch);
        line.iter_mut().for_each(|x| *x = conjugate(*x));
    }
}

/// The transform of every `step`-th number of `from` into `to`: those of its interleaved parts, combined.
fn split(from: &[Complex<f64>], step: usize, to: &mut [Complex<f64>], factors: &[usize], roots: &[Complex<f64>]) {
    let Some((&radix, rest)) = factors.split_first() else {
        to[0] = from[0];
        return;
    };
    let (length, part) = (to.len(), to.len() / radix);
    for (index, to) in to.chunks_exact_mut(part).enumerate() {
        split(&from[index * step..], step * radix, to, rest, roots);
    }
    let mut gathered = [[0.0; 2]; SMALL];
    for at in 0..part {
        for (index, x) in gathered[..radix].iter_mut().enumerate() {
            *x = times(to[index * part + at], roots[index * at * step]);
        }
        for out in 0..radix {
            let turn = |index: usize| roots[(index * out) % radix * (length / radix) * step];
            let sum = gathered[..radix].iter().enumerate().skip(1);
            to[out * part + at] = sum.fold(gathered[0], |sum, (index, &x)| plus(sum, times(x, turn(index))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn every_length_agrees_with_the_definition() {
        let mut random = Random::new(2);
        for length in (1..40).chain([41, 64, 74, 97, 120, 121, 210, 256, 37 * 3]) {
            let line: Vec<Complex<f64>> = (0..length).map(|_| [random.float().into(), random.float().into()]).collect();
            let transform = Transform::new(length).unwrap();
            assert!(transform.scratch() <= Transform::most_scratch(length));
            let mut scratch = vec![[0.0; 2]; transform.scratch()];
            let mut have = line.clone();
            transform.run(&mut have, &mut scratch);
            for (k, have) in have.iter().enumerate() {
                let terms = line.iter().enumerate().map(|(n, &x)| times(x, root(n * k, length)));
                let want = terms.fold([0.0; 2], plus);
                assert!((have[0] - want[0]).abs() + (have[1] - want[1]).abs() < 1e-10, "{length}: {k}");
            }
            transform.run_backward(&mut have, &mut scratch);
            for (have, want) in have.iter().zip(&line) {
                assert!((have[0] / length as f64 - want[0]).abs() < 1e-12);
            }
        }
    }
}
