//! Files of a package, and of one module of it.

use alloc::vec::Vec;

use super::graph::Graph;
use super::params::Params;

/// A file of a package. Paths are relative, without `./`, and unique.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Member<'a> {
    /// Path in the archive.
    pub path: &'a str,
    /// Start of the bytes in the archive.
    pub at: u64,
    /// Content of the file.
    pub bytes: &'a [u8],
}

/// The files of a module.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ModuleFiles<'a> {
    /// Graph of a module that the graph executor runs; absent otherwise, and if it cannot be read.
    pub graph: Option<Graph>,
    /// Constants of a model, by name; absent for a single operator, and if they cannot be read.
    pub params: Option<Params<'a>>,
    /// The model before it was compiled.
    pub relay: Option<&'a str>,
    /// C and C++.
    pub sources: Vec<Member<'a>>,
    /// Compiled code.
    pub objects: Vec<Member<'a>>,
    /// Headers.
    pub headers: Vec<Member<'a>>,
}
