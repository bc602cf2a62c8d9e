//! Tensors by name, as bytes and as real values.

use edgepack_executor::darwinn::{Chip, Extraction, NoDevice, RunError, Runner, RunnerOptions, TensorBytes};
use edgepack_format::darwinn::{DataType, NumericsConstants};
use edgepack_format::limits::Limits;
use edgepack_loader::Registry;

use super::made::Made;
use super::{chip, expected, run_x};

fn two() -> Made {
    Made {
        inputs: vec![("x", 5, DataType::SIGNED_FIXED_POINT8), ("z", 2, DataType::FIXED_POINT16)],
        outputs: vec![("y", 6, DataType::FIXED_POINT8), ("w", 1, DataType::HALF)],
        ..Made::default()
    }
}

#[test]
fn order_does_not_matter_and_what_is_wrong_is_named() {
    let (chip, package) = (chip(), two().register());
    let mut runner = Runner::new(&chip, &package).unwrap();
    let (x, z) = (TensorBytes::new("x", [1, 2, 3, 4, 5]), TensorBytes::new("z", [6, 7, 8, 9]));
    let first = runner.run(&[x.clone(), z.clone()]).unwrap();
    assert_eq!(first.iter().map(|tensor| tensor.name.as_str()).collect::<Vec<_>>(), ["y", "w"]);
    assert_eq!(runner.run(&[z.clone(), x.clone()]).unwrap(), first);
    assert_ne!(runner.run(&[TensorBytes::new("z", [6, 7, 8, 0]), x.clone()]).unwrap(), first);
    let mut refused = |tensors: &[TensorBytes]| runner.run(tensors).unwrap_err().to_string();
    assert_eq!(refused(std::slice::from_ref(&x)), r#"input "z" is missing; the inputs are ["x", "z"]"#);
    let q = TensorBytes::new("q", [0]);
    assert_eq!(refused(&[x.clone(), z.clone(), q]), r#"there is no input "q"; the inputs are ["x", "z"]"#);
    assert_eq!(refused(&[x.clone(), z.clone(), z.clone()]), r#""z" is given twice"#);
    let short = TensorBytes::new("x", [1, 2, 3, 4]);
    assert_eq!(refused(&[short, z.clone()]), r#""x": the input has 4 bytes, 5 or, with padding, 8 are needed"#);
    let twice = TensorBytes { name: "z".into(), entries: vec![vec![0; 4]; 2] };
    assert_eq!(refused(&[x.clone(), twice]), r#"2 entries of "z", the first input has 1"#);
    let none = TensorBytes { name: "x".into(), entries: Vec::new() };
    assert_eq!(refused(&[none, z.clone()]), r#""x" has no entries"#);
    // None of this reached the device.
    assert_eq!(runner.run(&[x, z]).unwrap(), first);
    assert_eq!(chip.with_device(|device| device.loads()), 1);
}

#[test]
fn values_are_quantised_and_dequantised() {
    let (chip, package) = (chip(), two().register());
    chip.with_device(|device| {
        device.compute(&package, |work| match work.output {
            // Device numbers of `x` are those of `y`, which has another zero point.
            "y" => [work.input("x"), &[0; 3]].concat()[..8].to_vec(),
            _ => [&half::f16::from_f32(work.input("z")[0].into()).to_le_bytes()[..], &[0; 6]].concat(),
        });
    });
    let mut runner = Runner::new(&chip, &package).unwrap();
    let (x, z) = ([0.0, 1.0, -2.5, 1e9, f32::NAN], [0.0, 4.0]);
    let values = runner.run_values(&[("z", &z), ("x", &x)]).unwrap();
    // 128, 130, 123, 255, 128 on the device; `y` has scale 0.5 and zero point 10, the sixth element is padding.
    assert_eq!(values["y"], [59.0, 60.0, 56.5, 122.5, 59.0, -5.0]);
    assert_eq!(values["w"], [10.0]);
    // Two entries after each other.
    let both = runner.run_values(&[("x", &[x, x].concat()), ("z", &[z, z].concat())]).unwrap();
    assert_eq!(both["y"], [&values["y"][..], &values["y"][..]].concat());
    let error = runner.run_values(&[("x", &x[..4]), ("z", &z)]).unwrap_err().to_string();
    assert_eq!(error, r#""x" has 4 bytes, an entry has 5"#);
}

#[test]
fn numbers_without_a_meaning_are_not_values() {
    let mut row = Made { cached: 0, ..Made::default() }.running();
    let mut layers: Vec<_> = row.input_layers.unwrap().iter().map(Result::unwrap).collect();
    layers[0].numerics = Some(NumericsConstants { zero_point: 128, dequantization_factor: 0.0 });
    row.input_layers = Some(layers.into());
    let mut builder = edgepack_builder::darwinn::PackageBuilder::new();
    let package = Registry::new().register(&builder.executable(row).finish().unwrap()).unwrap();
    let chip = chip();
    let mut runner = Runner::new(&chip, &package).unwrap();
    let error = runner.run_values(&[("x", &[0.0; 5])]).unwrap_err().to_string();
    assert_eq!(error, r#""x": numbers of scale 0 stand for no values"#);
    runner.run(&[TensorBytes::new("x", [0; 5])]).unwrap();
}

#[test]
fn entries_that_do_not_fill_a_batch_are_zeros() {
    let (chip, package) = (chip(), Made { batch: 2, ..Made::default() }.register());
    let mut runner = Runner::new(&chip, &package).unwrap();
    let entries: Vec<Vec<u8>> = (0..3).map(|entry| vec![entry; 5]).collect();
    let results = runner.run(&[TensorBytes { name: "x".into(), entries: entries.clone() }]).unwrap();
    let wanted: Vec<_> = entries.iter().map(|x| expected(&package, x)).collect();
    assert_eq!(results[0].entries, wanted);
    // A single entry after a full batch.
    assert_eq!(run_x(&mut runner, &[9; 5]), expected(&package, &[9; 5]));
}

#[test]
fn what_cannot_run_is_refused_by_name() {
    let package = Made { batch: 1 << 20, ..Made::default() }.register();
    let options = RunnerOptions::default().within(Limits::hostile());
    let error = Runner::with_options(&chip(), &package, options).err().unwrap();
    assert!(matches!(error, RunError::TooLarge { limit, .. } if limit == Limits::hostile().memory_bytes), "{error}");
    // Lists that are not the whole run take a device that asks for the rest.
    let package = Made { is_whole: false, ..Made::default() }.register();
    let chips = [chip(), Chip::new(super::Simulator::new().with_extraction(Extraction::Instructions))];
    let mut runners = chips.iter().map(|chip| Runner::new(chip, &package).unwrap());
    let error = runners.next().unwrap().run(&[TensorBytes::new("x", [1; 5])]).unwrap_err();
    assert!(matches!(error, RunError::Partial), "{error}");
    assert_eq!(run_x(&mut runners.next().unwrap(), &[1; 5]), expected(&package, &[1; 5]));
    let nothing = Chip::new(Box::new(NoDevice));
    let error = Runner::new(&nothing, &package).unwrap().prepare().unwrap_err().to_string();
    assert!(error.contains("complete") || error.contains("no Edge TPU"), "{error}");
}
