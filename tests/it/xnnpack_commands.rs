//! XNNPACK payloads under the command: what each command makes of them, and every payload of the corpora taken apart and
//! written again.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use edgepack::builder::args;
use edgepack::builder::xnnpack::{PayloadBuilder, Quant, Scales, Storage, ValueSpec};
use edgepack::edit::{Opened, build, dump_described};
use edgepack::format::limits::Limits;
use edgepack::format::payload::PayloadFile;
use edgepack::format::xnnpack::{Datatype, FullyConnected, Node2x1, NodeUnion};
use edgepack::prelude::*;
use edgepack_tests::command::{Ran, edgepack};
use serde_json::{Value, json};

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus/models")
}

fn model(name: &str) -> String {
    models().join(name).display().to_string()
}

/// A folder that is gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = env::temp_dir().join(format!("edgepack-xnnpack-{}-{name}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        fs::write(self.0.join(name), bytes).unwrap();
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What remains of it does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(args: &[&str]) -> Ran {
    edgepack(args, Vec::new(), false)
}

fn json_of(args: &[&str]) -> (Value, u8) {
    let ran = run(args);
    let parsed = serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr));
    (parsed, ran.status)
}

fn text(args: &[&str]) -> String {
    String::from_utf8(run(args).stdout).unwrap()
}

/// A program as the library writes it: an exporter may lay its rows out otherwise.
fn written(file: &str) -> Vec<u8> {
    Opened::open(file).unwrap().package().unwrap().to_bytes().unwrap()
}

/// Offset of the first payload of a program.
fn payload_offset(program: &[u8]) -> usize {
    let mut at = None;
    let file = PayloadFile::whole(program).unwrap();
    edgepack::payloads().visit(&file, &Limits::DEFAULT, &mut |found, _, _| {
        at.get_or_insert(found.offset);
    });
    at.expect("a payload") as usize
}

/// A sum of two inputs, whose second result no instruction of this runtime makes: unsigned bytes are refused.
fn half_refused() -> Vec<u8> {
    let mut payload = PayloadBuilder::new().storage(Storage::Region);
    let spec = ValueSpec::new(Datatype::FP32, [2, 3]);
    let (a, b) = (payload.input(spec.clone()).unwrap(), payload.input(spec.clone()).unwrap());
    let sum = payload.value(spec.clone()).unwrap();
    let scales = Scales::Inline(vec![0.5; 3]);
    let weights = ValueSpec::new(Datatype::QCINT8, [3, 3]).quantized(Quant::PerChannel { channel_dim: 0, scales });
    let (nine, three) = (payload.constant(vec![1; 9]).unwrap(), payload.constant(vec![0; 12]).unwrap());
    let weights = payload.constant_value(weights, nine).unwrap();
    let bias = payload.constant_value(ValueSpec::new(Datatype::FP32, [3]), three).unwrap();
    let y = payload.output(spec).unwrap();
    let node = Node2x1 { input1_id: a.id(), input2_id: b.id(), output_id: sum.id(), flags: 0 };
    payload.node_with(NodeUnion::Add(node), Some((0.0, 6.0)), 0);
    let (input1_id, filter_id, bias_id) = (sum.id(), weights.id(), bias.id());
    let product = FullyConnected { input1_id, filter_id, bias_id, output_id: y.id(), flags: 0 };
    payload.node(NodeUnion::FullyConnected(product));
    let payload = payload.finish().unwrap();
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let spec = || TensorSpec::new(ScalarType::FLOAT, [2, 3]);
    let (a, b) = (forward.input(spec()).unwrap(), forward.input(spec()).unwrap());
    let delegate = forward.delegate("XnnpackBackend", payload.bytes, &[]).unwrap();
    let y = forward.call_delegate(delegate, args![a, b], spec()).unwrap();
    forward.output(y).unwrap();
    program.finish().unwrap().to_bytes().unwrap()
}

