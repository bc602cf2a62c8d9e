//! Shapes that operators are likely to accept, by the names of operator and argument.
//!
//! A hint is only a hint: one decision in a few ignores it, so refusals stay exercised.

use edgepack_format::scalar::ScalarType;

use super::llm_shape_hints::Sides;
use arbitrary::Unstructured;

use crate::decisions::Decisions;

/// Numbers around which one call is generated: its main shape, and a few sizes common to its arguments.
pub(crate) struct Scene {
    /// Sizes of most of its tensors.
    base: Vec<i32>,
    /// Rows of a matrix product.
    m: i32,
    /// Inner dimension; channels of a group.
    k: i32,
    /// Number of columns; channels that come out of a group.
    n: i32,
    /// Length of a window.
    side: i32,
    groups: i32,
    family: Family,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Plain,
    Matmul,
    Convolution,
    Norm,
    Embedding,
    Image,
    Index,
    Quantize,
    Experts,
}

fn family(operator: &str) -> Family {
    let has = |words: &[&str]| words.iter().any(|word| operator.contains(word));
    if has(&["quantize_per", "choose_qparams"]) {
        Family::Quantize
    } else if has(&["moe_ffn"]) {
        Family::Experts
    } else if has(&["convolution", "conv2d"]) {
        Family::Convolution
    } else if has(&["embedding"]) {
        Family::Embedding
    } else if has(&["::mm", "::bmm", "addmm", "linear", "matmul", "mixed_mm"]) {
        Family::Matmul
    } else if has(&["norm"]) && !has(&["linalg", "::norm"]) {
        Family::Norm
    } else if has(&["pool", "upsample", "pixel", "_pad", "grid", "im2col", "col2im"]) {
        Family::Image
    } else if has(&["index", "gather", "scatter", "take"]) {
        Family::Index
    } else {
        Family::Plain
    }
}

impl Scene {
    /// The scene of a call of this operator.
    pub fn new(operator: &str, u: &mut Unstructured<'_>) -> Self {
        let family = family(operator);
        let mut small = || 1 + u.below(5) as i32;
        let (m, k, n, side, groups) = (small(), small(), small(), small().min(3), small().min(2));
        let rank = match family {
            Family::Convolution => 3 + usize::from(!u.one_in(3)),
            Family::Image => 3 + u.below(2),
            Family::Norm => 2 + u.below(3),
            _ => u.pick(&[2, 1, 3, 4, 0, 5]),
        };
        let mut base: Vec<i32> = (0..rank).map(|_| u.pick(&[2, 3, 1, 4, 2, 3, 5, 7, 1, 0])).collect();
        match (family, base.as_mut_slice()) {
            (Family::Convolution, [_, channels, image @ ..]) => {
                *channels = k * groups;
                image.iter_mut().for_each(|size| *size += 3);
            }
            (Family::Image, [.., height, width]) => (*height, *width) = (*height + 2, *width + 2),
            _ => {}
        }
        Scene { base, m, k, n, side, groups, family }
    }

    fn sides(&self) -> Sides {
        Sides { tokens: self.m, more: self.k, dim: self.n, heads: self.side, groups: self.groups }
    }

    /// Returns the first numbers in the data of a tensor argument, if they have a header.
    pub fn header(&self, operator: &str, arg: &str) -> Option<[i32; 8]> {
        self.sides().header(operator, arg)
    }

    /// Returns whether an operator needs an argument that its schema makes optional.
    pub fn needs(&self, operator: &str, arg: &str) -> bool {
        self.sides().needs(operator, arg)
    }

