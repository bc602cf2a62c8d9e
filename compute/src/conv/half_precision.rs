//! Convolution of 16-bit floats, computed as that of `f32` and rounded once: constant weights are widened when it is made,
//! images in scratch memory.

use std::marker::PhantomData;

use super::convolution::{self, Convolution};
use super::geometry::{Geometry, Operands};
use crate::error::{Error, room};
use crate::half::Narrow;

/// A [`Convolution`] of floats that are computed with as `f32`.
pub struct HalfConvolution<T> {
    inner: Convolution,
    /// The weight, if it is constant.
    weight: Vec<f32>,
    element: PhantomData<fn(T)>,
}

impl<T: Narrow> HalfConvolution<T> {
    /// Retains a constant weight as `f32`, with as many elements. An error if there is no memory for it.
    pub fn new(constant: Option<&[T]>) -> Result<Self, Error> {
        let mut weight = Vec::new();
        if let Some(constant) = constant {
            weight = room(constant.len())?;
            weight.resize(constant.len(), 0.0);
            T::widen(constant, &mut weight);
        }
        Ok(HalfConvolution { inner: Convolution::new(!weight.is_empty(), None), weight, element: PhantomData })
    }

    /// Returns how many bytes are retained now.
    pub fn retained_bytes(&self) -> usize {
        self.inner.retained_bytes() + size_of_val(&self.weight[..])
    }

    /// See [`Convolution::bytes_to_retain`].
    pub fn bytes_to_retain(&self, geometry: &Geometry) -> usize {
        self.inner.bytes_to_retain(geometry)
    }

    /// Computes the whole output as [`Convolution::run`] does. The scratch memory holds all operands and the output as `f32`
    /// too, before what the convolution of `f32` needs.
    pub fn run(
        &mut self,
        geometry: &Geometry,
        operands: &Operands<'_, T>,
        mut scratch: &mut [f32],
        out: &mut [T],
    ) -> Result<(), Error> {
        let input = widen(&mut scratch, operands.input)?;
        let weight = if self.weight.is_empty() { widen(&mut scratch, operands.weight)? } else { &self.weight };
        let bias = operands.bias.map(|bias| widen(&mut scratch, bias)).transpose()?;
        let results = take(&mut scratch, out.len())?;
        self.inner.run(geometry, &Operands { input, weight, bias }, None, scratch, results)?;
        T::narrow(results, out);
        Ok(())
    }
}

/// Widens a slice into memory from the front of the scratch memory.
fn widen<'s, T: Narrow>(scratch: &mut &'s mut [f32], from: &[T]) -> Result<&'s [f32], Error> {
    let floats = take(scratch, from.len())?;
    T::widen(from, floats);
    Ok(floats)
}

fn take<'s>(scratch: &mut &'s mut [f32], len: usize) -> Result<&'s mut [f32], Error> {
    let (taken, rest) = convolution::take(std::mem::take(scratch), len)?;
    *scratch = rest;
    Ok(taken)
}
