//! The weight of a convolution of `f32` in the order its loops read it, where that is not the order it is stored in.

use super::algorithm::Algorithm;
use super::blocked::BlockedWeight;
use super::geometry::Geometry;
use super::winograd::{self, TransformedWeight};
use super::{depthwise, few_outputs};
use crate::error::Error;
use crate::gemm::blocks::scaled;
use crate::simd::float_path::FloatPath;
use crate::simd::floats::{LANES, Line};
use crate::zeroed::Zeroed;

/// A weight in the order that loops read it.
pub struct PackedWeight(pub(super) Order);

/// Form that loops read.
pub(super) enum Order {
    /// Blocks of output channels.
    Blocks(BlockedWeight),
    /// Of a convolution that reads windows of pixels: a depthwise one, of groups of a few channels, or to a few channels.
    Taps(Taps),
    /// Blocks of output channels of transformed taps.
    Transformed(TransformedWeight),
}

impl PackedWeight {
    /// Returns how many bytes the weight of a convolution of this geometry takes in the order it is read; none if it is read as
    /// it is stored.
    pub fn packed_len(geometry: &Geometry) -> Option<usize> {
        let geometry = &geometry.computed();
        match is_transformed(Algorithm::of(geometry), geometry) {
            true => Some(TransformedWeight::bytes_of(geometry)),
            false => Self::retained_len(geometry),
        }
    }

    /// [`PackedWeight::packed_len`] of a weight that is packed for one run, or retained from one to the next.
    pub(super) fn retained_len(geometry: &Geometry) -> Option<usize> {
        match Algorithm::of(geometry) {
            Algorithm::Pixels => Some(BlockedWeight::bytes_of(geometry)),
            algorithm if algorithm.packs() => Some(Taps::lines(algorithm, geometry).saturating_mul(size_of::<Line>())),
            _ => None,
        }
    }

    /// Returns the elements of scratch memory that a run with the packed weight of this geometry needs besides those of
    /// [`Bounds::scratch`](super::Bounds::scratch), on as many threads as there are here.
    pub fn scratch(geometry: &Geometry) -> usize {
        let geometry = &geometry.computed();
        if is_transformed(Algorithm::of(geometry), geometry) { winograd::scratch(geometry) } else { 0 }
    }

    /// Returns the name of the order in which the convolution of this geometry reads its weight on this machine.
    pub fn layout(geometry: &Geometry) -> String {
        let (geometry, tiles) = (&geometry.computed(), FloatPath::best().tiles());
        let Geometry { weight, groups, transposed, .. } = geometry;
        let algorithm = Algorithm::of(geometry);
        let form = if is_transformed(algorithm, geometry) { "transformed" } else { "as they are" };
        format!("{algorithm:?} of {tiles}, taps {form}, {groups} groups of {weight:?}, transposed {transposed}")
    }

    /// Brings a weight into the order that the convolution of this geometry reads, in the memory of an older one if that is
    /// enough; none if the weight is read as it is stored. Each output channel is multiplied by its factor, if there are
    /// factors; a transposed convolution has none. An error if there is no memory.
    ///
    /// # Panics
    ///
    /// If the weight is shorter than the geometry says, or factors are fewer than output channels.
    pub fn new(
        old: Option<Self>,
        geometry: &Geometry,
        weight: &[f32],
        factors: Option<&[f64]>,
    ) -> Result<Option<Self>, Error> {
        let geometry = &geometry.computed();
        assert!(factors.is_none() || !geometry.transposed, "output channels of a transposed weight are not outermost");
        if !is_transformed(Algorithm::of(geometry), geometry) {
            return Self::in_order(old, geometry, weight, factors);
        }
        let old = old.map(|old| old.0);
        let mut taps = if let Some(Order::Transformed(old)) = old { old } else { TransformedWeight::default() };
        taps.pack(geometry, weight, factors)?;
        Ok(Some(PackedWeight(Order::Transformed(taps))))
    }

    /// [`PackedWeight::new`] with the taps as they are, also of a weight that is packed for one run, or retained from one to
    /// the next: other sizes of images do not want another order.
    pub(super) fn in_order(
        old: Option<Self>,
        geometry: &Geometry,
        weight: &[f32],
        factors: Option<&[f64]>,
    ) -> Result<Option<Self>, Error> {
        Ok(Some(PackedWeight(match (Algorithm::of(geometry), old.map(|old| old.0)) {
            (Algorithm::Pixels, old) => {
                let mut blocks = if let Some(Order::Blocks(old)) = old { old } else { BlockedWeight::default() };
                blocks.pack(geometry, weight, factors)?;
                Order::Blocks(blocks)
            }
            (algorithm, old) if algorithm.packs() => {
                let old = if let Some(Order::Taps(old)) = old { Some(old) } else { None };
                Order::Taps(Taps::pack(old, algorithm, geometry, weight, factors)?)
            }
            _ => return Ok(None),
        })))
    }

