//! Programs that were lowered to XNNPACK, run by the backend that this SDK brings.
//!
//! Models whose nodes are integers from end to end answer what XNNPACK answers, to the bit. `EDGEPACK_CORPUS` adds larger
//! ones to those of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use edgepack_cli::cases::{Recorded, from_safetensors};
use edgepack_cli::compare::Tolerance;
use edgepack_cli::formats::pte::replay;
use edgepack_executor::{Method, Options};
use edgepack_loader::Program;
use edgepack_tests::payload::Names;

/// The folders with models: the repository's, and the larger corpus if it is there.
fn folders() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus/models");
    let larger = std::env::var_os("EDGEPACK_CORPUS").filter(|folder| !folder.is_empty());
    match larger {
        Some(folder) => vec![own, Path::new(&folder).join("models")],
        None => {
            println!("EDGEPACK_CORPUS is not set: only the models of the repository run");
            vec![own]
        }
    }
}

fn options(threads: usize, no_optimize: bool) -> Options {
    Options { threads: Some(threads), no_optimize, backends: edgepack::backends(), ..Options::default() }
}

fn open(path: &Path) -> (Program, Vec<Recorded>) {
    let cases = fs::read(path.with_extension("safetensors")).unwrap();
    (Program::open(path).unwrap(), from_safetensors(&cases).unwrap())
}

/// Options of every form of running a program.
fn ways() -> impl Iterator<Item = Options> {
    [(1, false), (2, false), (1, true)].into_iter().map(|(threads, plain)| options(threads, plain))
}

/// Models whose nodes are integers, but for conversions at both ends. Those of the repository have one kind of node each.
fn integer_models() -> Vec<PathBuf> {
    let [own, larger @ ..] = &folders()[..] else { return Vec::new() };
    let files = fs::read_dir(own).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // A sigmoid in front of a conversion may move a number by one quantum.
    let is_integer = |path: &PathBuf| name(path).ends_with("_xnnpack_int8.pte") && name(path) != "mul_xnnpack_int8.pte";
    let mut models: Vec<PathBuf> = files.filter(is_integer).collect();
    let names = ["mobilenet_v2_025_xnnpack_int8", "squeezenet_xnnpack_int8", "encoder_xnnpack_int8"];
    models.extend(larger.iter().flat_map(|folder| names.map(|name| folder.join(name).with_extension("pte"))));
    models
}

#[test]
fn integer_models_answer_what_xnnpack_answers_to_the_bit() {
    let models = integer_models();
    assert!(models.len() >= 26, "{models:?}");
    for path in &models {
        let (program, recorded) = open(path);
        for options in ways() {
            let exact = Tolerance { rtol: Some(0.0), atol: Some(0.0) };
            for report in replay(&program, &recorded, &edgepack_kernels::registry(), &options, exact) {
                assert!(report.failure.is_none(), "{}: {:?}", path.display(), report.failure);
                assert!(report.outputs.iter().all(|(_, found)| found.passes()), "{}", path.display());
            }
        }
    }
    println!("{} integer models ran", models.len());
}

#[test]
fn nodes_are_instructions_of_the_method() {
    let names = instructions("mlp_xnnpack_int8.pte");
    assert!(names.iter().any(|name| name == "xnnpack::product.int8"), "{names:?}");
    assert!(!names.iter().any(|name| name == "XnnpackBackend"), "{names:?}");
}

/// Their answers are those of XNNPACK, to the bit, as of all integer models.
#[test]
fn a_clamp_is_part_of_the_node_before_it() {
    for (model, before) in [("clampq", "xnnpack::product.int8"), ("cnn", "xnnpack::convolution.int8")] {
        let names = instructions(&format!("{model}_xnnpack_int8.pte"));
        assert!(names.iter().any(|name| name == before), "{model}: {names:?}");
        assert!(!names.iter().any(|name| name == "xnnpack::table.int8"), "{model}: {names:?}");
    }
}

/// Names of the instructions of a model of the repository.
fn instructions(model: &str) -> Vec<String> {
    let (program, recorded) = open(&folders()[0].join(model));
    let mut method = Method::load(&program, "forward", &edgepack_kernels::registry(), &options(1, false)).unwrap();
    let inputs: Vec<_> = recorded[0].inputs.values().map(|input| input.view()).collect();
    let mut names = Names::default();
    method.run_observed(&inputs, Some(&mut names)).unwrap();
    names.0
}
