//! Tensors of the oracle: elements in index order, random ones, and to and from those of the library.

use edgepack_executor::call::OwnedTensor;
use edgepack_format::scalar::ScalarType;
use edgepack_tests::catalogue::channels_last;
use edgepack_tests::examples::{logical, ordered};
use half::{bf16, f16};
use proptest::prelude::*;

use super::number::{BOOL, Num, is_float, range, wrap};

/// Elements in index order.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub dtype: ScalarType,
    pub sizes: Vec<usize>,
    pub data: Vec<Num>,
}

/// Range of random elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Small, and exact in every type.
    Tame,
    /// Small and not zero.
    NotZero,
    /// Also infinite, not a number, or at the ends of the range.
    Wild,
}

/// A sequence of numbers that a seed decides.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Draw(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// From 0 to one less.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    fn num(&mut self, dtype: ScalarType, kind: Kind) -> Num {
        if dtype == BOOL {
            return Num::Whole((kind == Kind::NotZero || self.flip()).into());
        }
        let odd = kind == Kind::Wild && self.below(6) == 0;
        if is_float(dtype) {
            const ODD: [f64; 8] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 8192.0, -8192.0, 0.5];
            if odd {
                return Num::Real(ODD[self.below(ODD.len())]);
            }
            // Eighths have few enough digits for every type.
            let eighths = self.below(65) as i64 - 32;
            let x = eighths as f64 / 8.0;
            return Num::Real(if kind == Kind::NotZero && eighths == 0 { 1.5 } else { x });
        }
        let (least, most) = range(dtype);
        if odd {
            return Num::Whole([least, most, least + 1, most - 1, most / 2][self.below(5)]);
        }
        let x = wrap(self.below(16) as i128 - if least < 0 { 8 } else { 0 }, dtype);
        Num::Whole(if kind == Kind::NotZero && x == 0 { 3 } else { x })
    }

    pub fn tensor(&mut self, dtype: ScalarType, sizes: &[usize], kind: Kind) -> Tensor {
        let count = sizes.iter().product();
        Tensor { dtype, sizes: sizes.to_vec(), data: (0..count).map(|_| self.num(dtype, kind)).collect() }
    }
}

impl Tensor {
    /// The element at an index, which may be longer than the rank and broadcasts.
    pub fn at(&self, index: &[usize]) -> Num {
        let skipped = index.len() - self.sizes.len();
        let mut place = 0;
        for (&size, &i) in self.sizes.iter().zip(&index[skipped..]) {
            place = place * size + if size == 1 { 0 } else { i };
        }
        self.data[place]
    }

    /// The tensor for a call, contiguous or with the channels last.
    pub fn owned(&self, turn: bool) -> OwnedTensor {
        let mut bytes = Vec::new();
        for &num in &self.data {
            write(&mut bytes, num, self.dtype);
        }
        turned(OwnedTensor::from_bytes(self.dtype, &self.sizes, bytes).expect("as many bytes as the sizes say"), turn)
    }
}

/// The tensor with the channels last in memory if `turn` is set and it has two dimensions at least, else unchanged.
pub fn turned(tensor: OwnedTensor, turn: bool) -> OwnedTensor {
    let rank = tensor.layout().sizes().len();
    if turn && rank >= 2 { ordered(&tensor, &channels_last(rank)) } else { tensor }
}

fn write(bytes: &mut Vec<u8>, num: Num, dtype: ScalarType) {
    use ScalarType as S;
    match dtype {
        S::HALF => bytes.extend(f16::from_f64(num.real()).to_le_bytes()),
        S::BFLOAT16 => bytes.extend(bf16::from_f64(num.real()).to_le_bytes()),
        S::FLOAT => bytes.extend((num.real() as f32).to_le_bytes()),
        S::DOUBLE => bytes.extend(num.real().to_le_bytes()),
        dtype => {
            let width = dtype.size().expect("a type with a size");
            bytes.extend(&num.whole().to_le_bytes()[..width]);
        }
    }
}

/// The elements of a tensor in index order.
pub fn read(tensor: &OwnedTensor) -> Vec<Num> {
    use ScalarType as S;
    let dtype = tensor.layout().scalar_type();
    let width = dtype.size().expect("a type with a size");
    let bytes = logical(tensor);
    let each = |bytes: &[u8]| {
        let mut wide = [0; 16];
        wide[..width].copy_from_slice(bytes);
        let bits = i128::from_le_bytes(wide);
        match dtype {
            S::HALF => Num::Real(f16::from_bits(bits as u16).into()),
            S::BFLOAT16 => Num::Real(bf16::from_bits(bits as u16).into()),
            S::FLOAT => Num::Real(f32::from_bits(bits as u32).into()),
            S::DOUBLE => Num::Real(f64::from_bits(bits as u64)),
            // A byte that is not a bool stays visible.
            S::BOOL => Num::Whole(bits),
            dtype => Num::Whole(wrap(bits, dtype)),
        }
    };
    bytes.chunks(width).map(each).collect()
}

/// Every index of a shape, the last dimension fastest.
pub fn indices(sizes: &[usize]) -> Vec<Vec<usize>> {
    let count = sizes.iter().product();
    let index = |place: usize| {
        let mut rest = place;
        let mut index = vec![0; sizes.len()];
        for (slot, &size) in index.iter_mut().zip(sizes).rev() {
            *slot = rest % size;
            rest /= size;
        }
        index
    };
    (0..count).map(index).collect()
}

/// Sizes of up to five dimensions, seldom without elements.
pub fn shapes() -> impl Strategy<Value = Vec<usize>> {
    let size = prop_oneof![1 => Just(0usize), 40 => 1usize..5, 3 => 5usize..20];
    prop::collection::vec(size, 0..=5).prop_filter("few elements", |sizes| sizes.iter().product::<usize>() <= 4000)
}

/// The sizes of tensors that broadcast together: of random rank, some dimensions 1.
pub fn operands(count: usize) -> impl Strategy<Value = Vec<Vec<usize>>> {
    let mask = prop_oneof![2 => Just(0u8), 3 => any::<u8>()];
    let dropped = prop_oneof![3 => Just(0usize), 1 => 0usize..=5];
    (shapes(), prop::collection::vec((mask, dropped), count)).prop_map(|(sizes, changes)| {
        let change = |(mask, dropped): (u8, usize)| {
            let kept = sizes.iter().enumerate().skip(dropped.min(sizes.len()));
            kept.map(|(dim, &size)| if mask >> dim & 1 == 1 { 1 } else { size }).collect()
        };
        changes.into_iter().map(change).collect()
    })
}

/// The sizes that tensors of these sizes broadcast to.
pub fn broadcast(all: &[Vec<usize>]) -> Vec<usize> {
    let rank = all.iter().map(Vec::len).max().unwrap_or(0);
    let size = |dim: usize| {
        let own = |sizes: &Vec<usize>| (dim + sizes.len()).checked_sub(rank).map(|dim| sizes[dim]);
        all.iter().filter_map(own).find(|&size| size != 1).unwrap_or(1)
    };
    (0..rank).map(size).collect()
}
