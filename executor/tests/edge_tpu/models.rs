//! Models: several compiled operators, several packages of one operator, the model's own tensors by name.

use std::collections::BTreeMap;

use edgepack_builder::tflite::{OptionValue, custom_options, model, wrap};
use edgepack_executor::darwinn::{Chip, Fault, Model, ModelOptions, Simulator};
use edgepack_format::darwinn::DataType;
use edgepack_format::row::Blob;
use edgepack_format::tflite::{
    Buffer, Model as ModelRow, OPERATOR, Operator, OperatorCode, QuantizationParameters, SubGraph, Tensor, TensorType,
};
use edgepack_loader::{RegisteredModel, Registry};

use super::made::{Made, recurrent};
use super::state::cell;
use super::{chip, expected};

type Made2 = (Vec<Vec<u8>>, Vec<i32>, Vec<i32>);

/// A model of these tensors and compiled operators: packages, inputs, outputs.
fn built(tensors: Vec<Tensor<'static>>, operators: Vec<Made2>) -> RegisteredModel {
    let operators: Vec<_> = operators
        .into_iter()
        .map(|(packages, inputs, outputs)| {
            let mut entries = vec![("1", OptionValue::Int(0)), ("4", OptionValue::String(&packages[0]))];
            entries.push(("5", OptionValue::Int(-1)));
            entries.push(("6", OptionValue::Ints((0..packages.len() as i64).map(|at| 17 + at).collect())));
            entries.push(("7", OptionValue::Strings(packages[1..].iter().map(Vec::as_slice).collect())));
            Operator {
                inputs: Some(inputs.into()),
                outputs: Some(outputs.into()),
                custom_options: Some(Blob(custom_options(&entries).into())),
                ..Operator::default()
            }
        })
        .collect();
    let code = OperatorCode {
        deprecated_builtin_code: OperatorCode::CUSTOM as i8,
        custom_code: Some(OPERATOR.into()),
        builtin_code: OperatorCode::CUSTOM,
        ..OperatorCode::default()
    };
    let graph = SubGraph { tensors: Some(tensors.into()), operators: Some(operators.into()), ..SubGraph::default() };
    let row = ModelRow {
        version: 3,
        operator_codes: Some(vec![code].into()),
        subgraphs: Some(vec![graph].into()),
        buffers: Some(vec![Buffer::default()].into()),
        ..ModelRow::default()
    };
    Registry::new().register_model(&model(&row).unwrap()).unwrap()
}

