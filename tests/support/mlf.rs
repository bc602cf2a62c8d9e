//! Cases of a corpus folder `mlf/`: packages with facts, recorded runs and the values of single nodes next to them.
//!
//! Facts were computed by a program that has nothing in common with this project; runs were recorded with TVM's own
//! executor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use edgepack::edit::{Blobs, build_library, dump_library, library_parts, write_library};
use edgepack_builder::mlf::{LibraryParts, graph_text, params_file};
use edgepack_cli::cases::Recorded;
use edgepack_cli::compare::{Tolerance, compare};
use edgepack_cli::formats::mlf::cases::{from_folder, replay};
use edgepack_cli::interchange;
use edgepack_cli::value::Value as Output;
use edgepack_executor::mlf::{Argument, GraphExecutor};
use edgepack_format::limits::Limits;
use edgepack_format::mlf::{Graph, StoragePlan, definitions, place};
use edgepack_format::tensor::{TensorBuf, TensorLayout, TensorView};
use edgepack_loader::mlf::{Library, LibraryModule, verify};
#[cfg(unix)]
use edgepack_native::Child;
use edgepack_native::{NativeLibrary, Options, Runner};
use serde_json::Value;

pub use crate::edgetpu::Answer;
use crate::edgetpu::{json, sha256};

