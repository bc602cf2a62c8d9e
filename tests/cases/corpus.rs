//! Every kind of case of a corpus folder: the one in the repository, and the one `EDGEPACK_CORPUS` names.
//!
//! A case that cannot run here says what is missing and passes as skipped; `EDGEPACK_STRICT=1` makes skips failures.
//! [`summary`] prints a line per kind, `KIND: N passed, N failed, N skipped`. A folder holds `models/`, `ops/`,
//! `ops_xnnpack/`, `opinfo/`, `llm/` (`NAME.pte`, `NAME.safetensors`, `NAME.*.ptd`), `pt2/NAME/` (`model.pte`,
//! `model.pt2`, `model_raw.pt2`, archives of other kinds: `edge.pt2`, `serde.pt2`, `quantised.pt2`, `delegated.pt2`,
//! `record.etrecord`; `cases.safetensors`), `lowering/` and `xnnpack_lowering/` (`NAME.pt2`, `NAME.safetensors`),
//! `bundled/` (`NAME.bpte`), `data/` (`NAME.ptd`, `NAME.safetensors`), `trace/` (`NAME.etdp`), `edgetpu/`, `mlf/NAME/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::{env, fs};

use edgepack_cli::cases::{ReplayError, Replayed, from_safetensors, registry_for};
use edgepack_cli::compare::Tolerance;
use edgepack_cli::formats::bundle::recorded_runs;
use edgepack_cli::formats::pte::replay;
use edgepack_executor::{LoadError, Options, RunError};
use edgepack_exir::archive::Archive;
use edgepack_exir::backends::xnnpack;
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
use libtest_mimic::{Failed, Trial};

use crate::language;

/// Reason that a case did not pass.
enum Outcome {
    Failed(String),
    /// Reason that the case cannot run here.
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
    failed: usize,
    skipped: BTreeMap<String, usize>,
}

/// By folder and kind.
static TALLIES: LazyLock<Mutex<BTreeMap<(String, String), Tally>>> = LazyLock::new(Mutex::default);

/// Lists all cases of all folders.
pub fn trials() -> Vec<Trial> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus");
    let mut trials = run("own", &own);
    assert!(trials.len() > 200, "only {} cases in {}", trials.len(), own.display());
    match env::var_os("EDGEPACK_CORPUS").filter(|value| !value.is_empty()) {
        Some(folder) => {
            let larger = run("larger", Path::new(&folder));
            assert!(!larger.is_empty(), "EDGEPACK_CORPUS: there are no cases in {}", folder.display());
            trials.extend(larger);
        }
        None => println!("EDGEPACK_CORPUS is not set: only the corpus of the repository runs"),
    }
    trials
}

/// Prints how many cases of each kind ran, and why others did not.
pub fn summary() {
    let tallies = TALLIES.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for ((folder, kind), tally) in &*tallies {
        let skips: usize = tally.skipped.values().sum();
        println!("{folder}, {kind}: {} passed, {} failed, {skips} skipped", tally.passed, tally.failed);
        tally.skipped.iter().for_each(|(reason, count)| println!("  skipped {count}: {reason}"));
        passed += tally.passed;
        failed += tally.failed;
        skipped += skips;
    }
    if !tallies.is_empty() {
        println!("corpus cases: {passed} passed, {failed} failed, {skipped} skipped\n");
    }
}

/// One case as a test.
fn trial(
    folder: &'static str,
    kind: &'static str,
    name: String,
    judge: impl FnOnce() -> Answer + Send + 'static,
) -> Trial {
    Trial::test(format!("corpus::{folder}::{kind}::{name}"), move || {
        let strict = env::var_os("EDGEPACK_STRICT").is_some_and(|value| value != "0");
        let answer = judge();
        let mut tallies = TALLIES.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = tallies.entry((folder.to_owned(), kind.to_owned())).or_default();
        match answer {
            Ok(()) => tally.passed += 1,
            Err(Outcome::Failed(message)) => {
                tally.failed += 1;
                return Err(Failed::from(message));
            }
            Err(Outcome::Skipped(reason)) => {
                *tally.skipped.entry(reason.clone()).or_default() += 1;
                if strict {
                    return Err(Failed::from(reason));
                }
            }
        }
        Ok(())
    })
}

/// Cases of a kind that are a file each.
fn each(
    folder: &'static str,
    kind: &'static str,
    paths: Vec<PathBuf>,
    judge: impl Fn(&Path) -> Answer + Copy + Send + 'static,
) -> Vec<Trial> {
    let one = |path: PathBuf| {
        let below = path.parent().filter(|parent| parent.parent().is_some_and(|kind| kind.ends_with("pt2")));
        let named = below.and_then(Path::file_name).or(path.file_name());
        let name = named.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        trial(folder, kind, name, move || judge(&path))
    };
    paths.into_iter().map(one).collect()
}