    /// Sizes for a tensor argument.
    pub fn tensor(&self, operator: &str, arg: &str, is_out: bool, u: &mut Unstructured<'_>) -> Vec<i32> {
        if u.one_in(12) {
            return (0..u.below(6)).map(|_| u.below(5) as i32).collect();
        }
        if let Some(sizes) = self.sides().tensor(operator, arg, u) {
            return sizes;
        }
        let (m, k, n) = (self.m, self.k, self.n);
        let batch = operator.contains("bmm").then_some(3);
        let wide = |sizes: [i32; 2]| batch.into_iter().chain(sizes).collect::<Vec<i32>>();
        match (self.family, arg) {
            (Family::Matmul, "weight") => vec![n, k],
            (Family::Matmul, "mat2") => wide([k, n]),
            (Family::Matmul, "bias") => vec![n],
            (Family::Matmul, "weight_scales" | "weight_zero_points") => vec![n],
            (Family::Matmul, _) if is_out => wide([m, n]),
            (Family::Matmul, "self") if operator.contains("addmm") => {
                if u.one_in(2) {
                    vec![n]
                } else {
                    vec![m, n]
                }
            }
            (Family::Matmul, _) => wide([m, k]),
            (Family::Convolution, "weight") => {
                [n * self.groups, k].into_iter().chain(vec![self.side; self.base.len() - 2]).collect()
            }
            (Family::Convolution, "bias") => vec![n * self.groups],
            (Family::Convolution, _) if is_out => {
                [self.base[0], n * self.groups].into_iter().chain(vec![9; self.base.len() - 2]).collect()
            }
            (Family::Quantize, "scale" | "zero_point") => vec![1],
            (Family::Quantize, "scales" | "zero_points") if operator.contains("per_channel") => {
                self.base.first().copied().into_iter().collect()
            }
            (Family::Quantize, "scales" | "zero_points" | "scale_out" | "zero_point_out") => {
                let mut sizes = self.base.clone();
                sizes.last_mut().into_iter().for_each(|last| *last = 1);
                sizes
            }
            (Family::Quantize, _) => self.base.clone(),
            (Family::Embedding, "weight_scales" | "weight_zero_points") => vec![m],
            (Family::Embedding, "weight") => vec![m, n],
            (Family::Embedding, _) if is_out => self.base.iter().copied().chain([n]).collect(),
            (Family::Norm, "weight" | "bias") if operator.contains("layer") => {
                self.base.last().copied().into_iter().collect()
            }
            (Family::Norm, "weight" | "bias" | "running_mean" | "running_var") => {
                self.base.get(1).copied().into_iter().collect()
            }
            (Family::Image, _) if is_out => self.base.iter().map(|size| size.saturating_mul(2).max(9)).collect(),
            _ => self.plain(is_out, u),
        }
    }

    fn plain(&self, is_out: bool, u: &mut Unstructured<'_>) -> Vec<i32> {
        let mut sizes = self.base.clone();
        match u.below(8) {
            // One dimension broadcast, reduced or unchanged.
            5 if !is_out && !sizes.is_empty() => {
                let dim = u.below(sizes.len());
                sizes[dim] = 1;
            }
            5 if !sizes.is_empty() => drop(sizes.remove(u.below(sizes.len()))),
            6 if is_out => sizes = Vec::new(),
            6 => drop(sizes.drain(..u.below(sizes.len() + 1))),
            7 if is_out => sizes.push(1 + u.below(5) as i32),
            7 if sizes.len() >= 2 => {
                let last = sizes.len() - 1;
                sizes.swap(last, last - 1);
            }
            _ => {}
        }
        sizes
    }

    /// The element type that an operator asks of an argument, whatever the others have.
    pub fn element(&self, operator: &str, arg: &str, is_out: bool) -> Option<ScalarType> {
        if let Some(dtype) = self.sides().element(operator, arg) {
            return Some(dtype);
        }
        let is = |words: &[&str]| words.iter().any(|word| operator.contains(word));
        let quantized = operator.starts_with("quantized_decomposed::");
        Some(match arg {
            "indices" | "index" | "offsets" | "repeats" => ScalarType::LONG,
            "condition" | "mask" => ScalarType::BOOL,
            "zero_point" | "zero_points" | "zero_point_out" => ScalarType::LONG,
            "scale" | "scale_out" => ScalarType::DOUBLE,
            "scales" if operator.contains("per_token") => ScalarType::DOUBLE,
            "scales" | "weight_scales" => ScalarType::FLOAT,
            "weight" | "weight_zero_points" if quantized => ScalarType::CHAR,
            "input" if is(&["dequantize"]) => ScalarType::CHAR,
            _ if quantized && is_out && is(&["::quantize"]) => ScalarType::CHAR,
            _ if quantized => ScalarType::FLOAT,
            _ if is_out && is(&["::any.", "::all.", "logical_", "::is"]) => ScalarType::BOOL,
            _ if is_out && is(&["::argm", "nonzero", "repeat_interleave"]) => ScalarType::LONG,
            _ => return None,
        })
    }