/// Every package of a folder, with its facts.
pub fn packages(folder: &Path) -> Vec<(PathBuf, Value)> {
    let mut found = Vec::new();
    for model in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let Ok(facts) = json(&model.join("facts.json")) else { continue };
        for tarball in facts["tarballs"].as_array().into_iter().flatten() {
            let path = model.join(tarball["file"].as_str().unwrap_or_default());
            let mut all = facts.clone();
            all["tarball"] = tarball.clone();
            found.push((path, all));
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn open(path: &Path) -> Result<Library, String> {
    Library::open(path).map_err(|error| error.to_string())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, have: T, want: T) -> Answer {
    if have == want { Ok(()) } else { Err(format!("{what}: {have:?}, want {want:?}")) }
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
}

/// A package is what its facts say, and has exactly the findings they justify.
pub fn facts(path: &Path, facts: &Value) -> Answer {
    let (bytes, tarball) = (read(path)?, &facts["tarball"]);
    same("sha256", sha256(&bytes).as_str(), tarball["sha256"].as_str().unwrap_or_default())?;
    let findings = verify(&bytes, &Limits::hostile()).findings;
    let known = tarball["graph"]["metadata_sids_wrong"].as_array();
    for finding in &findings {
        if finding.rule.id != "MLF-S09" {
            return Err(finding.to_string());
        }
    }
    if let Some(wrong) = known {
        let wrong: BTreeSet<String> = wrong.iter().map(|id| format!("default.memory.sids[{id}]")).collect();
        let named = findings.iter().map(|finding| finding.path.clone());
        let named: BTreeSet<String> = named.map(|path| path.replace("two_in.", "default.")).collect();
        same("wrong storage ids", named, wrong)?;
    }
    let library = open(path)?;
    same("version", library.metadata().version.into(), tarball["mlf_version"].as_u64().unwrap_or_default())?;
    members(&library, tarball)?;
    for module in library.modules() {
        if tarball["params"].is_array() {
            params(&module, tarball)?;
        }
        if let Some(want) = tarball["c_definitions"].as_object() {
            let mut have: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for source in module.sources() {
                let name = source.path.rsplit('/').next().unwrap_or_default().to_owned();
                let names =
                    definitions(source.bytes).unwrap().into_iter().filter(|one| !one.is_static).map(|one| one.name);
                have.insert(name, names.collect());
            }
            // Files without a function are left out of the facts.
            have.retain(|_, names| !names.is_empty());
            let want =
                want.iter().map(|(file, names)| (file.clone(), texts(names).into_iter().collect::<BTreeSet<_>>()));
            same("definitions", have, want.filter(|(_, names)| !names.is_empty()).collect())?;
        }
        if tarball["graph"].is_object() {
            graph(&module, &tarball["graph"])?;
        }
    }
    Ok(())
}

fn members(library: &Library, tarball: &Value) -> Answer {
    let mut want = BTreeMap::new();
    for member in tarball["members"].as_array().into_iter().flatten() {
        // Some facts name files only.
        let path = member.as_str().or(member["path"].as_str()).unwrap_or_default().trim_start_matches("./");
        if member["type"] != "dir" {
            want.insert(path.to_owned(), member["sha256"].as_str().map(str::to_owned));
        }
    }
    let have: BTreeMap<String, Option<String>> =
        library.members().iter().map(|member| (member.path.to_owned(), Some(sha256(member.bytes)))).collect();
    same("files", have.keys().collect::<Vec<_>>(), want.keys().collect())?;
    for (path, want) in want.iter().filter(|(_, want)| want.is_some()) {
        same(path, &have[path], want)?;
    }
    Ok(())
}

fn params(module: &LibraryModule, tarball: &Value) -> Answer {
    let describe = |name: &str, dtype: String, shape: Vec<u64>, sha: String| format!("{name} {dtype}{shape:?} {sha}");
    let params = module.params();
    let have: Vec<String> = params
        .entries
        .iter()
        .map(|param| describe(param.name, param.data_type.to_string(), param.shape.clone(), sha256(param.data)))
        .collect();
    let want = tarball["params"].as_array().into_iter().flatten().map(|param| {
        let shape = param["shape"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        let text = |key: &str| param[key].as_str().unwrap_or_default().to_owned();
        describe(&text("name"), text("dtype"), shape, text("sha256_data"))
    });
    same("parameters", have, want.collect())
}

fn graph(module: &LibraryModule, want: &Value) -> Answer {
    let graph = module.graph().ok_or("there is no graph")?;
    same("nodes", graph.nodes.len() as u64, want["nodes"].as_u64().unwrap_or_default())?;
    same("entries", graph.entries.len() as u64, want["entries"].as_u64().unwrap_or_default())?;
    same("arguments", graph.args().map(|(_, name, _)| name.to_owned()).collect(), texts(&want["arg_nodes"]))?;
    let plan = StoragePlan::of(graph).map_err(|error| error.to_string())?;
    same("storage", plan.bytes(), want["storage_total_bytes"].as_u64().unwrap_or_default())
}

fn tolerance(facts: &Value) -> Tolerance {
    Tolerance { rtol: facts["tolerance"]["rtol"].as_f64(), atol: facts["tolerance"]["atol"].as_f64() }
}

/// Options for compiling code of the corpus and of tests. The compiled code is cached from test to test, and not in the
/// user's cache.
pub fn native() -> Options {
    let mut options = Options::default();
    options.cache = Some(std::env::temp_dir().join("edgepack-tests-native"));
    // SAFETY: generated code of the corpus, run on the tensors recorded for it.
    unsafe { options.allow_native_code() }
}

/// The model whose runs a package replays, per module: its own, or that which it was made from.
fn recorded(path: &Path, facts: &Value, module: &str) -> Result<(Vec<Recorded>, Tolerance), String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let corpus = folder.parent().unwrap_or(Path::new("."));
    let model = match (folder.join("io").is_dir(), &facts["modules"]) {
        (true, _) => folder.to_owned(),
        (false, Value::Object(modules)) => {
            let of = modules.get(module).ok_or(format!("no facts about {module}"))?;
            let name = of["same_model_as"].as_str().unwrap_or_default();
            corpus.join(name.trim_start_matches("../").split('/').next().unwrap_or_default())
        }
        _ => {
            let from = facts["tarball"]["derived_from"].as_str().unwrap_or_default();
            corpus.join(from.split('.').next().unwrap_or_default())
        }
    };
    let facts = json(&model.join("facts.json"))?;
    Ok((from_folder(&model.join("io"), module)?, tolerance(&facts)))
}

/// Argument with which a test program runs the code of packages for another.
pub const HELPER: &str = "run-native-code-for-tests";

/// Every recorded run of a package, through its own code in this process.
pub fn runs(path: &Path, facts: &Value) -> Answer {
    replayed(path, facts, |module| Runner::open(module, None, &native(), &Limits::default()))
}

/// Every recorded run of a package, through its own code in a process of its own; and with the outputs that it has here,
/// to the bit.
#[cfg(unix)]
pub fn child_runs(path: &Path, facts: &Value) -> Answer {
    let child = Child::new(std::env::current_exe().map_err(|error| error.to_string())?).with_argument(HELPER);
    replayed(path, facts, |module| {
        child.open(module, None, &native(), &Limits::default()).map(|child| Runner::Child(Box::new(child)))
    })?;
    let library = open(path)?;
    for module in library.modules() {
        let name = module.info().name.clone();
        let open = |error: edgepack_native::Error| format!("{name}: {error}");
        let mut here = Runner::open(&module, None, &native(), &Limits::default()).map_err(open)?;
        let mut there = child.open(&module, None, &native(), &Limits::default()).map_err(open)?;
        for case in recorded(path, facts, &name)?.0 {
            let inputs: Result<Vec<_>, _> = case.inputs.values().map(TensorBuf::contiguous).collect();
            let inputs = inputs.map_err(|error| error.to_string())?;
            let wanted: Vec<TensorLayout> = case.outputs.values().map(|output| output.layout().clone()).collect();
            let (one, other) = (here.run(&inputs, &wanted), there.run(&inputs, &wanted));
            let (one, other) = (one.map_err(open)?, other.map_err(open)?);
            let bytes = |outputs: &[TensorBuf]| outputs.iter().map(|output| output.data().to_vec()).collect::<Vec<_>>();
            same(&format!("{name}.{}", case.run), bytes(&other), bytes(&one))?;
        }
    }
    Ok(())
}

fn replayed(
    path: &Path,
    facts: &Value,
    open_module: impl Fn(&LibraryModule) -> Result<Runner, edgepack_native::Error>,
) -> Answer {
    let library = open(path)?;
    for module in library.modules() {
        let name = module.info().name.clone();
        let (recorded, tolerance) = recorded(path, facts, &name)?;
        let mut runner = open_module(&module).map_err(|error| format!("{name}: {error}"))?;
        let reports = replay(&mut runner, &recorded, tolerance);
        if reports.is_empty() {
            return Err(format!("{name}: no runs"));
        }
        for report in reports {
            if let Some(failure) = report.failure {
                return Err(format!("{name}.{}: {failure}", report.run));
            }
            if report.outputs.is_empty() {
                return Err(format!("{name}.{}: nothing to compare", report.run));
            }
            if let Some((index, bad)) = report.outputs.iter().find(|(_, comparison)| !comparison.passes()) {
                return Err(format!("{name}.{}.out.{index}: {bad:?}", report.run));
            }
        }
    }
    Ok(())
}

fn array(path: &Path) -> Result<TensorBuf, String> {
    interchange::read_npy(&read(path)?).map_err(|error| format!("{}: {error}", path.display()))
}

/// Models whose facts have the values of single nodes.
pub fn traced(folder: &Path) -> Vec<(PathBuf, Value)> {
    let is_traced = |(path, facts): &(PathBuf, Value)| {
        facts["trace"]["tarball"].as_str().is_some_and(|name| path.file_name().is_some_and(|file| file == name))
    };
    packages(folder).into_iter().filter(is_traced).collect()
}

/// Every node of the traced run has the value that was captured.
pub fn trace(path: &Path, facts: &Value) -> Answer {
    let folder = path.parent().unwrap_or(Path::new("."));
    let library = open(path)?;
    let module = library.module(None).map_err(|error| error.to_string())?;
    let functions = NativeLibrary::compile(&module, &native()).map_err(|error| error.to_string())?;
    let mut executor =
        GraphExecutor::open(&module, &functions, &Limits::default()).map_err(|error| error.to_string())?;
    let case = facts["trace"]["case"].as_u64().unwrap_or_default();
    let inputs = facts["cases"][case as usize]["inputs"].as_array().cloned().unwrap_or_default();
    for input in &inputs {
        let tensor = array(&folder.join(input["file"].as_str().unwrap_or_default()))?;
        let view = TensorView::new(tensor.layout().clone(), tensor.data()).map_err(|error| error.to_string())?;
        let name = input["name"].as_str().unwrap_or_default();
        executor.set_input(name, &view).map_err(|error| error.to_string())?;
    }
    let mut values: BTreeMap<(u32, usize), TensorBuf> = BTreeMap::new();
    let mut capture = |node: u32, index: usize, argument: Argument<'_>| {
        let layout: TensorLayout = argument.operand.layout().ok()?;
        values.insert((node, index), TensorBuf::from_bytes(layout, argument.bytes.to_vec()).ok()?);
        Some(())
    };
    let run = executor.run_with(&mut |ran| {
        for (index, output) in ran.outputs().enumerate() {
            capture(ran.node, index, output);
        }
    });
    run.map_err(|error| error.to_string())?;
    let nodes = facts["trace"]["nodes"].as_array().cloned().unwrap_or_default();
    if nodes.is_empty() {
        return Err("no node was captured".to_owned());
    }
    for node in &nodes {
        let (id, index) = (node["nid"].as_u64().unwrap_or_default(), node["output"].as_u64().unwrap_or_default());
        let want = array(&folder.join(node["file"].as_str().unwrap_or_default()))?;
        let Some(have) = values.get(&(id as u32, index as usize)) else {
            // A reshape makes no call, so there is nothing to capture.
            if node["func"] == "__nop" {
                continue;
            }
            return Err(format!("node {id} made no output {index}"));
        };
        let comparison = compare(&Output::Tensor(have.clone()), &want, tolerance(facts));
        if !comparison.passes() {
            return Err(format!("node {id}, output {index}: {comparison:?}"));
        }
    }
    Ok(())
}

/// Taken apart and written again a package is the same to the byte, also by way of JSON; in our own layout its files are; so are its parameter files, to the byte, and every form of it in
/// other versions that loses nothing.
pub fn rebuilt(path: &Path, _: &Value) -> Answer {
    let library = open(path)?;
    let whole = library_parts(&library);
    if whole.finish().map_err(|error| error.to_string())? != library.bytes() {
        return Err("the archive is written as other bytes".to_owned());
    }
    let json = dump_library(&whole, Blobs::Inline).map_err(|error| error.to_string())?;
    let built = build_library(&json, None).and_then(|parts| write_library(&parts));
    if built.map_err(|error| error.to_string())? != library.bytes() {
        return Err("the archive is built from JSON as other bytes".to_owned());
    }
    let parts = LibraryParts::of(library.metadata().clone(), &library.members());
    let again = finish(&parts)?;
    same("metadata", again.metadata(), library.metadata())?;
    let files = |library: &Library| -> BTreeMap<String, Vec<u8>> {
        library.members().iter().map(|member| (member.path.to_owned(), member.bytes.to_vec())).collect()
    };
    if files(&again) != files(&library) {
        return Err("files differ".to_owned());
    }
    for module in library.modules() {
        let name = &module.info().name;
        if let Some(bytes) = library.file(&place::params(name)) {
            let written = params_file(&module.params().entries).map_err(|error| error.to_string())?;
            if written != bytes {
                return Err(format!("the parameters of {name} are written as other bytes"));
            }
        }
        if let Some(graph) = module.graph() {
            let read =
                Graph::parse(graph_text(graph).as_bytes(), &Limits::hostile()).map_err(|error| error.to_string())?;
            same("graph", &read, graph)?;
        }
    }
    let home = library.metadata().version;
    for version in (1..=7).filter(|version| parts.losses(*version).is_empty()) {
        let there = parts.to_version(version).map_err(|error| error.to_string())?;
        let there = finish(&there).map_err(|error| format!("as version {version}: {error}"))?;
        let there = LibraryParts::of(there.metadata().clone(), &there.members());
        if there.losses(home).is_empty() {
            let back = there.to_version(home).map_err(|error| error.to_string())?;
            same("metadata from there and back", &back.metadata, &parts.metadata)?;
            same("files from there and back", back.files.keys().collect::<Vec<_>>(), parts.files.keys().collect())?;
        }
    }
    match parts.to_version(if home == 1 { 2 } else { 1 }) {
        Ok(_) if home > 1 && parts.metadata.modules.iter().any(|module| module.memory.main.is_some()) => {
            Err("version 1 holds what it has no place for".to_owned())
        }
        _ => Ok(()),
    }
}

fn finish(parts: &LibraryParts<'_>) -> Result<Library, String> {
    let bytes = parts.finish().map_err(|error| error.to_string())?;
    Library::from_bytes(bytes).map_err(|error| error.to_string())
}
