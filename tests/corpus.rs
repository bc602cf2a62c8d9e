//! Runs every kind of case of a corpus folder: the one in the repository, and the one `EDGEPACK_CORPUS` names.
//!
//! Per kind one line, `KIND: N passed, N failed, N skipped`; a skip names what is missing, and `EDGEPACK_STRICT=1` makes
//! skips failures. A folder holds `models/`, `ops/`, `ops_xnnpack/`, `opinfo/` (`NAME.pte`, `NAME.safetensors`,
//! `NAME.*.ptd`), `pt2/NAME/` (`model.pte`, `model.pt2`, `model_raw.pt2`, archives of other kinds: `edge.pt2`,
//! `serde.pt2`, `quantised.pt2`, `delegated.pt2`, `record.etrecord`; `cases.safetensors`), `lowering/` (`NAME.pt2`,
//! `NAME.safetensors`), `bundled/` (`NAME.bpte`), `data/` (`NAME.ptd`, `NAME.safetensors`), `trace/` (`NAME.etdp`),
//! `edgetpu/`, `mlf/NAME/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::{env, fs};

use edgepack_cli::cases::{ReplayError, Replayed, from_safetensors, registry_for};
use edgepack_cli::compare::Tolerance;
use edgepack_cli::formats::bundle::recorded_runs;
use edgepack_cli::formats::pte::replay;
use edgepack_executor::{LoadError, Options, RunError};
use edgepack_exir::archive::Archive;
use edgepack_exir::lower;
use edgepack_exir::verify::verify_archive;
use edgepack_format::bundle::BundleRef;
use edgepack_format::extent::FileExtent;
use edgepack_format::finding::Findings;
use edgepack_format::limits::Limits;
use edgepack_format::ptd::{self, Accept};
use edgepack_format::pte;
use edgepack_format::trace::TraceRef;
use edgepack_loader::{DataFile, NamedDataMap, Program};
use edgepack_tests::{edgetpu, mlf};

/// Why a case did not pass.
enum Outcome {
    Failed(String),
    /// Why it cannot run here.
    Skipped(String),
}

type Answer = Result<(), Outcome>;

fn failed(error: impl ToString) -> Outcome {
    Outcome::Failed(error.to_string())
}

/// The results of one kind of case.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: Vec<String>,
    skipped: BTreeMap<String, usize>,
}

impl Tally {
    fn add(&mut self, name: &str, answer: Answer) {
        match answer {
            Ok(()) => self.passed += 1,
            Err(Outcome::Failed(message)) => self.failed.push(format!("{name}: {message}")),
            Err(Outcome::Skipped(reason)) => *self.skipped.entry(reason).or_default() += 1,
        }
    }

    fn skips(&self) -> usize {
        self.skipped.values().sum()
    }
}

