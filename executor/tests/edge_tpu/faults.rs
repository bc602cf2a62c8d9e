//! Devices that fail in every transfer there is: nothing of what failed is in what comes after.

use std::panic::{AssertUnwindSafe, catch_unwind};

use edgepack_executor::darwinn::{
    Chip, Device, DeviceError, Extraction, Fault, Mapping, Memory, Moved, Program, RunError, Runner, Simulator,
    TensorBytes, Transfer,
};
use edgepack_loader::Registration;

use super::made::{Made, recurrent};
use super::state::cell;
use super::{chip, expected, run_x};

/// Two packages take turns; in every transfer of their runs something goes wrong once.
fn interleaved(fault: Fault, tokens: [u64; 2], dram: u64, extraction: Extraction) -> usize {
    let wants = dram > 0;
    let a = Made { token: tokens[0], dram: wants, ..recurrent(1) }.register();
    let b = Made { token: tokens[1], dram: wants, ..recurrent(2) }.register();
    let mut failures = 0;
    for at in 0..60 {
        let chip = Chip::new(Simulator::new().with_dram(dram).with_extraction(extraction));
        let mut runners = [Runner::new(&chip, &a).unwrap(), Runner::new(&chip, &b).unwrap()];
        let mut states = [vec![0; 6], vec![0; 6]];
        chip.with_device(|device| device.inject(at, fault));
        for round in 0..6u8 {
            let index = usize::from(round % 2);
            let (package, input) = ([&a, &b][index], TensorBytes::new("x", [round; 5]));
            let before = runners[index].state("h").map(<[Vec<u8>]>::to_vec);
            let result = match runners[index].run(std::slice::from_ref(&input)) {
                Ok(result) => result,
                Err(error) => {
                    assert!(matches!(error, RunError::Device(_)), "{error}");
                    assert_eq!(runners[index].state("h").map(<[Vec<u8>]>::to_vec), before);
                    assert!(!chip.holds(&a) && !chip.holds(&b));
                    failures += 1;
                    runners[index].run(&[input]).unwrap()
                }
            };
            let (y, next) = cell(package, &[round; 5], &states[index]);
            assert_eq!(result[0].entries[0], y, "{fault:?} in transfer {at}, round {round}");
            states[index] = next;
        }
    }
    failures
}

#[test]
fn a_failure_anywhere_is_an_error_and_leaves_nothing_stale() {
    for tokens in [[7, 7], [7, 8]] {
        for dram in [0, 1 << 16] {
            for fault in [Fault::Short(3), Fault::Silent(3), Fault::Short(0), Fault::Silent(0), Fault::Reset] {
                let failures = interleaved(fault, tokens, dram, Extraction::Hints);
                // Two loads and six runs have 54 transfers that move bytes; every fault there is noticed.
                assert!(failures >= 52, "{failures} for {fault:?}");
            }
        }
    }
    assert!(interleaved(Fault::Reset, [7, 7], 0, Extraction::Instructions) > 10);
}

#[test]
fn errors_name_what_was_short() {
    let (chip, package) = (chip(), Made::default().register());
    let mut runner = Runner::new(&chip, &package).unwrap();
    let mut error = |transfer, fault| {
        run_x(&mut runner, &[0; 5]);
        chip.with_device(|device| device.inject(transfer, fault));
        runner.run(&[TensorBytes::new("x", [1; 5])]).unwrap_err().to_string()
    };
    assert_eq!(error(3, Fault::Short(5)), "transfer 3: 5 of 8 bytes of input:x[0] were moved");
    assert_eq!(error(0, Fault::Reset), "the device was reset in transfer 0");
    assert_eq!(error(6, Fault::Silent(2)), "the device: 264 bytes were sent and 66 received, the list has 264 and 72");
}

#[test]
fn a_reset_that_was_asked_for_is_followed_by_loads() {
    let (chip, package) = (chip(), Made::default().register());
    let mut runner = Runner::new(&chip, &package).unwrap();
    for round in 1..4 {
        assert_eq!(run_x(&mut runner, &[1; 5]), expected(&package, &[1; 5]));
        assert_eq!(chip.with_device(|device| device.loads()), round);
        chip.reset().unwrap();
        assert!(!chip.holds(&package));
    }
    // Dropped after a reset, it takes back no address that is another's by now.
    let mut other = Runner::new(&chip, &package).unwrap();
    other.prepare().unwrap();
    let mapped = chip.with_device(|device| device.mapped());
    drop(runner);
    assert_eq!(chip.with_device(|device| device.mapped()), mapped);
    assert_eq!(run_x(&mut other, &[1; 5]), expected(&package, &[1; 5]));
}

/// A device that panics in a run, or whose reset fails, as often as asked.
struct Broken {
    device: Simulator,
    panics: usize,
    resets: usize,
}

impl Device for Broken {
    fn register(&mut self, package: &Registration) -> Result<(), DeviceError> {
        self.device.register(package)
    }

    fn map(&mut self, mapping: &Mapping<'_>) -> Result<u64, DeviceError> {
        self.device.map(mapping)
    }

    fn run(&mut self, program: Program, list: &[Transfer], memory: &mut Memory) -> Result<Moved, DeviceError> {
        let moved = self.device.run(program, list, memory)?;
        if self.panics > 0 {
            self.panics -= 1;
            panic!("a driver that is not well");
        }
        Ok(moved)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        if self.resets > 0 {
            self.resets -= 1;
            return Err(DeviceError::Failed("it does not come back".to_owned()));
        }
        self.device.reset()
    }
}

#[test]
fn panics_and_failed_resets_are_survived() {
    let package = recurrent(1).register();
    let chip = Chip::new(Broken { device: Simulator::new(), panics: 0, resets: 0 });
    let mut runner = Runner::new(&chip, &package).unwrap();
    let input = [TensorBytes::new("x", [1; 5])];
    let mut h = vec![0; 6];
    for round in 0..4 {
        chip.with_device(|device| device.panics = round % 3);
        for _ in 0..round % 3 {
            assert!(catch_unwind(AssertUnwindSafe(|| runner.run(&input))).is_err());
            assert!(!chip.holds(&package));
            chip.with_device(|device| device.resets = round);
            // The reset that a panic left to the next request.
            for _ in 0..round {
                let error = runner.run(&input).unwrap_err().to_string();
                assert_eq!(error, "the device: it does not come back");
            }
        }
        let (y, next) = cell(&package, &[1; 5], &h);
        assert_eq!(runner.run(&input).unwrap()[0].entries[0], y);
        h = next;
    }
}
