//! Programs: opened and verified, what their methods take, their settings and the data inside them.

mod meta;
mod metadata;
mod named_data;
mod program;

pub use meta::{MethodMeta, TensorSignature, ValueMeta};
pub use metadata::{METADATA_PREFIX, Metadata};
pub use named_data::ProgramData;
pub use program::{OpenOptions, Program, ProgramMethod};