fn main() -> ExitCode {
    let strict = env::var_os("EDGEPACK_STRICT").is_some_and(|value| value != "0");
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")];
    match env::var_os("EDGEPACK_CORPUS").filter(|value| !value.is_empty()) {
        Some(folder) => folders.push(folder.into()),
        None => println!("EDGEPACK_CORPUS is not set: only the corpus of the repository runs"),
    }
    let (mut passed, mut failures, mut skipped) = (0, 0, 0);
    for folder in &folders {
        if !folder.is_dir() {
            println!("{} is no folder", folder.display());
            failures += 1;
            continue;
        }
        println!("corpus {}", folder.display());
        for (kind, tally) in run(folder) {
            println!("{kind}: {} passed, {} failed, {} skipped", tally.passed, tally.failed.len(), tally.skips());
            tally.failed.iter().for_each(|failure| println!("  failed {failure}"));
            tally.skipped.iter().for_each(|(reason, count)| println!("  skipped {count}: {reason}"));
            passed += tally.passed;
            failures += tally.failed.len();
            skipped += tally.skips();
        }
    }
    println!("\n{passed} passed, {failures} failed, {skipped} skipped");
    if passed == 0 || failures > 0 || (strict && skipped > 0) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// All kinds of a folder, in a fixed order; kinds without a case are left out.
fn run(folder: &Path) -> Vec<(&'static str, Tally)> {
    let mut kinds = Vec::new();
    for kind in ["models", "ops", "ops_xnnpack", "opinfo"] {
        kinds.push((kind, each(files(&folder.join(kind), "pte"), |path| program(path, &siblings(path)))));
    }
    kinds.push((
        "pt2",
        each(archives(folder, "model.pte"), |path| replayed(path, &path.with_file_name("cases.safetensors"), &[])),
    ));
    kinds.push(("pt2 archives", each(archives(folder, "model.pt2"), beside)));
    kinds.push(("pt2 raw archives", each(archives(folder, "model_raw.pt2"), beside)));
    kinds.push((
        "lowering",
        each(files(&folder.join("lowering"), "pt2"), |path| lowered(path, &path.with_extension("safetensors"))),
    ));
    for name in ["edge.pt2", "serde.pt2", "quantised.pt2", "record.etrecord"] {
        kinds.push((name, each(archives(folder, name), written_again)));
    }
    kinds.push(("delegated.pt2", each(archives(folder, "delegated.pt2"), delegated)));
    kinds.push(("bundled", each(files(&folder.join("bundled"), "bpte"), bundle)));
    kinds.push(("data", each(files(&folder.join("data"), "ptd"), data)));
    kinds.push(("trace", each(files(&folder.join("trace"), "etdp"), trace)));
    kinds.push(("verify", each(verifiable(folder), verify)));
    let packages = folder.join("edgetpu");
    kinds.push(("edgetpu facts", each(edgetpu::beside(&packages, "facts.json"), |path| answer(edgetpu::facts(path)))));
    kinds.push((
        "edgetpu goldens",
        each(edgetpu::beside(&packages, "golden.json"), |path| answer(edgetpu::goldens(path))),
    ));
    kinds.push((
        "edgetpu rebuilt",
        each(edgetpu::beside(&packages, "golden.json"), |path| answer(edgetpu::rebuild(path))),
    ));
    let models = edgetpu::beside(&packages, "golden.json").into_iter();
    let models = models.filter(|path| path.extension().is_some_and(|found| found == "tflite")).collect();
    kinds.push(("edgetpu embedded", each(models, |path| answer(edgetpu::reembed(path)))));
    kinds.push(("edgetpu broken", listed(edgetpu::broken(&packages))));
    kinds.push(("edgetpu options", listed(edgetpu::options(&packages))));
    kinds.push(("edgetpu differing", listed(edgetpu::differing(&packages))));
    kinds.push(("edgetpu signatures", listed(edgetpu::signatures(&packages))));
    let libraries = folder.join("mlf");
    kinds.push(("mlf facts", with_facts(mlf::packages(&libraries), mlf::facts)));
    kinds.push(("mlf rebuilt", with_facts(mlf::packages(&libraries), mlf::rebuilt)));
    kinds.push(("mlf runs", with_facts(mlf::packages(&libraries), mlf::runs)));
    kinds.push(("mlf traces", with_facts(mlf::traced(&libraries), mlf::trace)));
    kinds.retain(|(_, tally)| tally.passed + tally.failed.len() + tally.skips() > 0);
    kinds
}

fn each(paths: Vec<PathBuf>, run: impl Fn(&Path) -> Answer) -> Tally {
    let mut tally = Tally::default();
    for path in paths {
        let parent = path
            .parent()
            .and_then(Path::file_name)
            .filter(|_| path.parent().and_then(Path::parent).is_some_and(|kind| kind.ends_with("pt2")));
        let name = parent.or(path.file_name()).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        tally.add(&name, run(&path));
    }
    tally
}

fn answer(answer: edgetpu::Answer) -> Answer {
    answer.map_err(Outcome::Failed)
}

fn with_facts(packages: Vec<(PathBuf, serde_json::Value)>, run: fn(&Path, &serde_json::Value) -> mlf::Answer) -> Tally {
    let mut tally = Tally::default();
    for (path, facts) in packages {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        tally.add(&name, answer(run(&path, &facts)));
    }
    tally
}

fn listed(cases: Vec<edgetpu::Listed>) -> Tally {
    let mut tally = Tally::default();
    for (name, result) in cases {
        tally.add(&name, answer(result));
    }
    tally
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.is_dir()).collect()
}

/// The files of this name, one per folder of `pt2/`.
fn archives(folder: &Path, name: &str) -> Vec<PathBuf> {
    folders(&folder.join("pt2")).into_iter().map(|model| model.join(name)).filter(|path| path.is_file()).collect()
}

