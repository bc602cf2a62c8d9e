//! Distance of two results: largest and mean difference, ratio of signal to noise, cosine.

use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorBuf;
use serde::Serialize;

use super::seen::{Affine, number};
use crate::compare::Tolerance;

/// Bounds within which results agree.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Bounds {
    /// Bounds of every element.
    pub tolerance: Tolerance,
    /// Least ratio of signal to noise in dB, instead of the bounds of elements.
    pub sqnr: Option<f64>,
}

/// Verdict on two results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every element equals the other.
    Equal,
    /// They differ within the bounds.
    Close,
    /// They differ by more.
    Diverges,
}

/// Distance of a result from the one it is compared with.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Distance {
    /// Verdict by the bounds.
    pub verdict: Verdict,
    /// Elements compared; a complex one is two.
    pub elements: usize,
    /// Elements beyond the bounds of elements.
    pub different: usize,
    /// The largest difference of two finite elements.
    pub max_abs: f64,
    /// The mean difference of finite elements.
    pub mean_abs: f64,
    /// Ratio of signal to noise in dB: ten times the logarithm of the sum of wanted squares by that of squared
    /// differences. Absent if nothing differs, or nothing but zeros is wanted.
    pub sqnr_db: Option<f64>,
    /// Cosine of the angle between them. Absent if one is all zeros.
    pub cosine: Option<f64>,
}

/// A result to compare, in index order.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Elements.
    pub tensor: &'a TensorBuf,
    /// Meaning of integers.
    pub affine: Option<Affine>,
}

impl Side<'_> {
    fn dtype(&self) -> ScalarType {
        self.tensor.layout().scalar_type()
    }

    fn is_real(&self) -> bool {
        self.affine.is_some() || self.dtype().part().is_floating()
    }

    /// Bounds of its elements, relative and absolute; integers without a meaning are exact.
    fn bounds(&self, tolerance: Tolerance) -> (f64, f64) {
        if self.is_real() { tolerance.of(self.dtype()) } else { (0.0, 0.0) }
    }

    fn read(&self, bytes: &[u8]) -> Option<f64> {
        let number = number(self.dtype().part(), bytes)?;
        Some(self.affine.map_or(number, |affine| affine.scale * (number - affine.zero_point)))
    }
}

