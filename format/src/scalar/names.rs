//! The one table of what element types are called: by PyTorch, in text, by NumPy, safetensors and TVM.
//!
//! Invariant: row `n` is the element type with number `n`, and no column has a name twice.

use core::fmt;

use super::ScalarType;

/// Names of one element type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Names {
    /// The element type.
    pub scalar_type: ScalarType,
    /// PyTorch's name in Python, as exporters write it: `float32`.
    pub torch: &'static str,
    /// PyTorch's name in C++, in tables of element types and with `Storage` behind it: `Float`.
    pub aten: &'static str,
    /// The short name in text: `f32`.
    pub short: Option<&'static str>,
    /// NumPy's code without the byte order: `f4`.
    pub numpy: Option<&'static str>,
    /// The name in a safetensors file: `F32`.
    pub safetensors: Option<&'static str>,
    /// TVM's name, which counts bits: `float32`, `uint1` for a bool.
    pub tvm: Option<&'static str>,
}

impl Names {
    /// All element types, by number.
    pub const ALL: &'static [Names] = &[
        row(ScalarType::BYTE, "uint8", "Byte", ["u8", "u1", "U8", "uint8"]),
        row(ScalarType::CHAR, "int8", "Char", ["i8", "i1", "I8", "int8"]),
        row(ScalarType::SHORT, "int16", "Short", ["i16", "i2", "I16", "int16"]),
        row(ScalarType::INT, "int32", "Int", ["i32", "i4", "I32", "int32"]),
        row(ScalarType::LONG, "int64", "Long", ["i64", "i8", "I64", "int64"]),
        row(ScalarType::HALF, "float16", "Half", ["f16", "f2", "F16", "float16"]),
        row(ScalarType::FLOAT, "float32", "Float", ["f32", "f4", "F32", "float32"]),
        row(ScalarType::DOUBLE, "float64", "Double", ["f64", "f8", "F64", "float64"]),
        row(ScalarType::COMPLEX_HALF, "complex32", "ComplexHalf", ["c32", "", "", ""]),
        row(ScalarType::COMPLEX_FLOAT, "complex64", "ComplexFloat", ["c64", "c8", "C64", ""]),
        row(ScalarType::COMPLEX_DOUBLE, "complex128", "ComplexDouble", ["c128", "c16", "", ""]),
        row(ScalarType::BOOL, "bool", "Bool", ["bool", "b1", "BOOL", "uint1"]),
        row(ScalarType::QINT8, "qint8", "QInt8", NONE),
        row(ScalarType::QUINT8, "quint8", "QUInt8", NONE),
        row(ScalarType::QINT32, "qint32", "QInt32", NONE),
        row(ScalarType::BFLOAT16, "bfloat16", "BFloat16", ["bf16", "", "BF16", "bfloat16"]),
        row(ScalarType::QUINT4X2, "quint4x2", "QUInt4x2", NONE),
        row(ScalarType::QUINT2X4, "quint2x4", "QUInt2x4", NONE),
        row(ScalarType::BITS1X8, "bits1x8", "Bits1x8", NONE),
        row(ScalarType::BITS2X4, "bits2x4", "Bits2x4", NONE),
        row(ScalarType::BITS4X2, "bits4x2", "Bits4x2", NONE),
        row(ScalarType::BITS8, "bits8", "Bits8", NONE),
        row(ScalarType::BITS16, "bits16", "Bits16", NONE),
        row(ScalarType::FLOAT8_E5M2, "float8_e5m2", "Float8_e5m2", ["", "", "F8_E5M2", ""]),
        row(ScalarType::FLOAT8_E4M3FN, "float8_e4m3fn", "Float8_e4m3fn", ["", "", "F8_E4M3", ""]),
        row(ScalarType::FLOAT8_E5M2FNUZ, "float8_e5m2fnuz", "Float8_e5m2fnuz", NONE),
        row(ScalarType::FLOAT8_E4M3FNUZ, "float8_e4m3fnuz", "Float8_e4m3fnuz", NONE),
        row(ScalarType::UINT16, "uint16", "UInt16", ["u16", "u2", "U16", "uint16"]),
        row(ScalarType::UINT32, "uint32", "UInt32", ["u32", "u4", "U32", "uint32"]),
        row(ScalarType::UINT64, "uint64", "UInt64", ["u64", "u8", "U64", "uint64"]),
    ];
}

