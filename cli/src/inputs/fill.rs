//! Elements that nobody gave: zeros, random ones, and numbers written out.

use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorBuf, TensorLayout};
use edgepack_smith::Rng;
use half::{bf16, f16};

/// Elements of the inputs that are not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// Zeros.
    Zeros,
    /// Floats between -1 and 1, bytes and bools of any value; wider integers, which may be indices, are 0 or 1.
    Random(u64),
    /// Floats between -1 and 1, and zeros.
    Floats,
}

impl Fill {
    /// Makes a tensor for the input of this index. The tensor depends on the seed, the index and the layout alone.
    pub fn tensor(self, layout: &TensorLayout, index: usize) -> Option<TensorBuf> {
        let seed = match self {
            Fill::Random(seed) => seed,
            Fill::Zeros | Fill::Floats => 0,
        };
        // Seeds next to each other give unrelated streams, and so do inputs.
        let mut rng = Rng::new(Rng::new(seed).word() ^ Rng::new(index as u64).word().rotate_left(32));
        let element = layout.scalar_type();
        let width = element.part().size()?;
        let count = layout.byte_len() / width;
        let mut float = || (rng.word() >> 40) as f64 / f64::from(1u32 << 23) - 1.0;
        let mut data = Vec::new();
        data.try_reserve_exact(layout.byte_len()).ok()?;
        match (self, element.part()) {
            (Fill::Zeros, _) => data.resize(layout.byte_len(), 0),
            (_, ScalarType::FLOAT) => (0..count).for_each(|_| data.extend((float() as f32).to_le_bytes())),
            (_, ScalarType::DOUBLE) => (0..count).for_each(|_| data.extend(float().to_le_bytes())),
            (_, ScalarType::HALF) => (0..count).for_each(|_| data.extend(f16::from_f64(float()).to_le_bytes())),
            (_, ScalarType::BFLOAT16) => (0..count).for_each(|_| data.extend(bf16::from_f64(float()).to_le_bytes())),
            (Fill::Floats, _) => data.resize(layout.byte_len(), 0),
            (_, ScalarType::BYTE | ScalarType::CHAR) => (0..count).for_each(|_| data.push((rng.word() >> 56) as u8)),
            (_, ScalarType::BOOL) => (0..count).for_each(|_| data.push((rng.word() >> 63) as u8)),
            (_, _) => {
                for _ in 0..count {
                    data.push((rng.word() >> 63) as u8);
                    data.resize(data.len() + width - 1, 0);
                }
            }
        }
        TensorBuf::from_bytes(layout.clone(), data).ok()
    }
}

/// Returns an element of this type with the value of a literal: a number, `true` or `false`.
///
/// # Errors
///
/// A message if the type cannot hold the value; floats are rounded.
pub fn literal(text: &str, element: ScalarType) -> Result<Vec<u8>, String> {
    fn integer<T: TryFrom<i128>, const N: usize>(text: &str, bytes: fn(T) -> [u8; N]) -> Option<Vec<u8>> {
        Some(bytes(T::try_from(text.parse::<i128>().ok()?).ok()?).to_vec())
    }
    let float = || text.parse::<f64>().ok();
    let data = match element {
        ScalarType::FLOAT => text.parse::<f32>().ok().map(|value| value.to_le_bytes().to_vec()),
        ScalarType::DOUBLE => float().map(|value| value.to_le_bytes().to_vec()),
        ScalarType::HALF => float().map(|value| f16::from_f64(value).to_le_bytes().to_vec()),
        ScalarType::BFLOAT16 => float().map(|value| bf16::from_f64(value).to_le_bytes().to_vec()),
        ScalarType::BYTE => integer(text, u8::to_le_bytes),
        ScalarType::CHAR => integer(text, i8::to_le_bytes),
        ScalarType::SHORT => integer(text, i16::to_le_bytes),
        ScalarType::INT => integer(text, i32::to_le_bytes),
        ScalarType::LONG => integer(text, i64::to_le_bytes),
        ScalarType::UINT16 => integer(text, u16::to_le_bytes),
        ScalarType::UINT32 => integer(text, u32::to_le_bytes),
        ScalarType::UINT64 => integer(text, u64::to_le_bytes),
        ScalarType::BOOL => text.parse::<bool>().ok().map(|value| vec![u8::from(value)]),
        _ => None,
    };
    data.ok_or_else(|| format!("{text} is not a value of the type {element}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(element: ScalarType) -> TensorLayout {
        TensorLayout::contiguous(element, &[1000]).unwrap()
    }

    #[test]
    fn random_elements_follow_from_the_seed() {
        let random = |seed, index| Fill::Random(seed).tensor(&layout(ScalarType::FLOAT), index).unwrap();
        assert_eq!(random(3, 0), random(3, 0));
        assert_ne!(random(3, 0), random(4, 0));
        assert_ne!(random(3, 0), random(3, 1));
        let values: Vec<f32> =
            random(3, 0).data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        assert!(values.iter().all(|value| (-1.0..1.0).contains(value)));
        let mean = values.iter().sum::<f32>() / 1000.0;
        assert!(mean.abs() < 0.1, "{mean}");
    }

    #[test]
    fn integers_that_may_be_indices_are_small() {
        let longs = Fill::Random(1).tensor(&layout(ScalarType::LONG), 0).unwrap();
        let values: Vec<i64> =
            longs.data().chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect();
        assert!(values.iter().all(|value| (0..2).contains(value)) && values.contains(&0) && values.contains(&1));
        let bytes = Fill::Random(1).tensor(&layout(ScalarType::BYTE), 0).unwrap();
        assert!(bytes.data().iter().any(|&byte| byte > 200) && bytes.data().iter().any(|&byte| byte < 50));
        assert!(Fill::Floats.tensor(&layout(ScalarType::BYTE), 0).unwrap().data().iter().all(|&byte| byte == 0));
        assert!(Fill::Zeros.tensor(&layout(ScalarType::DOUBLE), 0).unwrap().data().iter().all(|&byte| byte == 0));
    }

    #[test]
    fn literals_are_checked_against_their_type() {
        assert_eq!(literal("-1.5", ScalarType::FLOAT), Ok((-1.5f32).to_le_bytes().to_vec()));
        assert_eq!(literal("255", ScalarType::BYTE), Ok(vec![255]));
        assert_eq!(literal("true", ScalarType::BOOL), Ok(vec![1]));
        for (text, element) in [
            ("256", ScalarType::BYTE),
            ("1.5", ScalarType::LONG),
            ("1", ScalarType::BOOL),
            ("true", ScalarType::FLOAT),
            ("1", ScalarType::QINT8),
        ] {
            assert!(literal(text, element).is_err(), "{text}");
        }
    }
}