#[test]
fn every_payload_is_taken_apart_and_written_again() {
    let mut folders = vec![models()];
    match env::var_os("EDGEPACK_CORPUS").filter(|value| !value.is_empty()) {
        Some(root) => folders.extend(["models", "ops_xnnpack", "llm"].map(|name| Path::new(&root).join(name))),
        None => println!("EDGEPACK_CORPUS is not set: only the corpus of the repository is looked at"),
    }
    let (mut programs, mut payloads) = (0, 0);
    for folder in &folders {
        let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "pte"));
        files.sort();
        for path in files {
            let bytes = fs::read(&path).unwrap();
            let file = PayloadFile::whole(&bytes).unwrap();
            let mut described = Vec::new();
            edgepack::payloads().visit(&file, &Limits::DEFAULT, &mut |_, path, _| {
                described.push(json!({ "path": path.to_string(), "backend": "XnnpackBackend" }));
            });
            if described.is_empty() {
                continue;
            }
            let opened = Opened::from_bytes(bytes.clone()).unwrap();
            let dumped = dump_described(&opened.package().unwrap(), &described, Default::default()).unwrap();
            let document: Value = serde_json::from_str(&dumped).unwrap();
            for payload in document["payloads"].as_array().unwrap() {
                assert_eq!(payload["stored"], "rows", "{}: {}", path.display(), payload["path"]);
            }
            let built = build(&dumped).unwrap();
            for (index, segment) in opened.package().unwrap().segments.iter().enumerate() {
                let same = built.segments[index].same(segment).unwrap();
                assert!(same, "{}: segment {index} comes back otherwise", path.display());
            }
            let written = opened.package().unwrap().to_bytes().unwrap();
            assert!(built.to_bytes().unwrap() == written, "{}", path.display());
            programs += 1;
            payloads += described.len();
        }
    }
    println!("{payloads} payloads of {programs} programs came back byte for byte");
    assert!(payloads > if folders.len() > 1 { 450 } else { 40 }, "{payloads}");
}

#[test]
fn a_payload_in_another_layout_stays_bytes() {
    let folder = Folder::new("layout");
    let mut program = fs::read(model("mlp_xnnpack_int8.pte")).unwrap();
    // Nothing is between header and flatbuffer.
    let at = payload_offset(&program) + 30;
    program[at] = 7;
    let file = folder.file("padded.pte", &program);
    let document: Value = serde_json::from_str(&text(&["dump", &file])).unwrap();
    assert_eq!(document["payloads"][0]["stored"], "bytes");
    assert!(document["payloads"][0]["fields"].is_object());
    let dumped = folder.file("padded.json", document.to_string().as_bytes());
    let built = folder.path("built.pte");
    assert_eq!(run(&["build", &dumped, "-o", &built]).status, 0);
    assert!(fs::read(built).unwrap() == written(&file));

    let document: Value = serde_json::from_str(&text(&["dump", &model("mlp_xnnpack_int8.pte")])).unwrap();
    assert_eq!(document["payloads"][0]["stored"], "rows");
    assert!(document["payloads"][0]["fields"].is_null());
    let payload = document["segments"].as_array().unwrap().iter().find_map(|segment| segment.get("xnnpack")).unwrap();
    assert_eq!((&payload["container"], &payload["constants"]), (&json!("header"), &json!("")));
    assert_eq!(payload["graph"]["xnodes"].as_array().unwrap().len(), 4);
}

