//! Files taken apart and put together again: every program and data file of the corpora comes back with every field and
//! byte, constants move out and in without a trace, and nothing that is not a dump is taken for one.
//!
//! `EDGEPACK_CORPUS` names a larger corpus of the same layout.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use edgepack::edit::{
    self, Blobs, DiffOptions, Error, Glob, NewTensor, Opened, Package, Root, SplitOptions, diff, from_safetensors,
    join, patch, split, write_safetensors,
};
use edgepack::format::extent::FileExtent;
use edgepack::format::limits::Limits;
use edgepack::format::ptd::{self, Accept};
use edgepack::format::pte;
use edgepack::format::row::Rows;
use edgepack::format::scalar::ScalarType;
use edgepack::format::tensor::{TensorLayout, TensorView};
use edgepack::loader::{DataFile, MemorySource, NamedDataMap, Program};
use edgepack_builder::args;
use edgepack_builder::plan::{ReplanOptions, Strategy, replan};
use edgepack_builder::pte::{ProgramBuilder, TensorSpec};
use edgepack_cli::cases::{from_safetensors as recorded_runs, registry_for};
use edgepack_cli::compare::Tolerance;
use edgepack_cli::formats::pte::replay;
use edgepack_executor::{LoadError, Method, Options, Output};
use edgepack_tests::files;
use edgepack_tests::programs::{PlainInputs, models};

const EXACT: DiffOptions = DiffOptions { rtol: 0.0, atol: 0.0, exact: true };
const CONTENT: DiffOptions = DiffOptions { rtol: 0.0, atol: 0.0, exact: false };

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus").join(name)
}

fn reopened(bytes: Vec<u8>) -> Opened {
    Opened::from_bytes(bytes).unwrap()
}

#[track_caller]
fn same(a: &Package<'_>, b: &Package<'_>, options: &DiffOptions, what: &Path) {
    let found = diff(a, b, options).unwrap();
    assert!(found.is_empty(), "{}: {found:#?}", what.display());
}

#[test]
fn every_file_comes_back_through_json() {
    let (mut count, mut identical) = (0, 0);
    for path in files(&["pte", "ptd", "bpte"]) {
        let file = Opened::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let package = file.package().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let json = edit::dump(&package).unwrap();
        let built = edit::build(&json).unwrap();
        same(&package, &built, &EXACT, &path);
        let bytes = built.to_bytes().unwrap();
        assert_eq!(package.to_bytes().unwrap(), bytes, "{}", path.display());
        assert_eq!(built.file_len().unwrap(), bytes.len() as u64);
        identical += usize::from(bytes == fs::read(&path).unwrap());

        let again = reopened(bytes.clone());
        let again = again.package().unwrap();
        same(&package, &again, &EXACT, &path);
        assert_eq!(edit::build(&edit::dump(&again).unwrap()).unwrap().to_bytes().unwrap(), bytes, "{}", path.display());
        count += 1;
    }
    println!("{count} files through JSON, {identical} byte for byte");
    assert!(count > 90, "only {count} files");
}

/// A file of the builder comes back byte for byte, whatever its alignments.
#[test]
fn files_of_the_builder_come_back_byte_for_byte() {
    use edgepack::builder::raw::{self, Options};
    use edgepack::format::pte::{BackendDelegateInlineData, Buffer};
    use edgepack::format::row::Blob;
    for (inline, segment) in [(16, 128), (64, 128), (16, 4096), (4096, 4096), (128, 16), (32, 48), (16, 1)] {
        for lens in [&[][..], &[5, 17, 0], &[64, 4096], &[1000]] {
            for segments in [&[][..], &[&b"weights"[..]], &[&b""[..]], &[&[1; 200][..], b"", b"two"]] {
                let options = Options::DEFAULT.data_alignment(inline).segment_alignment(segment);
                let blob = |len: &usize| Some(Blob(vec![*len as u8; *len].into()));
                let program = pte::Program {
                    constant_buffer: Some(
                        lens.iter().map(|len| Buffer { storage: blob(len) }).collect::<Vec<_>>().into(),
                    ),
                    backend_delegate_data: Some(vec![BackendDelegateInlineData { data: blob(&7) }].into()),
                    segments: Some(raw::segments(segments, &options).unwrap().into()),
                    ..pte::Program::default()
                };
                let bytes = raw::program(&program, segments, &options).unwrap();
                let file = reopened(bytes.clone());
                let package = file.package().unwrap();
                assert!(package.to_bytes().unwrap() == bytes, "{inline} {segment} {lens:?} {segments:?}");
                let json = edit::dump(&package).unwrap();
                assert!(edit::build(&json).unwrap().to_bytes().unwrap() == bytes, "{inline} {segment} {lens:?}");
            }
        }
    }
}

