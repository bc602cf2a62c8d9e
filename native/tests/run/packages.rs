//! Packages made here: a module of one call, with sources or objects of our own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use edgepack_builder::mlf::{GraphBuilder, LibraryParts};
use edgepack_format::mlf::{DataType, Memory, Module, Targets};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorBuf, TensorLayout};
use edgepack_loader::mlf::{Library, LibraryModule};
use edgepack_native::Options;

/// Code that a package has.
pub enum Code<'c> {
    /// C, compiled when the package is run.
    Source(&'c str),
    /// C, compiled here: the package has the object.
    Object(&'c str),
    /// Bytes that a package has as its object.
    Bytes(&'c [u8]),
}

/// Start of the code of packages, which uses no header of ours.
pub const START: &str = r#"
#include <stddef.h>
#include <stdint.h>
#include <string.h>
typedef struct { void* data; int32_t device[2]; int32_t ndim; uint8_t type[4]; int64_t* shape; int64_t* strides; uint64_t offset; } Tensor;
typedef union { int64_t number; void* handle; } Value;
#define X(args) ((float*)((Tensor*)((Value*)(args))[0].handle)->data)
#define Y(args) ((float*)((Tensor*)((Value*)(args))[1].handle)->data)
#define PACKED(name) int32_t name(void* args, int32_t* codes, int32_t count, void* out, int32_t* out_code, void* resource)
"#;

/// Returns whether there is a C compiler; tests that need one say that they were skipped.
pub fn has_compiler() -> bool {
    let found = Command::new("cc").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        // Written past what the harness keeps of tests that pass.
        writeln!(std::io::stderr(), "skipped: there is no C compiler").expect("standard error");
    }
    found
}

/// A folder of libraries that goes away with the test.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn options(&self) -> Options {
        let mut options = Options::default();
        options.cache = Some(self.0.path().join("cache"));
        // SAFETY: code of these tests, run on four floats each, as it expects.
        unsafe { options.allow_native_code() }
    }

    fn object(&self, source: &str) -> Vec<u8> {
        let (from, to): (PathBuf, PathBuf) = (self.path().join("code.c"), self.path().join("code.o"));
        std::fs::write(&from, format!("{START}{source}")).unwrap();
        let status = Command::new("cc").args(["-O1", "-fPIC", "-w", "-c"]).arg(&from).arg("-o").arg(&to).status();
        assert!(status.unwrap().success());
        std::fs::read(to).unwrap()
    }

    /// A package of a graph that calls `tvmgen_m_f` on four floats.
    pub fn package(&self, code: Code<'_>) -> Library {
        let float32: DataType = "float32".parse().unwrap();
        let mut graph = GraphBuilder::new();
        let x = graph.argument("x", float32, &[4]);
        let y = graph.call("tvmgen_m_f", &[x], &[(float32, &[4])])[0];
        graph.output(y);
        let module = Module {
            name: "m".into(),
            export_datetime: "2024-01-01 00:00:00Z".into(),
            executors: vec!["graph".into()],
            target: Targets::List(vec!["c".into()]),
            memory: Memory { main: Some(Vec::new()), operators: Some(Vec::new()), ..Memory::default() },
            ..Module::default()
        };
        let mut parts = LibraryParts::new(7);
        parts.graph_module(module, &graph.finish().unwrap(), &[], None).unwrap();
        match code {
            Code::Source(text) => parts.code("m", "host", "c", format!("{START}{text}").into_bytes()),
            Code::Object(text) => parts.code("m", "host", "o", self.object(text)),
            Code::Bytes(bytes) => parts.code("m", "host", "o", bytes.to_vec()),
        };
        Library::from_bytes(parts.finish().unwrap()).unwrap()
    }
}

/// The module of a package.
pub fn module(library: &Library) -> LibraryModule {
    library.module(None).unwrap()
}

pub fn input() -> TensorBuf {
    let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[4]).unwrap();
    TensorBuf::from_bytes(layout, [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_le_bytes()).collect())
        .unwrap()
}

pub fn floats(tensor: &TensorBuf) -> Vec<f32> {
    tensor.data().chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}
