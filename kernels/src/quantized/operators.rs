//! Quantising and dequantising: per tensor, along an axis, per token.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::tensor::Dims;

use super::affine::{dequantizer, expect_bounds, number_at, quantizer};
use crate::dims::dim_of;
use crate::schema::{kernel, position};
use edgepack_compute::quantise::{Affine, AffineLoop};

/// Source of scale and zero point.
#[derive(Clone, Copy, PartialEq)]
enum Given {
    /// Numbers.
    Numbers,
    /// Tensors of one element.
    Tensors,
    /// Tensors with an element per slice along the dimension of argument `axis`.
    Axis,
    /// Tensors with an element per index of all dimensions but the last.
    Token,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Quantize,
    Dequantize,
}

/// The first three arguments of all: the tensor, its scales, its zero points.
const INPUT: usize = position("quantized_decomposed::quantize_per_tensor.out", "input");
const SCALE: usize = position("quantized_decomposed::quantize_per_tensor.out", "scale");
const ZERO_POINT: usize = position("quantized_decomposed::quantize_per_tensor.out", "zero_point");
/// Argument of the operators that go by slices.
const AXIS: usize = position("quantized_decomposed::quantize_per_channel.out", "axis");

/// The kind of an operator of the family, and the positions of its arguments.
#[derive(Clone, Copy)]
struct Form {
    given: Given,
    direction: Direction,
    quant_min: usize,
    quant_max: usize,
    out: usize,
}

const fn form(operator: &str, given: Given, direction: Direction) -> Form {
    let (quant_min, quant_max) = (position(operator, "quant_min"), position(operator, "quant_max"));
    Form { given, direction, quant_min, quant_max, out: position(operator, "out") }
}

fn prepare(args: &Prepare<'_>, form: Form) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(form.out + 2)?;
    let (input, out) = (args.tensor(INPUT)?.meta, args.tensor(form.out)?.meta);
    let (apply, integers) = match form.direction {
        Direction::Quantize => (quantizer(input.dtype, out.dtype)?, out.dtype),
        Direction::Dequantize => (dequantizer(input.dtype, out.dtype)?, input.dtype),
    };
    if input.dim_order != out.dim_order {
        return Err(KernelError::unsupported(format!(
            "`input` has dim order {:?}, `out` {:?}: they must be equal",
            input.dim_order, out.dim_order
        )));
    }
    if form.given == Given::Token && !input.is_contiguous() {
        return Err(KernelError::unsupported("`input` must be contiguous"));
    }
    Ok(Box::new(move |cx: &mut KernelContext<'_>| {
        let (least, greatest) = (cx.int(form.quant_min)?, cx.int(form.quant_max)?);
        let mut affine = Affine { scale: 1.0, zero: 0, least, greatest };
        if form.direction == Direction::Quantize {
            expect_bounds(&affine, integers)?;
        }
        let input = cx.meta(INPUT)?;
        let sizes = Dims::from_slice(input.sizes).unwrap_or_default();
        let rank = input.rank();
        // How many slices there are, how many elements each has in one run, and how often all of them repeat.
        let (slices, run) = match form.given {
            Given::Numbers | Given::Tensors => (1, input.element_count()),
            Given::Axis => {
                let axis = dim_of("axis", cx.int(AXIS)?, "input", rank)?;
                let place = input.dim_order.iter().position(|&dim| dim as usize == axis).unwrap_or(0);
                let inner = input.dim_order.get(place + 1..).unwrap_or_default();
                (sizes.get(axis).copied().unwrap_or(1), inner.iter().map(|&dim| sizes[dim as usize]).product())
            }
            Given::Token => {
                let run = sizes.last().copied().unwrap_or(1);
                (sizes.iter().take(rank.saturating_sub(1)).product(), run)
            }
        };
        cx.resize(form.out, &sizes)?;
        if form.given == Given::Numbers {
            affine.scale = cx.double(SCALE)? as f32;
            affine.zero = zero_point(cx.int(ZERO_POINT)? as f64)?;
        }
        let views = cx.views();
        let (input, mut out) = (views.tensor(INPUT)?, views.out(form.out)?);
        if form.given != Given::Numbers {
            let (scales, zeros) = (views.tensor(SCALE)?, views.tensor_opt(ZERO_POINT)?);
            let short =
                [Some(&scales), zeros.as_ref()].into_iter().flatten().find(|tensor| tensor.element_count() < slices);
            if let Some(tensor) = short {
                return Err(KernelError::argument(format!(
                    "{} scales or zero points are given for {slices} slices",
                    tensor.element_count()
                )));
            }
            return apply_all(apply, affine, slices, run, (&input, &mut out), |affine, slice| {
                affine.scale = number_at(&scales, slice)? as f32;
                affine.zero = zeros.as_ref().map_or(Ok(0.0), |zeros| number_at(zeros, slice)).and_then(zero_point)?;
                Ok(())
            });
        }
        apply_all(apply, affine, slices, run, (&input, &mut out), |_, _| Ok(()))
    }))
}

fn zero_point(value: f64) -> Result<i64, KernelError> {
    if value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX) {
        return Ok(value as i64);
    }
    Err(KernelError::argument(format!("`zero_point` is {value}, outside of the range of i32")))
}

fn apply_all(
    apply: AffineLoop,
    mut affine: Affine,
    slices: usize,
    run: usize,
    (input, out): (&edgepack_executor::tensor::TensorRef<'_>, &mut edgepack_executor::tensor::TensorMut<'_>),
    mut load: impl FnMut(&mut Affine, usize) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    let (from, to) = (input.dtype.size().unwrap_or(1), out.dtype.size().unwrap_or(1));
    let aligned = crate::convert::is_aligned(input.bytes(), input.dtype);
    let out_type = out.dtype;
    if !aligned || !crate::convert::is_aligned(out.bytes_mut(), out_type) {
        return Err(KernelError::argument("the data of `input` or `out` are not aligned to its element"));
    }
    if run == 0 || slices == 0 {
        return Ok(());
    }
    let runs = input.bytes().chunks_exact(run * from).zip(out.bytes_mut().chunks_exact_mut(run * to));
    for (index, (input, out)) in runs.enumerate() {
        load(&mut affine, index % slices)?;
        apply(&affine, input, out);
    }
    Ok(())
}

macro_rules! operators {
    ($($name:literal => $given:ident $direction:ident;)*) => {
        /// The operators of this table.
        pub const KERNELS: &[&Kernel] = &[$(&kernel($name, Alias::Disjoint, |args| {
            prepare(args, const { form($name, Given::$given, Direction::$direction) })
        }),)*];
    };
}

operators! {
    "quantized_decomposed::quantize_per_tensor.out" => Numbers Quantize;
    "quantized_decomposed::quantize_per_tensor.Tensor_out" => Tensors Quantize;
    "quantized_decomposed::quantize_per_channel.out" => Axis Quantize;
    "quantized_decomposed::quantize_per_token.out" => Token Quantize;
    "quantized_decomposed::dequantize_per_tensor.out" => Numbers Dequantize;
    "quantized_decomposed::dequantize_per_tensor.Tensor_out" => Tensors Dequantize;
    "quantized_decomposed::dequantize_per_channel.out" => Axis Dequantize;
    "quantized_decomposed::dequantize_per_token.out" => Token Dequantize;
}
