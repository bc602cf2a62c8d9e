//! Edge TPU packages, the models around them and their custom options: what holding a verified one means.

use edgepack_builder::darwinn::{self, Layout};
use edgepack_builder::tflite::{embed, rewrite_options};
use edgepack_executor::darwinn::{
    Addresses, Chip, Extraction, Output, RunError, Runner, RunnerOptions, Simulator, TensorBytes, dequantize, link,
    prepare_input, transfers,
};
use edgepack_format::darwinn::{Accept, Executable, Geometry, Layer, PackageRef, verify};
use edgepack_format::limits::Limits;
use edgepack_format::row::{Rows, Table};
use edgepack_format::tflite::{self, CustomOptions, ModelRef};
use edgepack_loader::Registry;

/// Tensors of more bytes than this are not made.
const MOST: usize = 1 << 20;

fn rows<'a, T: Table<'a> + Clone>(rows: &Option<Rows<'a, T>>) -> Vec<T> {
    rows.iter().flat_map(|rows| rows.iter().map(|row| row.expect("a verified row"))).collect()
}

/// See [`BODIES`](super::BODIES).
pub fn package(data: &[u8]) {
    for accept in [Accept::default(), Accept::ALL] {
        let verdict = verify::verify(data, &Limits::hostile(), accept);
        let said: usize = verdict.findings.iter().map(|finding| finding.to_string().len()).sum();
        assert!(said > 0 || verdict.findings.is_empty());
        // Bytes that were not verified are safe to look at, too.
        let reopened = PackageRef::reopen(data);
        let Ok(package) = PackageRef::parse_as(data, &Limits::hostile(), accept) else { continue };
        let reopened = reopened.expect("a verified package");
        assert_eq!(reopened.executables().len(), package.executables().len());
        host(&package);
        if accept == Accept::default() && !package.is_multi_chip() {
            run(data);
        }
    }
}

