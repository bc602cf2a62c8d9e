//! The numberings of the document, which are not those of programs.

use edgepack_format::scalar::ScalarType;

/// Document number, element type.
const SCALAR_TYPES: [(i64, ScalarType); 20] = [
    (1, ScalarType::BYTE),
    (2, ScalarType::CHAR),
    (3, ScalarType::SHORT),
    (4, ScalarType::INT),
    (5, ScalarType::LONG),
    (6, ScalarType::HALF),
    (7, ScalarType::FLOAT),
    (8, ScalarType::DOUBLE),
    (9, ScalarType::COMPLEX_HALF),
    (10, ScalarType::COMPLEX_FLOAT),
    (11, ScalarType::COMPLEX_DOUBLE),
    (12, ScalarType::BOOL),
    (13, ScalarType::BFLOAT16),
    (28, ScalarType::UINT16),
    (29, ScalarType::FLOAT8_E4M3FN),
    (30, ScalarType::FLOAT8_E5M2),
    (31, ScalarType::FLOAT8_E4M3FNUZ),
    (32, ScalarType::FLOAT8_E5M2FNUZ),
    (34, ScalarType::UINT32),
    (35, ScalarType::UINT64),
];

pub(super) fn scalar_type(code: i64) -> Option<ScalarType> {
    SCALAR_TYPES.iter().find(|(known, _)| *known == code).map(|(_, scalar_type)| *scalar_type)
}

pub(super) fn scalar_type_code(scalar_type: ScalarType) -> Option<i64> {
    SCALAR_TYPES.iter().find(|(_, known)| *known == scalar_type).map(|(code, _)| *code)
}

/// The layout of ordinary tensors.
pub(crate) const STRIDED: i64 = 7;

/// Memory format of the elements of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum MemoryFormat {
    Contiguous,
    ChannelsLast,
    ChannelsLast3d,
    /// As that of the input.
    Preserve,
}

impl MemoryFormat {
    const CODES: [(i64, MemoryFormat); 4] = [
        (1, MemoryFormat::Contiguous),
        (2, MemoryFormat::ChannelsLast),
        (3, MemoryFormat::ChannelsLast3d),
        (4, MemoryFormat::Preserve),
    ];

    pub(super) fn of_code(code: i64) -> Option<Self> {
        Self::CODES.iter().find(|(known, _)| *known == code).map(|(_, format)| *format)
    }

    pub(super) fn code(self) -> i64 {
        Self::CODES.iter().find(|(_, known)| *known == self).map_or(0, |(code, _)| *code)
    }

    /// Returns the number of the format in a program, for those that have one.
    pub fn number(self) -> Option<i64> {
        match self {
            MemoryFormat::Contiguous => Some(0),
            MemoryFormat::Preserve => Some(1),
            MemoryFormat::ChannelsLast | MemoryFormat::ChannelsLast3d => None,
        }
    }
}
