//! Payloads of delegates under the command: two backends that are known by their decoders, and what verify, inspect, size,
//! ops, dump and build make of them.

use std::path::PathBuf;
use std::{env, fs, process};

use edgepack::builder::bundle::BundleBuilder;
use edgepack::builder::sink;
use edgepack::format::check::{Checker, Path as Place, StructureRules};
use edgepack::format::limits::{Budget, Limits};
use edgepack::format::payload::{
    Description, Holder, Payload, PayloadFile, PayloadFormat, Payloads, Place as WeightPlace, Weight,
};
use edgepack::format::row::{Blob, Table};
use edgepack::format::rules::pte as rule;
use edgepack::format::wire;
use edgepack::prelude::*;
use edgepack_tests::command::{Ran, edgepack, edgepack_with};
use serde_json::Value;

use crate::example::export::{self, Linear, Mlp};
use crate::example::format::FusedMlpFormat;

/// A payload that holds its weights itself.
#[derive(Table, Clone, PartialEq, Debug, Default)]
#[table(crate = "edgepack::format")]
struct Lookup<'a> {
    /// One byte per entry.
    #[slot(0)]
    entries: Option<Blob<'a>>,
}

struct LookupFormat;

impl PayloadFormat for LookupFormat {
    fn backend(&self) -> &str {
        "Lookup"
    }

    fn rules(&self) -> StructureRules {
        let (malformed, misaligned) = (&rule::MALFORMED, &rule::MISALIGNED);
        StructureRules { malformed, misaligned, text: &rule::TEXT, limits: &rule::LIMITS }
    }

    fn verify(&self, payload: &Payload<'_>, path: &Place<'_>, out: &mut Checker) {
        match wire::Table::root(payload.bytes) {
            Ok(root) => out.table::<Lookup<'_>>(root, path),
            Err(error) => out.unreadable(path, error),
        }
    }

    fn describe(&self, payload: &Payload<'_>, _: &mut Budget) -> wire::Result<Description> {
        let entries = wire::Table::root(payload.bytes)?.vector(0, 1)?;
        let weights = entries.iter().map(|entries| Weight {
            name: "entries".to_owned(),
            kind: format!("u8[{}]", entries.len()),
            bytes: entries.len() as u64,
            place: WeightPlace::Offset(u64::from(entries.offset())),
        });
        Ok(Description { weights: weights.collect(), ..Description::default() })
    }
}

fn known() -> Payloads {
    edgepack::payloads().with(FusedMlpFormat).with(LookupFormat)
}

fn mlp() -> Vec<u8> {
    let linear = |name: &str, inputs: usize, outputs: usize| Linear {
        name: name.to_owned(),
        inputs,
        outputs,
        weight: (0..inputs * outputs).map(|i| i as f32).collect(),
        bias: vec![0.5; outputs],
    };
    export::export(&Mlp { layers: vec![linear("up", 24, 40), linear("down", 40, 8)] }, 5, None).unwrap().program
}

/// A program whose two methods call delegates of one payload with a thousand entries.
fn lookup(inline: bool) -> Vec<u8> {
    let entries: Vec<u8> = (0..1000u32).map(|i| (i * 7 % 251) as u8).collect();
    let payload = sink::flatbuffer(&Lookup { entries: Some(Blob(entries.into())) }, *b"LKP0").unwrap();
    let mut program = ProgramBuilder::new();
    program.inline_delegates(inline);
    for name in ["first", "second"] {
        let mut method = program.method(name);
        let x = method.input(TensorSpec::new(ScalarType::FLOAT, [4])).unwrap();
        let delegate = method.delegate("Lookup", payload.clone(), &[]).unwrap();
        let y = method.call_delegate(delegate, edgepack::builder::args![x], TensorSpec::like(x)).unwrap();
        method.output(y).unwrap();
    }
    program.finish().unwrap().to_bytes().unwrap()
}

/// A folder that is gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = env::temp_dir().join(format!("edgepack-payloads-{}-{name}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Remains of the folder do no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn json(ran: &Ran) -> Value {
    serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr))
}

