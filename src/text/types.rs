//! Short names of element types, the same in both directions.

use edgepack_format::scalar::ScalarType;

/// `f32`; the long name of a type without a short one; `type#77` for a number that names none.
pub(super) fn name(scalar_type: ScalarType) -> String {
    match (scalar_type.names().and_then(|names| names.short), scalar_type.name()) {
        (Some(name), _) | (None, Some(name)) => name.to_owned(),
        (None, None) => format!("type#{}", scalar_type.0),
    }
}

/// The type of a name, short or long.
pub(super) fn from_name(name: &str) -> Option<ScalarType> {
    ScalarType::called(|names| names.short == Some(name)).or_else(|| ScalarType::from_name(name))
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
