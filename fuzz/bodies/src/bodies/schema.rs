//! The parser of operator schemas.

use edgepack_format::operators::{Schema, Trailing, in_programs};

/// See [`BODIES`](super::BODIES).
pub fn schema(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let schema = match Schema::parse(&text) {
        Ok(schema) => schema,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(schema.full_name().starts_with(schema.name()));
    let args = schema.args().len();
    assert_eq!(schema.stack_len(), args + usize::from(schema.trailing() != Trailing::Nothing));
    for index in schema.mutated().chain(schema.outs()) {
        assert!(index < args && schema.is_mutated(index));
    }
    if let Trailing::Again(index) = schema.trailing() {
        assert!(schema.is_mutated(index));
    }
    for index in 0..args {
        assert_eq!(schema.accepts(index, 1), schema.args()[index].accepts(1));
        if let Some(default) = &schema.args()[index].default {
            assert!(default.items().count() <= text.len());
        }
    }
    assert!(!schema.accepts(schema.stack_len(), 5));
}

/// Schemas of the operators that programs may hold.
pub fn known_schemas() -> Vec<Vec<u8>> {
    in_programs().map(|operator| operator.schema().as_bytes().to_vec()).collect()
}