    /// Items for a list of integers.
    pub fn ints(&self, arg: &str, len: Option<u32>, u: &mut Unstructured<'_>) -> Vec<i64> {
        if u.one_in(16) {
            return (0..u.below(6)).map(|_| self.int("", u)).collect();
        }
        let rank = self.base.len();
        let spatial = match self.family {
            Family::Convolution => rank.saturating_sub(2),
            _ => len.map_or(2, |len| len as usize),
        };
        let some = |count: usize, low: i64, span: usize, u: &mut Unstructured<'_>| -> Vec<i64> {
            (0..count).map(|_| low + u.below(span) as i64).collect()
        };
        match arg {
            "stride" | "dilation" => some(spatial, 1, 3, u),
            "padding" | "output_padding" => some(spatial, 0, 2, u),
            "kernel_size" | "output_size" => some(spatial, 1, 4, u),
            "pad" => some(2 * u.below(rank + 1), -1, 4, u),
            "normalized_shape" => self.base.iter().skip(rank.saturating_sub(1)).map(|&size| size.into()).collect(),
            "size" | "shape" | "repeats" | "new_size" => {
                let mut sizes: Vec<i64> = self.base.iter().map(|&size| size.into()).collect();
                match u.below(5) {
                    1 => sizes.reverse(),
                    2 => sizes = vec![-1],
                    3 => sizes.insert(0, 1 + u.below(3) as i64),
                    4 => sizes = vec![sizes.iter().product()],
                    _ => {}
                }
                sizes
            }
            "dims" => {
                let mut dims: Vec<i64> = (0..rank as i64).collect();
                dims.rotate_left(u.below(rank.max(1)).min(rank));
                dims
            }
            _ => some(u.below(rank + 1), -(rank as i64), 2 * rank + 1, u),
        }
    }

    /// Value for an integer argument, now and then one far out of range.
    pub fn int(&self, arg: &str, u: &mut Unstructured<'_>) -> i64 {
        let rank = self.base.len().max(1);
        if u.one_in(16) {
            return u.pick(&[i64::MIN, i64::MAX, -1, i32::MAX.into(), i32::MIN.into(), 1 << 40, 255, -128]);
        }
        if let Some(value) = self.sides().int(arg, u) {
            return value;
        }
        match arg {
            "dim" if self.family == Family::Experts => 16,
            "groups" => self.groups.into(),
            "N" => self.base.first().copied().unwrap_or(1).into(),
            "C" => self.base.get(1).copied().unwrap_or(1).into(),
            "HxW" => self.base.iter().skip(2).map(|&size| i64::from(size)).product(),
            "group" => 1,
            "quant_min" | "weight_quant_min" => u.pick(&[-128, -128, -128, 0, -32768, 127]),
            "quant_max" | "weight_quant_max" => u.pick(&[127, 127, 127, 255, 32767, -128]),
            "dtype" if self.family == Family::Quantize => u.pick(&[1, 1, 1, 1, 0, 6]),
            "axis" if self.family == Family::Quantize => 0,
            _ if arg.contains("dim") || arg.contains("axis") => u.below(2 * rank) as i64 - rank as i64,
            "dtype" => u.pick(&[6, 0, 1, 2, 3, 4, 5, 7, 11, 15, 27]),
            _ => u.below(9) as i64 - 3,
        }
    }
}