/// Every program and data file of a folder, whatever its kind.
fn verifiable(folder: &Path) -> Vec<PathBuf> {
    let inner = folders(folder).into_iter().flat_map(|kind| [vec![kind.clone()], folders(&kind)].concat());
    inner.flat_map(|folder| [files(&folder, "pte"), files(&folder, "ptd")].concat()).collect()
}

/// The data files of a program: `NAME.*.ptd` beside `NAME.pte`.
fn siblings(path: &Path) -> Vec<PathBuf> {
    let stem = path.file_stem().map(|stem| format!("{}.", stem.to_string_lossy())).unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new("."));
    let belongs = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&stem));
    files(folder, "ptd").into_iter().filter(belongs).collect()
}

fn program(path: &Path, data: &[PathBuf]) -> Answer {
    let cases = path.with_extension("safetensors");
    if !cases.is_file() {
        return Err(Outcome::Skipped("no recorded runs".into()));
    }
    replayed(path, &cases, data)
}

/// What an archive is lowered to gives what was recorded, in both ways of lowering.
fn beside(path: &Path) -> Answer {
    lowered(path, &path.with_file_name("cases.safetensors"))
}

fn lowered(path: &Path, cases: &Path) -> Answer {
    for like_reference in [false, true] {
        let program = Archive::open(path).and_then(|archive| archive.program()).map_err(failed)?;
        let options = lower::Options { like_reference, ..lower::Options::default() };
        let built = lower::lower(vec![("forward".to_owned(), program)], &options).map_err(failed)?;
        let program = Program::from_bytes(built.to_bytes().map_err(failed)?).map_err(failed)?;
        run_recorded(&program, cases, &[])?;
    }
    Ok(())
}

/// An archive that is not one of functional programs verifies clean, gives what was recorded, and is lowered to the same file
/// once it was written and read again.
fn written_again(path: &Path) -> Answer {
    beside(path)?;
    let bytes = fs::read(path).map_err(failed)?;
    let findings = verify_archive(&bytes);
    if findings.has_errors() {
        return Err(failed(findings));
    }
    let program = Archive::parse(&bytes).and_then(|archive| archive.program()).map_err(failed)?;
    let mut written = Vec::new();
    program.save(&mut written).map_err(failed)?;
    let again = Archive::parse(&written).and_then(|archive| archive.program()).map_err(failed)?;
    let file = |program| {
        let built = lower::lower(vec![("forward".to_owned(), program)], &lower::Options::default()).map_err(failed)?;
        built.to_bytes().map_err(failed)
    };
    match file(program)? == file(again)? {
        true => Ok(()),
        false => Err(failed("what was written is lowered to something else")),
    }
}

/// What backends made of parts of a program arrives in the file: their calls, options and data.
fn delegated(path: &Path) -> Answer {
    let program = Archive::open(path).and_then(|archive| archive.program()).map_err(failed)?;
    let modules = program.about.modules.clone();
    let mut written = Vec::new();
    program.save(&mut written).map_err(failed)?;
    let again = Archive::parse(&written).and_then(|archive| archive.program()).map_err(failed)?;
    if modules.is_empty() || again.about.modules != modules {
        return Err(failed("its lowered modules are others once it was written and read again"));
    }
    let built = lower::lower(vec![("forward".to_owned(), program)], &lower::Options::default()).map_err(failed)?;
    let bytes = built.to_bytes().map_err(failed)?;
    let program = Program::from_bytes(bytes.clone()).map_err(failed)?;
    let holds = |part: &[u8]| part.is_empty() || bytes.windows(part.len()).any(|window| window == part);
    for module in &modules {
        let data = module.named_data.iter().map(|data| &data.bytes).chain(&module.payload);
        if !data.into_iter().all(|part| holds(part)) || !holds(module.backend.as_bytes()) {
            return Err(failed(format!("the module of {} is not in the file", module.backend)));
        }
    }
    match program.method_names().map_err(failed)?.len() {
        1 => Ok(()),
        methods => Err(failed(format!("{methods} methods"))),
    }
}

fn replayed(path: &Path, cases: &Path, data: &[PathBuf]) -> Answer {
    run_recorded(&Program::open(path).map_err(failed)?, cases, data)
}

