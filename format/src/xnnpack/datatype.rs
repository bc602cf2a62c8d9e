//! Element types: their names in text, their bytes, and which parameters their numbers have.

use super::tables::Datatype;
use crate::scalar::ScalarType;

/// The parameters that numbers of an element type have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Meaning {
    /// As they are.
    Plain,
    /// By one scale and zero point.
    PerTensor,
    /// By a scale for each channel.
    PerChannel,
    /// By a scale for each block of a row.
    PerGroup,
    /// By a scale and zero point for each row, made at run time.
    PerToken,
}

impl Datatype {
    /// Returns whether elements are floating-point numbers of their own, neither quantised nor packed.
    pub fn is_float(self) -> bool {
        matches!(self, Self::FP32 | Self::FP16 | Self::BF16)
    }

    /// Its name in text: `fp32`, `qcint8`; `None` for a number without a name.
    pub fn label(self) -> Option<&'static str> {
        Some(match self {
            Self::INVALID => "invalid",
            Self::FP32 => "fp32",
            Self::FP16 => "fp16",
            Self::QINT8 => "qint8",
            Self::QUINT8 => "quint8",
            Self::QINT32 => "qint32",
            Self::QCINT8 => "qcint8",
            Self::QCINT32 => "qcint32",
            Self::QCINT4 => "qcint4",
            Self::QDINT8 => "qdint8",
            Self::QBINT4 => "qbint4",
            Self::QPINT8 => "qpint8",
            Self::INT32 => "int32",
            Self::PFP32 => "pfp32",
            Self::BF16 => "bf16",
            _ => return None,
        })
    }

    /// Bits of an element; `None` where a file cannot have any.
    pub fn bits(self) -> Option<u64> {
        Some(match self {
            Self::QCINT4 | Self::QBINT4 => 4,
            Self::QINT8 | Self::QUINT8 | Self::QCINT8 | Self::QDINT8 => 8,
            Self::FP16 | Self::BF16 => 16,
            Self::FP32 | Self::QINT32 | Self::QCINT32 | Self::INT32 => 32,
            _ => return None,
        })
    }

    /// Parameters that its numbers have; `None` where a file cannot have any.
    pub fn meaning(self) -> Option<Meaning> {
        Some(match self {
            Self::FP32 | Self::FP16 | Self::BF16 | Self::INT32 => Meaning::Plain,
            Self::QINT8 | Self::QUINT8 | Self::QINT32 => Meaning::PerTensor,
            Self::QCINT8 | Self::QCINT4 | Self::QCINT32 => Meaning::PerChannel,
            Self::QBINT4 => Meaning::PerGroup,
            Self::QDINT8 => Meaning::PerToken,
            _ => return None,
        })
    }

    /// Bytes of a tensor of these dimensions. Four-bit rows start at whole bytes. `None` if that overflows or a file
    /// cannot have such elements.
    pub fn byte_len(self, dims: impl IntoIterator<Item = u32>) -> Option<u64> {
        let bits = self.bits()?;
        let (mut rows, mut last) = (1u64, None);
        for dim in dims {
            rows = rows.checked_mul(last.replace(u64::from(dim)).unwrap_or(1))?;
        }
        let row = last.unwrap_or(1).checked_mul(bits)?.div_ceil(8);
        rows.checked_mul(row)
    }

    /// The number that stands for zero in weights whose zero point is not in the file.
    pub fn implied_zero_point(self) -> i32 {
        match self {
            Self::QCINT4 | Self::QBINT4 => 8,
            _ => 0,
        }
    }

    /// The element type of an argument that is such a value; `None` for types that stay inside of payloads.
    pub fn scalar_type(self) -> Option<ScalarType> {
        Some(match self {
            Self::FP32 => ScalarType::FLOAT,
            Self::FP16 => ScalarType::HALF,
            Self::BF16 => ScalarType::BFLOAT16,
            Self::QINT8 => ScalarType::CHAR,
            Self::QUINT8 => ScalarType::BYTE,
            Self::INT32 | Self::QINT32 => ScalarType::INT,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bit_rows_start_at_whole_bytes() {
        assert_eq!(Datatype::QBINT4.byte_len([3, 5]), Some(9));
        assert_eq!(Datatype::QCINT4.byte_len([3, 4]), Some(6));
        assert_eq!(Datatype::FP32.byte_len([]), Some(4));
        assert_eq!(Datatype::FP16.byte_len([2, 0, 7]), Some(0));
        assert_eq!(Datatype::FP32.byte_len([u32::MAX; 3]), None);
        assert_eq!(Datatype::PFP32.byte_len([1]), None);
    }

    #[test]
    fn every_named_type_has_a_label_of_its_own() {
        let labels: alloc::collections::BTreeSet<_> = Datatype::NAMED.iter().map(|(_, named)| named.label()).collect();
        assert_eq!(labels.len(), Datatype::NAMED.len());
        assert!(!labels.contains(&None));
        assert_eq!(Datatype(15).label(), None);
    }
}