/// All cases of a folder.
fn run(name: &'static str, folder: &Path) -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut files_of = |kind, paths, judge: fn(&Path) -> Answer| trials.extend(each(name, kind, paths, judge));
    for kind in ["models", "ops", "ops_xnnpack", "opinfo"] {
        files_of(kind, files(&folder.join(kind), "pte"), |path| program(path, &siblings(path)));
    }
    files_of("llm", files(&folder.join("llm"), "pte"), |path| answer(language::judge(path)));
    files_of("pt2", archives(folder, "model.pte"), |path| {
        replayed(path, &path.with_file_name("cases.safetensors"), &[])
    });
    files_of("pt2_archives", archives(folder, "model.pt2"), beside);
    files_of("pt2_raw_archives", archives(folder, "model_raw.pt2"), beside);
    files_of("lowering", files(&folder.join("lowering"), "pt2"), |path| {
        lowered(path, &path.with_extension("safetensors"))
    });
    let exported = ["model.pt2", "model_raw.pt2"].into_iter().flat_map(|name| archives(folder, name));
    files_of("xnnpack", exported.collect(), |path| through_xnnpack(path, &path.with_file_name("cases.safetensors")));
    for kind in ["lowering", "xnnpack_lowering"] {
        files_of(kind, files(&folder.join(kind), "pt2"), |path| {
            through_xnnpack(path, &path.with_extension("safetensors"))
        });
    }
    let kinds = [("edge", "edge.pt2"), ("serde", "serde.pt2"), ("quantised", "quantised.pt2")];
    for (kind, file) in kinds.into_iter().chain([("record", "record.etrecord")]) {
        files_of(kind, archives(folder, file), written_again);
    }
    files_of("delegated", archives(folder, "delegated.pt2"), delegated);
    files_of("bundled", files(&folder.join("bundled"), "bpte"), bundle);
    files_of("data", files(&folder.join("data"), "ptd"), data);
    files_of("trace", files(&folder.join("trace"), "etdp"), trace);
    files_of("verify", verifiable(folder), verify);
    let packages = folder.join("edgetpu");
    let with = |extension| edgetpu::beside(&packages, extension);
    files_of("edgetpu_facts", with("facts.json"), |path| answer(edgetpu::facts(path)));
    files_of("edgetpu_goldens", with("golden.json"), |path| answer(edgetpu::goldens(path)));
    files_of("edgetpu_runs", with("golden.json"), |path| answer(edgetpu::runs(path)));
    files_of("edgetpu_rebuilt", with("golden.json"), |path| answer(edgetpu::rebuild(path)));
    let models = with("golden.json").into_iter();
    let models = models.filter(|path| path.extension().is_some_and(|found| found == "tflite")).collect();
    files_of("edgetpu_embedded", models, |path| answer(edgetpu::reembed(path)));

    for (kind, cases) in [
        ("edgetpu_sharing", edgetpu::sharing(&packages)),
        ("edgetpu_broken", edgetpu::broken(&packages)),
        ("edgetpu_options", edgetpu::options(&packages)),
        ("edgetpu_differing", edgetpu::differing(&packages)),
        ("edgetpu_signatures", edgetpu::signatures(&packages)),
    ] {
        trials.extend(cases.into_iter().map(|(case, judge)| trial(name, kind, case, || answer(judge()))));
    }
    let libraries = folder.join("mlf");
    for (kind, packages, judge) in [
        ("mlf_facts", mlf::packages(&libraries), mlf::facts as Judge),
        ("mlf_rebuilt", mlf::packages(&libraries), mlf::rebuilt),
        ("mlf_runs", mlf::packages(&libraries), mlf::runs),
        #[cfg(unix)]
        ("mlf_child_runs", mlf::packages(&libraries), mlf::child_runs),
        ("mlf_traces", mlf::traced(&libraries), mlf::trace),
    ] {
        for (path, facts) in packages {
            let case = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            trials.push(trial(name, kind, case, move || answer(judge(&path, &facts))));
        }
    }
    trials
}

/// Judge of a package by the facts about it.
type Judge = fn(&Path, &serde_json::Value) -> mlf::Answer;

fn answer(answer: Result<(), String>) -> Answer {
    answer.map_err(Outcome::Failed)
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

/// The data files of a program: `NAME.*.ptd` next to `NAME.pte`.
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

/// Checks that the program that an archive is lowered to gives what was recorded, in both forms of lowering.
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

/// Checks that a program gives what was recorded when XNNPACK computes what it can of it.
fn through_xnnpack(path: &Path, cases: &Path) -> Answer {
    let program = Archive::open(path).and_then(|archive| archive.program()).map_err(failed)?;
    let mut manager = lower::ProgramManager::new(lower::Options::default());
    manager.keep_whole(xnnpack::whole_operators()).add("forward", program).map_err(failed)?;
    xnnpack::delegate(&mut manager, &lower::ByName::default()).map_err(failed)?;
    let bytes = manager.finish().and_then(|built| Ok(built.to_bytes()?)).map_err(failed)?;
    run_recorded(&Program::from_bytes(bytes).map_err(failed)?, cases, &[])
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

/// Checks that what backends made of parts of a program arrives in the file: their calls, options and data.
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

/// Checks that a data file holds exactly the tensors of the safetensors file next to it, byte for byte.
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
        // A tensor that is stored in another order differs byte by byte; its size and shape must still agree.
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
