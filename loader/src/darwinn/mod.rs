//! Edge TPU packages, registered as the driver registers them: which are refused, which executable does what, and what
//! stays in on-chip memory from one request to the next.

mod model;
mod registry;
mod residency;
#[cfg(feature = "signatures")]
mod signature;

pub use model::{OperatorTensor, RegisteredModel, RegisteredOperator};
pub use registry::{RegisterError, Registration, Registry};
pub use residency::{Residency, Submission};
#[cfg(feature = "signatures")]
pub use signature::PublicKey;