fn text(ran: Ran) -> String {
    String::from_utf8(ran.stdout).unwrap()
}

/// Offset of the last payload of a program.
fn payload_offset(program: &[u8]) -> usize {
    let mut at = None;
    let file = PayloadFile::whole(program).unwrap();
    known().visit(&file, &Limits::DEFAULT, &mut |found, _, _| at = Some(found.offset));
    at.unwrap() as usize
}

#[test]
fn findings_inside_a_payload_carry_their_whole_place() {
    let folder = Folder::new("verify");
    let mut program = mlp();
    let sound = folder.file("sound.pte", &program);
    assert_eq!(edgepack_with(known(), &["verify", &sound]).status, 0);

    // The second layer takes 40 numbers, and its weights are of that size.
    let start = payload_offset(&program);
    let forty = 40u32.to_le_bytes();
    let bytes = &program[start..];
    let layers: Vec<usize> = (0..bytes.len() - 4).filter(|at| bytes[*at..*at + 4] == forty).collect();
    assert!(!layers.is_empty());
    for at in layers {
        program[start + at..start + at + 4].copy_from_slice(&41u32.to_le_bytes());
    }
    let broken = folder.file("broken.pte", &program);
    let ran = edgepack_with(known(), &["verify", &broken, "--json"]);
    assert_eq!(ran.status, 1);
    let found = json(&ran)["files"][0]["findings"].as_array().unwrap().clone();
    let place = "execution_plan[0].delegates[0].processed.layers[0].weight";
    let finding = found.iter().find(|finding| finding["path"] == place).unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!(finding["rule"], "MLP-L02");
    assert!(finding["message"].as_str().unwrap().contains("3840 bytes"), "{finding}");
    let offset = finding["offset"].as_u64().unwrap() as usize;
    assert!((start..program.len()).contains(&offset), "{offset} is before {start}");
    // Both methods have the payload.
    assert!(found.iter().any(|finding| finding["path"].as_str().unwrap().starts_with("execution_plan[1].")));

    // A command that does not know the backend does not report it.
    assert_eq!(edgepack(&["verify", &broken], Vec::new(), false).status, 0);
}

#[test]
fn a_payload_that_is_cut_to_nothing_is_a_finding_and_is_still_shown() {
    let folder = Folder::new("cut");
    let mut program = mlp();
    let start = payload_offset(&program);
    // The root table is said to be far outside.
    program[start..start + 4].copy_from_slice(&0xffff_fff0u32.to_le_bytes());
    let file = folder.file("cut.pte", &program);
    let ran = edgepack_with(known(), &["inspect", &file]);
    assert_eq!(ran.status, 1);
    let shown = text(ran);
    assert!(shown.contains("unreadable"), "{shown}");
    assert!(shown.contains("MLP-S01 execution_plan[0].delegates[0].processed at"), "{shown}");
}