fn tensor(name: &'static str, z: i32, kind: TensorType) -> Tensor<'static> {
    let zero = match kind {
        TensorType::INT8 | TensorType::INT16 => 0,
        _ => 10,
    };
    let quantization = QuantizationParameters {
        scale: Some(vec![0.5].into()),
        zero_point: Some(vec![zero].into()),
        ..QuantizationParameters::default()
    };
    Tensor {
        shape: Some(vec![1, z].into()),
        kind,
        name: Some(name.into()),
        quantization: Some(quantization),
        ..Tensor::default()
    }
}

/// `a` → first → `b` → second → `c`; `b` is `x` and `y` to the packages.
fn chained() -> RegisteredModel {
    let first = Made { outputs: vec![("y", 5, DataType::SIGNED_FIXED_POINT8)], ..Made::default() };
    let tensors = ["a", "b", "c"].map(|name| tensor(name, if name == "c" { 6 } else { 5 }, kind_of(name)));
    built(
        tensors.into(),
        vec![
            (vec![first.package()], vec![0], vec![1]),
            (vec![Made { seed: 2, ..Made::default() }.package()], vec![1], vec![2]),
        ],
    )
}

fn kind_of(name: &str) -> TensorType {
    if name == "c" { TensorType::UINT8 } else { TensorType::INT8 }
}

#[test]
fn operators_run_one_after_another() {
    let (chip, model) = (chip(), chained());
    let packages: Vec<_> = model.operators().iter().map(|operator| &operator.packages()[0].1).collect();
    let mut runs = Model::new(&chip, &model).unwrap();
    assert_eq!(runs.inputs().iter().map(|tensor| tensor.name.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(runs.outputs().iter().map(|tensor| tensor.name.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    for round in 0..3u8 {
        let answer = runs.run(&[("a", &[round; 5])]).unwrap();
        // The first gives signed bytes, which the host sees flipped.
        let device = Simulator::digest(&super::cached(packages[0]), &[("x", &super::flipped(&[round; 5]))], "y", 8);
        let b: Vec<u8> = device[..5].iter().map(|byte| byte ^ 0x80).collect();
        let c = expected(packages[1], &b);
        assert_eq!(answer, BTreeMap::from([("b".to_owned(), b), ("c".to_owned(), c)]));
    }
    // Of one token, so each was loaded once.
    assert_eq!(chip.with_device(|device| device.loads()), 2);
    // Two entries after each other are two runs.
    let (one, other) = (runs.run(&[("a", &[1; 5])]).unwrap(), runs.run(&[("a", &[2; 5])]).unwrap());
    let both = runs.run(&[("a", &[[1; 5], [2; 5]].concat())]).unwrap();
    assert_eq!(both["c"], [&one["c"][..], &other["c"][..]].concat());
    let values = runs.run_values(&[("a", &[0.5; 5])]).unwrap();
    assert_eq!(values["c"].len(), 6);
    assert_eq!(
        values["b"],
        runs.run(&[("a", &[1; 5])]).unwrap()["b"].iter().map(|b| f32::from(*b as i8) * 0.5).collect::<Vec<_>>()
    );
    let mut refused = |tensors: &[(&str, &[u8])]| runs.run(tensors).unwrap_err().to_string();
    assert_eq!(refused(&[]), r#"tensor "a" is missing, which operator 0 takes"#);
    assert_eq!(refused(&[("x", &[0; 5])]), r#"no compiled operator takes "x"; they take ["a"]"#);
    assert_eq!(refused(&[("a", &[0; 7])]), r#""a" has 7 bytes, an entry has 5"#.replace("\"a\"", "\"x\""));
    assert_eq!(refused(&[("a", &[0; 5]), ("a", &[0; 5])]), r#""a" is given twice"#);
}

#[test]
fn operators_of_the_cpu_leave_tensors_to_be_given() {
    let tensors = vec![tensor("a", 5, TensorType::INT8), tensor("m", 6, TensorType::UINT8)];
    let more = [tensor("n", 5, TensorType::INT8), tensor("c", 6, TensorType::UINT8)];
    let packages = [1, 2].map(|seed| vec![Made { seed, ..Made::default() }.package()]);
    let [first, second] = packages;
    let model = built([tensors, more.into()].concat(), vec![(first, vec![0], vec![1]), (second, vec![2], vec![3])]);
    let chip = chip();
    let mut runs = Model::new(&chip, &model).unwrap();
    assert_eq!(runs.inputs().iter().map(|tensor| tensor.name.as_str()).collect::<Vec<_>>(), ["a", "n"]);
    assert!(runs.run(&[("a", &[0; 5])]).unwrap_err().to_string().contains(r#""n" is missing"#));
    let answer = runs.run(&[("n", &[2; 5]), ("a", &[1; 5])]).unwrap();
    for (index, (name, x)) in [("m", [1; 5]), ("c", [2; 5])].iter().enumerate() {
        assert_eq!(answer[*name], expected(&model.operators()[index].packages()[0].1, x));
    }
}

#[test]
fn further_packages_run_when_they_are_asked_for() {
    let packages: Vec<_> = [1, 2, 3].map(|seed| Made { seed, ..Made::default() }.package()).into();
    let tensors = vec![tensor("a", 5, TensorType::INT8), tensor("c", 6, TensorType::UINT8)];
    let model = built(tensors, vec![(packages, vec![0], vec![1])]);
    let registered = model.operators()[0].packages();
    assert_eq!(registered.iter().map(|(chip, _)| *chip).collect::<Vec<_>>(), [Some(17), Some(18), Some(19)]);
    let chip = chip();
    for (index, (_, package)) in registered.iter().enumerate() {
        let mut runs = Model::with_options(&chip, &model, ModelOptions::default().package(index)).unwrap();
        assert_eq!(runs.run(&[("a", &[3; 5])]).unwrap()["c"], expected(package, &[3; 5]));
    }
    let error = Model::with_options(&chip, &model, ModelOptions::default().package(3)).err().unwrap();
    assert_eq!(error.to_string(), "operator 0 has 3 packages, none of them is number 3");
    let error = Model::with_options(&chip, &model, ModelOptions::default().subgraph(1)).err().unwrap();
    assert_eq!(error.to_string(), "subgraph 1 has no compiled operator");
    // One package alone is registered as before, and several are refused there.
    let bytes = wrap(&Made::default().package()).unwrap();
    assert!(Registry::new().register(&bytes).is_ok());
    assert_eq!(Registry::new().register_model(&bytes).unwrap().operators().len(), 1);
    let error = Registry::new().register_model(&Made::default().package()).unwrap_err().to_string();
    assert!(error.contains("not a TensorFlow Lite model"), "{error}");
}

#[test]
fn state_of_all_operators_stays_when_one_fails() {
    let tensors = [("a", 5, TensorType::INT8), ("h", 3, TensorType::INT16), ("b", 6, TensorType::UINT8)];
    let more = [("c", 5, TensorType::INT8), ("g", 3, TensorType::INT16), ("d", 6, TensorType::UINT8)];
    let tensors =
        tensors.into_iter().chain(more).map(|(name, z, kind)| Tensor { is_variable: z == 3, ..tensor(name, z, kind) });
    let operators =
        vec![(vec![recurrent(1).package()], vec![0, 1], vec![2]), (vec![recurrent(2).package()], vec![3, 4], vec![5])];
    let model = built(tensors.collect(), operators);
    let packages: Vec<_> = model.operators().iter().map(|operator| &operator.packages()[0].1).collect();
    let chip = chip();
    let mut runs = Model::new(&chip, &model).unwrap();
    assert_eq!(runs.inputs().iter().map(|tensor| tensor.name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    let mut states = [vec![0; 6], vec![0; 6]];
    for round in 0..20u8 {
        // In one operator or the other.
        chip.with_device(|device| device.inject(usize::from(round), Fault::Short(1)));
        let input = [round; 5];
        let tensors: [(&str, &[u8]); 2] = [("a", &input), ("c", &input)];
        let mut tries = 0;
        let answer = loop {
            match runs.run(&tensors) {
                Ok(answer) => break answer,
                Err(_) => tries += 1,
            }
        };
        assert!(tries <= 1);
        for (index, name) in ["b", "d"].iter().enumerate() {
            let (y, next) = cell(packages[index], &input, &states[index]);
            assert_eq!(answer[*name], y, "{round}");
            states[index] = next;
        }
    }
    // A fault that no run came to.
    chip.with_device(|device| device.inject(usize::MAX, Fault::Short(1)));
    runs.reset_state();
    let answer = runs.run(&[("a", &[0; 5]), ("c", &[0; 5]), ("h", &[1; 6])]).unwrap();
    assert_eq!(answer["b"], cell(packages[0], &[0; 5], &[1; 6]).0);
    assert_eq!(answer["d"], cell(packages[1], &[0; 5], &[0; 6]).0);
}

#[test]
fn outputs_of_one_pixel_become_bytes() {
    let outputs = vec![("y", 3, DataType::SINGLE), ("w", 3, DataType::FIXED_POINT16)];
    let package = Made { outputs, ..Made::default() }.package();
    let tensors =
        vec![tensor("a", 5, TensorType::INT8), tensor("b", 3, TensorType::UINT8), tensor("c", 3, TensorType::UINT8)];
    let model = built(tensors, vec![(vec![package], vec![0], vec![1, 2])]);
    let chip: Chip<Simulator> = chip();
    let package = &model.operators()[0].packages()[0].1;
    chip.with_device(|device| {
        device.compute(package, |work| {
            let mut bytes: Vec<u8> = match work.output {
                "y" => [1.2f32, -100.0, 1e6].iter().flat_map(|value| value.to_le_bytes()).collect(),
                _ => [7i16, -1, 300].iter().flat_map(|value| value.to_le_bytes()).collect(),
            };
            bytes.resize(work.bytes, 0);
            bytes
        });
    });
    let mut runs = Model::new(&chip, &model).unwrap();
    let answer = runs.run(&[("a", &[0; 5])]).unwrap();
    // 1.2 / 0.5 + 10, towards zero; what does not fit at the nearest end.
    assert_eq!(answer, BTreeMap::from([("b".to_owned(), vec![12, 0, 255]), ("c".to_owned(), vec![7, 0, 255])]));
    let values = runs.run_values(&[("a", &[0.0; 5])]).unwrap();
    assert_eq!(values["b"], [1.0, -5.0, 122.5]);
}
