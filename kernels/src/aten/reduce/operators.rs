//! The reductions by name.

use edgepack_executor::kernel::{Alias, Kernel};

use super::{Over, Row, What, prepare};

/// A kernel for a row.
macro_rules! kernel {
    ($id:ident, $name:literal, $schema:literal, $row:expr) => {
        static $id: Kernel = Kernel {
            name: $name,
            schema: $schema,
            alias: Alias::Disjoint,
            prepare: |args| {
                static ROW: Row = $row;
                prepare(args, &ROW)
            },
        };
    };
}

const fn row(what: What, over: Over, keepdim: Option<usize>, out: usize) -> Row {
    Row { what, over, keepdim, out, second: None }
}

const fn with_second(what: What, over: Over, keepdim: Option<usize>, out: usize, second: usize) -> Row {
    Row { what, over, keepdim, out, second: Some(second) }
}

kernel!(
    SUM,
    "aten::sum.IntList_out",
    "(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    row(What::Sum, Over::List(1), Some(2), 4)
);
kernel!(
    MEAN,
    "aten::mean.out",
    "(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    row(What::Mean, Over::List(1), Some(2), 4)
);
kernel!(
    MEAN_ALL,
    "aten::mean.dtype_out",
    "(Tensor self, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    row(What::Mean, Over::Everything, None, 2)
);
kernel!(
    PROD,
    "aten::prod.int_out",
    "(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    row(What::Product, Over::One(1), Some(2), 4)
);
kernel!(
    PROD_ALL,
    "aten::prod.out",
    "(Tensor self, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    row(What::Product, Over::Everything, None, 2)
);
kernel!(
    ANY_ALL,
    "aten::any.all_out",
    "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    row(What::Any, Over::Everything, None, 1)
);
kernel!(
    ANY_DIMS,
    "aten::any.dims_out",
    "(Tensor self, int[]? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    row(What::Any, Over::ExactList(1), Some(2), 3)
);
kernel!(
    ANY,
    "aten::any.out",
    "(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    row(What::Any, Over::One(1), Some(2), 3)
);
kernel!(
    ALL_ALL,
    "aten::all.all_out",
    "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    row(What::All, Over::Everything, None, 1)
);
kernel!(
    ALL_DIMS,
    "aten::all.dims_out",
    "(Tensor self, int[]? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    row(What::All, Over::ExactList(1), Some(2), 3)
);
kernel!(
    ALL,
    "aten::all.out",
    "(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    row(What::All, Over::One(1), Some(2), 3)
);
kernel!(
    ARGMAX,
    "aten::argmax.out",
    "(Tensor self, int? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    row(What::ArgMax, Over::OneOrAll(1), Some(2), 3)
);
kernel!(
    ARGMIN,
    "aten::argmin.out",
    "(Tensor self, int? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    row(What::ArgMin, Over::OneOrAll(1), Some(2), 3)
);
kernel!(
    AMAX,
    "aten::amax.out",
    "(Tensor self, int[1] dim=[], bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    row(What::Max, Over::List(1), Some(2), 3)
);
kernel!(
    AMIN,
    "aten::amin.out",
    "(Tensor self, int[1] dim=[], bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    row(What::Min, Over::List(1), Some(2), 3)
);
kernel!(
    MAX_ALL,
    "aten::max.unary_out",
    "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    row(What::Max, Over::Everything, None, 1)
);
kernel!(
    MIN_ALL,
    "aten::min.unary_out",
    "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    row(What::Min, Over::Everything, None, 1)
);
kernel!(
    MAX_DIM,
    "aten::max.dim_max",
    "(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)",
    with_second(What::MaxWithPlace, Over::One(1), Some(2), 3, 4)
);
kernel!(
    MIN_DIM,
    "aten::min.dim_min",
    "(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) min, Tensor(b!) min_indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    with_second(What::MinWithPlace, Over::One(1), Some(2), 3, 4)
);
kernel!(
    VAR,
    "aten::var.out",
    "(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    row(What::VarianceUnbiased(2), Over::List(1), Some(3), 4)
);
kernel!(
    VAR_CORRECTION,
    "aten::var.correction_out",
    "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False, Tensor(a!) out) -> Tensor(a!)",
    row(What::Variance(2), Over::List(1), Some(3), 4)
);
kernel!(
    VAR_MEAN,
    "aten::var_mean.correction_out",
    "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))",
    with_second(What::Variance(2), Over::List(1), Some(3), 4, 5)
);

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[
    &SUM,
    &MEAN,
    &MEAN_ALL,
    &PROD,
    &PROD_ALL,
    &ANY_ALL,
    &ANY_DIMS,
    &ANY,
    &ALL_ALL,
    &ALL_DIMS,
    &ALL,
    &ARGMAX,
    &ARGMIN,
    &AMAX,
    &AMIN,
    &MAX_ALL,
    &MIN_ALL,
    &MAX_DIM,
    &MIN_DIM,
    &VAR,
    &VAR_CORRECTION,
    &VAR_MEAN,
];