#[test]
fn inspect_shows_nodes_weights_and_fields() {
    let folder = Folder::new("inspect");
    let file = folder.file("mlp.pte", &mlp());
    let shown = text(edgepack_with(known(), &["inspect", &file]));
    for line in [
        "execution_plan[0].delegates[0].processed  FusedMlp",
        "execution_plan[1].delegates[0].processed  FusedMlp",
        "fused layers, 3 values, 2 nodes, 4 weights",
        "0  h0 = linear_relu(x, \"up.packed\", \"up.bias\")",
        "1  h1 = linear(h0, \"down.packed\", \"down.bias\")",
        "up.packed    f32[24, 40]",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    assert!(!shown.contains("every field"));
    let all = text(edgepack_with(known(), &["inspect", &file, "--all"]));
    assert!(all.contains("layers 2 × Layer") && all.contains("x   f32[_, 24]  input 0"), "{all}");

    let document = json(&edgepack_with(known(), &["inspect", &file, "--json", "--all"]));
    let payload = &document["payloads"][1];
    assert_eq!(payload["backend"], "FusedMlp");
    assert_eq!(payload["nodes"][0]["operator"], "linear_relu");
    assert_eq!(payload["fields"]["layers"][1]["inputs"], 40);
    // Bytes of an unknown backend are what they were: a length and a place.
    let plain = json(&edgepack(&["inspect", &file, "--json"], Vec::new(), false));
    assert!(plain.get("payloads").is_none());
    assert_eq!(plain["methods"][0]["delegates"][0]["backend"], "FusedMlp");
}

#[test]
fn sizes_of_weights_come_out_of_the_payload_and_still_sum_up() {
    let folder = Folder::new("size");
    for inline in [true, false] {
        let program = lookup(inline);
        let file = folder.file("lookup.pte", &program);
        let opaque = json(&edgepack(&["size", &file, "--json"], Vec::new(), false));
        let document = json(&edgepack_with(known(), &["size", &file, "--json"]));
        let parts = document["parts"].as_array().unwrap();
        let sum: u64 = parts.iter().map(|part| part["bytes"].as_u64().unwrap()).sum();
        assert_eq!(sum, program.len() as u64);
        let weights = parts.iter().find(|part| part["what"].as_str().unwrap().contains("weights of delegate"));
        // Two delegates have one payload, whose entries count once.
        assert_eq!(weights.unwrap()["bytes"], 1000, "{document:#}");
        assert_eq!(document["tensors"].as_array().unwrap().len(), 1);
        assert_eq!(document["tensors"][0]["type"], "u8[1000]");
        assert_eq!(parts.len(), opaque["parts"].as_array().unwrap().len() + 1);
        assert!(opaque["tensors"].as_array().unwrap().is_empty());
    }
    // Weights that a payload names are where their keys are.
    let file = folder.file("mlp.pte", &mlp());
    let document = json(&edgepack_with(known(), &["size", &file, "--json"]));
    let names: Vec<&str> =
        document["tensors"].as_array().unwrap().iter().map(|tensor| tensor["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["up.packed", "down.packed", "up.bias", "down.bias"]);
}

#[test]
fn ops_lists_what_is_inside() {
    let folder = Folder::new("ops");
    let file = folder.file("mlp.pte", &mlp());
    let ran = edgepack_with(known(), &["ops", &file]);
    // This runtime has no such backend, whatever is known of its payloads.
    assert_eq!(ran.status, 4);
    let shown = text(ran);
    assert!(shown.contains("inside delegates  2") && shown.contains("linear_relu  2 nodes  f32  FusedMlp"), "{shown}");
    let document = json(&edgepack_with(known(), &["ops", &file, "--json"]));
    assert_eq!(document["inside_delegates"][1]["name"], "linear_relu");
    assert_eq!(document["missing"], 1);
}

#[test]
fn a_dump_shows_payloads_and_builds_the_same_bytes() {
    let folder = Folder::new("dump");
    for (name, program) in [("mlp", mlp()), ("inline", lookup(true)), ("segment", lookup(false))] {
        let file = folder.file(&format!("{name}.pte"), &program);
        let dump = edgepack_with(known(), &["dump", &file]);
        assert_eq!(dump.status, 0, "{}", dump.stderr);
        let document = json(&dump);
        let payloads = document["payloads"].as_array().unwrap();
        assert_eq!(payloads.len(), 2);
        assert_eq!(payloads[0]["path"], "execution_plan[0].delegates[0].processed");
        assert!(!payloads[0]["weights"].as_array().unwrap().is_empty());
        let (from, to) = (folder.file("dump.json", &dump.stdout), folder.0.join("again.pte"));
        let built = edgepack(&["build", &from, "-o", to.to_str().unwrap()], Vec::new(), false);
        assert_eq!(built.status, 0, "{}", built.stderr);
        assert_eq!(fs::read(&to).unwrap(), program, "{name}");
        // Without decoders the document is without descriptions, and builds the same.
        let plain = json(&edgepack(&["dump", &file], Vec::new(), false));
        assert!(plain.get("payloads").is_none());
        let mut without = document.clone();
        without.as_object_mut().unwrap().remove("payloads");
        assert_eq!(without, plain);
    }
}

#[test]
fn payloads_of_the_program_inside_a_bundle_are_looked_at() {
    let folder = Folder::new("bundle");
    let program = mlp();
    let bundle = BundleBuilder::new(&program).unwrap().to_bytes().unwrap();
    let inside = bundle.windows(program.len()).position(|window| window == program).unwrap();
    let start = inside + payload_offset(&program);
    let file = folder.file("sound.bpte", &bundle);
    let document = json(&edgepack_with(known(), &["inspect", &file, "--json"]));
    assert_eq!(document["payloads"][0]["path"], "program.execution_plan[0].delegates[0].processed");
    assert_eq!(document["payloads"][1]["offset"].as_u64(), Some(start as u64));
    let mut broken = bundle;
    broken[start..start + 4].copy_from_slice(&0xffff_fff0u32.to_le_bytes());
    let ran = edgepack_with(known(), &["verify", &folder.file("broken.bpte", &broken)]);
    assert_eq!(ran.status, 1);
    let shown = text(ran);
    assert!(shown.contains("MLP-S01 program.execution_plan[0].delegates[0].processed at"), "{shown}");
}

#[test]
fn looking_into_payloads_ends_with_the_budget() {
    let program = mlp();
    let file = PayloadFile::whole(&program).unwrap();
    let mut limits = Limits::DEFAULT;
    assert!(known().verify(&file, &limits).is_empty());
    let mut cut_off = 0;
    for visits in 0..200 {
        limits.visits = visits;
        let findings = known().verify(&file, &limits);
        let ids = [rule::LIMITS.id, "MLP-S04"];
        assert!(findings.iter().all(|finding| ids.contains(&finding.rule.id)), "{visits}: {findings}");
        cut_off += usize::from(findings.has_errors());
    }
    assert!((20..200).contains(&cut_off), "{cut_off}");
    // A payload that may not be read is said to be too large, and is not read.
    limits = Limits::DEFAULT;
    limits.segment_bytes = 8;
    let findings = known().verify(&file, &limits);
    assert!(findings.iter().all(|finding| finding.message.contains("8 may be read")) && findings.has_errors());
}

#[test]
fn no_damage_to_a_program_or_its_payloads_breaks_a_walk() {
    for program in [mlp(), lookup(true)] {
        let limits = Limits::hostile();
        let end = (payload_offset(&program) + 512).min(program.len());
        let (mut walked, mut found) = (0, 0);
        // Weights behind the payloads are not looked at.
        for at in 8..end {
            let mut broken = program.clone();
            broken[at] ^= 1 << (at % 8);
            for bytes in [&broken[..], &program[..at]] {
                let Ok(file) = PayloadFile::whole(bytes) else { continue };
                let findings = known().verify(&file, &limits);
                assert!(findings.as_slice().len() <= limits.findings);
                found += usize::from(findings.has_errors());
                known().visit(&file, &limits, &mut |found, _, out| {
                    let _ = found.format.describe(&found.payload, out.budget());
                    walked += 1;
                });
            }
        }
        assert!(walked > 1000 && found > 15, "{walked} payloads, {found} with findings");
    }
}

#[test]
fn visits_say_options_calls_named_data_and_holder() {
    let program = mlp();
    let file = PayloadFile::whole(&program).unwrap();
    let mut seen = Vec::new();
    known().visit(&file, &Limits::DEFAULT, &mut |found, path, _| {
        let Payload { options, calls, named_data, .. } = found.payload;
        assert_eq!(options[0].key.as_deref(), Some("threads"));
        assert_eq!((calls.len(), calls[0].args.len()), (1, 2));
        assert!(calls[0].args.iter().all(Option::is_some));
        assert_eq!(named_data.size("down.bias"), Some(32));
        assert_eq!(named_data.size("down"), None);
        assert!(matches!(found.holder, Holder::Segment(_)));
        seen.push(path.to_string());
    });
    assert_eq!(seen, [0, 1].map(|method| format!("execution_plan[{method}].delegates[0].processed")));
}
