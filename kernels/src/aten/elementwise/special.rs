//! Special functions, element by element.

use super::{kernels, specs};
use edgepack_compute::pointwise::special::*;

specs! {
    AIRY_AI: "aten::special_airy_ai.out", [Tensor("x")], [], Float, airy_ai;
    BESSEL_J0: "aten::special_bessel_j0.out", [Tensor("self")], [], Float, bessel_j0;
    BESSEL_J1: "aten::special_bessel_j1.out", [Tensor("self")], [], Float, bessel_j1;
    BESSEL_Y0: "aten::special_bessel_y0.out", [Tensor("self")], [], Float, bessel_y0;
    BESSEL_Y1: "aten::special_bessel_y1.out", [Tensor("self")], [], Float, bessel_y1;
    DIGAMMA: "aten::digamma.out", [Tensor("self")], [], Float, digamma;
    ERFC: "aten::erfc.out", [Tensor("self")], [], Float, erfc;
    ERFCX: "aten::special_erfcx.out", [Tensor("self")], [], Float, erfcx;
    ERFINV: "aten::erfinv.out", [Tensor("self")], [], Float, erfinv;
    EXP2: "aten::exp2.out", [Tensor("self")], [], Float, exp2;
    I0: "aten::i0.out", [Tensor("self")], [], Float, i0;
    I0E: "aten::special_i0e.out", [Tensor("self")], [], Float, i0e;
    I1: "aten::special_i1.out", [Tensor("self")], [], Float, i1;
    I1E: "aten::special_i1e.out", [Tensor("self")], [], Float, i1e;
    K0: "aten::special_modified_bessel_k0.out", [Tensor("self")], [], Float, k0;
    K1: "aten::special_modified_bessel_k1.out", [Tensor("self")], [], Float, k1;
    K0E: "aten::special_scaled_modified_bessel_k0.out", [Tensor("x")], [], Float, k0e;
    K1E: "aten::special_scaled_modified_bessel_k1.out", [Tensor("x")], [], Float, k1e;
    LGAMMA: "aten::lgamma.out", [Tensor("self")], [], Float, lgamma;
    NDTRI: "aten::special_ndtri.out", [Tensor("self")], [], Float, ndtri;
    SPHERICAL_J0: "aten::special_spherical_bessel_j0.out", [Tensor("x")], [], Float, spherical_j0;
    MVLGAMMA: "aten::mvlgamma.out", [Tensor("self")], ["p"], Float, mvlgamma;
    POLYGAMMA: "aten::polygamma.out", [Tensor("self")], ["n"], Float, polygamma;
    HYPOT: "aten::hypot.out", [Tensor("self"), Tensor("other")], [], Float, hypot;
    IGAMMA: "aten::igamma.out", [Tensor("self"), Tensor("other")], [], Float, igamma;
    IGAMMAC: "aten::igammac.out", [Tensor("self"), Tensor("other")], [], Float, igammac;
    GCD: "aten::gcd.out", [Tensor("self"), Tensor("other")], [], Promote, gcd;
    LCM: "aten::lcm.out", [Tensor("self"), Tensor("other")], [], Promote, lcm;
    NEXTAFTER: "aten::nextafter.out", [Tensor("self"), Tensor("other")], [], Promote, nextafter;
    ZETA: "aten::special_zeta.out", [Tensor("self"), Tensor("other")], [], Float, zeta;
    ZETA_SELF: "aten::special_zeta.self_scalar_out", [Scalar("self"), Tensor("other")], [], Float, zeta;
    ZETA_OTHER: "aten::special_zeta.other_scalar_out", [Tensor("self"), Scalar("other")], [], Float, zeta;
    CHEBYSHEV_T: "aten::special_chebyshev_polynomial_t.out", [Tensor("x"), Tensor("n")], [], Float, chebyshev_t;
    CHEBYSHEV_T_N: "aten::special_chebyshev_polynomial_t.n_scalar_out", [Tensor("x"), Scalar("n")], [], Float, chebyshev_t;
    CHEBYSHEV_T_X: "aten::special_chebyshev_polynomial_t.x_scalar_out", [Scalar("x"), Tensor("n")], [], Float, chebyshev_t;
    CHEBYSHEV_U: "aten::special_chebyshev_polynomial_u.out", [Tensor("x"), Tensor("n")], [], Float, chebyshev_u;
    CHEBYSHEV_U_N: "aten::special_chebyshev_polynomial_u.n_scalar_out", [Tensor("x"), Scalar("n")], [], Float, chebyshev_u;
    CHEBYSHEV_U_X: "aten::special_chebyshev_polynomial_u.x_scalar_out", [Scalar("x"), Tensor("n")], [], Float, chebyshev_u;
    CHEBYSHEV_V: "aten::special_chebyshev_polynomial_v.out", [Tensor("x"), Tensor("n")], [], Float, chebyshev_v;
    CHEBYSHEV_V_N: "aten::special_chebyshev_polynomial_v.n_scalar_out", [Tensor("x"), Scalar("n")], [], Float, chebyshev_v;
    CHEBYSHEV_V_X: "aten::special_chebyshev_polynomial_v.x_scalar_out", [Scalar("x"), Tensor("n")], [], Float, chebyshev_v;
    CHEBYSHEV_W: "aten::special_chebyshev_polynomial_w.out", [Tensor("x"), Tensor("n")], [], Float, chebyshev_w;
    CHEBYSHEV_W_N: "aten::special_chebyshev_polynomial_w.n_scalar_out", [Tensor("x"), Scalar("n")], [], Float, chebyshev_w;
    CHEBYSHEV_W_X: "aten::special_chebyshev_polynomial_w.x_scalar_out", [Scalar("x"), Tensor("n")], [], Float, chebyshev_w;
    SHIFTED_T: "aten::special_shifted_chebyshev_polynomial_t.out", [Tensor("x"), Tensor("n")], [], Float, shifted_t;
    SHIFTED_T_N: "aten::special_shifted_chebyshev_polynomial_t.n_scalar_out", [Tensor("x"), Scalar("n")], [], Float, shifted_t;
    SHIFTED_T_X: "aten::special_shifted_chebyshev_polynomial_t.x_scalar_out", [Scalar("x"), Tensor("n")], [], Float, shifted_t;
    SHIFTED_U: "aten::special_shifted_chebyshev_polynomial_u.out", [Tensor("x"), Tensor("n")], [], Float, shifted_u;
    SHIFTED_U_N: "aten::special_shifted_chebyshev_polynomial_u.n_scalar_out", [Tensor("x"), Scalar("n")], [], Float, shifted_u;
    SHIFTED_U_X: "aten::special_shifted_chebyshev_polynomial_u.x_scalar_out", [Scalar("x"), Tensor("n")], [], Float, shifted_u;
    SHIFTED_V: "aten::special_shifted_chebyshev_polynomial_v.out", [Tensor("x"), Tensor("n")], [], Float, shifted_v;
    SHIFTED_V_N: "aten::special_shifted_chebyshev_polynomial_v.n_scalar_out", [Tensor("x"), Scalar("n")], [], Float, shifted_v;
    SHIFTED_V_X: "aten::special_shifted_chebyshev_polynomial_v.x_scalar_out", [Scalar("x"), Tensor("n")], [], Float, shifted_v;
    SHIFTED_W: "aten::special_shifted_chebyshev_polynomial_w.out", [Tensor("x"), Tensor("n")], [], Float, shifted_w;
    SHIFTED_W_N: "aten::special_shifted_chebyshev_polynomial_w.n_scalar_out", [Tensor("x"), Scalar("n")], [], Float, shifted_w;
    SHIFTED_W_X: "aten::special_shifted_chebyshev_polynomial_w.x_scalar_out", [Scalar("x"), Tensor("n")], [], Float, shifted_w;
    HERMITE_H: "aten::special_hermite_polynomial_h.out", [Tensor("x"), Tensor("n")], [], Float, hermite_h;
    HERMITE_H_N: "aten::special_hermite_polynomial_h.n_scalar_out", [Tensor("x"), Scalar("n")], [], Float, hermite_h;
    HERMITE_H_X: "aten::special_hermite_polynomial_h.x_scalar_out", [Scalar("x"), Tensor("n")], [], Float, hermite_h;
    HERMITE_HE: "aten::special_hermite_polynomial_he.out", [Tensor("x"), Tensor("n")], [], Float, hermite_he;
    HERMITE_HE_N: "aten::special_hermite_polynomial_he.n_scalar_out", [Tensor("x"), Scalar("n")], [], Float, hermite_he;
    HERMITE_HE_X: "aten::special_hermite_polynomial_he.x_scalar_out", [Scalar("x"), Tensor("n")], [], Float, hermite_he;
    LAGUERRE: "aten::special_laguerre_polynomial_l.out", [Tensor("x"), Tensor("n")], [], Float, laguerre;
    LAGUERRE_N: "aten::special_laguerre_polynomial_l.n_scalar_out", [Tensor("x"), Scalar("n")], [], Float, laguerre;
    LAGUERRE_X: "aten::special_laguerre_polynomial_l.x_scalar_out", [Scalar("x"), Tensor("n")], [], Float, laguerre;
    LEGENDRE: "aten::special_legendre_polynomial_p.out", [Tensor("x"), Tensor("n")], [], Float, legendre;
    LEGENDRE_N: "aten::special_legendre_polynomial_p.n_scalar_out", [Tensor("x"), Scalar("n")], [], Float, legendre;
    LEGENDRE_X: "aten::special_legendre_polynomial_p.x_scalar_out", [Scalar("x"), Tensor("n")], [], Float, legendre;
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
