//! The operator library: portable, prim and quantised operators of ExecuTorch.
//!
//! Operators come in families with one engine each; an operator is a row of its family's table, never a copy of its
//! neighbour. [`registry`] is the list of all.
#![forbid(unsafe_code)]

mod aten;
mod check;
mod complex;
mod convert;
mod dims;
mod family;
mod fused;
mod indices;
mod instruction;
mod llama;
mod prelu;
mod prim;
mod promote;
mod quantized;
mod rewrite;
mod schema;
mod scratch;
mod spatial;

use edgepack_executor::Registry;

pub use aten::matmul::BMM_IN_ORDER;
pub use family::{FAMILIES, Family, Speed};
pub use fused::HARD_SWISH;
pub use prelu::PRELU;

/// Returns a registry of every operator of this crate, with the arithmetic of PyTorch.
pub fn registry() -> Registry {
    let tables = FAMILIES.iter().flat_map(|family| family.tables);
    rewrite::with_rewrites(tables.fold(Registry::new(), |registry, kernels| registry.with_kernels(kernels)))
}

/// Returns [`registry`] with the arithmetic of the stock ExecuTorch kernels where it differs from PyTorch's, for
/// comparing with outputs that ExecuTorch computed: `aten::elementwise::reference` lists the operators.
pub fn reference_registry() -> Registry {
    registry().with_kernels(aten::elementwise::reference::KERNELS)
}

#[cfg(test)]
mod tests {
    use edgepack_executor::call::{Arg, call};
    use edgepack_format::scalar::ScalarType;

    #[test]
    fn the_two_registries_differ_where_executorch_differs_from_pytorch() {
        let args = [Arg::tensor(&[2], &[-7i32, 7]), Arg::tensor(&[2], &[2i32, -2]), Arg::out(ScalarType::INT, &[2])];
        let remainder = |registry: super::Registry| {
            let operator = registry.find("aten::remainder.Tensor_out").unwrap();
            call(operator, &args).unwrap()[0].as_slice::<i32>().unwrap()
        };
        assert_eq!(remainder(super::registry()), [1, -1]);
        assert_eq!(remainder(super::reference_registry()), [-1, 1]);
    }
}
