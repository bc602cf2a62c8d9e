//! Runs of Edge TPU packages and models on a device of software, which checks what it is given, fails when it is told to,
//! and gives outputs that depend on everything that an output may depend on.

mod faults;
mod made;
mod memory;
mod models;
mod names;
mod state;
mod tampering;

use edgepack_executor::darwinn::{Chip, Runner, Simulator, TensorBytes};
use edgepack_loader::Registration;

fn chip() -> Chip<Simulator> {
    Chip::new(Simulator::new())
}

/// The bytes of the parameters that are on the chip when a package runs.
fn cached(package: &Registration) -> Vec<u8> {
    package.caching().map_or_else(Vec::new, |index| package.parameters(index).unwrap().to_vec())
}

/// Five signed bytes as the device gets them.
fn flipped(bytes: &[u8]) -> Vec<u8> {
    let mut device: Vec<u8> = bytes.iter().map(|byte| byte ^ 0x80).collect();
    device.resize(8, 0);
    device
}

/// The tensor `y` that an undisturbed device gives for `x`.
fn expected(package: &Registration, x: &[u8]) -> Vec<u8> {
    let mut y = Simulator::digest(&cached(package), &[("x", &flipped(x))], "y", 8);
    y.truncate(6);
    y
}

fn run_x(runner: &mut Runner<'_, Simulator>, x: &[u8]) -> Vec<u8> {
    runner.run(&[TensorBytes::new("x", x)]).unwrap().remove(0).entries.remove(0)
}