fn run_recorded(program: &Program, cases: &Path, data: &[PathBuf]) -> Answer {
    let recording = fs::read(cases).map_err(failed)?;
    let (recorded, registry) = (from_safetensors(&recording).map_err(failed)?, registry_for(&recording));
    let mut maps: Vec<Arc<dyn NamedDataMap>> = Vec::new();
    for path in data {
        maps.push(Arc::new(DataFile::open(path).map_err(failed)?));
    }
    let optimized = Options { data: maps, backends: edgepack::backends(), ..Options::default() };
    let plain = Options { no_optimize: true, ..optimized.clone() };
    for options in [optimized, plain] {
        judge(replay(program, &recorded, &registry, &options, Tolerance::default()), recorded.len())?;
    }
    Ok(())
}

fn judge(reports: Vec<Replayed>, runs: usize) -> Answer {
    if runs == 0 || reports.len() != runs {
        return Err(failed(format!("{} of {runs} runs were replayed", reports.len())));
    }
    for report in reports {
        match &report.failure {
            Some(ReplayError::Load(LoadError::Missing(missing))) => return Err(Outcome::Skipped(missing.to_string())),
            // An exporter's mistake: a delegate whose nodes make other sizes than the program has for their result.
            Some(ReplayError::Load(LoadError::Delegate { error, .. })) if error.message.contains("for a result of") => {
                return Err(Outcome::Skipped("a delegate's result does not fit the program".into()));
            }
            // An exporter's mistake: eager PyTorch, which has no bounds, answers more than the program has room for.
            Some(ReplayError::Run(RunError::Instruction { error, .. })) if error.message.contains("holds at most") => {
                return Err(Outcome::Skipped("the program bounds an output below what it computes".into()));
            }
            Some(error) => return Err(failed(format!("{}.{}: {error}", report.method, report.run))),
            None => {}
        }
        if let Some((index, comparison)) = report.outputs.iter().find(|(_, comparison)| !comparison.passes()) {
            return Err(failed(format!("{}.{}.out.{index}: {comparison:?}", report.method, report.run)));
        }
    }
    Ok(())
}

fn bundle(path: &Path) -> Answer {
    let bytes = fs::read(path).map_err(failed)?;
    let bundle = BundleRef::parse(&bytes, &Limits::default()).map_err(failed)?;
    let program = Program::from_bytes(bundle.program_bytes()).map_err(failed)?;
    let recorded = recorded_runs(&bundle).map_err(failed)?;
    judge(
        replay(&program, &recorded, &edgepack_kernels::registry(), &Options::default(), Tolerance::default()),
        recorded.len(),
    )
}

/// A data file holds exactly the tensors of the safetensors file beside it, byte for byte.
fn data(path: &Path) -> Answer {
    let file = DataFile::open(path).map_err(failed)?;
    let beside = path.with_extension("safetensors");
    if !beside.is_file() {
        return Ok(());
    }
    let bytes = fs::read(beside).map_err(failed)?;
    let tensors = safetensors::SafeTensors::deserialize(&bytes).map_err(failed)?;
    for (key, want) in tensors.tensors() {
        let have = file.data(&key).map_err(failed)?;
        let layout = file.layout(&key).map_err(failed)?;
        // What is stored in another order differs byte by byte; its size and shape must still agree.
        let contiguous =
            layout.as_ref().is_none_or(|layout| edgepack_format::tensor::is_contiguous(layout.dim_order()));
        let same =
            have.is_some_and(|have| if contiguous { *have == *want.data() } else { have.len() == want.data().len() });
        if !same || layout.is_some_and(|layout| layout.sizes() != want.shape()) {
            return Err(failed(format!("{key} differs")));
        }
    }
    Ok(())
}

fn trace(path: &Path) -> Answer {
    let bytes = fs::read(path).map_err(failed)?;
    let trace = TraceRef::parse(&bytes, &Limits::default()).map_err(failed)?;
    if trace.blocks().is_empty() { Err(failed("no blocks")) } else { Ok(()) }
}

/// No file of a real exporter breaks a rule.
fn verify(path: &Path) -> Answer {
    let bytes = fs::read(path).map_err(failed)?;
    let (extent, limits) = (FileExtent::of(&bytes), Limits::default());
    let findings: Findings = match path.extension().is_some_and(|extension| extension == "ptd") {
        true => ptd::verify::verify(&bytes, extent, &limits, Accept::default()).findings,
        false => pte::verify::verify_all(&bytes, extent, &limits).findings,
    };
    if findings.has_errors() { Err(failed(findings)) } else { Ok(()) }
}
