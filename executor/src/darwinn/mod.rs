//! The host side of an Edge TPU: everything that happens to a package and its tensors before and after the device.
//!
//! [`link()`] writes addresses into instructions, [`transfers`] lists what is moved in which order, [`prepare_input`] and
//! [`Output`] convert tensors. A [`Runner`] puts them together for a package, a [`Model`] for all compiled operators of a
//! model; any number of both share a [`Chip`], which is a [`Device`] and what is known of it. No hardware is driven here;
//! what implements [`Device`] does that. [`Simulator`] is a substitute for one, checks what it is given and fails on
//! request.

mod chip;
mod device;
mod error;
mod link;
mod model;
mod number;
mod program;
mod relayout;
mod runner;
mod sides;
mod simulator;
mod tensor;
mod transfer;

pub use chip::Chip;
pub use device::{Device, DeviceError, Mapping, Memory, Moved, NoDevice, Place, Program};
pub use error::RunError;
pub use link::{Addresses, LinkError, link, write_field};
pub use model::{Model, ModelOptions};
pub use number::{check_numerics, dequantize, quantize};
pub use program::{DramUse, Placement};
pub use relayout::Output;
pub use runner::{Runner, RunnerOptions};
pub use sides::TensorBytes;
pub use simulator::{Fault, Seen, Simulator, Work};
pub use tensor::{TensorError, flip_signs, prepare_input};
pub use transfer::{Buffer, Extraction, Transfer, TransferError, transfers};
