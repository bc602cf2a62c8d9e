//! Orthogonal polynomials, by their recurrences.

/// Families of polynomials.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Kind {
    ChebyshevT,
    ChebyshevU,
    ChebyshevV,
    ChebyshevW,
    HermiteH,
    HermiteHe,
    Laguerre,
    Legendre,
}

/// The highest degree that is computed term by term, so that one element does not take seconds.
const MOST_TERMS: f64 = 10_000.0;

/// The polynomial of a degree at a place; zero for degrees below zero, NaN for those that would take too many terms.
pub fn polynomial(kind: Kind, x: f64, degree: f64) -> f64 {
    // Degrees are cut to whole ones.
    let degree = degree.trunc();
    if degree < 0.0 {
        return 0.0;
    }
    if degree > MOST_TERMS && by_angle(kind, x, degree).is_none() {
        return f64::NAN;
    }
    // NaN counts as degree 0.
    let (whole, degree) = (degree, degree as u32);
    let mut before = 1.0;
    if degree == 0 {
        return before;
    }
    if let Some(value) = by_angle(kind, x, whole) {
        return value;
    }
    let mut value = match kind {
        Kind::ChebyshevT | Kind::HermiteHe | Kind::Legendre => x,
        Kind::ChebyshevU | Kind::HermiteH => 2.0 * x,
        Kind::ChebyshevV => 2.0 * x - 1.0,
        Kind::ChebyshevW => 2.0 * x + 1.0,
        Kind::Laguerre => 1.0 - x,
    };
    for k in 1..degree {
        let k = f64::from(k);
        let next = match kind {
            Kind::HermiteH => 2.0 * (x * value - k * before),
            Kind::HermiteHe => x * value - k * before,
            Kind::Laguerre => ((2.0 * k + 1.0 - x) * value - k * before) / (k + 1.0),
            Kind::Legendre => ((2.0 * k + 1.0) * x * value - k * before) / (k + 1.0),
            _ => 2.0 * x * value - before,
        };
        (before, value) = (value, next);
        if value.is_nan() {
            return value;
        }
    }
    value
}

/// Chebyshev polynomials of high degrees between -1 and 1, where the angle says them.
fn by_angle(kind: Kind, x: f64, degree: f64) -> Option<f64> {
    if degree <= 6.0 || x.abs() >= 1.0 {
        return None;
    }
    let angle = x.acos();
    match kind {
        Kind::ChebyshevT => Some((degree * angle).cos()),
        Kind::ChebyshevU => Some(((degree + 1.0) * angle).sin() / angle.sin()),
        Kind::ChebyshevV => Some(((degree + 0.5) * angle).cos() / (angle / 2.0).cos()),
        Kind::ChebyshevW => Some(((degree + 0.5) * angle).sin() / (angle / 2.0).sin()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles_say_what_recurrences_say() {
        for kind in [Kind::ChebyshevT, Kind::ChebyshevU, Kind::ChebyshevV, Kind::ChebyshevW] {
            for x in [-0.9, -0.3, 0.2, 0.75] {
                // The recurrence from two degrees that the angle says.
                let next = 2.0 * x * polynomial(kind, x, 8.0) - polynomial(kind, x, 7.0);
                assert!((next - polynomial(kind, x, 9.0)).abs() < 1e-12, "{kind:?} {x}");
                let low = 2.0 * x * polynomial(kind, x, 6.0) - polynomial(kind, x, 5.0);
                assert!((low - polynomial(kind, x, 7.0)).abs() < 1e-12, "{kind:?} {x}");
            }
        }
    }

    #[test]
    fn recurrences() {
        let at = |kind, degree| polynomial(kind, 0.5, degree);
        assert_eq!(at(Kind::ChebyshevT, 3.0), -1.0);
        assert_eq!(at(Kind::ChebyshevU, 2.0), 0.0);
        assert_eq!(at(Kind::ChebyshevV, 2.0), -1.0);
        assert_eq!(at(Kind::ChebyshevW, 2.0), 1.0);
        assert_eq!(at(Kind::HermiteH, 3.0), -5.0);
        assert_eq!(at(Kind::HermiteHe, 3.0), -1.375);
        assert_eq!(at(Kind::Laguerre, 2.0), 0.125);
        assert_eq!(at(Kind::Legendre, 3.0), -0.4375);
        assert_eq!(at(Kind::Legendre, -1.0), 0.0);
        assert!(at(Kind::Legendre, 1e5).is_nan() && at(Kind::ChebyshevT, 1e5).is_finite());
    }
}