/// Runs a verified package on the device of software, which checks the host against the package: it finds nothing but
/// what the package itself asks for.
fn run(data: &[u8]) {
    let Ok(package) = Registry::new().register(data) else { return };
    let mut limits = Limits::hostile();
    limits.memory_bytes = 4 * MOST as u64;
    for extraction in [Extraction::Hints, Extraction::Instructions] {
        let chip = Chip::new(Simulator::new().with_extraction(extraction));
        let Ok(mut runner) = Runner::with_options(&chip, &package, RunnerOptions::default().within(limits)) else {
            return;
        };
        let tensor = |layer: &Layer<'_>| {
            let bytes = Geometry::of(layer).expect("verified sizes").actual_bytes;
            TensorBytes::new(layer.name.as_deref().expect("a verified name"), vec![1; bytes])
        };
        let inputs: Vec<_> = runner.inputs().map(tensor).collect();
        let first = runner.run(&inputs);
        match &first {
            Ok(outputs) => assert_eq!(outputs.len(), runner.outputs().count()),
            Err(RunError::Partial) => assert_eq!(extraction, Extraction::Hints),
            Err(RunError::Device(error)) => {
                let error = error.to_string();
                assert!(error.contains("fence") || error.contains("after the end"), "{error}");
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(chip.holds(&package), first.is_ok() && package.caching().is_some());
        runner.reset_state();
        match (first, runner.run(&inputs)) {
            (Ok(first), Ok(second)) => assert_eq!(first, second),
            (Err(first), Err(second)) => assert_eq!(first.to_string(), second.to_string()),
            (first, second) => panic!("{first:?}, then {second:?}"),
        }
    }
}

/// The host's side of every executable.
fn host(package: &PackageRef<'_>) {
    assert!(package.is_multi_chip() || package.main().is_some());
    for executable in package.executables() {
        let row = executable.row();
        let batch = usize::try_from(row.batch_size).expect("a verified batch size");
        let mut addresses = Addresses { parameter: Some(u64::MAX), scratch: Some(1), ..Addresses::default() };
        // A giant batch is legal and has no memory here.
        let entries = vec![0x8000_0001_0000_0000; batch.min(64)];
        for (list, map) in [(&row.input_layers, &mut addresses.inputs), (&row.output_layers, &mut addresses.outputs)] {
            for layer in rows(list) {
                map.insert(layer.name.expect("a verified name").into_owned(), entries.clone());
            }
        }
        match link(row, &addresses) {
            Ok(chunks) => assert_eq!(chunks.len(), rows(&row.instruction_bitstreams).len()),
            Err(error) => assert!(batch > 64, "{error}"),
        }
        for extraction in [Extraction::Hints, Extraction::Instructions, Extraction::FirstInstruction] {
            transfers(row, extraction, false).expect("verified hints");
        }
        for layer in rows(&row.input_layers) {
            let geometry = Geometry::of(&layer).expect("verified sizes");
            if geometry.padded_bytes <= MOST {
                let prepared = prepare_input(&layer, &vec![1; geometry.actual_bytes]).expect("a verified layer");
                assert!(prepared.len() == geometry.padded_bytes || geometry.executions == 1);
            }
        }
        rows(&row.output_layers).iter().for_each(output);
        if executable.bytes().len() <= 1 << 16 {
            rebuilt(row);
        }
    }
    package.chips().iter().for_each(host);
}

fn output(layer: &Layer<'_>) {
    let geometry = Geometry::of(layer).expect("verified sizes");
    if geometry.padded_bytes > MOST {
        return;
    }
    let output = Output::within(layer, &Limits::hostile()).expect("a verified layout");
    let device: Vec<u8> = (0..output.device_bytes()).map(|at| at as u8).collect();
    let tensor = output.take(&device).expect("verified places");
    assert_eq!(tensor.len(), geometry.actual_bytes);
    dequantize(layer, &tensor).expect("a verified type");
}

/// Rows written again are the same rows, if sharing does not blow them up.
fn rebuilt(row: &Executable<'_>) {
    let Ok(written) = darwinn::executable(row, Layout::Dense) else { return };
    let root = edgepack_format::wire::Table::root(&written).expect("a written buffer has a root");
    assert_eq!(&Executable::decode(root).expect("a written buffer is readable"), row);
}

/// See [`BODIES`](super::BODIES).
pub fn model(data: &[u8]) {
    let verdict = tflite::verify::verify(data, &Limits::hostile(), Accept::default());
    let said: usize = verdict.findings.iter().map(|finding| finding.to_string().len()).sum();
    assert!(said > 0 || verdict.findings.is_empty());
    let Ok(model) = ModelRef::parse(data, &Limits::hostile()) else { return };
    for (index, op) in model.operators().iter().enumerate() {
        assert!(op.range.end <= data.len() && !op.packages.is_empty());
        let options = op.options.as_ref().expect("verified options");
        for (at, package) in options.packages() {
            assert_eq!(&data[op.range.start + at..][..package.len()], package);
        }
        // Unknown keys cannot be written; everything else can, and is found again.
        let longer = [options.package.1, &[0; 4096]].concat();
        if let Ok(whole) = embed(&model, index, &longer) {
            let again = tflite::verify::verify(&whole, &Limits::hostile(), Accept::default());
            let found = again.model.as_ref().and_then(|model| model.operators().get(index)?.options.as_ref());
            // Other parts of a hostile file may be where the archive was; the package is there all the same.
            assert!(found.is_none_or(|options| options.package.1 == longer));
        }
    }
}

/// See [`BODIES`](super::BODIES).
pub fn early_wrapper(data: &[u8]) {
    use edgepack_builder::tflite::{OptionValue, custom_options};
    use edgepack_format::rules::tflite::BARE;
    let split = data.len() / 2;
    let options = custom_options(&[
        ("1", OptionValue::Int(0)),
        ("2", OptionValue::String(b"beagle")),
        ("3", OptionValue::String(&data[split..])),
        ("4", OptionValue::String(data)),
    ]);
    let file = carrier(options);
    let verdict = tflite::verify::verify(&file, &Limits::hostile(), Accept::ALL);
    let is_bare = !data.is_empty() && PackageRef::bare(data).is_some();
    assert_eq!(verdict.findings.iter().any(|finding| finding.rule.id == BARE.id), is_bare);
    let op = verdict.model.as_ref().and_then(|model| model.operators().first()).expect("a model with one operator");
    assert!(!is_bare || op.packages.is_empty() && op.bare[0].1.bytes() == data);
    let opened = edgepack::edit::Opened::from_bytes(file.clone()).expect("a model");
    let Ok(mut package) = opened.package() else { return assert!(!is_bare) };
    let Ok(places) = opened.places(&package) else { return assert!(!is_bare) };
    package.places = Some(Box::new(places));
    let json = edgepack::edit::dump(&package).expect("what is read is dumped");
    let again = edgepack::edit::build(&json).expect("what is dumped is built");
    assert_eq!(again.to_bytes().expect("what is built is written"), file);
}

/// A model of one compiled operator with these options.
fn carrier(options: Vec<u8>) -> Vec<u8> {
    use edgepack_format::row::Blob;
    use edgepack_format::tflite::{Model, OPERATOR, Operator, OperatorCode, SubGraph};
    let operator = Operator { custom_options: Some(Blob(options.into())), ..Operator::default() };
    let code = OperatorCode {
        builtin_code: OperatorCode::CUSTOM,
        custom_code: Some(OPERATOR.into()),
        ..OperatorCode::default()
    };
    let graph = SubGraph { operators: Some(vec![operator].into()), ..SubGraph::default() };
    let row = Model {
        version: 3,
        operator_codes: Some(vec![code].into()),
        subgraphs: Some(vec![graph].into()),
        ..Model::default()
    };
    edgepack_builder::tflite::model(&row).expect("a small model")
}

/// An executable without a package, as early wrappers hold it.
pub fn early_seeds() -> Vec<Vec<u8>> {
    use edgepack_format::darwinn::InstructionBitstream;
    use edgepack_format::row::Blob;
    let code = InstructionBitstream { bitstream: Some(Blob(vec![0; 32].into())), ..InstructionBitstream::default() };
    let row = Executable {
        name: Some("model_name".into()),
        batch_size: 1,
        instruction_bitstreams: Some(vec![code].into()),
        ..Executable::default()
    };
    vec![darwinn::executable(&row, Layout::Dense).expect("a small executable")]
}

/// See [`BODIES`](super::BODIES).
pub fn options(data: &[u8]) {
    let Ok(options) = CustomOptions::parse(data) else { return };
    let (at, package) = options.package;
    assert_eq!(&data[at..at + package.len()], package);
    let Ok(written) = rewrite_options(&options, package) else { return };
    let again = CustomOptions::parse(&written).expect("what is written is read");
    let (mut ours, mut theirs) = (again.keys.clone(), options.keys.clone());
    ours.sort_by_key(|(key, _)| *key);
    theirs.sort_by_key(|(key, _)| *key);
    assert_eq!(ours, theirs);
    assert_eq!(again.package.1, package);
    assert_eq!(rewrite_options(&again, package).expect("it was written before"), written);
}

/// Options as compilers of several years wrote them.
pub fn option_seeds() -> Vec<Vec<u8>> {
    use edgepack_builder::tflite::OptionValue::{Int, Ints, String, Strings};
    use edgepack_builder::tflite::custom_options;
    let package = String(b"\x18\0\0\0DWN1package");
    vec![
        custom_options(&[("4", package.clone())]),
        custom_options(&[("1", Int(0)), ("2", String(b"beagle")), ("4", package.clone()), ("5", Int(1))]),
        custom_options(&[("1", Int(0)), ("4", package.clone()), ("5", Int(-1))]),
        custom_options(&[
            ("1", Int(0)),
            ("4", package),
            ("5", Int(-1)),
            ("6", Ints(vec![18, 20])),
            ("7", Strings(vec![b"another"])),
        ]),
    ]
}
