//! Payloads of the XNNPACK backend, laid out as the reference exporter lays them out.
//!
//! [`PayloadBuilder`] takes typed values and nodes and promises that what it finishes verifies; [`write()`] takes rows as they
//! are.

mod builder;
mod constants;
mod container;
mod sink;
mod values;

pub use builder::{BuiltPayload, PayloadBuilder};
pub use constants::{ConstantId, NamedBytes, Storage, key_of, key_of_digest};
pub use container::{Container, write};
pub use sink::{CompilerSink, Position};
pub use values::{Quant, Scales, ValueId, ValueSpec};
