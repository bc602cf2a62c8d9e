//! The arithmetic of the host's side against results computed elsewhere.

use std::collections::BTreeMap;
use std::path::Path;

use edgepack::edit::{self, DiffOptions, Opened};
use edgepack_builder::tflite::{embed, rewrite_options};
use edgepack_executor::darwinn::{
    Addresses, Extraction, Output, Transfer, dequantize, flip_signs, link, prepare_input, transfers,
};
use edgepack_format::darwinn::{Executable, ExecutableRef, Geometry, Layer};
use edgepack_format::limits::Limits;
use edgepack_format::tflite::ModelRef;
use serde_json::{Value, json};

use super::{Answer, same, sha256, splitmix, with_packages};

fn text<E: ToString>(error: E) -> String {
    error.to_string()
}

/// Linking, transfers, inputs and outputs of every executable of a file.
pub fn goldens(path: &Path) -> Answer {
    let bytes = std::fs::read(path).map_err(text)?;
    let golden = super::json(&path.with_extension("golden.json"))?;
    with_packages(&bytes, |packages| {
        let package = packages.first().ok_or("there is no package")?;
        same("package", sha256(package.bytes()).as_str(), golden["package_sha256"].as_str().unwrap_or_default())?;
        let list = golden["executables"].as_array().ok_or("no executables")?;
        same("executables", package.executables().len(), list.len())?;
        for (index, (executable, golden)) in package.executables().iter().zip(list).enumerate() {
            one(executable, golden).map_err(|error| format!("executable {index}: {error}"))?;
        }
        Ok(())
    })
}

fn one(executable: &ExecutableRef<'_>, golden: &Value) -> Answer {
    let row = executable.row();
    for set in ["A", "B"] {
        let want = &golden["link"][set];
        let linked = link(row, &addresses(want)?).map_err(text)?;
        let sums: Vec<Value> = linked.iter().map(|chunk| sha256(chunk).into()).collect();
        same(format!("link {set}"), &Value::from(sums), &want["linked_sha256"])?;
    }
    let extractions = [
        ("hints", Extraction::Hints),
        ("instructions", Extraction::Instructions),
        ("first", Extraction::FirstInstruction),
    ];
    for (name, extraction) in extractions {
        let list: Vec<Value> = transfers(row, extraction, true).map_err(text)?.iter().map(entry).collect();
        same(format!("dma {name}"), &Value::from(list), &golden["dma"][name])?;
    }
    tensors(row, golden)
}

fn addresses(want: &Value) -> Result<Addresses, String> {
    let number = |value: &Value| {
        let digits = value.as_str().and_then(|text| text.strip_prefix("0x")).ok_or("no address")?;
        u64::from_str_radix(digits, 16).map_err(text)
    };
    let layers = |map: &Value| -> Result<BTreeMap<String, Vec<u64>>, String> {
        let map = map.as_object().ok_or("no layers")?;
        let list = |list: &Value| -> Result<Vec<u64>, String> {
            list.as_array().ok_or("no list")?.iter().map(number).collect()
        };
        map.iter().map(|(name, entries)| Ok((name.clone(), list(entries)?))).collect()
    };
    Ok(Addresses {
        parameter: Some(number(&want["parameter"])?),
        scratch: Some(number(&want["scratch"])?),
        inputs: layers(&want["inputs"])?,
        outputs: layers(&want["outputs"])?,
    })
}

/// A transfer as goldens list it.
fn entry(transfer: &Transfer) -> Value {
    match transfer.moved() {
        Some((buffer, range)) => json!([transfer.kind(), buffer.to_string(), range.start, range.len()]),
        None => json!([transfer.kind()]),
    }
}

fn layer<'a>(rows: &Option<edgepack_format::row::Rows<'a, Layer<'a>>>, name: &Value) -> Result<Layer<'a>, String> {
    let mut rows = rows.iter().flat_map(|rows| rows.iter().flatten().collect::<Vec<_>>());
    let found = rows.find(|layer| layer.name.as_deref() == name.as_str());
    found.ok_or_else(|| format!("there is no layer {name}"))
}