#[test]
fn bytes_can_be_files_of_a_folder() {
    let folder = env::temp_dir().join(format!("edgepack-dump-{}", std::process::id()));
    for name in ["models/mlp_portable.pte", "bundled/mlp_two_cases.bpte", "data/tensors.ptd"] {
        fs::create_dir_all(&folder).unwrap();
        let file = Opened::open(model(name)).unwrap();
        let package = file.package().unwrap();
        let json = edit::dump_with(&package, Blobs::Folder(&folder)).unwrap();
        assert!(matches!(edit::build(&json), Err(Error::Document(_))), "{name}");
        let built = edit::build_with(&json, Some(&folder)).unwrap();
        same(&package, &built, &EXACT, Path::new(name));
        assert!(fs::read_dir(&folder).unwrap().count() > 0, "{name}");
        drop(built);
        fs::remove_dir_all(&folder).unwrap();
        assert!(edit::build_with(&json, Some(&folder)).is_err());
    }
}

#[test]
fn documents_that_are_no_dumps_are_refused() {
    let layout = r#""layout": {"header": null, "segment_alignment": 128, "data_alignment": 16}"#;
    let cases = [
        ("", "EOF"),
        ("{}", "schema"),
        (r#"{"schema": "edgepack/dump/2", "program": {}}"#, "edgepack/dump/2"),
        (r#"{"schema": "edgepack/dump/1"}"#, "exactly one"),
        (r#"{"schema": "edgepack/dump/1", "program": {}, "data": {}}"#, "exactly one"),
        (r#"{"schema": "edgepack/dump/1", "program": {"verison": 1}}"#, "verison"),
        (r#"{"schema": "edgepack/dump/1", "program": {}, "segments": ["???"]}"#, "segments"),
        (r#"{"schema": "edgepack/dump/1", "program": {}, "segments": [{"file": "../x"}]}"#, "plain name"),
        (r#"{"schema": "edgepack/dump/1", "program": {}, "files": {"program": "x"}}"#, "where no data is"),
    ];
    for (json, want) in cases {
        let error = edit::build_with(json, Some(Path::new("."))).unwrap_err().to_string();
        assert!(error.contains(want) || want == "segments", "{json}: {error}");
    }
    assert!(edit::build(&"[".repeat(100_000)).is_err());

    // Documents that can be said but not written: each is an error when it is written, not before.
    let program = |program: &str, segments: &str| {
        format!(r#"{{"schema": "edgepack/dump/1", {layout}, "program": {program}, "segments": {segments}}}"#)
    };
    for (json, want) in [
        (program(r#"{"segments": []}"#, r#"["AAAA"]"#), "0 rows for 1 contents"),
        (program(r#"{"segments": [{"offset": 0, "size": 3}]}"#, "[]"), "1 rows for 0 contents"),
        (program(r#"{"segments": [{"offset": 9007199254740992, "size": 3}]}"#, r#"["AAAA"]"#), "are allowed"),
        (
            program(r#"{"segments": [{"offset": 0, "size": 3}, {"offset": 2, "size": 3}]}"#, r#"["AAAA", "AAAA"]"#),
            "inside the one before",
        ),
        (program("{}", "[]").replace("128", "0"), "alignment"),
        (program("{}", "[]").replace("16}", "17}"), "alignment"),
        (program("{}", "[]").replace("16}", "18446744073709551615}"), "alignment"),
    ] {
        let error = edit::build(&json).unwrap().to_bytes().unwrap_err().to_string();
        assert!(error.contains(want), "{json}: {error}");
    }
}

fn verified(bytes: &[u8], what: &Path) {
    let verdict = pte::verify::verify_all(bytes, FileExtent::of(bytes), &Limits::default());
    assert!(!verdict.findings.has_errors(), "{}: {}", what.display(), verdict.findings);
}

/// Replays the recorded runs of a program; whether they agree, or `None` if it cannot run here.
fn runs(program: &[u8], data: &[Arc<dyn NamedDataMap>], cases: &Path) -> Option<Vec<String>> {
    let program = Program::from_bytes(program).unwrap();
    let recording = fs::read(cases).unwrap();
    let recorded = recorded_runs(&recording).unwrap();
    let options = Options { data: data.to_vec(), ..Options::default() };
    let mut wrong = Vec::new();
    for report in replay(&program, &recorded, &registry_for(&recording), &options, Tolerance::default()) {
        match &report.failure {
            Some(edgepack_cli::cases::ReplayError::Load(LoadError::Missing(_))) => return None,
            Some(error) => wrong.push(error.to_string()),
            None if !report.passes() => wrong.push(format!("{} run {} differs", report.method, report.run)),
            None => {}
        }
    }
    Some(wrong)
}

/// The data files of a program: `NAME.*.ptd` next to `NAME.pte`.
fn siblings(path: &Path) -> Vec<PathBuf> {
    let stem = format!("{}.", path.file_stem().unwrap().to_string_lossy());
    let mut found: Vec<PathBuf> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptd"))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&stem)))
        .collect();
    found.sort();
    found
}

#[test]
fn constants_move_out_and_in() {
    let (mut moved, mut ran, mut not_run, mut unrecorded, mut keys) = (0, 0, 0, 0, 0);
    for path in files(&["pte"]) {
        let file = Opened::open(&path).unwrap();
        let package = file.package().unwrap();
        let options = SplitOptions { named: true, ..SplitOptions::default() };
        let parts = split(package.clone(), &options).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if parts.keys.is_empty() {
            same(&package, &parts.program, &CONTENT, &path);
            continue;
        }
        keys += parts.keys.len();
        let (program, data) = (parts.program.to_bytes().unwrap(), parts.data.to_bytes().unwrap());
        verified(&program, &path);
        let found = ptd::verify::verify(&data, FileExtent::of(&data), &Limits::default(), Accept::default()).findings;
        assert!(found.is_empty(), "{}: {found}", path.display());

        let (program_file, data_file) = (reopened(program.clone()), reopened(data.clone()));
        let beside: Vec<Opened> = siblings(&path).iter().map(|path| Opened::open(path).unwrap()).collect();
        let own = [data_file.package().unwrap()].into_iter();
        let all: Vec<_> = own.chain(beside.iter().map(|file| file.package().unwrap())).collect();
        let joined = join(program_file.package().unwrap(), &all).unwrap();
        if beside.is_empty() {
            same(&package, &joined, &CONTENT, &path);
        }
        let joined = joined.to_bytes().unwrap();
        verified(&joined, &path);
        moved += 1;

        let beside = [path.with_extension("safetensors"), path.with_file_name("cases.safetensors")];
        let Some(cases) = beside.into_iter().find(|cases| cases.is_file()) else {
            unrecorded += 1;
            continue;
        };
        let mut maps: Vec<Arc<dyn NamedDataMap>> = Vec::new();
        for path in siblings(&path) {
            maps.push(Arc::new(DataFile::open(path).unwrap()));
        }
        let with_data: Vec<_> = maps
            .iter()
            .cloned()
            .chain([Arc::new(DataFile::from_bytes(data).unwrap()) as Arc<dyn NamedDataMap>])
            .collect();
        let outcome = runs(&program, &with_data, &cases);
        let (Some(split), Some(joined)) = (outcome, runs(&joined, &[], &cases)) else {
            // Only what was lowered to a backend does not run.
            assert!(!path.to_string_lossy().contains("portable"), "{}", path.display());
            not_run += 1;
            continue;
        };
        assert!(split.is_empty() && joined.is_empty(), "{}: {split:?} {joined:?}", path.display());
        ran += 1;
    }
    println!("{moved} programs split and joined, {keys} keys; {ran} of them ran, {not_run} cannot run here");
    println!("{unrecorded} have no recorded runs");
    assert!(moved > 40 && ran > 30, "{moved} {ran}");
}

/// The programs of the reference exporter that have data files already take them in, and keep running.
#[test]
fn data_files_of_the_exporter_are_taken_in() {
    let mut count = 0;
    for path in files(&["pte"]).into_iter().filter(|path| !siblings(path).is_empty()) {
        let file = Opened::open(&path).unwrap();
        let data: Vec<Opened> = siblings(&path).iter().map(|path| Opened::open(path).unwrap()).collect();
        let data: Vec<Package<'_>> = data.iter().map(|file| file.package().unwrap()).collect();
        let joined = join(file.package().unwrap(), &data).unwrap().to_bytes().unwrap();
        verified(&joined, &path);
        if let Some(wrong) = runs(&joined, &[], &path.with_extension("safetensors")) {
            assert!(wrong.is_empty(), "{}: {wrong:?}", path.display());
        }
        count += 1;
    }
    println!("{count} programs joined with the data files they came with");
    assert!(count >= 3);
}

/// Parameters that a training program changes are initial values once they are in the program, behind those it has.
#[test]
fn external_state_becomes_initial_values() {
    let (path, data) =
        (model("models/training_initial_portable.pte"), siblings(&model("models/training_initial_portable.pte")));
    let (file, beside) = (Opened::open(&path).unwrap(), Opened::open(&data[0]).unwrap());
    let package = file.package().unwrap();
    let offsets = |package: &Package<'_>| -> Vec<u64> {
        let lists = package.program().unwrap().mutable_data_segments.clone().unwrap();
        assert_eq!(lists.len(), 1);
        lists.get(0).unwrap().offsets.unwrap().iter().collect()
    };
    let joined = join(package.clone(), &[beside.package().unwrap()]).unwrap();
    // One is reserved, one was there, and a weight and a bias have come.
    assert_eq!((offsets(&package).len(), offsets(&joined).len()), (2, 4));
    assert_eq!(offsets(&joined)[..2], offsets(&package)[..]);
    let bytes = joined.to_bytes().unwrap();
    verified(&bytes, &path);
    assert_eq!(runs(&bytes, &[], &path.with_extension("safetensors")), Some(vec![]));

    // Other users of the segment of the old values keep what was there.
    let mut shared = package.clone();
    let index = shared.program().unwrap().mutable_data_segments.as_ref().unwrap().get(0).unwrap().segment_index;
    if let Root::Program(program) = &mut shared.root {
        program.named_data = Some(vec![pte::NamedData { key: Some("steps".into()), segment_index: index }].into());
    }
    let before = shared.segments[index as usize].len();
    let joined = join(shared, &[beside.package().unwrap()]).unwrap();
    assert_eq!(joined.segments[index as usize].len(), before);
    let bytes = joined.to_bytes().unwrap();
    verified(&bytes, &path);
    assert_eq!(runs(&bytes, &[], &path.with_extension("safetensors")), Some(vec![]));
}

#[test]
fn a_pattern_chooses_what_moves() {
    let file = Opened::open(model("models/buffer_names_portable.pte")).unwrap();
    let package = file.package().unwrap();
    let all = split(package.clone(), &SplitOptions::default()).unwrap().keys;
    let one = Glob::new(&all[0]);
    let parts = split(package.clone(), &SplitOptions { matching: Some(one), named: false }).unwrap();
    assert_eq!(parts.keys, all[..1]);
    assert!(all.len() > 1);
    verified(&parts.program.to_bytes().unwrap(), Path::new("buffer_names"));
    let none = SplitOptions { matching: Some(Glob::new("no such name")), named: true };
    let untouched = split(package.clone(), &none).unwrap();
    same(&package, &untouched.program, &EXACT, Path::new("buffer_names"));

    // Without its data the program does not join, nor with data of another program.
    let error = join(parts.program.clone(), &[]).unwrap_err().to_string();
    assert!(error.contains(&all[0]) && error.contains("execution_plan[0].values["), "{error}");
    let twice = join(parts.program.clone(), &[parts.data.clone(), parts.data.clone()]).unwrap_err().to_string();
    assert!(twice.contains("two places"), "{twice}");
    let mut other = parts.data.clone();
    if let Root::Data(root) = &mut other.root {
        let rows = root.named_data.as_mut().unwrap().to_mut().unwrap();
        rows[0].tensor_layout.as_mut().unwrap().scalar_type = ScalarType::INT;
    }
    let error = join(parts.program, &[other]).unwrap_err().to_string();
    assert!(error.contains("is i32[") && error.contains("the program has "), "{error}");
    assert!(split(parts.data, &SplitOptions::default()).is_err());
}

/// One constant under two layouts is two keys on one segment; the same name for other bytes gets a number.
#[test]
fn keys_of_shared_constants_share_a_segment() {
    use edgepack::format::pte::{EValue, ExecutionPlan, KernelTypes, SubsegmentOffsets, Tensor};
    let tensor = |sizes: &[i32], index: u32, name: Option<&'static str>| EValue {
        val: Some(KernelTypes::Tensor(Tensor {
            scalar_type: ScalarType::BYTE,
            dim_order: Some((0..sizes.len() as u8).collect::<Vec<_>>().into()),
            sizes: Some(sizes.to_vec().into()),
            data_buffer_idx: index,
            extra_tensor_info: name.map(|name| pte::ExtraTensorInfo {
                fully_qualified_name: Some(name.into()),
                ..pte::ExtraTensorInfo::default()
            }),
            ..Tensor::default()
        })),
    };
    let values = vec![
        tensor(&[6], 1, None),
        tensor(&[2, 3], 1, None),
        tensor(&[6], 1, Some("w")),
        tensor(&[6], 2, Some("w")),
        tensor(&[6], 1, None),
    ];
    let plan = ExecutionPlan { name: Some("forward".into()), values: Some(values.into()), ..ExecutionPlan::default() };
    let program = pte::Program {
        execution_plan: Some(vec![plan].into()),
        constant_segment: Some(SubsegmentOffsets { segment_index: 0, offsets: Some(vec![0, 0, 16].into()) }),
        segments: Some(Rows::default()),
        ..pte::Program::default()
    };
    let mut package = Package::new(Root::Program(program));
    package.segments = vec![vec![1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9].into()];
    package.place().unwrap();
    let parts = split(package.clone(), &SplitOptions::default()).unwrap();
    assert_eq!(parts.keys, ["constant.1", "constant.1.1", "w", "w.1"]);
    let Root::Data(root) = &parts.data.root else { panic!("a data file") };
    let segments: Vec<u32> = root.named_data.as_ref().unwrap().iter().map(|row| row.unwrap().segment_index).collect();
    assert_eq!(segments, [0, 0, 0, 1]);
    let joined = join(parts.program, &[parts.data]).unwrap();
    let list = joined.program().unwrap().constant_segment.clone().unwrap();
    assert_eq!(list.offsets.unwrap().len(), 3);
}

#[test]
fn tensors_are_replaced_where_they_are() {
    for (name, key) in [
        ("models/buffer_names_portable.pte", None),
        ("models/mlp_portable.pte", Some("constant.1")),
        ("data/tensors.ptd", None),
    ] {
        let file = Opened::open(model(name)).unwrap();
        let package = file.package().unwrap();
        let (key, layout) = match key {
            _ if name.ends_with("ptd") => {
                let data = DataFile::open(model(name)).unwrap();
                let key = (0..data.len()).map(|index| data.key(index).unwrap().to_owned());
                let key =
                    key.into_iter().find(|key| data.layout(key).unwrap().is_some_and(|found| found.byte_len() > 0));
                let layout = data.layout(key.as_ref().unwrap()).unwrap().unwrap();
                (key.unwrap(), layout)
            }
            key => {
                let parts = split(package.clone(), &SplitOptions::default()).unwrap();
                let key = key.map_or_else(|| parts.keys[0].clone(), str::to_owned);
                let data = DataFile::from_bytes(parts.data.to_bytes().unwrap()).unwrap();
                let layout = data.layout(&key).unwrap().unwrap();
                (key, layout)
            }
        };
        let bytes = vec![1; layout.byte_len()];
        let view = TensorView::new(layout.clone(), &bytes).unwrap();
        let patched = patch(package.clone(), &[NewTensor { name: &key, tensor: view }]).unwrap();
        let found = diff(&package, &patched, &CONTENT).unwrap();
        assert!(!found.is_empty() && found.iter().all(|one| one.path.contains("element")), "{name}: {found:?}");
        // Nothing but these bytes changes.
        let (old, new) = (package.to_bytes().unwrap(), patched.to_bytes().unwrap());
        let changed = old.iter().zip(&new).filter(|(a, b)| a != b).count();
        assert!(old.len() == new.len() && changed > 0 && changed <= layout.byte_len(), "{name}: {changed}");

        let other = TensorLayout::contiguous(ScalarType::BYTE, &[3]).unwrap();
        let other = NewTensor { name: &key, tensor: TensorView::new(other, &bytes).unwrap() };
        let error = patch(package.clone(), &[other]).unwrap_err().to_string();
        assert!(error.contains("u8[3]") && error.contains(&layout.to_string()), "{error}");
        let missing = NewTensor { name: "nobody", tensor: TensorView::new(layout, &bytes).unwrap() };
        assert!(matches!(patch(package, &[missing]), Err(Error::NotFound { .. })));
    }
}

#[test]
fn data_files_become_safetensors_and_come_back() {
    let mut count = 0;
    for path in files(&["ptd"]) {
        let file = Opened::open(&path).unwrap();
        let package = file.package().unwrap();
        let mut bytes = Vec::new();
        match write_safetensors(&package, &mut bytes) {
            Ok(()) => {}
            Err(Error::Refused { message, .. }) if message.contains("safetensors has no") => continue,
            Err(error) => panic!("{}: {error}", path.display()),
        }
        safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let back = from_safetensors(Arc::new(MemorySource::new(bytes))).unwrap();
        same(&package, &back, &CONTENT, &path);
        let written = back.to_bytes().unwrap();
        let found = ptd::verify::verify(&written, FileExtent::of(&written), &Limits::default(), Accept::default());
        assert!(found.findings.is_empty(), "{}: {}", path.display(), found.findings);
        count += 1;
    }
    println!("{count} data files through safetensors");
    assert!(count >= 5);
    for bad in
        [&b""[..], b"\x02\0\0\0\0\0\0\0{}x", b"\xff\xff\xff\xff\xff\xff\xff\xff{}", b"\x09\0\0\0\0\0\0\0{\"a\":[]}\n"]
    {
        let answer = from_safetensors(Arc::new(MemorySource::new(bad)));
        assert!(answer.is_err() || answer.unwrap().segments.is_empty(), "{}", bad.escape_ascii());
    }
}

#[test]
fn tensors_that_share_their_bytes_are_named() {
    let data = |number: f32| number.to_le_bytes().repeat(4);
    let (ones, twos, threes) = (data(1.0), data(2.0), data(3.0));
    let view = |bytes| TensorView::of::<f32>(&[4], bytes).unwrap();
    let mut program = ProgramBuilder::new();
    let names = [("a", &ones), ("b", &ones), ("c", &twos)];
    let [a, b, c] = names.map(|(name, bytes)| program.constant(name, &view(bytes)).unwrap());
    let mut forward = program.method("forward");
    let spec = || TensorSpec::new(ScalarType::FLOAT, [4]);
    let sum = forward.call("aten::add.out", args![a, b, 1i64], spec()).unwrap();
    let sum = forward.call("aten::add.out", args![sum, c, 1i64], spec()).unwrap();
    forward.output(sum).unwrap();
    let file = reopened(program.finish().unwrap().to_bytes().unwrap());
    let package = file.package().unwrap();

    let new = |name| NewTensor { name, tensor: view(&threes) };
    assert_eq!(edit::sharers(&package, &[new("a")]).unwrap(), ["b"]);
    assert_eq!(edit::sharers(&package, &[new("b"), new("a")]).unwrap(), [""; 0]);
    assert_eq!(edit::sharers(&package, &[new("c")]).unwrap(), [""; 0]);
    let patched = patch(package.clone(), &[new("a")]).unwrap();
    let changed = diff(&package, &patched, &CONTENT).unwrap();
    assert_eq!(changed.len(), 2, "{changed:?}");
    // In a data file keys share bytes, too.
    let parts = split(package, &SplitOptions::default()).unwrap();
    let file = reopened(parts.data.to_bytes().unwrap());
    assert_eq!(edit::sharers(&file.package().unwrap(), &[new("b")]).unwrap(), ["a"]);
}

#[test]
fn tolerance_is_heeded_and_differences_are_named() {
    let file = Opened::open(model("models/mlp_portable.pte")).unwrap();
    let package = file.package().unwrap();
    let parts = split(package.clone(), &SplitOptions::default()).unwrap();
    let data = DataFile::from_bytes(parts.data.to_bytes().unwrap()).unwrap();
    let key = &parts.keys[0];
    let (layout, bytes) = (data.layout(key).unwrap().unwrap(), data.data(key).unwrap().unwrap());
    let nudged: Vec<u8> = bytes
        .chunks_exact(4)
        .flat_map(|bytes| (f32::from_le_bytes(bytes.try_into().unwrap()) * 1.0001).to_le_bytes())
        .collect();
    let nudged = NewTensor { name: key, tensor: TensorView::new(layout, &nudged).unwrap() };
    let patched = patch(package.clone(), &[nudged]).unwrap();
    assert_eq!(diff(&package, &patched, &CONTENT).unwrap().len(), 1);
    assert!(diff(&package, &patched, &DiffOptions { rtol: 1e-3, ..CONTENT }).unwrap().is_empty());
    assert_eq!(diff(&package, &patched, &EXACT).unwrap().len(), 1);

    let mut renamed = package.clone();
    renamed.program_mut().unwrap().execution_plan.as_mut().unwrap().to_mut().unwrap()[0].name = None;
    let found = diff(&package, &renamed, &CONTENT).unwrap();
    assert_eq!(
        (found.len(), &*found[0].path, &*found[0].left, &*found[0].right),
        (1, "execution_plan[0].name", "\"forward\"", "absent")
    );
    let other = Opened::open(model("data/tensors.ptd")).unwrap();
    assert_eq!(diff(&package, &other.package().unwrap(), &CONTENT).unwrap().len(), 1);
}

/// Broken files are answered, never with a panic: what is structurally sound opens, everything else says why not.
#[test]
fn hostile_files_are_answered() {
    let folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("data/hostile")];
    let (mut opened, mut refused) = (0, 0);
    for path in edgepack_tests::files_in(folders) {
        let source = Arc::new(MemorySource::new(fs::read(&path).unwrap()));
        let Ok(file) = Opened::from_source(source, Limits::hostile()) else {
            refused += 1;
            continue;
        };
        let Ok(package) = file.package() else {
            refused += 1;
            continue;
        };
        opened += 1;
        // These succeed or fail depending on what is broken; only that they end is checked.
        let _ = split(package.clone(), &SplitOptions { named: true, ..SplitOptions::default() });
        let _ = join(package.clone(), std::slice::from_ref(&package));
        let _ = diff(&package, &package, &CONTENT);
        assert!(diff(&package, &package, &EXACT).unwrap().is_empty(), "{}", path.display());
        let json = edit::dump(&package).unwrap();
        let built = edit::build(&json).unwrap();
        assert_eq!(edit::dump(&built).unwrap(), json, "{}", path.display());
        let _ = built.to_bytes();
    }
    println!("{opened} broken files opened, {refused} refused");
    assert!(opened > 50 && refused > 50);
}

/// Outputs of two runs of a method; `None` if it needs what this runtime lacks.
fn answers(program: &Program, method: &str, data: &[Arc<dyn NamedDataMap>]) -> Option<Vec<Vec<u8>>> {
    let options = Options { data: data.to_vec(), ..Options::default() };
    let mut loaded = match Method::load(program, method, &edgepack_kernels::registry(), &options) {
        Ok(loaded) => loaded,
        Err(LoadError::Missing(_)) => return None,
        Err(error) => panic!("{method}: {error}"),
    };
    let inputs = PlainInputs::varied(program, method);
    let mut all = Vec::new();
    for _ in 0..2 {
        let outputs = loaded.run(&inputs.views()).unwrap_or_else(|error| panic!("{method}: {error}"));
        all.extend(outputs.iter().map(|output| match output {
            Output::Tensor(tensor) => tensor.bytes().to_vec(),
            other => format!("{other:?}").into_bytes(),
        }));
    }
    Some(all)
}

#[test]
fn programs_planned_again_answer_the_same() {
    let (mut compared, mut smaller) = (0, 0);
    for (path, data) in models() {
        let (file, before) = (Opened::open(&path).unwrap(), Program::open(&path).unwrap());
        for strategy in [Strategy::Greedy, Strategy::BestFit, Strategy::Smallest] {
            let mut package = file.package().unwrap();
            let Root::Program(program) = &mut package.root else { panic!("{}", path.display()) };
            let changes = replan(program, &ReplanOptions::default().strategy(strategy)).unwrap();
            let after = Program::from_bytes(package.to_bytes().unwrap()).unwrap();
            for method in before.method_names().unwrap() {
                let Some(want) = answers(&before, &method, &data) else { continue };
                assert!(answers(&after, &method, &data) == Some(want), "{} {method} {strategy:?}", path.display());
                compared += 1;
            }
            smaller += changes.iter().filter(|change| change.after < change.before).count();
        }
    }
    println!("{compared} methods answer the same with another plan, {smaller} memories are smaller");
    assert!(compared > 200 && smaller > 20, "{compared} {smaller}");
}
