//! Pytree strings for arguments and results that were never nested: flat tuples, as the reference exporter writes them.

const LEAF: &str = r#"{"type": null, "context": null, "children_spec": []}"#;

/// `count` positional arguments and no others.
pub(super) fn arguments(count: usize) -> String {
    let keywords = r#"{"type": "builtins.dict", "context": "[]", "children_spec": []}"#;
    format!("[1, {}]", tuple(&[&tuple(&vec![LEAF; count]), keywords]))
}

/// One result, or a tuple of several.
pub(super) fn results(count: usize) -> String {
    match count {
        1 => format!("[1, {LEAF}]"),
        _ => format!("[1, {}]", tuple(&vec![LEAF; count])),
    }
}

fn tuple(children: &[&str]) -> String {
    format!(r#"{{"type": "builtins.tuple", "context": "null", "children_spec": [{}]}}"#, children.join(", "))
}

#[cfg(test)]
mod tests {
    #[test]
    fn as_the_exporter_writes_them() {
        assert_eq!(
            super::arguments(1),
            concat!(
                r#"[1, {"type": "builtins.tuple", "context": "null", "children_spec": ["#,
                r#"{"type": "builtins.tuple", "context": "null", "children_spec": ["#,
                r#"{"type": null, "context": null, "children_spec": []}]}, "#,
                r#"{"type": "builtins.dict", "context": "[]", "children_spec": []}]}]"#
            )
        );
        assert_eq!(super::results(1), r#"[1, {"type": null, "context": null, "children_spec": []}]"#);
        assert!(super::results(2).starts_with(r#"[1, {"type": "builtins.tuple""#));
    }
}
