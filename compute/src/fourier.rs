//! The discrete Fourier transform of a line of any length, in double precision.
//!
//! Lengths of small prime factors are split by them; a length with a large prime factor becomes a convolution of a power
//! of two. In both cases the time is that of `n log n`, so no length that a program asks for makes it hang.

mod lines;

use std::f64::consts::TAU;

use crate::complex::{Complex, conjugate, plus, times};
use crate::error::{Error, room};

pub use lines::{Lines, Transforms};

/// Bytes of a number.
const COMPLEX: usize = size_of::<Complex<f64>>();

/// The length of the convolution that a transform becomes.
fn inner_length(length: usize) -> usize {
    length.saturating_mul(2).saturating_sub(1).checked_next_power_of_two().unwrap_or(usize::MAX)
}

/// The greatest prime factor that is split by its definition.
const SMALL: usize = 31;

/// A transform of one length.
pub struct Transform {
    length: usize,
    algorithm: Algorithm,
}

enum Algorithm {
    /// Prime factors, and the roots of unity of the whole length.
    Split { factors: Vec<usize>, roots: Vec<Complex<f64>> },
    /// A convolution with a chirp.
    Chirp { chirp: Vec<Complex<f64>>, spectrum: Vec<Complex<f64>>, inner: Box<Transform> },
}

/// The small prime factors of a length, and what is left of it.
fn factorised(length: usize) -> (Vec<usize>, usize) {
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
    (factors, rest)
}

/// The root of unity at `index / length` of a turn, forward.
fn root(index: usize, length: usize) -> Complex<f64> {
    let (sin, cos) = (-TAU * (index % length) as f64 / length as f64).sin_cos();
    [cos, sin]
}

impl Transform {
    /// Returns the transform of lines of `length`, at least 1.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Memory`](crate::ErrorKind::Memory) if there is no memory for its tables.
    pub fn new(length: usize) -> Result<Transform, Error> {
        let count = Self::scratch_to_make(length);
        let mut scratch = room(count)?;
        scratch.resize(count, [0.0; 2]);
        Self::within(length, &mut scratch)
    }

    /// Returns how many numbers of scratch memory [`within`](Self::within) needs.
    fn scratch_to_make(length: usize) -> usize {
        if factorised(length).1 <= 1 { 0 } else { inner_length(length) }
    }

    /// Returns the transform as [`new`](Self::new) does, made in scratch memory of the caller's, which has as many numbers
    /// as a run needs.
    fn within(length: usize, scratch: &mut [Complex<f64>]) -> Result<Transform, Error> {
        let (factors, rest) = factorised(length);
        if rest <= 1 {
            let mut roots = room(length)?;
            roots.extend((0..length).map(|index| root(index, length)));
            return Ok(Transform { length, algorithm: Algorithm::Split { factors, roots } });
        }
        let inner = Transform::within(inner_length(length), scratch)?;
        // The square of the index, modulo two lengths: it would not stay exact as a float.
        let root = |index: usize| {
            let square = (index as u128 * index as u128) % (2 * length as u128);
            root(square as usize, 2 * length)
        };
        let mut chirp: Vec<Complex<f64>> = room(length)?;
        chirp.extend((0..length).map(root));
        let mut spectrum = room(inner.length)?;
        spectrum.resize(inner.length, [0.0; 2]);
        for (index, &x) in chirp.iter().enumerate() {
            spectrum[index] = conjugate(x);
            spectrum[(inner.length - index) % inner.length] = conjugate(x);
        }
        inner.run(&mut spectrum, scratch);
        Ok(Transform { length, algorithm: Algorithm::Chirp { chirp, spectrum, inner: Box::new(inner) } })
    }

    /// Returns the bytes of its tables.
    pub fn bytes(&self) -> usize {
        match &self.algorithm {
            Algorithm::Split { factors, roots } => size_of_val(&factors[..]) + size_of_val(&roots[..]),
            Algorithm::Chirp { chirp, spectrum, inner } => {
                size_of_val(&chirp[..]) + size_of_val(&spectrum[..]) + size_of::<Transform>() + inner.bytes()
            }
        }
    }

