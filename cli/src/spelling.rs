//! One spelling of types, numbers and names for all output: `f32[1, 3, 96, 96]`, `1.0`, `[1, 2]`, `"floor"`.

use edgepack_format::notation::TensorType;
use edgepack_format::pte::TensorShapeDynamism;
use edgepack_format::pte::notation::Dynamism;
use edgepack_format::row::{Scalar, Scalars};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;

/// Element type, sizes, the dim order if it is not contiguous, and whether sizes are bounds.
pub fn shape(scalar_type: ScalarType, sizes: &[i64], dim_order: &[u8], dynamism: TensorShapeDynamism) -> String {
    let shape = TensorType { element: scalar_type, sizes, dim_order };
    match dynamism {
        TensorShapeDynamism::STATIC => shape.to_string(),
        _ => format!("{shape} {}", Dynamism(dynamism)),
    }
}

/// The shape of a layout.
pub fn layout(layout: &TensorLayout) -> String {
    let sizes: Vec<i64> = layout.sizes().iter().map(|&size| size as i64).collect();
    shape(layout.scalar_type(), &sizes, layout.dim_order(), TensorShapeDynamism::STATIC)
}

/// A double that reads back as one: `1.0`, not `1`.
pub fn double(value: f64) -> String {
    format!("{value:?}")
}

/// Text with quotes and escapes, so that a file cannot talk to the terminal.
pub fn text(value: &str) -> String {
    format!("{value:?}")
}

/// A name from the file, unquoted but without control characters.
pub fn name(value: &str) -> String {
    let plain = |c: char| !c.is_control();
    match value.chars().all(plain) {
        true => value.to_owned(),
        false => value.escape_debug().to_string(),
    }
}

/// The most characters of a name: files may name one long text many times.
const LONGEST: usize = 200;

/// A name, cut off where it is longer than any that exporters write.
pub fn cut(value: &str) -> String {
    match value.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// A name as [`name`] and [`cut`] give it.
pub fn short(value: &str) -> String {
    name(&cut(value))
}

/// A list of numbers in brackets.
pub fn numbers<T: Scalar>(list: Option<&Scalars<'_, T>>, one: impl Fn(T) -> String) -> String {
    let items: Vec<String> = list.iter().flat_map(|list| list.iter()).map(one).collect();
    format!("[{}]", items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_off() {
        assert_eq!(cut("aten::add.out"), "aten::add.out");
        assert_eq!(short("aten::add\n"), "aten::add\\n");
        assert_eq!(cut(&"ä".repeat(LONGEST)), "ä".repeat(LONGEST));
        assert_eq!(cut(&"ä".repeat(LONGEST + 1)), "ä".repeat(LONGEST) + "…");
    }
}
