//! Variables: outputs written back into inputs, from run to run.

use edgepack_executor::darwinn::{RunError, Runner, Simulator, TensorBytes};
use edgepack_format::darwinn::DataType;
use edgepack_loader::Registration;

use super::made::{Made, recurrent};
use super::{cached, chip, flipped};

/// Three signed 16-bit numbers as the device has them.
fn flipped_wide(bytes: &[u8]) -> Vec<u8> {
    let mut device: Vec<u8> =
        bytes.iter().enumerate().map(|(at, byte)| if at % 2 == 1 { byte ^ 0x80 } else { *byte }).collect();
    device.resize(8, 0);
    device
}

/// A cell that an undisturbed device gives: the output and the next value.
pub fn cell(package: &Registration, x: &[u8], h: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (x, h) = (flipped(x), flipped_wide(h));
    let give = |name| Simulator::digest(&cached(package), &[("h", &h), ("x", &x)], name, 8);
    (give("y")[..6].to_vec(), flipped_wide(&give("h_variable_output")[..6])[..6].to_vec())
}

#[test]
fn values_go_from_run_to_run() {
    let (chip, package) = (chip(), recurrent(1).register());
    let mut runner = Runner::new(&chip, &package).unwrap();
    assert_eq!(runner.variables().count(), 1);
    assert_eq!((runner.inputs().len(), runner.outputs().count()), (2, 1));
    assert_eq!(runner.state("h"), None);
    for _ in 0..2 {
        let mut h = vec![0; 6];
        for round in 0..5u8 {
            let results = runner.run(&[TensorBytes::new("x", [round; 5])]).unwrap();
            let (y, next) = cell(&package, &[round; 5], &h);
            assert_eq!(results, [TensorBytes::new("y", y)]);
            assert_eq!(runner.state("h").unwrap(), std::slice::from_ref(&next));
            assert_ne!(next, h);
            h = next;
        }
        runner.reset_state();
    }
    // A value that is set, before a run or with it.
    let h = [1, 2, 3, 4, 5, 6];
    runner.set_state(TensorBytes::new("h", h)).unwrap();
    let set = runner.run(&[TensorBytes::new("x", [9; 5])]).unwrap();
    let given = runner.run(&[TensorBytes::new("x", [9; 5]), TensorBytes::new("h", h)]).unwrap();
    assert_eq!(set, given);
    assert_eq!(set[0].entries[0], cell(&package, &[9; 5], &h).0);
    let refused = |answer: Result<(), RunError>| answer.unwrap_err().to_string();
    assert_eq!(
        refused(runner.set_state(TensorBytes::new("x", [0; 5]))),
        r#"there is no variable "x"; there are ["h"]"#
    );
    assert!(refused(runner.set_state(TensorBytes::new("h", [0; 5]))).contains("5 bytes, 6"));
}

#[test]
fn every_entry_has_its_own() {
    let (chip, package) = (chip(), Made { batch: 2, ..recurrent(1) }.register());
    let mut runner = Runner::new(&chip, &package).unwrap();
    let mut states = vec![vec![0; 6]; 3];
    for round in 0..4u8 {
        let entries: Vec<_> = (0..3).map(|entry| vec![round * 3 + entry; 5]).collect();
        let results = runner.run(&[TensorBytes { name: "x".into(), entries: entries.clone() }]).unwrap();
        for (index, (x, h)) in entries.iter().zip(&mut states).enumerate() {
            let (y, next) = cell(&package, x, h);
            assert_eq!(results[0].entries[index], y);
            *h = next;
        }
    }
    let error = runner.run(&[TensorBytes::new("x", [0; 5])]).unwrap_err().to_string();
    assert_eq!(
        error,
        r#"3 entries of "h", the first input has 1; `reset_state` starts with another number of entries"#
    );
    runner.reset_state();
    runner.run(&[TensorBytes::new("x", [0; 5])]).unwrap();
}

#[test]
fn two_runners_of_a_package_have_two_states() {
    let (chip, package) = (chip(), recurrent(1).register());
    let mut runners = [Runner::new(&chip, &package).unwrap(), Runner::new(&chip, &package).unwrap()];
    let mut states = [vec![0; 6], vec![0; 6]];
    for round in 0..6u8 {
        let index = usize::from(round % 3 == 0);
        let (y, next) = cell(&package, &[round; 5], &states[index]);
        assert_eq!(super::run_x(&mut runners[index], &[round; 5]), y);
        states[index] = next;
    }
}

#[test]
fn outputs_that_do_not_fit_are_refused_and_others_are_outputs() {
    let with = |name, z, kind| {
        let outputs = vec![("y", 6, DataType::FIXED_POINT8), (name, z, kind)];
        let package = Made { outputs, ..recurrent(1) }.register();
        Runner::new(&chip(), &package).map(|runner| runner.outputs().count()).map_err(|error| error.to_string())
    };
    let refused = with("h_variable_output", 4, DataType::SIGNED_FIXED_POINT16).unwrap_err();
    assert!(refused.contains("8 bytes, the input has 6") && refused.contains(r#""h""#), "{refused}");
    let refused = with("h_variable_output", 3, DataType::FIXED_POINT16).unwrap_err();
    assert!(refused.contains("FIXED_POINT16, the input is SIGNED_FIXED_POINT16"), "{refused}");
    assert_eq!(with("g_variable_output", 3, DataType::FIXED_POINT16), Ok(2));
}