    /// Returns whether a convolution of this geometry, which is computed by this algorithm, reads weights in this order.
    pub(super) fn fits(&self, algorithm: Algorithm, geometry: &Geometry) -> bool {
        match &self.0 {
            Order::Blocks(_) => algorithm == Algorithm::Pixels,
            Order::Taps(taps) => algorithm == taps.algorithm,
            Order::Transformed(_) => is_transformed(algorithm, geometry),
        }
    }

    /// Returns how many bytes it takes.
    pub fn byte_len(&self) -> usize {
        match &self.0 {
            Order::Blocks(blocks) => blocks.bytes(),
            Order::Taps(taps) => taps.numbers.byte_len(),
            Order::Transformed(taps) => taps.bytes(),
        }
    }
}

/// Returns whether a weight that is packed once has its taps transformed, for the algorithm of its geometry.
fn is_transformed(algorithm: Algorithm, geometry: &Geometry) -> bool {
    algorithm == Algorithm::Pixels && winograd::pays(geometry)
}

/// The weight of a convolution that reads windows of pixels, in the order of its algorithm, and a zero per input channel: the
/// channels of each tap where it is depthwise.
pub(super) struct Taps {
    numbers: Zeroed<Line>,
    /// The algorithm that reads them.
    algorithm: Algorithm,
}

impl Taps {
    /// Numbers of the weight of a geometry, without zeros.
    fn len(algorithm: Algorithm, geometry: &Geometry) -> usize {
        match algorithm {
            Algorithm::GroupedNhwc => depthwise::group_vectors(geometry).saturating_mul(LANES),
            Algorithm::FewOutputs => few_outputs::vectors(geometry).saturating_mul(LANES),
            Algorithm::DepthwiseRows => geometry.weight.area().saturating_mul(depthwise::tap_len(geometry)),
            _ => geometry.weight.area().saturating_mul(geometry.weight.batch.0),
        }
    }

    /// Lines that hold the weight of a geometry.
    fn lines(algorithm: Algorithm, geometry: &Geometry) -> usize {
        Taps::len(algorithm, geometry).saturating_add(geometry.input.channels.0).div_ceil(LANES)
    }

    /// The numbers, and some more.
    pub(super) fn all(&self) -> &[f32] {
        bytemuck::cast_slice(self.numbers.all())
    }

    /// Brings a weight into this order, in the memory of an old one if that is as much.
    fn pack(
        old: Option<Taps>,
        algorithm: Algorithm,
        geometry: &Geometry,
        weight: &[f32],
        factors: Option<&[f64]>,
    ) -> Result<Taps, Error> {
        let count = Taps::lines(algorithm, geometry);
        let mut numbers = match old {
            Some(old) if old.numbers.all().len() == count => old.numbers,
            _ => Zeroed::new(count)?,
        };
        let (taps, zeros) =
            bytemuck::cast_slice_mut::<_, f32>(numbers.all_mut()).split_at_mut(Taps::len(algorithm, geometry));
        zeros.fill(0.0);
        match algorithm {
            Algorithm::GroupedNhwc => depthwise::pack_groups(geometry, weight, factors, taps),
            Algorithm::FewOutputs => few_outputs::pack(geometry, weight, factors, taps),
            Algorithm::DepthwiseRows => {
                Taps::pack_depthwise(geometry, weight, factors, taps, depthwise::tap_len(geometry));
            }
            _ => Taps::pack_depthwise(geometry, weight, factors, taps, geometry.weight.batch.0),
        }
        Ok(Taps { numbers, algorithm })
    }

    /// As many numbers of each tap: those of all channels, or over and over.
    fn pack_depthwise(geometry: &Geometry, weight: &[f32], factors: Option<&[f64]>, taps: &mut [f32], each: usize) {
        let kernel = &geometry.weight;
        let places = (0..kernel.sizes[1]).flat_map(|y| (0..kernel.sizes[2]).map(move |x| (y, x)));
        for ((y, x), taps) in places.zip(taps.chunks_exact_mut(each.max(1))) {
            let start = y * kernel.strides[1] + x * kernel.strides[2];
            let (once, again) = taps.split_at_mut(kernel.batch.0.min(each));
            let Some(last) = once.len().checked_sub(1) else { continue };
            let numbers = weight[start..=start + last * kernel.batch.1].iter().step_by(kernel.batch.1.max(1));
            match factors.map(|factors| &factors[..once.len()]) {
                Some(factors) => once.iter_mut().zip(numbers).zip(factors).for_each(|((place, tap), factor)| {
                    *place = scaled(*tap, *factor);
                }),
                None => once.iter_mut().zip(numbers).for_each(|(place, tap)| *place = *tap),
            }
            again.chunks_mut(once.len()).for_each(|again| again.copy_from_slice(&once[..again.len()]));
        }
    }
}
