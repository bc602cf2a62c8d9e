//! The reductions by name.

use edgepack_executor::kernel::{Alias, Kernel};

use super::{Operation, Over, Row, prepare};
use crate::schema::{kernel, position};

/// Kernels of rows: an operation, the argument that changes it, the dimensions folded (those of `dim`, or all), the output
/// and a second one.
macro_rules! kernels {
    ($($id:ident $name:literal: $operation:ident $(of $of:literal)?, $over:ident $(of $dim:literal)?, $out:literal $($second:literal)?;)*) => {
        $(static $id: Kernel = kernel($name, Alias::Disjoint, |args| {
            static ROW: Row = Row {
                operation: Operation::$operation $((position($name, $of)))?,
                over: Over::$over $((position($name, $dim)))?,
                keepdim: kernels!(@keepdim $name $($dim)?),
                out: position($name, $out),
                second: kernels!(@second $name $($second)?),
            };
            prepare(args, &ROW)
        });)*

        /// The operators of this family.
        pub static KERNELS: &[&Kernel] = &[$(&$id),*];
    };
    (@keepdim $name:literal) => { None };
    // Where dimensions are named, whether they stay is said, too.
    (@keepdim $name:literal $dim:literal) => { Some(position($name, "keepdim")) };
    (@second $name:literal) => { None };
    (@second $name:literal $second:literal) => { Some(position($name, $second)) };
}

kernels! {
    SUM "aten::sum.IntList_out": Sum, List of "dim", "out";
    MEAN "aten::mean.out": Mean, List of "dim", "out";
    MEAN_ALL "aten::mean.dtype_out": Mean, Everything, "out";
    PROD "aten::prod.int_out": Product, One of "dim", "out";
    PROD_ALL "aten::prod.out": Product, Everything, "out";
    ANY_ALL "aten::any.all_out": Any, Everything, "out";
    ANY_DIMS "aten::any.dims_out": Any, ExactList of "dim", "out";
    ANY "aten::any.out": Any, One of "dim", "out";
    ALL_ALL "aten::all.all_out": All, Everything, "out";
    ALL_DIMS "aten::all.dims_out": All, ExactList of "dim", "out";
    ALL "aten::all.out": All, One of "dim", "out";
    ARGMAX "aten::argmax.out": ArgMax, OneOrAll of "dim", "out";
    ARGMIN "aten::argmin.out": ArgMin, OneOrAll of "dim", "out";
    AMAX "aten::amax.out": Max, List of "dim", "out";
    AMIN "aten::amin.out": Min, List of "dim", "out";
    MAX_ALL "aten::max.unary_out": Max, Everything, "out";
    MIN_ALL "aten::min.unary_out": Min, Everything, "out";
    MAX_DIM "aten::max.dim_max": MaxWithPlace, One of "dim", "max" "max_values";
    MIN_DIM "aten::min.dim_min": MinWithPlace, One of "dim", "min" "min_indices";
    VAR "aten::var.out": VarianceUnbiased of "unbiased", List of "dim", "out";
    VAR_CORRECTION "aten::var.correction_out": Variance of "correction", List of "dim", "out";
    VAR_MEAN "aten::var_mean.correction_out": Variance of "correction", List of "dim", "out0" "out1";
}
