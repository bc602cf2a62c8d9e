//! Writes into caches where they are: `llama::update_cache` changes a buffer, and the graph has its result as the buffer
//! after the call.

use edgepack_builder::pte::{Out, TensorSpec};
use edgepack_format::scalar::ScalarType;

use super::emit::{Emitter, Held, Scope};
use crate::error::Error;
use crate::graph::{Argument, Node};

/// Operator of a graph that writes rows into a cache; its result is the cache.
const UPDATE: &str = "llama::update_cache";

impl Emitter<'_, '_, '_, '_> {
    /// Emits a write into a cache; answers whether the node is one.
    pub(super) fn update_cache(&mut self, scope: &mut Scope<'_>, node: &Node) -> Result<bool, Error> {
        if !node.calls(UPDATE) {
            return Ok(false);
        }
        let wrong = |what: &str| Error::program(format!("node `{}`", node.name), format!("{UPDATE}: {what}"));
        let cache = node.value_arg("cache").ok_or_else(|| wrong("its cache is not a tensor"))?;
        let Some(held @ Held::Tensor(..)) = scope.held.get(&cache).cloned() else {
            return Err(wrong("its cache is not a buffer that the program changes"));
        };
        let mut args = Vec::with_capacity(3);
        for name in ["value", "cache", "start_pos"] {
            let argument = node.arg(name).unwrap_or(&Argument::None);
            args.push(self.arg(scope, argument).ok_or_else(|| wrong("an argument is missing"))??);
        }
        // Nobody reads what it gives.
        let out = Out::Tensor(TensorSpec::new(ScalarType::FLOAT, [1]));
        self.method.call("llama::update_cache.out", args, vec![out])?;
        if let Some(result) = node.result() {
            scope.held.insert(result, held);
        }
        Ok(true)
    }
}