/// Compares two results with as many elements. `want` is the one the other is compared with.
pub fn measure(want: Side<'_>, have: Side<'_>, bounds: Bounds) -> Distance {
    let widths = [want, have].map(|side| side.dtype().part().size().unwrap_or(1));
    let (a, b) = (want.bounds(bounds.tolerance), have.bounds(bounds.tolerance));
    let (rtol, atol) = (a.0.max(b.0), a.1.max(b.1));
    let [mut elements, mut unequal, mut different, mut finite, mut lost] = [0usize; 5];
    let (mut max_abs, mut sum_abs) = (0f64, 0f64);
    let (mut signal, mut noise, mut other, mut product) = (0f64, 0f64, 0f64, 0f64);
    let pairs = want.tensor.data().chunks_exact(widths[0]).zip(have.tensor.data().chunks_exact(widths[1]));
    for (x, y) in pairs {
        elements += 1;
        let exact = want.dtype() == have.dtype() && want.affine == have.affine && x == y;
        let (Some(x), Some(y)) = (want.read(x), have.read(y)) else {
            unequal += usize::from(!exact);
            different += usize::from(!exact);
            continue;
        };
        let same = exact || x == y || (x.is_nan() && y.is_nan());
        unequal += usize::from(!same);
        let difference = if same { 0.0 } else { (x - y).abs() };
        different += usize::from(!(same || difference.is_finite() && difference <= atol + rtol * x.abs()));
        if x.is_finite() && y.is_finite() {
            finite += 1;
            max_abs = max_abs.max(difference);
            sum_abs += difference;
            signal += x * x;
            other += y * y;
            noise += difference * difference;
            product += x * y;
        } else {
            lost += usize::from(!same);
        }
    }
    let sqnr_db = (noise > 0.0 && signal > 0.0).then(|| 10.0 * (signal / noise).log10());
    let cosine = (signal > 0.0 && other > 0.0).then(|| (product / (signal.sqrt() * other.sqrt())).clamp(-1.0, 1.0));
    // What is not finite on one side only is noise without measure, and so is what is no number.
    let beyond = match bounds.sqnr {
        Some(least) => {
            lost > 0 || noise > 0.0 && sqnr_db.is_none_or(|sqnr| sqnr < least) || noise == 0.0 && different > 0
        }
        None => different > 0,
    };
    let verdict = match (unequal, beyond) {
        (0, _) => Verdict::Equal,
        (_, false) => Verdict::Close,
        (_, true) => Verdict::Diverges,
    };
    let mean_abs = if finite == 0 { 0.0 } else { sum_abs / finite as f64 };
    Distance { verdict, elements, different, max_abs, mean_abs, sqnr_db, cosine }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_format::tensor::TensorLayout;

    fn floats(values: &[f32]) -> TensorBuf {
        let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[values.len()]).unwrap();
        TensorBuf::from_bytes(layout, values.iter().flat_map(|value| value.to_le_bytes()).collect()).unwrap()
    }

    fn distance(want: &[f32], have: &[f32], bounds: Bounds) -> Distance {
        let (want, have) = (floats(want), floats(have));
        measure(Side { tensor: &want, affine: None }, Side { tensor: &have, affine: None }, bounds)
    }

    #[test]
    fn figures_are_those_of_their_formulas() {
        let far = distance(&[3.0, 4.0, 0.0], &[3.0, 4.5, 0.0], Bounds::default());
        assert_eq!((far.verdict, far.elements, far.different), (Verdict::Diverges, 3, 1));
        assert_eq!((far.max_abs, far.mean_abs), (0.5, 0.5 / 3.0));
        assert!((far.sqnr_db.unwrap() - 20.0).abs() < 1e-9, "25 by 0.25: {:?}", far.sqnr_db);
        assert!((far.cosine.unwrap() - 27.0 / (5.0 * 29.25f64.sqrt())).abs() < 1e-9);
        let least = |sqnr| Bounds { sqnr: Some(sqnr), ..Bounds::default() };
        assert_eq!(distance(&[3.0, 4.0], &[3.0, 4.5], least(19.9)).verdict, Verdict::Close);
        assert_eq!(distance(&[3.0, 4.0], &[3.0, 4.5], least(20.1)).verdict, Verdict::Diverges);
        assert_eq!(distance(&[0.0], &[1e-9], least(20.0)).verdict, Verdict::Diverges);
    }

    #[test]
    fn special_numbers_equal_themselves_only() {
        let special = [f32::NAN, f32::INFINITY, 1.0];
        assert_eq!(distance(&special, &special, Bounds::default()).verdict, Verdict::Equal);
        let far = distance(&special, &[0.0, f32::NEG_INFINITY, 1.0], Bounds::default());
        assert_eq!((far.verdict, far.different, far.max_abs), (Verdict::Diverges, 2, 0.0));
        let least = Bounds { sqnr: Some(1.0), ..Bounds::default() };
        assert_eq!(distance(&[f32::NAN, 1.0], &[0.0, 1.0], least).verdict, Verdict::Diverges);
    }

    #[test]
    fn integers_with_a_meaning_are_compared_by_it() {
        let layout = TensorLayout::contiguous(ScalarType::CHAR, &[2]).unwrap();
        let bytes = TensorBuf::from_bytes(layout, vec![3, 253]).unwrap();
        let want = floats(&[1.0, -2.0]);
        let affine = Some(Affine { scale: 0.5, zero_point: 1.0 });
        let side = Side { tensor: &want, affine: None };
        let same = measure(side, Side { tensor: &bytes, affine }, Bounds::default());
        assert_eq!((same.verdict, same.max_abs), (Verdict::Equal, 0.0));
        let exact =
            measure(Side { tensor: &bytes, affine: None }, Side { tensor: &bytes, affine: None }, Bounds::default());
        assert_eq!(exact.verdict, Verdict::Equal);
    }
}
