//! The measurements, one module each.

mod delegates;
mod edgetpu;
mod engines;
mod instructions;
mod language;
mod library;
mod lower;
pub mod memory;
mod models;
mod named;
mod operators;
mod reference;
mod serialize;
mod small;
mod suite;
mod values;
mod write;

use std::time::Duration;

use edgepack_executor::{Arena, Input, Method, Options};
use edgepack_format::FileKind;
use edgepack_format::limits::Limits;
use edgepack_format::pte::{FileExtent, ProgramRef};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorLayout, TensorView};
use edgepack_loader::{AlignedBytes, FileHead, Program, ValueMeta};

/// Name and function of every section.
pub const ALL: &[(&str, fn())] = &[
    ("values", values::run),
    ("small", small::run),
    ("instructions", instructions::run),
    ("named", named::run),
    ("models", models::run),
    ("memory", memory::run),
    ("operators", operators::run),
    ("write", write::run),
    ("edgetpu", edgetpu::run),
    ("library", library::run),
    ("suite", suite::run),
    ("engines", engines::run),
    ("language", language::run),
    ("serialize", serialize::run),
    ("lower", lower::run),
    ("delegates", delegates::run),
];

/// Sections that need the reference runtime.
pub const WITH_REFERENCE: [&str; 6] = ["suite", "engines", "language", "serialize", "lower", "delegates"];

/// Time that a table may take.
const BUDGET: Duration = Duration::from_secs(4);

/// The part of a file that is its flatbuffer, aligned as the loader aligns it.
pub(crate) fn head(bytes: &[u8]) -> AlignedBytes {
    let head = FileHead::of(FileKind::Program, bytes, extent(bytes));
    AlignedBytes::copy_of(&bytes[..head.len as usize]).expect("memory")
}

fn extent(bytes: &[u8]) -> FileExtent {
    FileExtent { len: bytes.len() as u64 }
}

fn parse(head: &[u8], extent: FileExtent) -> ProgramRef<'_> {
    ProgramRef::parse(head, extent, &Limits::DEFAULT).expect("a valid program")
}

/// Options with memory made beforehand, so that loading does not pay for zeroing it.
fn with_arenas(program: &Program) -> Options {
    let sizes = planned(program);
    let arenas = sizes.iter().enumerate().skip(1);
    let arenas = arenas.map(|(id, &size)| (id as u32, Arena::new(size as usize).expect("arenas fit memory")));
    Options { arenas: arenas.collect(), ..Options::default() }
}

/// Sizes of the memories that `forward` plans; the first is reserved.
fn planned(program: &Program) -> Vec<i64> {
    let view = program.view().expect("a valid program");
    let sizes = view.plan("forward").and_then(|plan| plan.non_const_buffer_sizes);
    sizes.iter().flat_map(|sizes| sizes.iter()).collect()
}

/// Inputs of the shapes that `forward` takes.
struct Inputs {
    tensors: Vec<(TensorLayout, Vec<u8>)>,
}

impl Inputs {
    fn of(program: &Program) -> Inputs {
        let meta = program.method_meta("forward").expect("the method is there");
        let tensors = meta.inputs.iter().filter_map(ValueMeta::tensor).map(|tensor| {
            let layout = &tensor.layout;
            let mut bytes = vec![0; layout.byte_len()];
            if layout.scalar_type() == ScalarType::FLOAT {
                for (index, out) in bytes.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                    // Any numbers of both signs will do, as long as none is subnormal.
                    *out = ((index.wrapping_mul(2_654_435_761) % 2000) as f32 / 1000.0 - 0.9995).to_le_bytes();
                }
            }
            (layout.clone(), bytes)
        });
        Inputs { tensors: tensors.collect() }
    }

    fn views(&self) -> Vec<Input<'_>> {
        let view = |layout, data| TensorView::new(layout, data).expect("data of a layout");
        self.tensors.iter().map(|(layout, data)| Input::Tensor(view(layout.clone(), data))).collect()
    }
}

fn run_once(method: &mut Method, inputs: &[Input<'_>]) {
    if let Err(error) = method.run(inputs) {
        panic!("{}: {error}", method.name());
    }
}
