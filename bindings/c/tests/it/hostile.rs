//! Files of every hostile manifest, through every function that takes a file: an error or a result, never a crash.

use std::path::PathBuf;

use edgepack_c::data::*;
use edgepack_c::error::EdgepackCode;
use edgepack_c::findings::*;
use edgepack_c::limits::{EdgepackLimits, EdgepackPreset, edgepack_limits_close, edgepack_limits_new};
use edgepack_c::method::*;
use edgepack_c::pointer::In;
use edgepack_c::program::*;
use edgepack_c::report::*;
use edgepack_c::signature::*;
use edgepack_c::text::EdgepackText;
use edgepack_c::value::*;

use crate::support::*;

/// Every bad file, with what its manifest says of it.
fn hostile() -> Vec<(PathBuf, serde_json::Value, String)> {
    let mut files = Vec::new();
    for family in std::fs::read_dir(root().join("tests/data/hostile")).unwrap() {
        let family = family.unwrap();
        let text = std::fs::read_to_string(family.path().join("manifest.json")).unwrap();
        let lines: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        let name = family.file_name().to_string_lossy().into_owned();
        files.extend(
            lines.into_iter().map(|line| (family.path().join(line["file"].as_str().unwrap()), line, name.clone())),
        );
    }
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files.dedup_by(|a, b| a.0 == b.0);
    assert!(files.len() > 500, "{} bad files", files.len());
    files
}

/// Uses a program as far as it goes.
fn use_program(program: EdgepackProgram) {
    let mut count = 0;
    call(|error| edgepack_program_method_count(program, out(&mut count), error)).unwrap();
    for index in 0..count {
        let mut name = EdgepackText { data: In::NULL, len: 0 };
        call(|error| edgepack_program_method_name(program, index, out(&mut name), error)).unwrap();
        let Ok(name) = std::ffi::CString::new(read(name)) else { continue };
        let mut signature = EdgepackSignature { id: 0 };
        if call(|error| edgepack_signature_of(program, text(&name), out(&mut signature), error)).is_ok() {
            let mut counts = EdgepackCounts { inputs: 0, outputs: 0, backends: 0, memories: 0, instructions: 0 };
            call(|error| edgepack_signature_counts(signature, out(&mut counts), error)).unwrap();
            for index in 0..counts.inputs {
                let name = EdgepackText { data: In::NULL, len: 0 };
                let mut port = EdgepackPort { value: nothing(), dynamic: 0, name };
                call(|error| edgepack_signature_input(signature, index, out(&mut port), error)).unwrap();
            }
            edgepack_signature_close(signature);
        }
        if let Ok(method) = load(program, name.to_str().unwrap(), PLAIN) {
            let _ = call(|error| edgepack_method_run(method, In::NULL, 0, outs::<EdgepackValue>(&mut []), 0, error));
            edgepack_method_close(method);
        }
    }
    let mut data = EdgepackData { id: 0 };
    if call(|error| edgepack_data_of_program(program, out(&mut data), error)).is_ok() {
        use_data(data);
    }
}

fn use_data(data: EdgepackData) {
    let mut count = 0;
    call(|error| edgepack_data_count(data, out(&mut count), error)).unwrap();
    for index in 0..count {
        let mut handle = EdgepackBytes { id: 0 };
        if call(|error| edgepack_data_bytes(data, index, out(&mut handle), error)).is_ok() {
            edgepack_bytes_close(handle);
        }
        let mut layout = nothing().tensor;
        let _ = call(|error| edgepack_data_layout(data, index, out(&mut layout), error));
    }
    edgepack_data_close(data);
}

#[test]
fn bad_files_are_answered() {
    let mut limits = EdgepackLimits { id: 0 };
    call(|error| edgepack_limits_new(EdgepackPreset::Hostile as u32, out(&mut limits), error)).unwrap();
    let (mut refused, mut found, mut other) = (0, 0, Vec::new());
    for (path, line, family) in hostile() {
        let file = std::fs::read(&path).unwrap();
        let mut program = EdgepackProgram { id: 0 };
        let opened =
            call(|error| edgepack_program_open_copy(bytes(&file), file.len(), limits, out(&mut program), error));
        match opened {
            Ok(()) => {
                use_program(program);
                assert_eq!(edgepack_program_close(program), EdgepackCode::Ok);
            }
            Err(told) => {
                refused += 1;
                assert!(
                    family != "pte" || !told.rule.is_empty() || told.code == EdgepackCode::MemoryAllocationFailed,
                    "{}: {told:?}",
                    path.display()
                );
            }
        }
        let mut data = EdgepackData { id: 0 };
        if call(|error| edgepack_data_open_copy(bytes(&file), file.len(), limits, out(&mut data), error)).is_ok() {
            use_data(data);
        }
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        for whole in [in_memory(&file), edgepack_c::file::EdgepackFile { path: text(&name), ..in_memory(&[]) }] {
            let mut findings = EdgepackFindings { id: 0 };
            let preset = EdgepackPreset::Hostile as u32;
            if call(|error| edgepack_verify(to(&[whole]), preset, out(&mut findings), error)).is_ok() {
                let mut counts = EdgepackFindingCounts { listed: 0, more: 0, broken: 0 };
                call(|error| edgepack_findings_counts(findings, out(&mut counts), error)).unwrap();
                let rules: Vec<_> = (0..counts.listed).map(|index| rule(findings, index)).collect();
                let wanted = (text_of(&line, "rule"), text_of(&line, "path"));
                match rules.contains(&wanted) {
                    true => found += 1,
                    false => other.push(path.file_name().unwrap().to_string_lossy().into_owned()),
                }
                edgepack_findings_close(findings);
            }
        }
        for function in [edgepack_inspect as extern "C" fn(_, _, _, _) -> _, edgepack_ops, edgepack_size] {
            let (mut report, whole) = (EdgepackReport { id: 0 }, [in_memory(&file)]);
            call(|error| function(to(&whole), EdgepackPreset::Hostile as u32, out(&mut report), error)).unwrap();
            edgepack_report_close(report);
        }
    }
    edgepack_limits_close(limits);
    // The others are read with limits of their manifests, in forms that the command takes, or belong to something else.
    other.dedup();
    let known = [
        "budget.bpte",
        "shared_hints.dwn",
        "too_much.tar",
        "budget.ptd",
        "flatbuffer_size_zero.ptd",
        "generation_a.ptd",
        "generation_b.ptd",
        "identifier.ptd",
        "budget.pte",
        "many_tables.pte",
        "budget.tflite",
        "budget.etdp",
    ];
    other.retain(|name| !known.contains(&name.as_str()) && !name.ends_with(".xnn"));
    assert!(other.is_empty(), "the rules of these were not found: {other:?}");
    assert!(refused > 300 && found > 1000, "{refused} files were refused, in {found} answers the rule was found");
}

fn text_of(line: &serde_json::Value, key: &str) -> String {
    line[key].as_str().unwrap_or_default().to_owned()
}

/// Rule and path of a finding.
fn rule(findings: EdgepackFindings, index: usize) -> (String, String) {
    let none = EdgepackText { data: In::NULL, len: 0 };
    let mut finding = EdgepackFinding {
        severity: 0,
        rule: none,
        path: none,
        has_offset: 0,
        offset: 0,
        message: none,
        code: EdgepackCode::Ok,
    };
    call(|error| edgepack_findings_at(findings, index, out(&mut finding), error)).unwrap();
    (read(finding.rule), read(finding.path))
}
