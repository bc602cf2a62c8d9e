//! The payloads in the programs of the repository's corpus and, if `EDGEPACK_CORPUS` is set, of that one, with what their
//! programs say about them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use edgepack_format::extent::FileExtent;
use edgepack_format::limits::Limits;
use edgepack_format::ptd::{Accept, DataRef};
use edgepack_format::pte::{DataLocation, ExecutionPlan, InstructionArguments, KernelTypes, ProgramRef, Tensor};
use edgepack_format::xnnpack::verify::Argument;

/// Folders of the corpus with programs that have such payloads.
const FOLDERS: [&str; 3] = ["ops_xnnpack", "models", "llm"];

/// A payload of a program.
pub struct Found {
    /// The folder its program is in.
    pub folder: &'static str,
    /// The program, and which delegate of which method.
    pub name: String,
    /// Processed bytes of the delegate, header included.
    pub bytes: Vec<u8>,
    /// The tensors of each call of the delegate, with the number of their value; `None` for anything else.
    pub calls: Vec<Vec<Option<(u32, Tensor<'static>)>>>,
    /// Named data of the program and of its data files.
    pub named: BTreeMap<String, Vec<u8>>,
}

impl Found {
    /// The arguments of a call.
    pub fn arguments<T>(&self, call: usize, then: impl FnOnce(&[Argument<'_>]) -> T) -> T {
        let parts: Vec<_> = self.calls[call].iter().map(|argument| argument.as_ref().map(parts)).collect();
        let arguments: Vec<_> = parts
            .iter()
            .map(|part| match part {
                Some((value, scalar_type, sizes, dim_order)) => {
                    Argument::Tensor { value: *value, scalar_type: *scalar_type, sizes, dim_order }
                }
                None => Argument::Other,
            })
            .collect();
        then(&arguments)
    }
}

type Parts = (u32, edgepack_format::scalar::ScalarType, Vec<i32>, Vec<u8>);

fn parts((value, tensor): &(u32, Tensor<'static>)) -> Parts {
    let sizes: Vec<i32> = tensor.sizes.iter().flat_map(|sizes| sizes.iter()).collect();
    let order: Vec<u8> = tensor.dim_order.iter().flat_map(|order| order.iter()).collect();
    (*value, tensor.scalar_type, sizes, order)
}

/// The corpus that is named, if one is.
pub fn named_root() -> Option<PathBuf> {
    std::env::var_os("EDGEPACK_CORPUS").filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Every payload, in a fixed order.
pub fn payloads() -> Vec<Found> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/corpus/models");
    let mut folders = vec![("repository", ours)];
    folders.extend(named_root().into_iter().flat_map(|root| FOLDERS.map(|name| (name, root.join(name)))));
    let mut found = Vec::new();
    for (name, folder) in folders {
        let mut files: Vec<PathBuf> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "pte"))
            .collect();
        files.sort();
        files.iter().for_each(|path| program(name, path, &mut found));
    }
    found
}

fn program(folder: &'static str, path: &Path, found: &mut Vec<Found>) {
    let file = fs::read(path).expect("a program");
    let program = ProgramRef::parse(&file, FileExtent::of(&file), &Limits::DEFAULT);
    let program = program.unwrap_or_else(|findings| panic!("{}:\n{findings}", path.display()));
    let segment = |index: u32| {
        let range = program.segment_range(index).expect("a segment");
        file[range.start as usize..range.end as usize].to_vec()
    };
    let mut named = data_files(path);
    for entry in program.program().named_data.iter().flat_map(|rows| rows.iter()) {
        let entry = entry.expect("an entry");
        named.insert(entry.key.expect("a key").into_owned(), segment(entry.segment_index));
    }
    for plan in program.plans().iter() {
        let plan = plan.expect("a plan");
        for (index, delegate) in plan.delegates.iter().flat_map(|rows| rows.iter()).enumerate() {
            let delegate = delegate.expect("a delegate");
            if delegate.id.as_deref() != Some("XnnpackBackend") {
                continue;
            }
            let place = delegate.processed.expect("a payload");
            let bytes = match place.location {
                DataLocation::SEGMENT => segment(place.index),
                _ => {
                    let rows = program.program().backend_delegate_data.clone().expect("inline payloads");
                    rows.get(place.index as usize).expect("a payload").data.expect("bytes").0.into_owned()
                }
            };
            let method = plan.name.as_deref().unwrap_or_default();
            let name = format!("{}:{method}.{index}", path.file_stem().unwrap_or_default().to_string_lossy());
            found.push(Found { folder, name, bytes, calls: calls(&plan, index), named: named.clone() });
        }
    }
}

/// Data files that belong to a program: those whose names begin as its own.
fn data_files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned() + ".";
    let mut named = BTreeMap::new();
    for entry in fs::read_dir(path.parent().expect("a folder")).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !(name.starts_with(&stem) && name.ends_with(".ptd")) {
            continue;
        }
        let file = fs::read(entry.path()).expect("a data file");
        let data = DataRef::parse_as(&file, FileExtent::of(&file), &Limits::DEFAULT, Accept::ALL).expect("data");
        for key in data.keys() {
            let range = data.lookup(key).expect("a key").range;
            named.insert((*key).to_owned(), file[range.start as usize..range.end as usize].to_vec());
        }
    }
    named
}

fn calls(plan: &ExecutionPlan<'_>, delegate: usize) -> Vec<Vec<Option<(u32, Tensor<'static>)>>> {
    let values = plan.values.clone().unwrap_or_default();
    let mut calls = Vec::new();
    for chain in plan.chains.iter().flat_map(|rows| rows.iter()) {
        for instruction in chain.expect("a chain").instructions.iter().flat_map(|rows| rows.iter()) {
            let Some(InstructionArguments::DelegateCall(call)) = instruction.expect("an instruction").instr_args else {
                continue;
            };
            if call.delegate_index as usize != delegate {
                continue;
            }
            let argument = |index: i32| match values.get(index as usize).expect("a value").val {
                Some(KernelTypes::Tensor(tensor)) => {
                    let sizes = tensor.sizes.map(|sizes| sizes.into_owned());
                    let dim_order = tensor.dim_order.map(|order| order.into_owned());
                    let scalar_type = tensor.scalar_type;
                    Some((index as u32, Tensor { scalar_type, sizes, dim_order, ..Tensor::default() }))
                }
                _ => None,
            };
            calls.push(call.args.iter().flat_map(|args| args.iter()).map(argument).collect());
        }
    }
    calls
}
