//! Short names of element types, the same in both directions.

use edgepack_format::scalar::ScalarType;

const NAMES: &[(&str, ScalarType)] = &[
    ("u8", ScalarType::BYTE),
    ("i8", ScalarType::CHAR),
    ("i16", ScalarType::SHORT),
    ("i32", ScalarType::INT),
    ("i64", ScalarType::LONG),
    ("f16", ScalarType::HALF),
    ("f32", ScalarType::FLOAT),
    ("f64", ScalarType::DOUBLE),
    ("c32", ScalarType::COMPLEX_HALF),
    ("c64", ScalarType::COMPLEX_FLOAT),
    ("c128", ScalarType::COMPLEX_DOUBLE),
    ("bool", ScalarType::BOOL),
    ("bf16", ScalarType::BFLOAT16),
    ("u16", ScalarType::UINT16),
    ("u32", ScalarType::UINT32),
    ("u64", ScalarType::UINT64),
];

/// `f32`; the long name of a type without a short one; `type#77` for a number that names none.
pub(super) fn name(scalar_type: ScalarType) -> String {
    match (NAMES.iter().find(|(_, known)| *known == scalar_type), scalar_type.name()) {
        (Some((name, _)), _) => (*name).to_owned(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => format!("type#{}", scalar_type.0),
    }
}

/// The type of a name, short or long.
pub(super) fn from_name(name: &str) -> Option<ScalarType> {
    let short = NAMES.iter().find(|(known, _)| *known == name).map(|(_, scalar_type)| *scalar_type);
    short.or_else(|| ScalarType::from_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_name_of_its_own() {
        for (_, scalar_type) in ScalarType::NAMED {
            assert_eq!(from_name(&name(*scalar_type)), Some(*scalar_type));
        }
        assert_eq!(name(ScalarType(-3)), "type#-3");
    }
}
