//! The device of software is strict: a host that does anything else than the package says is refused.

use edgepack_executor::darwinn::{
    Buffer, Chip, Device, DeviceError, Mapping, Memory, Moved, Program, Runner, Simulator, TensorBytes, Transfer,
};
use edgepack_loader::{Bytes, Registration};

use super::chip;
use super::made::Made;

type Tamper = fn(&mut Vec<Transfer>, &mut Memory);

/// A host that does something else in the run of the main executable.
struct Wrong {
    device: Simulator,
    tamper: Tamper,
    parameters: Option<Bytes>,
}

impl Device for Wrong {
    fn register(&mut self, package: &Registration) -> Result<(), DeviceError> {
        self.device.register(package)
    }

    fn map(&mut self, mapping: &Mapping<'_>) -> Result<u64, DeviceError> {
        let elsewhere = self.parameters.as_ref().filter(|_| mapping.parameters.is_some());
        self.device.map(&Mapping { parameters: elsewhere.or(mapping.parameters), ..*mapping })
    }

    fn run(&mut self, program: Program, list: &[Transfer], memory: &mut Memory) -> Result<Moved, DeviceError> {
        let mut list = list.to_vec();
        if program.executable == 0 {
            (self.tamper)(&mut list, memory);
        }
        self.device.run(program, &list, memory)
    }
}

fn first(list: &[Transfer], is: impl Fn(&Transfer) -> bool) -> usize {
    list.iter().position(is).unwrap()
}

fn output(list: &[Transfer]) -> usize {
    first(list, |one| matches!(one, Transfer::OutputActivation(Buffer::Output(..), _)))
}

const TAMPERS: [(Tamper, &str); 14] = [
    (|list, _| drop(list.pop()), "9 transfers, the list of the package has"),
    (|list, _| list.push(Transfer::Interrupt(0)), "transfers, the list of the package has"),
    (|list, _| list.swap(1, 2), "the hint has 32 bytes at 0"),
    (|list, _| list.swap(0, 3), "transfer 0, input_activation: the hint is"),
    (
        |list, _| {
            let at = output(list);
            list[at] = Transfer::OutputActivation(Buffer::Output("y".into(), 0), 0..6);
        },
        "0..6 of the 8 bytes of output:y[0], the hint has 8 bytes at 0",
    ),
    (
        |list, _| {
            let at = output(list);
            list[at] = Transfer::OutputActivation(Buffer::Output("y".into(), 1), 0..8);
        },
        "the hint is about",
    ),
    (
        |list, _| {
            let at = output(list);
            list[at] = Transfer::OutputActivation(Buffer::Output("z".into(), 0), 0..8);
        },
        "the hint is about",
    ),
    (
        |list, _| {
            let at = first(list, |one| *one == Transfer::LocalFence);
            list[at] = Transfer::GlobalFence;
        },
        "global_fence: the hint is",
    ),
    (
        |list, _| {
            let at = first(list, |one| *one == Transfer::Interrupt(0));
            list[at] = Transfer::Interrupt(1);
        },
        "interrupt1: the hint is",
    ),
    (
        |list, _| {
            let at = first(list, |one| matches!(one, Transfer::OutputActivation(Buffer::Scratch, _)));
            list[at] = Transfer::InputActivation(Buffer::Scratch, 0..64);
        },
        "the hint is about",
    ),
    // The lowest bit of the first instruction, which is no field's.
    (|_, memory| memory.get_mut(&Buffer::Instruction(0), 0..1).unwrap()[0] ^= 1, "outside of its fields"),
    // A bit of the first field.
    (|_, memory| memory.get_mut(&Buffer::Instruction(0), 9..10).unwrap()[0] ^= 1, "field 0 holds"),
    // A field of the output, the last one.
    (
        |_, memory| {
            let last = memory.whole(&Buffer::Instruction(0)).unwrap().len() - 16 + 10;
            memory.get_mut(&Buffer::Instruction(0), last..last + 1).unwrap()[0] ^= 0x40;
        },
        "field 7 holds",
    ),
    (|list, _| list.clear(), "0 transfers"),
];

#[test]
fn other_transfers_than_the_packages_are_refused() {
    let package = Made::default().register();
    for (tamper, wanted) in TAMPERS {
        let chip = Chip::new(Wrong { device: Simulator::new(), tamper, parameters: None });
        let mut runner = Runner::new(&chip, &package).unwrap();
        let error = runner.run(&[TensorBytes::new("x", [1; 5])]).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}, wanted {wanted}");
    }
}

#[test]
fn parameters_have_to_be_where_they_were_mapped() {
    let package = Made::default().register();
    let copy = Made::default().register();
    let nothing: Tamper = |_, _| {};
    for (elsewhere, wanted) in [
        (copy.parameters(0).unwrap().clone(), "elsewhere"),
        (package.parameters(0).unwrap().slice(16..32).unwrap(), "not at a page"),
    ] {
        let chip = Chip::new(Wrong { device: Simulator::new(), tamper: nothing, parameters: Some(elsewhere) });
        let mut runner = Runner::new(&chip, &package).unwrap();
        let error = runner.run(&[TensorBytes::new("x", [1; 5])]).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn programs_whose_parameters_are_not_on_the_chip_are_refused() {
    let (chip, package) = (chip(), Made::default().register());
    let mut runner = Runner::new(&chip, &package).unwrap();
    super::run_x(&mut runner, &[1; 5]);
    // Another user of the device, behind the back of whoever counts what is there.
    let other = Made { token: 9, ..Made::default() }.register();
    let program = chip.with_device(|device| {
        let (program, _) = *device.mappings().iter().find(|(program, _)| program.runner > 0).unwrap();
        device.register(&other).unwrap();
        Program { package: other.id(), ..program }
    });
    let error = chip.with_device(|device| device.run(program, &[], &mut Memory::default())).unwrap_err();
    assert!(matches!(error, DeviceError::Failed(_)), "{error}");
    // It refuses everything until it is reset.
    let error = runner.run(&[TensorBytes::new("x", [1; 5])]).unwrap_err().to_string();
    assert!(error.contains("reset after a failure"), "{error}");
    super::run_x(&mut runner, &[1; 5]);
}

#[test]
fn addresses_are_given_once_and_for_what_is_in_the_tables() {
    let (package, mut device) = (Made::default().register(), Simulator::new());
    let program = Program { package: package.id(), executable: 0, runner: 1 };
    let input = Buffer::Input("x".into(), 0);
    let place = edgepack_executor::darwinn::Place::Host;
    let mapping = Mapping { program, buffer: &input, bytes: 8, place, parameters: None };
    let refused = |answer: Result<u64, DeviceError>| answer.unwrap_err().to_string();
    assert!(refused(device.map(&mapping)).contains("not registered"));
    device.register(&package).unwrap();
    assert!(refused(device.map(&Mapping { bytes: 16, ..mapping })).contains("not in the tables"));
    assert!(refused(device.map(&Mapping { buffer: &Buffer::Input("x".into(), 1), ..mapping })).contains("tables"));
    device.map(&mapping).unwrap();
    assert!(refused(device.map(&mapping)).contains("already"));
    let own =
        Mapping { place: edgepack_executor::darwinn::Place::Dram, buffer: &Buffer::Output("y".into(), 0), ..mapping };
    assert!(refused(device.map(&own)).contains("0 are free"));
    device.unmap(program, &input);
    device.map(&mapping).unwrap();
}