#[test]
fn findings_stand_at_the_place_of_the_payload() {
    let folder = Folder::new("findings");
    let mut program = fs::read(model("mlp_xnnpack_int8.pte")).unwrap();
    let start = payload_offset(&program);
    // The scale of the second value is no longer a number.
    let scale = 0.014_361_434f32.to_le_bytes();
    let at = (start..program.len() - 4).find(|at| program[*at..*at + 4] == scale).unwrap();
    program[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    let (found, status) = json_of(&["verify", &folder.file("broken.pte", &program), "--json"]);
    assert_eq!(status, 1);
    let findings = found["files"][0]["findings"].as_array().unwrap();
    let finding = &findings[0];
    assert!(finding["rule"].as_str().unwrap().starts_with("XNN-"), "{finding}");
    let place = "execution_plan[0].delegates[0].processed.xvalues[1]";
    assert!(finding["path"].as_str().unwrap().starts_with(place), "{finding}");
    let offset = finding["offset"].as_u64().unwrap() as usize;
    assert!((start..program.len()).contains(&offset), "{offset} is not in the payload at {start}");
    let rule = finding["rule"].as_str().unwrap();
    assert_eq!(run(&["explain", rule]).status, 0);
}

#[test]
fn a_call_that_does_not_fit_its_payload_is_a_finding() {
    let opened = Opened::open(model("mlp_xnnpack_int8.pte")).unwrap();
    let mut package = opened.package().unwrap();
    let plan = &mut package.program_mut().unwrap().execution_plan.as_mut().unwrap().to_mut().unwrap()[0];
    let chain = &mut plan.chains.as_mut().unwrap().to_mut().unwrap()[0];
    let instructions = chain.instructions.as_mut().unwrap().to_mut().unwrap();
    let mut swapped = false;
    for instruction in instructions {
        use edgepack::format::pte::InstructionArguments;
        if let Some(InstructionArguments::DelegateCall(call)) = &mut instruction.instr_args {
            let mut args: Vec<i32> = call.args.iter().flat_map(|args| args.iter()).collect();
            args.reverse();
            (call.args, swapped) = (Some(args.into()), true);
        }
    }
    assert!(swapped);
    let program = package.to_bytes().unwrap();
    let findings = edgepack::payloads().verify(&PayloadFile::whole(&program).unwrap(), &Limits::DEFAULT);
    let place = "execution_plan[0].delegates[0].processed.arguments[0]";
    assert!(findings.iter().any(|finding| finding.path == place), "{findings}");
}

#[test]
fn nodes_and_weights_are_shown() {
    let file = model("mlp_xnnpack_int8.pte");
    let (shown, status) = json_of(&["inspect", &file, "--json"]);
    assert_eq!(status, 0);
    let payload = &shown["payloads"][0];
    assert_eq!(payload["operators"], json!({ "Convert": 2, "FullyConnected": 2 }));
    assert_eq!(payload["nodes"][1]["fused"], "clamp[0, inf]");
    let line = "%4 = FullyConnected(%1, w %2 qcint8[16, 8], b %3 qcint32[16]) clamp[0, inf] -> qint8[2, 16]";
    assert_eq!(payload["nodes"][1]["text"], line);
    let weight = &payload["weights"][0];
    assert_eq!((&weight["name"], &weight["type"]), (&json!("FullyConnected 1 w"), &json!("qcint8[16, 8]")));
    assert!(weight["place"]["key"].is_string(), "{weight}");
    assert_eq!(payload["weights"][1]["name"], "FullyConnected 1 w scales");
    assert!(text(&["inspect", &file]).contains(line));
    assert!(text(&["print", &file]).contains(&format!("//   {line}\n")));
    let (size, _) = json_of(&["size", &file, "--json"]);
    let tensors = size["tensors"].as_array().unwrap();
    assert!(tensors.iter().any(|tensor| tensor["name"] == "FullyConnected 1 w" && tensor["bytes"] == 128), "{size}");
}

#[test]
fn text_with_payloads_parses_back() {
    let folder = Folder::new("parse");
    let (file, listing, back) = (model("mlp_xnnpack_int8.pte"), folder.path("listing.txt"), folder.path("back.pte"));
    assert_eq!(run(&["print", &file, "-o", &listing]).status, 0);
    assert_eq!(run(&["parse", &listing, "-o", &back]).status, 0);
    assert!(fs::read(back).unwrap() == written(&file));
}

#[test]
fn refused_nodes_are_named() {
    let folder = Folder::new("ops");
    let file = folder.file("half.pte", &half_refused());
    let (ops, status) = json_of(&["ops", &file, "--json"]);
    assert_eq!((status, &ops["refused_nodes"], &ops["missing"]), (4, &json!(1), &json!(0)));
    let nodes = ops["nodes"].as_array().unwrap();
    assert_eq!(nodes.iter().map(|node| node["runs"].as_bool().unwrap()).collect::<Vec<_>>(), [true, false]);
    assert!(nodes[1]["refused"].as_str().unwrap().contains("weights are quantised"), "{}", nodes[1]);
    // The same that loading says of the first.
    let program = Program::from_bytes(half_refused()).unwrap();
    let options = Options { backends: edgepack::backends(), ..Options::default() };
    let error = program.method("forward").unwrap().load(&kernels::registry(), &options).err().unwrap().to_string();
    assert!(error.contains(nodes[1]["refused"].as_str().unwrap()), "{error}");

    let (ops, status) = json_of(&["ops", &model("mlp_xnnpack_int8.pte"), "--json"]);
    assert_eq!((status, &ops["refused_nodes"]), (0, &json!(0)));
    assert!(ops["nodes"].as_array().unwrap().iter().all(|node| node["runs"] == true));
}

#[test]
fn differences_are_those_of_nodes() {
    let folder = Folder::new("diff");
    let program = half_refused();
    let mut other = program.clone();
    let start = payload_offset(&other);
    let six = 6f32.to_le_bytes();
    let at = (start..other.len() - 4).find(|at| other[*at..*at + 4] == six).unwrap();
    other[at..at + 4].copy_from_slice(&5f32.to_le_bytes());
    let (left, right) = (folder.file("left.pte", &program), folder.file("right.pte", &other));
    let (found, status) = json_of(&["diff", &left, &right, "--json"]);
    assert_eq!(status, 1);
    let differences = found["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 1, "{differences:#?}");
    let path = differences[0]["path"].as_str().unwrap();
    assert!(path.starts_with("execution_plan[0].delegates[0].processed.xnodes[0]"), "{path}");
    assert!(path.ends_with("output_max"), "{path}");
}

#[test]
fn weights_are_taken_out() {
    let folder = Folder::new("extract");
    let (file, out) = (model("mlp_xnnpack_int8.pte"), folder.path("weight.bin"));
    assert_eq!(run(&["extract", &file, "--delegate", "0", "--weight", "0", "-o", &out]).status, 0);
    let bytes = fs::read(&out).unwrap();
    let (shown, _) = json_of(&["inspect", &file, "--json"]);
    let key = shown["payloads"][0]["weights"][0]["place"]["key"].as_str().unwrap();
    let named = folder.path("named.bin");
    assert_eq!(run(&["extract", &file, "--named", key, "-o", &named]).status, 0);
    assert_eq!((bytes.len(), &bytes), (128, &fs::read(&named).unwrap()));
    let missing = run(&["extract", &file, "--delegate", "0", "--weight", "99", "-o", &out]);
    assert!(missing.status == 2 && missing.stderr.contains("the file has 8 weights"), "{}", missing.stderr);
    assert_eq!(run(&["extract", &file, "--weight", "0", "-o", &out]).status, 2);
}

#[test]
fn weights_in_data_files_are_looked_for_there() {
    let folder = Folder::new("data");
    let (program, data) = (folder.path("split.pte"), folder.path("weights.ptd"));
    let split = run(&["split", &model("mlp_xnnpack_int8.pte"), "-o", &program, "--data-out", &data, "--named"]);
    assert_eq!(split.status, 0, "{}", split.stderr);
    assert!(text(&["inspect", &program]).contains("in a data file that was not given"));
    let (alone, status) = json_of(&["verify", &program, "--json"]);
    assert_eq!((status, &alone["files"][0]["findings"]), (0, &json!([])));
    let ran = run(&["verify", &program, "--data", &data]);
    assert_eq!(ran.status, 0, "{}", String::from_utf8_lossy(&ran.stdout));
    let (ops, status) = json_of(&["ops", &program, "--json"]);
    assert_eq!(status, 0);
    assert!(ops["nodes"].as_array().unwrap().iter().all(|node| node["runs"].is_null()), "{ops}");
    let out = folder.path("weight.bin");
    let ran = run(&["extract", &program, "--delegate", "0", "--weight", "0", "-o", &out]);
    assert!(ran.status == 1 && ran.stderr.contains("data file that was not given"), "{}", ran.stderr);

    // A data file that has other keys.
    let (rest, other) = (folder.path("rest.pte"), folder.path("other.ptd"));
    let split = run(&["split", &model("cnn_xnnpack_int8.pte"), "-o", &rest, "--data-out", &other, "--named"]);
    assert_eq!(split.status, 0, "{}", split.stderr);
    let (found, status) = json_of(&["verify", &program, "--data", &other, "--json"]);
    assert_eq!(status, 1);
    let findings = found["files"][0]["findings"].as_array().unwrap();
    let place = "execution_plan[0].delegates[0].processed.constant_data[1]";
    assert!(findings.iter().any(|finding| finding["path"] == place), "{findings:#?}");
}
