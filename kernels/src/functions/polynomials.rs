//! Orthogonal polynomials, by their recurrences.

/// Which polynomials.
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

/// The polynomial of a degree at a place; zero for degrees below zero.
pub fn polynomial(kind: Kind, x: f64, degree: f64) -> f64 {
    // Degrees are cut to whole ones.
    let degree = degree.trunc();
    if degree < 0.0 {
        return 0.0;
    }
    // Nobody sums up more terms than this; NaN counts as degree 0.
    let degree = degree.min(1e6) as u32;
    let mut before = 1.0;
    if degree == 0 {
        return before;
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
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