fn tensors(row: &Executable<'_>, golden: &Value) -> Answer {
    for want in golden["inputs"].as_array().ok_or("no inputs")? {
        let layer = layer(&row.input_layers, &want["name"])?;
        let geometry = Geometry::of(&layer).map_err(text)?;
        let what = format!("input {}", want["name"]);
        same(&what, Some(geometry.actual_bytes as u64), want["user_bytes"].as_u64())?;
        let user = splitmix(want["seed"].as_u64().ok_or("no seed")?, geometry.actual_bytes);
        same(&what, Some(sha256(&user).as_str()), want["user_sha256"].as_str())?;
        let device = prepare_input(&layer, &user).map_err(text)?;
        same(&what, Some(device.len() as u64), want["device_bytes"].as_u64())?;
        same(&what, Some(sha256(&device).as_str()), want["device_sha256"].as_str())?;
    }
    for want in golden["outputs"].as_array().ok_or("no outputs")? {
        let layer = layer(&row.output_layers, &want["name"])?;
        let output = Output::new(&layer).map_err(text)?;
        let what = |part| format!("{part} of output {}", want["name"]);
        let device = splitmix(want["seed"].as_u64().ok_or("no seed")?, output.device_bytes());
        same(what("bytes"), Some(device.len() as u64), want["device_bytes"].as_u64())?;
        same(what("bytes"), Some(sha256(&device).as_str()), want["device_sha256"].as_str())?;
        let mut tensor = vec![0; output.tensor_bytes()];
        output.relayout(&device, &mut tensor).map_err(text)?;
        same(what("relayout"), Some(tensor.len() as u64), want["relayout_bytes"].as_u64())?;
        same(what("relayout"), Some(sha256(&tensor).as_str()), want["relayout_sha256"].as_str())?;
        flip_signs(layer.data_type, &mut tensor);
        same(what("host"), Some(sha256(&tensor).as_str()), want["host_sha256"].as_str())?;
        same(what("take"), output.take(&device).map_err(text)?, tensor.clone())?;
        let real = dequantize(&layer, &tensor).map_err(text)?;
        let real: Vec<u8> = real.iter().flat_map(|value| value.to_le_bytes()).collect();
        same(what("values"), Some(sha256(&real).as_str()), want["dequantised_f32le_sha256"].as_str())?;
    }
    Ok(())
}

/// Custom options with longer packages, to the byte; and whole files with them.
pub fn reembed(path: &Path) -> Answer {
    let bytes = std::fs::read(path).map_err(text)?;
    let golden = super::json(&path.with_extension("golden.json"))?;
    let model = ModelRef::parse(&bytes, &Limits::default()).map_err(text)?;
    let options = model.operators().first().and_then(|op| op.options.as_ref()).ok_or("no options")?;
    let (_, package) = options.package;
    same("the file with its own package", embed(&model, 0, package).map_err(text)? == bytes, true)?;
    for want in golden["reembed"].as_array().ok_or("no list")? {
        let mut package = package.to_vec();
        package.resize(want["package_length"].as_u64().ok_or("no length")? as usize, 0);
        let written = rewrite_options(options, &package).map_err(text)?;
        let what = &want["package"];
        same(what, Some(written.len() as u64), want["custom_options_length"].as_u64())?;
        same(what, Some(sha256(&written).as_str()), want["custom_options_sha256"].as_str())?;

        let whole = embed(&model, 0, &package).map_err(text)?;
        let again = ModelRef::parse(&whole, &Limits::default()).map_err(text)?;
        let found = again.operators().first().and_then(|op| op.options.as_ref()).ok_or("no options")?;
        same(what, found.package.1 == package, true)?;
        let members = |model: &ModelRef<'_>| {
            let zip = model.zip();
            zip.map(|zip| zip.members.iter().map(|member| (member.name.clone(), member.size)).collect::<Vec<_>>())
        };
        same(format!("archive behind {what}"), members(&again), members(&model))?;
    }
    Ok(())
}

/// A file rebuilt from its dump has an equal dump, verifies without an error, and holds the same executables.
pub fn rebuild(path: &Path) -> Answer {
    identical(path)?;
    same_content(path)
}

/// Takes a file apart with its places and puts it together from JSON: every byte is the same.
fn identical(path: &Path) -> Answer {
    let opened = Opened::open(path).map_err(text)?;
    let mut package = opened.package().map_err(text)?;
    package.places = Some(Box::new(opened.places(&package).map_err(text)?));
    let json = edit::dump(&package).map_err(text)?;
    same("rows of the model", json.contains("\"around\""), false)?;
    let built = edit::build(&json).map_err(text)?;
    same("unplaced", built.ready().map_err(text)?.unplaced(), None)?;
    same("bytes", built.to_bytes().map_err(text)? == std::fs::read(path).map_err(text)?, true)
}

fn same_content(path: &Path) -> Answer {
    let opened = Opened::open(path).map_err(text)?;
    let package = opened.package().map_err(text)?;
    let json = edit::dump(&package).map_err(text)?;
    let rebuilt = edit::build(&json).and_then(|package| package.to_bytes()).map_err(text)?;
    let again = Opened::from_bytes(rebuilt.clone()).map_err(text)?;
    let again = again.package().map_err(text)?;
    same("dump", edit::dump(&again).map_err(text)? == json, true)?;
    let exact = DiffOptions { exact: true, ..DiffOptions::default() };
    let differences = edit::diff(&package, &again, &exact).map_err(text)?;
    same("differences", differences.as_slice(), &[])?;
    with_packages(&std::fs::read(path).map_err(text)?, |before| {
        with_packages(&rebuilt, |after| {
            same("packages", after.len(), before.len())?;
            before.iter().zip(after).try_for_each(|(before, after)| {
                same("executables", after.executables().len(), before.executables().len())?;
                let mut pairs = before.executables().iter().zip(after.executables());
                same("rows", pairs.all(|(before, after)| before.row() == after.row()), true)
            })
        })
    })
}
