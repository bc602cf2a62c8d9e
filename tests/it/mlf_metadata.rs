//! Metadata that newer exporters may write: keys that are not known, and nulls, stay where they are.

use edgepack_format::limits::Limits;
use edgepack_format::mlf::Metadata;
use serde_json::{Value, json};

/// Metadata with a key in every object that no exporter writes.
fn unusual(version: u64, style: &str) -> Value {
    let memory = match style {
        "operator" => json!({"f": [
            {"size_bytes": 8, "shape": [2], "dtype": "float32", "input_binding": null, "extra": [1, null]},
            {"size_bytes": 8, "shape": [2], "dtype": "float32", "input_binding": "b"},
        ]}),
        _ => json!({
            "sids": [
                {"storage_id": 0, "size_bytes": 8, "input_binding": null},
                {"storage_id": 1, "size_bytes": 8, "input_binding": "x", "extra": {"a": 1}},
                {"storage_id": 2, "size_bytes": 8},
            ],
            "functions": {
                "main": [{
                    "device": 1, "workspace_size_bytes": 0, "constants_size_bytes": 8, "io_size_bytes": 16, "extra": 1.5,
                    "inputs": {"x": {"size": 8, "dtype": "float32", "extra": true}},
                }],
                "operator_functions": [{
                    "function_name": "f", "extra": "text",
                    "workspace": [{"device": 1, "workspace_size_bytes": 16, "extra": null, "later": [1]}],
                }],
                "extra": [],
            },
            "extra": {},
        }),
    };
    let executors = if style == "operator" { json!([]) } else { json!(["graph"]) };
    let target = if version < 6 { json!({"1": "c"}) } else { json!(["c"]) };
    json!({
        "version": version, "model_name": "m", "export_datetime": "2021-08-01 12:00:00Z", "memory": memory,
        "target": target, "executors": executors, "style": style, "extra": null,
    })
}

#[test]
fn unknown_keys_and_nulls_are_written_as_they_were_read() {
    for (version, style) in [(5, "full-model"), (6, "full-model"), (5, "operator"), (7, "operator")] {
        let value = unusual(version, style);
        let metadata = Metadata::parse(value.to_string().as_bytes(), &Limits::hostile()).unwrap();
        let written: Value = serde_json::from_str(&metadata.to_text()).unwrap();
        assert_eq!(written, value, "version {version}, {style}");
        let again = Metadata::parse(metadata.to_text().as_bytes(), &Limits::hostile()).unwrap();
        assert_eq!((again.to_text(), &again), (metadata.to_text(), &metadata));
    }
}

#[test]
fn a_null_binds_nothing_and_anything_else_is_refused() {
    let metadata = Metadata::parse(unusual(5, "full-model").to_string().as_bytes(), &Limits::hostile()).unwrap();
    let sids = metadata.modules[0].memory.sids.as_ref().unwrap();
    let bindings: Vec<Option<&str>> = sids.iter().map(|sid| sid.input_binding.as_deref()).collect();
    assert_eq!(bindings, [None, Some("x"), None]);
    let mut wrong = unusual(5, "full-model");
    wrong["memory"]["sids"][0]["input_binding"] = json!(7);
    let findings = Metadata::parse(wrong.to_string().as_bytes(), &Limits::hostile()).unwrap_err();
    assert_eq!(findings.first_error().unwrap().rule.id, "MLF-M01");
}
