//! The families of operators: which tables make up the library, and how fast each runs.
//!
//! Invariant: every operator of the library is in the table of one family.

use edgepack_executor::kernel::Kernel;

use crate::aten::{
    algebra, antialias, conv, distance, elementwise, embedding_bag, fft, grid, matmul, median, movement, norm, pool,
    random, reduce, scan, search, softmax, sort, upsample,
};
use crate::{llama, prim, quantized};

/// Kind of work an operator spends its time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speed {
    /// See [`Speed::meaning`], as for all.
    Product,
    /// Loops over contiguous memory.
    Vector,
    /// Copies of memory.
    Copy,
    /// Element by element.
    Element,
    /// On numbers alone.
    Number,
}

impl Speed {
    /// Every class, fastest work first.
    pub const ALL: [Speed; 5] = [Speed::Product, Speed::Vector, Speed::Copy, Speed::Element, Speed::Number];

    /// Returns the class as one word.
    pub fn name(self) -> &'static str {
        match self {
            Speed::Product => "product",
            Speed::Vector => "vector",
            Speed::Copy => "copy",
            Speed::Element => "element",
            Speed::Number => "number",
        }
    }

    /// Returns a description of the class as one sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Speed::Product => {
                "floats up to 32 bits are computed as packed products of matrices, on several threads; other types in plain loops"
            }
            Speed::Vector => {
                "loops over contiguous memory in vector instructions where inputs and outputs are laid out alike"
            }
            Speed::Copy => "moves memory in runs as long as the shapes allow",
            Speed::Element => "computes element by element",
            Speed::Number => "works on numbers or sizes, no tensor is read as a whole",
        }
    }
}

/// Operators with one engine.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Name of the family.
    pub name: &'static str,
    /// Kind of work its operators spend their time on.
    pub speed: Speed,
    /// Tables of its operators.
    pub tables: &'static [&'static [&'static Kernel]],
}

const fn family(name: &'static str, speed: Speed, tables: &'static [&'static [&'static Kernel]]) -> Family {
    Family { name, speed, tables }
}

/// The families of this crate.
pub static FAMILIES: &[Family] = &[
    family("element-wise", Speed::Vector, elementwise::TABLES),
    family("movement", Speed::Copy, movement::TABLES),
    family("reductions", Speed::Vector, &[reduce::KERNELS]),
    family("scans", Speed::Element, &[scan::KERNELS]),
    family("matrix products", Speed::Product, &[matmul::KERNELS]),
    family("linear algebra", Speed::Element, &[algebra::KERNELS]),
    family("convolution", Speed::Product, &[conv::KERNELS]),
    family("pooling", Speed::Vector, &[pool::KERNELS]),
    family("norms", Speed::Vector, &[norm::KERNELS]),
    family("softmax", Speed::Vector, &[softmax::KERNELS]),
    family("sorting", Speed::Element, &[sort::KERNELS]),
    family("searching", Speed::Element, &[search::KERNELS]),
    family("median", Speed::Element, &[median::KERNELS]),
    family("embedding bags", Speed::Element, &[embedding_bag::KERNELS]),
    family("distances", Speed::Element, &[distance::KERNELS]),
    family("upsampling", Speed::Element, &[upsample::KERNELS]),
    family("antialiased upsampling", Speed::Element, &[antialias::KERNELS]),
    family("grid sampling", Speed::Element, &[grid::KERNELS]),
    family("Fourier transforms", Speed::Element, &[fft::KERNELS]),
    family("random", Speed::Element, &[random::KERNELS]),
    family("quantised", Speed::Vector, quantized::TABLES),
    family("language models", Speed::Product, &[llama::KERNELS]),
    family("numbers and sizes", Speed::Number, prim::TABLES),
];
