//! Layers of two runs compared: a fault in one weight is found where it is, in ten of ten programs.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use edgepack::edit::{Content, NewTensor, Opened, Root, named, patch};
use edgepack::format::limits::Limits;
use edgepack::format::pte::{DataLocation, ExecutionPlan, InstructionArguments, KernelTypes};
use edgepack::format::scalar::ScalarType;
use edgepack::format::tensor::{TensorLayout, TensorView};
use edgepack::format::xnnpack::{Constant, Payload};
use edgepack::loader::Program;
use edgepack_tests::command::edgepack;
use serde_json::Value;

/// Programs with a fault each: portable ones, and ones whose weights are in payloads.
const PROGRAMS: [&str; 12] = [
    "mlp_portable",
    "classifier_portable",
    "lstm_portable",
    "gru_portable",
    "transformer_block_portable",
    "unet_portable",
    "autoencoder_portable",
    "inverted_portable",
    "conv_kinds_portable",
    "channels_last_convs_portable",
    "mlp_xnnpack",
    "cnn_xnnpack",
];

/// A place: the instruction, and the node of a payload.
type At = (u64, Option<u64>);

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("data/corpus/models/{name}.pte"))
}

/// Weights with one element changed by 1 %, that of the greatest magnitude first.
fn spoiled(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let read = |index: usize| f32::from_le_bytes(bytes[index * 4..index * 4 + 4].try_into().unwrap());
    let mut order: Vec<usize> = (0..bytes.len() / 4).collect();
    order.sort_by(|a, b| read(*b).abs().total_cmp(&read(*a).abs()));
    order.into_iter().map(move |index| {
        let mut bad = bytes.to_vec();
        bad[index * 4..index * 4 + 4].copy_from_slice(&(read(index) * 1.01).to_le_bytes());
        bad
    })
}

/// The outputs of a program on the inputs that `compare` takes.
fn outputs(folder: &Path, bytes: &[u8]) -> Vec<u8> {
    let (program, out) = (folder.join("run.pte"), folder.join("out.safetensors"));
    fs::write(&program, bytes).unwrap();
    let (program, out) = (program.display().to_string(), out.display().to_string());
    let ran = edgepack(&["run", &program, "--random", "0", "--outputs", &out], Vec::new(), false);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    fs::read(out).unwrap()
}

/// Weights of operators: the name of each, and the first instruction that reads it.
fn weights(plan: &ExecutionPlan<'_>) -> Vec<(String, At)> {
    let values: Vec<KernelTypes<'_>> =
        plan.values.clone().unwrap().iter().map(|value| value.unwrap().val.unwrap()).collect();
    let mut found: Vec<(String, At)> = Vec::new();
    let chain = plan.chains.clone().unwrap().get(0).unwrap();
    for (at, instruction) in chain.instructions.unwrap().iter().enumerate() {
        let Some(InstructionArguments::KernelCall(call)) = instruction.unwrap().instr_args else { continue };
        for id in call.args.unwrap().iter() {
            let KernelTypes::Tensor(tensor) = &values[id as usize] else { continue };
            let elements: i32 = tensor.sizes.as_ref().map_or(1, |sizes| sizes.iter().product());
            let is_weight = tensor.data_buffer_idx > 0 && tensor.allocation_info.is_none();
            if is_weight && tensor.scalar_type == ScalarType::FLOAT && elements >= 4 {
                let own = tensor.extra_tensor_info.as_ref().and_then(|info| info.fully_qualified_name.clone());
                let name = own.map_or_else(|| format!("constant.{}", tensor.data_buffer_idx), |own| own.into_owned());
                if found.iter().all(|(known, _)| *known != name) {
                    found.push((name, (at as u64, None)));
                }
            }
        }
    }
    found
}

/// Weights of payloads that are named data: the key of each, and the node that reads it.
fn weights_of_payloads(program: &Program, plan: &ExecutionPlan<'_>) -> Vec<(String, At)> {
    let mut found = Vec::new();
    let chain = plan.chains.clone().unwrap().get(0).unwrap();
    for (at, instruction) in chain.instructions.unwrap().iter().enumerate() {
        let Some(InstructionArguments::DelegateCall(call)) = instruction.unwrap().instr_args else { continue };
        let delegate = plan.delegates.clone().unwrap().get(call.delegate_index as usize).unwrap();
        let place = delegate.processed.unwrap();
        assert_eq!(place.location, DataLocation::SEGMENT);
        let bytes = program.segment(place.index).unwrap();
        let payload = Payload::parse(&bytes, &Limits::DEFAULT).unwrap();
        for (node, row) in (0u64..).zip(payload.nodes()) {
            for input in row.inputs().filter(|input| input.is_present()) {
                let tensor = payload.value(input.id).and_then(|value| value.tensor());
                let constant =
                    tensor.and_then(|tensor| payload.constant_list().get(tensor.constant_buffer_idx as usize));
                if let Some(Constant::Named { key, .. }) = constant {
                    found.push((key.to_string(), (at as u64, Some(node))));
                }
            }
        }
    }
    found
}

