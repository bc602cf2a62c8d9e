//! Element types of layers: sizes, the sign flip, and what a stored number means.

use super::{DataType, NumericsConstants};

impl DataType {
    /// Bytes of one element; `None` for a type without a name.
    pub fn size(self) -> Option<usize> {
        match self {
            DataType::FIXED_POINT8 | DataType::SIGNED_FIXED_POINT8 => Some(1),
            DataType::FIXED_POINT16 | DataType::SIGNED_FIXED_POINT16 | DataType::BFLOAT | DataType::HALF => Some(2),
            DataType::SIGNED_FIXED_POINT32 | DataType::SINGLE => Some(4),
            _ => None,
        }
    }

    /// Returns whether the device holds the type's numbers with the top bit flipped. The 32-bit type is signed and is
    /// not flipped.
    pub fn is_flipped(self) -> bool {
        matches!(self, DataType::SIGNED_FIXED_POINT8 | DataType::SIGNED_FIXED_POINT16)
    }

    /// Returns whether the type's numbers are integers that scale and zero point give a meaning.
    pub fn is_quantized(self) -> bool {
        !matches!(self, DataType::BFLOAT | DataType::HALF | DataType::SINGLE) && self.size().is_some()
    }

    /// The zero point of numbers as the host sees them, from the stored one.
    pub fn host_zero_point(self, stored: i32) -> i32 {
        match self {
            DataType::SIGNED_FIXED_POINT8 => stored.saturating_sub(1 << 7),
            DataType::SIGNED_FIXED_POINT16 => stored.saturating_sub(1 << 15),
            // A scaled number without an offset.
            DataType::SIGNED_FIXED_POINT32 => 0,
            _ => stored,
        }
    }

    /// The highest zero point that is a number of the type; `None` for types without zero points.
    pub fn highest_zero_point(self) -> Option<i32> {
        match self {
            DataType::FIXED_POINT8 | DataType::SIGNED_FIXED_POINT8 => Some(0xff),
            DataType::FIXED_POINT16 | DataType::SIGNED_FIXED_POINT16 => Some(0xffff),
            _ => None,
        }
    }
}

impl NumericsConstants {
    /// The real value of a number as the host sees it.
    ///
    /// The difference of two 32-bit integers is exact in a double, and so is its product with a float when it has 29
    /// bits or fewer, which 8- and 16-bit types guarantee: one rounding in all.
    pub fn real(&self, data_type: DataType, number: i32) -> f32 {
        let zero = data_type.host_zero_point(self.zero_point);
        let difference = i64::from(number).saturating_sub(i64::from(zero));
        if data_type == DataType::SIGNED_FIXED_POINT32 {
            return number as f32 * self.dequantization_factor;
        }
        (difference as f64 * f64::from(self.dequantization_factor)) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_types_store_the_unsigned_zero_point() {
        let numerics = NumericsConstants { zero_point: 127, dequantization_factor: 0.5 };
        assert_eq!(numerics.real(DataType::SIGNED_FIXED_POINT8, -1), 0.0);
        assert_eq!(numerics.real(DataType::FIXED_POINT8, 127), 0.0);
        assert_eq!(numerics.real(DataType::SIGNED_FIXED_POINT16, 127 - 32768 + 2), 1.0);
        assert_eq!(numerics.real(DataType::SIGNED_FIXED_POINT32, 4), 2.0);
    }

    #[test]
    fn unknown_types_have_no_size() {
        for number in [-1, 6, 7, 10, i16::MAX] {
            assert_eq!(DataType(number).size(), None);
            assert!(!DataType(number).is_quantized() && !DataType(number).is_flipped());
        }
    }
}
