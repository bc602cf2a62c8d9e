//! Special functions, element by element.

use super::schema::{BINARY, UNARY};
use super::spec::Input::{Scalar, Tensor};
use super::{kernels, specs};
use edgepack_compute::pointwise::special::*;

const PLACE: &str = "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)";
const POLYNOMIAL: &str = "(Tensor x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)";
const POLYNOMIAL_NUMBER: &str = "(Tensor x, Scalar n, *, Tensor(a!) out) -> Tensor(a!)";
const POLYNOMIAL_PLACE: &str = "(Scalar x, Tensor n, *, Tensor(a!) out) -> Tensor(a!)";
const NUMBER_SELF: &str = "(Scalar self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)";

specs! {
    AIRY_AI: PLACE, [Tensor(0)], [], 1, Float, airy_ai;
    BESSEL_J0: UNARY, [Tensor(0)], [], 1, Float, bessel_j0;
    BESSEL_J1: UNARY, [Tensor(0)], [], 1, Float, bessel_j1;
    BESSEL_Y0: UNARY, [Tensor(0)], [], 1, Float, bessel_y0;
    BESSEL_Y1: UNARY, [Tensor(0)], [], 1, Float, bessel_y1;
    DIGAMMA: UNARY, [Tensor(0)], [], 1, Float, digamma;
    ERFC: UNARY, [Tensor(0)], [], 1, Float, erfc;
    ERFCX: UNARY, [Tensor(0)], [], 1, Float, erfcx;
    ERFINV: UNARY, [Tensor(0)], [], 1, Float, erfinv;
    EXP2: UNARY, [Tensor(0)], [], 1, Float, exp2;
    I0: UNARY, [Tensor(0)], [], 1, Float, i0;
    I0E: UNARY, [Tensor(0)], [], 1, Float, i0e;
    I1: UNARY, [Tensor(0)], [], 1, Float, i1;
    I1E: UNARY, [Tensor(0)], [], 1, Float, i1e;
    K0: UNARY, [Tensor(0)], [], 1, Float, k0;
    K1: UNARY, [Tensor(0)], [], 1, Float, k1;
    K0E: PLACE, [Tensor(0)], [], 1, Float, k0e;
    K1E: PLACE, [Tensor(0)], [], 1, Float, k1e;
    LGAMMA: UNARY, [Tensor(0)], [], 1, Float, lgamma;
    NDTRI: UNARY, [Tensor(0)], [], 1, Float, ndtri;
    SPHERICAL_J0: PLACE, [Tensor(0)], [], 1, Float, spherical_j0;
    MVLGAMMA: "(Tensor self, int p, *, Tensor(a!) out) -> Tensor(a!)", [Tensor(0)], [1], 2, Float, mvlgamma;
    POLYGAMMA: "(int n, Tensor self, *, Tensor(a!) out) -> Tensor(a!)", [Tensor(1)], [0], 2, Float, polygamma;
    HYPOT: BINARY, [Tensor(0), Tensor(1)], [], 2, Float, hypot;
    IGAMMA: BINARY, [Tensor(0), Tensor(1)], [], 2, Float, igamma;
    IGAMMAC: BINARY, [Tensor(0), Tensor(1)], [], 2, Float, igammac;
    GCD: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, gcd;
    LCM: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, lcm;
    NEXTAFTER: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, nextafter;
    ZETA: BINARY, [Tensor(0), Tensor(1)], [], 2, Float, zeta;
    ZETA_SELF: NUMBER_SELF, [Scalar(0), Tensor(1)], [], 2, Float, zeta;
    ZETA_OTHER: super::schema::WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Float, zeta;
    CHEBYSHEV_T: POLYNOMIAL, [Tensor(0), Tensor(1)], [], 2, Float, chebyshev_t;
    CHEBYSHEV_T_N: POLYNOMIAL_NUMBER, [Tensor(0), Scalar(1)], [], 2, Float, chebyshev_t;
    CHEBYSHEV_T_X: POLYNOMIAL_PLACE, [Scalar(0), Tensor(1)], [], 2, Float, chebyshev_t;
    CHEBYSHEV_U: POLYNOMIAL, [Tensor(0), Tensor(1)], [], 2, Float, chebyshev_u;
    CHEBYSHEV_U_N: POLYNOMIAL_NUMBER, [Tensor(0), Scalar(1)], [], 2, Float, chebyshev_u;
    CHEBYSHEV_U_X: POLYNOMIAL_PLACE, [Scalar(0), Tensor(1)], [], 2, Float, chebyshev_u;
    CHEBYSHEV_V: POLYNOMIAL, [Tensor(0), Tensor(1)], [], 2, Float, chebyshev_v;
    CHEBYSHEV_V_N: POLYNOMIAL_NUMBER, [Tensor(0), Scalar(1)], [], 2, Float, chebyshev_v;
    CHEBYSHEV_V_X: POLYNOMIAL_PLACE, [Scalar(0), Tensor(1)], [], 2, Float, chebyshev_v;
    CHEBYSHEV_W: POLYNOMIAL, [Tensor(0), Tensor(1)], [], 2, Float, chebyshev_w;
    CHEBYSHEV_W_N: POLYNOMIAL_NUMBER, [Tensor(0), Scalar(1)], [], 2, Float, chebyshev_w;
    CHEBYSHEV_W_X: POLYNOMIAL_PLACE, [Scalar(0), Tensor(1)], [], 2, Float, chebyshev_w;
    SHIFTED_T: POLYNOMIAL, [Tensor(0), Tensor(1)], [], 2, Float, shifted_t;
    SHIFTED_T_N: POLYNOMIAL_NUMBER, [Tensor(0), Scalar(1)], [], 2, Float, shifted_t;
    SHIFTED_T_X: POLYNOMIAL_PLACE, [Scalar(0), Tensor(1)], [], 2, Float, shifted_t;
    SHIFTED_U: POLYNOMIAL, [Tensor(0), Tensor(1)], [], 2, Float, shifted_u;
    SHIFTED_U_N: POLYNOMIAL_NUMBER, [Tensor(0), Scalar(1)], [], 2, Float, shifted_u;
    SHIFTED_U_X: POLYNOMIAL_PLACE, [Scalar(0), Tensor(1)], [], 2, Float, shifted_u;
    SHIFTED_V: POLYNOMIAL, [Tensor(0), Tensor(1)], [], 2, Float, shifted_v;
    SHIFTED_V_N: POLYNOMIAL_NUMBER, [Tensor(0), Scalar(1)], [], 2, Float, shifted_v;
    SHIFTED_V_X: POLYNOMIAL_PLACE, [Scalar(0), Tensor(1)], [], 2, Float, shifted_v;
    SHIFTED_W: POLYNOMIAL, [Tensor(0), Tensor(1)], [], 2, Float, shifted_w;
    SHIFTED_W_N: POLYNOMIAL_NUMBER, [Tensor(0), Scalar(1)], [], 2, Float, shifted_w;
    SHIFTED_W_X: POLYNOMIAL_PLACE, [Scalar(0), Tensor(1)], [], 2, Float, shifted_w;
    HERMITE_H: POLYNOMIAL, [Tensor(0), Tensor(1)], [], 2, Float, hermite_h;
    HERMITE_H_N: POLYNOMIAL_NUMBER, [Tensor(0), Scalar(1)], [], 2, Float, hermite_h;
    HERMITE_H_X: POLYNOMIAL_PLACE, [Scalar(0), Tensor(1)], [], 2, Float, hermite_h;
    HERMITE_HE: POLYNOMIAL, [Tensor(0), Tensor(1)], [], 2, Float, hermite_he;
    HERMITE_HE_N: POLYNOMIAL_NUMBER, [Tensor(0), Scalar(1)], [], 2, Float, hermite_he;
    HERMITE_HE_X: POLYNOMIAL_PLACE, [Scalar(0), Tensor(1)], [], 2, Float, hermite_he;
    LAGUERRE: POLYNOMIAL, [Tensor(0), Tensor(1)], [], 2, Float, laguerre;
    LAGUERRE_N: POLYNOMIAL_NUMBER, [Tensor(0), Scalar(1)], [], 2, Float, laguerre;
    LAGUERRE_X: POLYNOMIAL_PLACE, [Scalar(0), Tensor(1)], [], 2, Float, laguerre;
    LEGENDRE: POLYNOMIAL, [Tensor(0), Tensor(1)], [], 2, Float, legendre;
    LEGENDRE_N: POLYNOMIAL_NUMBER, [Tensor(0), Scalar(1)], [], 2, Float, legendre;
    LEGENDRE_X: POLYNOMIAL_PLACE, [Scalar(0), Tensor(1)], [], 2, Float, legendre;
}

