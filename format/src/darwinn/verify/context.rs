//! The facts about an executable that its fields and hints refer to.

use alloc::collections::BTreeMap;
use alloc::string::String;

/// Facts about an executable.
pub struct Context {
    /// Padded bytes of the inputs by name; `None` for those whose sizes are wrong, which has been reported.
    pub inputs: BTreeMap<String, Option<usize>>,
    /// The same for outputs.
    pub outputs: BTreeMap<String, Option<usize>>,
    /// Batch entries of one run.
    pub batch: i32,
    /// Bytes of parameters.
    pub parameters: usize,
    /// Bytes of scratch memory.
    pub scratch: usize,
    /// Number of instruction chunks.
    pub chunks: usize,
}

impl Context {
    /// Returns whether a batch entry exists.
    pub fn has_batch(&self, batch: i32) -> bool {
        (0..self.batch.max(1)).contains(&batch)
    }
}
