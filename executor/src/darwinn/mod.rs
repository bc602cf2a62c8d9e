//! The host side of an Edge TPU: everything that happens to a package and its tensors before and after the device.
//!
//! [`link()`] writes addresses into instructions, [`transfers`] lists what is moved in which order, [`prepare_input`] and
//! [`Output`] convert tensors, and [`Runner`] puts them together for a [`Device`]. No hardware is driven here; what
//! implements [`Device`] does that. [`Loopback`] is a substitute for one and checks what it is given.

mod device;
mod link;
mod loopback;
mod number;
mod relayout;
mod run;
mod tensor;
mod transfer;

pub use device::{Device, DeviceError, Memory, NoDevice};
pub use link::{Addresses, LinkError, link, write_field};
pub use loopback::{Loopback, Seen};
pub use number::{dequantize, quantize};
pub use relayout::Output;
pub use run::{RunError, Runner, TensorBytes};
pub use tensor::{TensorError, flip_signs, prepare_input};
pub use transfer::{Buffer, Extraction, Transfer, TransferError, transfers};