    /// Returns the bytes that the tables of the transform of a length have.
    pub fn bytes_of(length: usize) -> usize {
        let (factors, rest) = factorised(length);
        if rest <= 1 {
            return size_of_val(&factors[..]).saturating_add(length.saturating_mul(COMPLEX));
        }
        let inner = inner_length(length);
        let tables = length.saturating_add(inner).saturating_mul(COMPLEX);
        tables.saturating_add(size_of::<Transform>()).saturating_add(Self::bytes_of(inner))
    }

    /// Returns the most bytes that the tables of a transform of any length up to this one have.
    pub fn most_bytes(length: usize) -> usize {
        let inner = inner_length(length);
        let tables = length.saturating_add(inner.saturating_mul(2)).saturating_mul(COMPLEX);
        tables.saturating_add(size_of::<Transform>()).saturating_add(size_of::<[usize; usize::BITS as usize]>())
    }

    /// The length of the lines.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns how many numbers of scratch memory [`run`](Self::run) needs.
    pub fn scratch(&self) -> usize {
        match &self.algorithm {
            Algorithm::Split { .. } => self.length,
            Algorithm::Chirp { inner, .. } => inner.length + inner.scratch(),
        }
    }

    /// Returns how many numbers of scratch memory a transform of any line up to `length` needs at most.
    pub fn most_scratch(length: usize) -> usize {
        2usize.saturating_mul(length.saturating_mul(2).checked_next_power_of_two().unwrap_or(usize::MAX))
    }

    /// Transforms a line in place, forward and without a factor.
    pub fn run(&self, line: &mut [Complex<f64>], scratch: &mut [Complex<f64>]) {
        match &self.algorithm {
            Algorithm::Split { factors, roots } => {
                let scratch = &mut scratch[..line.len()];
                scratch.copy_from_slice(line);
                split(scratch, 1, line, factors, roots);
            }
            Algorithm::Chirp { chirp, spectrum, inner } => {
                let (work, scratch) = scratch.split_at_mut(inner.length);
                work.fill([0.0; 2]);
                for ((work, &x), &root) in work.iter_mut().zip(&*line).zip(chirp) {
                    *work = times(x, root);
                }
                inner.run(work, scratch);
                // The inverse is the conjugate of the transform of the conjugate.
                work.iter_mut().zip(spectrum).for_each(|(work, &by)| *work = conjugate(times(*work, by)));
                inner.run(work, scratch);
                let scale = 1.0 / inner.length as f64;
                for ((x, &work), &root) in line.iter_mut().zip(&*work).zip(chirp) {
                    *x = times(conjugate(work), root).map(|part| part * scale);
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

/// The transform of every `stride`-th number of `from` into `to`: those of its interleaved parts, combined.
fn split(from: &[Complex<f64>], stride: usize, to: &mut [Complex<f64>], factors: &[usize], roots: &[Complex<f64>]) {
    let Some((&radix, rest)) = factors.split_first() else {
        to[0] = from[0];
        return;
    };
    let (length, part) = (to.len(), to.len() / radix);
    for (index, to) in to.chunks_exact_mut(part).enumerate() {
        split(&from[index * stride..], stride * radix, to, rest, roots);
    }
    let mut gathered = [[0.0; 2]; SMALL];
    for at in 0..part {
        for (index, x) in gathered[..radix].iter_mut().enumerate() {
            *x = times(to[index * part + at], roots[index * at * stride]);
        }
        for out in 0..radix {
            let root = |index: usize| roots[(index * out) % radix * (length / radix) * stride];
            let sum = gathered[..radix].iter().enumerate().skip(1);
            to[out * part + at] = sum.fold(gathered[0], |sum, (index, &x)| plus(sum, times(x, root(index))));
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
            assert_eq!(transform.bytes(), Transform::bytes_of(length));
            assert!(transform.bytes() <= Transform::most_bytes(length));
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