kernels! {
    "aten::special_airy_ai.out" => AIRY_AI,
    "aten::special_bessel_j0.out" => BESSEL_J0,
    "aten::special_bessel_j1.out" => BESSEL_J1,
    "aten::special_bessel_y0.out" => BESSEL_Y0,
    "aten::special_bessel_y1.out" => BESSEL_Y1,
    "aten::digamma.out" => DIGAMMA,
    "aten::erfc.out" => ERFC,
    "aten::special_erfcx.out" => ERFCX,
    "aten::erfinv.out" => ERFINV,
    "aten::exp2.out" => EXP2,
    "aten::i0.out" => I0,
    "aten::special_i0e.out" => I0E,
    "aten::special_i1.out" => I1,
    "aten::special_i1e.out" => I1E,
    "aten::special_modified_bessel_i0.out" => I0,
    "aten::special_modified_bessel_i1.out" => I1,
    "aten::special_modified_bessel_k0.out" => K0,
    "aten::special_modified_bessel_k1.out" => K1,
    "aten::special_scaled_modified_bessel_k0.out" => K0E,
    "aten::special_scaled_modified_bessel_k1.out" => K1E,
    "aten::lgamma.out" => LGAMMA,
    "aten::special_ndtri.out" => NDTRI,
    "aten::special_spherical_bessel_j0.out" => SPHERICAL_J0,
    "aten::mvlgamma.out" => MVLGAMMA,
    "aten::polygamma.out" => POLYGAMMA,
    "aten::hypot.out" => HYPOT,
    "aten::igamma.out" => IGAMMA,
    "aten::igammac.out" => IGAMMAC,
    "aten::gcd.out" => GCD,
    "aten::lcm.out" => LCM,
    "aten::nextafter.out" => NEXTAFTER,
    "aten::special_zeta.out" => ZETA,
    "aten::special_zeta.self_scalar_out" => ZETA_SELF,
    "aten::special_zeta.other_scalar_out" => ZETA_OTHER,
    "aten::special_chebyshev_polynomial_t.out" => CHEBYSHEV_T,
    "aten::special_chebyshev_polynomial_t.n_scalar_out" => CHEBYSHEV_T_N,
    "aten::special_chebyshev_polynomial_t.x_scalar_out" => CHEBYSHEV_T_X,
    "aten::special_chebyshev_polynomial_u.out" => CHEBYSHEV_U,
    "aten::special_chebyshev_polynomial_u.n_scalar_out" => CHEBYSHEV_U_N,
    "aten::special_chebyshev_polynomial_u.x_scalar_out" => CHEBYSHEV_U_X,
    "aten::special_chebyshev_polynomial_v.out" => CHEBYSHEV_V,
    "aten::special_chebyshev_polynomial_v.n_scalar_out" => CHEBYSHEV_V_N,
    "aten::special_chebyshev_polynomial_v.x_scalar_out" => CHEBYSHEV_V_X,
    "aten::special_chebyshev_polynomial_w.out" => CHEBYSHEV_W,
    "aten::special_chebyshev_polynomial_w.n_scalar_out" => CHEBYSHEV_W_N,
    "aten::special_chebyshev_polynomial_w.x_scalar_out" => CHEBYSHEV_W_X,
    "aten::special_shifted_chebyshev_polynomial_t.out" => SHIFTED_T,
    "aten::special_shifted_chebyshev_polynomial_t.n_scalar_out" => SHIFTED_T_N,
    "aten::special_shifted_chebyshev_polynomial_t.x_scalar_out" => SHIFTED_T_X,
    "aten::special_shifted_chebyshev_polynomial_u.out" => SHIFTED_U,
    "aten::special_shifted_chebyshev_polynomial_u.n_scalar_out" => SHIFTED_U_N,
    "aten::special_shifted_chebyshev_polynomial_u.x_scalar_out" => SHIFTED_U_X,
    "aten::special_shifted_chebyshev_polynomial_v.out" => SHIFTED_V,
    "aten::special_shifted_chebyshev_polynomial_v.n_scalar_out" => SHIFTED_V_N,
    "aten::special_shifted_chebyshev_polynomial_v.x_scalar_out" => SHIFTED_V_X,
    "aten::special_shifted_chebyshev_polynomial_w.out" => SHIFTED_W,
    "aten::special_shifted_chebyshev_polynomial_w.n_scalar_out" => SHIFTED_W_N,
    "aten::special_shifted_chebyshev_polynomial_w.x_scalar_out" => SHIFTED_W_X,
    "aten::special_hermite_polynomial_h.out" => HERMITE_H,
    "aten::special_hermite_polynomial_h.n_scalar_out" => HERMITE_H_N,
    "aten::special_hermite_polynomial_h.x_scalar_out" => HERMITE_H_X,
    "aten::special_hermite_polynomial_he.out" => HERMITE_HE,
    "aten::special_hermite_polynomial_he.n_scalar_out" => HERMITE_HE_N,
    "aten::special_hermite_polynomial_he.x_scalar_out" => HERMITE_HE_X,
    "aten::special_laguerre_polynomial_l.out" => LAGUERRE,
    "aten::special_laguerre_polynomial_l.n_scalar_out" => LAGUERRE_N,
    "aten::special_laguerre_polynomial_l.x_scalar_out" => LAGUERRE_X,
    "aten::special_legendre_polynomial_p.out" => LEGENDRE,
    "aten::special_legendre_polynomial_p.n_scalar_out" => LEGENDRE_N,
    "aten::special_legendre_polynomial_p.x_scalar_out" => LEGENDRE_X;
}
