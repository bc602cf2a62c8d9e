//! Nesting of arguments and results: the pytree texts are read and their leaves counted.

use edgepack_format::rules::exir as rule;
use serde_json::Value;

use super::Checker;
use crate::graph::{ExportedProgram, InputKind, OutputKind};

/// Ceiling of the nesting of containers.
const DEPTH: usize = 64;

pub(super) fn check(checker: &mut Checker<'_>, program: &ExportedProgram<'_>) {
    let Some((inputs, outputs)) = program.nesting() else { return };
    let given = program.inputs.iter().filter(|spec| matches!(spec.kind, InputKind::User | InputKind::Literal(_)));
    // A loss is what a training graph's caller gets, besides what it asked for.
    let taken = program.outputs.iter().filter(|spec| matches!(spec.kind, OutputKind::User | OutputKind::Loss));
    for (what, text, want) in [("in_spec", inputs, given.count()), ("out_spec", outputs, taken.count())] {
        let place = format!("module_call_graph[0].signature.{what}");
        match leaves(text) {
            Ok(have) if have == want => {}
            Ok(have) => checker.say(&rule::NESTING, place, format!("{have} leaves, the signature has {want}")),
            Err(message) => checker.say(&rule::NESTING, place, message),
        }
    }
}

/// Counts the leaves of a pytree text.
fn leaves(text: &str) -> Result<usize, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("no pytree: {error}"))?;
    match value.as_array().map(Vec::as_slice) {
        Some([version, node]) if version.as_u64() == Some(1) => count(node, 0),
        Some([version, _]) => Err(format!("a pytree of version {version}, 1 is read")),
        _ => Err("no pytree: a version and a node are expected".to_owned()),
    }
}

fn count(node: &Value, depth: usize) -> Result<usize, String> {
    if depth > DEPTH {
        return Err(format!("a pytree nested deeper than {DEPTH}"));
    }
    let children = node.get("children_spec").and_then(Value::as_array).ok_or("a node without `children_spec`")?;
    match node.get("type") {
        None => Err("a node without `type`".to_owned()),
        Some(Value::Null) => Ok(1),
        Some(_) => children
            .iter()
            .try_fold(0usize, |sum, child| Ok(sum.saturating_add(count(child, depth.saturating_add(1))?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_counted() {
        let leaf = r#"{"type": null, "context": null, "children_spec": []}"#;
        let pair = format!(r#"{{"type": "builtins.tuple", "context": "null", "children_spec": [{leaf}, {leaf}]}}"#);
        assert_eq!(leaves(&format!("[1, {pair}]")), Ok(2));
        assert_eq!(leaves(&format!("[1, {leaf}]")), Ok(1));
        for broken in ["", "[]", "[2, {}]", "[1, {}]", r#"[1, {"type": "x"}]"#] {
            assert!(leaves(broken).is_err(), "{broken}");
        }
    }
}