const NONE: [&str; 4] = [""; 4];

/// A row of the table: the short, NumPy, safetensors and TVM name, empty for none.
const fn row(scalar_type: ScalarType, torch: &'static str, aten: &'static str, others: [&'static str; 4]) -> Names {
    const fn named(name: &'static str) -> Option<&'static str> {
        if name.is_empty() { None } else { Some(name) }
    }
    let [short, numpy, safetensors, tvm] = others;
    Names {
        scalar_type,
        torch,
        aten,
        short: named(short),
        numpy: named(numpy),
        safetensors: named(safetensors),
        tvm: named(tvm),
    }
}

/// Shows an element type as people write it.
pub(super) fn show(scalar_type: ScalarType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match scalar_type.names() {
        Some(names) => f.pad(names.short.unwrap_or(names.torch)),
        None => write!(f, "type#{}", scalar_type.0),
    }
}

impl ScalarType {
    /// Reads a name that people write: the short one, `f32`, PyTorch's, `qint8`, or that of the schema, `QINT8`.
    ///
    /// ```
    /// use edgepack_format::scalar::ScalarType;
    ///
    /// for name in ["f32", "float32", "FLOAT"] {
    ///     assert_eq!(ScalarType::from_text(name), Some(ScalarType::FLOAT));
    /// }
    /// assert_eq!(ScalarType::FLOAT.to_string(), "f32");
    /// ```
    pub fn from_text(name: &str) -> Option<ScalarType> {
        ScalarType::called(|names| names.short == Some(name))
            .or_else(|| ScalarType::called(|names| names.torch == name))
            .or_else(|| ScalarType::from_name(name))
    }

    /// Returns the names of the element type; `None` for a number that names none.
    ///
    /// ```
    /// use edgepack_format::scalar::ScalarType;
    ///
    /// assert_eq!(ScalarType::HALF.names().and_then(|names| names.numpy), Some("f2"));
    /// assert_eq!(ScalarType::QINT8.names().and_then(|names| names.numpy), None);
    /// assert_eq!(ScalarType(77).names(), None);
    /// ```
    pub fn names(self) -> Option<&'static Names> {
        Names::ALL.get(usize::try_from(self.0).ok()?)
    }

    /// The element type that has a name.
    ///
    /// ```
    /// use edgepack_format::scalar::ScalarType;
    ///
    /// assert_eq!(ScalarType::called(|names| names.short == Some("bf16")), Some(ScalarType::BFLOAT16));
    /// ```
    pub fn called(name: impl Fn(&Names) -> bool) -> Option<ScalarType> {
        Names::ALL.iter().find(|names| name(names)).map(|names| names.scalar_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::string::ToString;

    #[test]
    fn every_element_type_is_read_as_it_is_shown() {
        for (schema, scalar_type) in ScalarType::NAMED {
            assert_eq!(ScalarType::from_text(&scalar_type.to_string()), Some(*scalar_type));
            assert_eq!(ScalarType::from_text(schema), Some(*scalar_type));
        }
        assert_eq!(ScalarType(-3).to_string(), "type#-3");
        assert_eq!(ScalarType::from_text("f99"), None);
    }

    #[test]
    fn rows_are_in_the_order_of_numbers_and_names_are_unique() {
        assert_eq!(Names::ALL.len(), ScalarType::NAMED.len());
        for (row, (long, scalar_type)) in Names::ALL.iter().zip(ScalarType::NAMED) {
            assert_eq!(row.scalar_type, *scalar_type);
            assert_eq!(scalar_type.names(), Some(row), "{long}");
        }
        let columns: [fn(&Names) -> Option<&'static str>; 6] = [
            |names| Some(names.torch),
            |names| Some(names.aten),
            |names| names.short,
            |names| names.numpy,
            |names| names.safetensors,
            |names| names.tvm,
        ];
        for column in columns {
            let all: alloc::vec::Vec<_> = Names::ALL.iter().filter_map(column).collect();
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
        }
        assert_eq!(ScalarType(-1).names(), None);
    }

    #[test]
    fn a_type_without_a_short_name_has_its_long_one_in_lower_case_at_pytorch() {
        for names in Names::ALL.iter().filter(|names| names.short.is_none()) {
            assert_eq!(Some(names.torch), names.scalar_type.name().map(str::to_lowercase).as_deref());
        }
    }
}
