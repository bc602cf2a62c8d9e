//! Language models: their attention, and the methods that runners ask them for.

use edgepack::builder::pte::Arg;
use edgepack_exir::graph::{InputKind, TensorMeta};
use edgepack_exir::language::{self, Attention};
use edgepack_exir::lower::ProgramManager;

use super::failure;
use crate::status::Failure;

/// Puts operators of runtimes in the place of attention with caches, and says so in lines. A model in which there is none is
/// a failure, with the reasons.
pub fn recognise(manager: &mut ProgramManager<'_>) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    let (mut found, mut shortest) = (0usize, usize::MAX);
    for (method, attentions) in manager.change(language::recognise).map_err(failure)? {
        for Attention { node, places } in attentions {
            lines.push(match places {
                Ok(places) => {
                    (found, shortest) = (found + 1, shortest.min(places));
                    format!("{method}  {node}: attention with a cache of {places} places")
                }
                Err(reason) => format!("{method}  {node}: stays: {reason}"),
            });
        }
    }
    match (found, lines.is_empty()) {
        (0, true) => Err(Failure::findings("no attention is in the program: --llm finds nothing to do")),
        (0, false) => Err(Failure::findings(format!("no attention has caches: {}", lines.join("; ")))),
        _ => {
            describe(manager, shortest);
            Ok(lines)
        }
    }
}

/// Adds the methods that runners ask for, as far as the program says what they give.
fn describe(manager: &mut ProgramManager<'_>, places: usize) {
    let places = i64::try_from(places).unwrap_or(i64::MAX);
    let methods: Vec<String> = manager.methods().map(str::to_owned).collect();
    let is_dynamic = |name: &String| {
        let program = manager.program(name);
        program.is_some_and(|program| {
            let user = program.inputs.iter().filter(|spec| spec.kind == InputKind::User);
            let mut tensors = user.filter_map(|spec| program.graph.tensor_of(&spec.arg));
            tensors.any(TensorMeta::is_dynamic)
        })
    };
    let dynamic = methods.iter().any(is_dynamic);
    manager.constant_method("get_max_seq_len", vec![Arg::Int(places)]);
    manager.constant_method("get_max_context_len", vec![Arg::Int(places)]);
    manager.constant_method("use_kv_cache", vec![Arg::Bool(true)]);
    manager.constant_method("use_sdpa_with_kv_cache", vec![Arg::Bool(true)]);
    manager.constant_method("enable_dynamic_shape", vec![Arg::Bool(dynamic)]);
}
