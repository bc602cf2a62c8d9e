//! The pooling operators by name.

use edgepack_executor::kernel::{Alias, Kernel};

use super::backward::MAX_2D_BACKWARD;
use super::{Row, What, prepare};

macro_rules! kernels {
    ($($id:ident: $what:ident $rank:literal, $name:literal, $schema:literal;)*) => {
        $(static $id: Kernel = Kernel {
            name: $name,
            schema: $schema,
            alias: Alias::Disjoint,
            prepare: |args| prepare(args, &Row { what: What::$what, rank: $rank }),
        };)*

        /// The operators of this family.
        pub static KERNELS: &[&Kernel] = &[$(&$id,)* &MAX_2D_BACKWARD];
    };
}

kernels! {
    MAX_1D: Max 1, "aten::max_pool1d_with_indices.out", "(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False, *, Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))";
    MAX_2D: Max 2, "aten::max_pool2d_with_indices.out", "(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False, *, Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))";
    MAX_3D: Max 3, "aten::max_pool3d_with_indices.out", "(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False, *, Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))";
    AVG_2D: Average 2, "aten::avg_pool2d.out", "(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None, *, Tensor(a!) out) -> Tensor(a!)";
    AVG_3D: Average 3, "aten::avg_pool3d.out", "(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None, *, Tensor(a!) out) -> Tensor(a!)";
    ADAPTIVE_MAX_2D: AdaptiveMax 2, "aten::adaptive_max_pool2d.out", "(Tensor self, int[2] output_size, *, Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))";
    ADAPTIVE_MAX_3D: AdaptiveMax 3, "aten::adaptive_max_pool3d.out", "(Tensor self, int[3] output_size, *, Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))";
    ADAPTIVE_2D: Adaptive 2, "aten::_adaptive_avg_pool2d.out", "(Tensor self, SymInt[2] output_size, *, Tensor(a!) out) -> Tensor(a!)";
    ADAPTIVE_3D: Adaptive 3, "aten::_adaptive_avg_pool3d.out", "(Tensor self, SymInt[3] output_size, *, Tensor(a!) out) -> Tensor(a!)";
}
