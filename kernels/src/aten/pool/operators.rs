//! The pooling operators by name.

use edgepack_executor::kernel::{Alias, Kernel};

use super::backward::MAX_2D_BACKWARD;
use super::{Row, prepare};
use crate::schema::kernel;

macro_rules! kernels {
    ($($id:ident: $name:literal $row:ident $rank:literal;)*) => {
        $(pub static $id: Kernel = kernel($name, Alias::Disjoint, |args| {
            static ROW: Row = Row::$row($name, $rank);
            prepare(args, &ROW)
        });)*

        /// The operators of this family.
        pub static KERNELS: &[&Kernel] = &[$(&$id,)* &MAX_2D_BACKWARD];
    };
}

kernels! {
    MAX_1D: "aten::max_pool1d_with_indices.out" max 1;
    MAX_2D: "aten::max_pool2d_with_indices.out" max 2;
    MAX_3D: "aten::max_pool3d_with_indices.out" max 3;
    AVG_2D: "aten::avg_pool2d.out" average 2;
    AVG_3D: "aten::avg_pool3d.out" average 3;
    ADAPTIVE_MAX_2D: "aten::adaptive_max_pool2d.out" adaptive_max 2;
    ADAPTIVE_MAX_3D: "aten::adaptive_max_pool3d.out" adaptive_max 3;
    ADAPTIVE_2D: "aten::_adaptive_avg_pool2d.out" adaptive_average 2;
    ADAPTIVE_3D: "aten::_adaptive_avg_pool3d.out" adaptive_average 3;
}