/// The program with a fault in the weight in the middle, and the place of the fault. A change that no output shows, of what
/// an activation that is zero is multiplied with, is no fault: the next element is changed instead.
fn planted(path: &Path, folder: &Path) -> (Vec<u8>, At) {
    let good = outputs(folder, &fs::read(path).unwrap());
    let shows = |bad: &Vec<u8>| outputs(folder, bad) != good;
    let program = Program::open(path).unwrap();
    let view = program.view().unwrap();
    let plan = view.plan("forward").unwrap();
    let file = Opened::open(path).unwrap();
    let package = file.package().unwrap();
    let portable = weights(&plan);
    let all = named(&package).unwrap();
    let bytes_of = |name: &str| {
        let found = all.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("{name} in {}", path.display()));
        (found.layout.clone(), found.content.read().unwrap().into_owned())
    };
    if !portable.is_empty() {
        let (name, at) = portable[portable.len() / 2].clone();
        let (layout, bytes) = bytes_of(&name);
        let layout: TensorLayout = layout.unwrap();
        let programs = spoiled(&bytes).map(|bad| {
            let tensor = TensorView::new(layout.clone(), &bad).unwrap();
            patch(package.clone(), &[NewTensor { name: &name, tensor }]).unwrap().to_bytes().unwrap()
        });
        return (programs.take(64).find(shows).unwrap_or_else(|| panic!("{name} changes nothing")), at);
    }
    let inside = weights_of_payloads(&program, &plan);
    let (key, at) = inside[inside.len() / 2].clone();
    let (_, bytes) = bytes_of(&key);
    let Root::Program(root) = &package.root else { panic!("{}", path.display()) };
    let entries = root.named_data.clone().unwrap();
    let entry = entries.iter().map(Result::unwrap).find(|entry| entry.key.as_deref() == Some(key.as_str())).unwrap();
    let programs = spoiled(&bytes).map(|bad| {
        let mut package = package.clone();
        package.segments[entry.segment_index as usize] = Content::from(bad);
        package.to_bytes().unwrap()
    });
    (programs.take(64).find(shows).unwrap_or_else(|| panic!("{key} changes nothing")), at)
}

fn at(layer: &Value) -> At {
    (layer["left"]["instruction"].as_u64().unwrap(), layer["left"]["node"].as_u64())
}

/// The document of `compare`, and the status.
fn compared(args: &[&str]) -> (Value, u8) {
    let ran = edgepack(&[&["compare", "--json"], args].concat(), Vec::new(), false);
    let document =
        serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {}", ran.stderr));
    (document, ran.status)
}

#[test]
fn a_fault_in_one_weight_is_found_at_its_layer_in_all_programs() {
    let folder = env::temp_dir().join(format!("edgepack-layers-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut found = 0;
    for name in PROGRAMS {
        let path = model(name);
        let (bytes, place) = planted(&path, &folder);
        let bad = folder.join(format!("{name}.pte"));
        fs::write(&bad, bytes).unwrap();
        let (good, bad) = (path.display().to_string(), bad.display().to_string());

        let (clean, status) = compared(&[&good, &good]);
        assert_eq!((status, &clean["first_difference"]), (0, &Value::Null), "{name}");

        // One element moves a layer by less than the default bounds, so every difference counts.
        let (report, status) = compared(&[&good, &bad, "--rtol", "0", "--atol", "0"]);
        let first = report["first_divergence"].as_u64().unwrap_or_else(|| panic!("{name}: {place:?} is not seen"));
        assert_eq!((status, at(&report["layers"][first as usize])), (1, place), "{name}");
        assert_eq!(compared(&[&good, &bad, "--rtol", "0", "--atol", "0"]).0, report, "{name}: another time");

        // Within the bounds it is named as a difference all the same.
        let (report, _) = compared(&[&good, &bad]);
        let first = report["first_difference"].as_u64().unwrap();
        assert_eq!(at(&report["layers"][first as usize]), place, "{name}");
        found += 1;
    }
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(found, PROGRAMS.len());
}
