//! Products of `f32` matrices whose sums are taken in one order, however small they are.
//!
//! Invariant: an element of the output starts with what is added to the product, and each product is fused into the sum in
//! the order of the rows of the right operand, where the machine can. So the sizes of a product do not change its numbers.

use super::blocks::Packed;
use super::fast::{Fast, multiply_blocks};
use super::plain::Product;
use super::{Gemm, Mat, Operand, Terms, single};
use crate::error::Error;
use crate::simd::run_wide;

/// `f32` as XNNPACK sums it: [`Fast`], but for products for which that takes other loops.
pub struct InOrder;

impl Gemm<f32> for InOrder {
    type Packed = Packed;

    fn pack(mat: Mat<'_, f32>) -> Result<Option<Packed>, Error> {
        Fast::pack(mat)
    }

    fn multiply(
        out: &mut [f32],
        lhs: Mat<'_, f32>,
        rhs: Operand<'_, f32, Packed>,
        terms: Terms<'_, f32>,
    ) -> Result<(), Error> {
        let Operand { mat, packed } = rhs;
        let out = &mut out[..lhs.rows * mat.cols];
        if let Some(packed) = packed {
            packed.expect(&mat)?;
            multiply_blocks(out, lhs, packed, terms);
        } else if mat.col_stride == 1 && Fast::is_small(lhs.rows, lhs.cols, mat.cols) {
            single::few_times_rows(out, lhs, mat, terms);
        } else if mat.col_stride == 1 && lhs.rows == 1 {
            single::times_rows(out, lhs, mat, terms);
        } else if mat.rows == 0 {
            run_wide(Product { out, lhs, rhs: mat, terms });
        } else {
            multiply_blocks(out, lhs, &mat, terms);
        }
        Ok(())
    }
}
