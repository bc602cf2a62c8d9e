//! Convolution over one, two or three spatial dimensions, forward and transposed.
//!
//! `direct` is the definition in loops, for every element type and layout, and the oracle of the rest. For `f32` images
//! of up to two dimensions `fast` uses products of matrices, and own loops where every channel stands by itself (`lone`);
//! transposed ones are products whose results are added up (`scatter`); `halves` brings 16-bit floats there.

mod backward;
mod direct;
mod fast;
mod halves;
mod lone;
mod scatter;

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::{Class, Shape, expect_class, expect_same};
use crate::spatial::{Images, MOST, Slide, numbers, required, resized};
use crate::steps::Steps;
use edgepack_compute::number::Number;

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&CONVOLUTION, &backward::BACKWARD];

/// `aten::convolution.out`.
pub static CONVOLUTION: Kernel = Kernel {
    name: "aten::convolution.out",
    schema: "(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, None),
};

/// The same for `f32`, with element-wise steps done to the results while they are in the cache: what rewrites make of a
/// convolution and what follows it. Programs do not name it.
pub static CONVOLUTION_THEN: Kernel = Kernel {
    name: "edgepack::convolution.then_out",
    schema: "(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, *, Tensor(a!) out, str then) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, Some(Steps::of_floats(args.text(OUT + 1)?)?)),
};

/// Where the output of a forward convolution stands; steps follow.
pub(crate) const OUT: usize = 9;

/// Everything about one call but its data.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Geometry {
    input: Images,
    /// The batch is the first dimension of the weight: output channels, input channels if transposed.
    weight: Images,
    out: Images,
    /// Along depth, height, width: the output over the input, or the input over the output if transposed.
    slides: [Slide; 3],
    groups: usize,
    transposed: bool,
}

impl Geometry {
    /// Input and output channels of a group.
    fn group_channels(&self) -> [usize; 2] {
        [self.input.channels.0 / self.groups, self.out.channels.0 / self.groups]
    }

    /// Multiplications in all.
    fn work(&self) -> usize {
        let [channels, _] = self.group_channels();
        let factors = [self.out.batch.0, self.out.channels.0, self.out.area(), channels, self.weight.area()];
        factors.into_iter().fold(1, usize::saturating_mul)
    }
}

fn prepare(args: &Prepare<'_>, then: Option<Steps>) -> Result<Box<dyn Run>, KernelError> {
    let (input, weight) = (args.tensor(0)?, args.tensor(1)?);
    let dtype = input.meta.dtype;
    expect_class("input", dtype, Class::Real)?;
    expect_same(("input", dtype), ("weight", weight.meta.dtype))?;
    expect_same(("input", dtype), ("out", args.tensor(OUT)?.meta.dtype))?;
    if let Some(bias) = args.tensor_opt(2)? {
        expect_same(("input", dtype), ("bias", bias.meta.dtype))?;
    }
    if dtype == ScalarType::FLOAT {
        args.scratch(fast::scratch_bytes(&input.meta, &weight.meta, args.bool(6)? != Some(false)));
        let keep = weight.constant.is_some() && args.optimize();
        return Ok(Box::new(fast::Convolution::new(keep, then)));
    }
    if then.is_some() {
        return Err(KernelError::unsupported(format!("steps behind results of type {dtype}")));
    }
    match dtype {
        ScalarType::HALF => return halves::prepare::<half::f16>(args),
        ScalarType::BFLOAT16 => return halves::prepare::<half::bf16>(args),
        _ => {}
    }
    with_element!(dtype, T => Ok(Box::new(run::<T>)), else => Err(KernelError::unsupported(dtype.to_string())))
}

/// Where the arguments stand that say what is convolved and how. Those that follow `stride` are padding, dilation,
/// whether it is transposed, output padding, and groups.
struct Arguments {
    input: usize,
    weight: usize,
    bias: Option<usize>,
    stride: usize,
}

static FORWARD: Arguments = Arguments { input: 0, weight: 1, bias: Some(2), stride: 3 };

/// Reads the arguments and resizes the output.
fn geometry(cx: &mut KernelContext<'_>) -> Result<Geometry, KernelError> {
    let (geometry, sizes) = measure(cx, &FORWARD)?;
    let rank = cx.meta(FORWARD.weight)?.rank() - 2;
    cx.resize(OUT, &sizes)?;
    Ok(Geometry { out: Images::new("out", &cx.meta(OUT)?, rank)?, ..geometry })
}

/// Reads the arguments: everything but where the output lies, and its sizes.
fn measure(cx: &KernelContext<'_>, args: &Arguments) -> Result<(Geometry, Dims), KernelError> {
    let (input, weight) = (cx.meta(args.input)?, cx.meta(args.weight)?);
    let rank = match weight.rank() {
        rank @ 3..=5 => rank - 2,
        _ => return Err(shapes(&input, &weight, "the operator wants one to three spatial dimensions")),
    };
    let first = args.stride;
    let transposed = cx.bool(first + 3)?;
    let stride = required(cx, first, "stride", rank, 1, 1)?;
    let padding = required(cx, first + 1, "padding", rank, 0, 0)?;
    let dilation = required(cx, first + 2, "dilation", rank, 1, 1)?;
    let extra =
        if transposed { numbers(cx, first + 4, "output_padding", rank, 0, 0)?.unwrap_or([0; 3]) } else { [0; 3] };
    let groups = cx.int(first + 5)?;
    let images = Images::new("input", &input, rank)?;
    let kernel = Images::new("weight", &weight, rank)?;
    if !(1..MOST).contains(&groups) {
        return Err(KernelError::argument(format!("`groups` is {groups}")));
    }
    let groups = groups as usize;
    if kernel.sizes.contains(&0) {
        return Err(shapes(&input, &weight, "the weight has no taps"));
    }
    let (channels, fits) = if transposed {
        (kernel.channels.0 * groups, images.channels.0 == kernel.batch.0 && kernel.batch.0 % groups == 0)
    } else {
        (kernel.batch.0, images.channels.0 == kernel.channels.0 * groups && kernel.batch.0 % groups == 0)
    };
    if !fits {
        return Err(shapes(&input, &weight, &format!("channels differ, with {groups} groups")));
    }
    if let Some(arg) = args.bias
        && let Some(bias) = cx.meta_opt(arg)?
        && bias.element_count() != channels
    {
        return Err(KernelError::argument(format!(
            "`bias` is {}, the output has {channels} channels",
            Shape(bias.sizes)
        )));
    }
    let mut slides = [Slide { input: 1, kernel: 1, stride: 1, padding: 0, dilation: 1 }; 3];
    let mut places = [1; 3];
    for i in 3 - rank..3 {
        let slide = Slide {
            input: images.sizes[i],
            kernel: kernel.sizes[i],
            stride: stride[i],
            padding: padding[i],
            dilation: dilation[i],
        };
        let size = if transposed { spread(&slide, extra[i]) } else { slide.places(false) };
        places[i] = size.ok_or_else(|| shapes(&input, &weight, "the padded input is smaller than the kernel"))?;
        slides[i] = if transposed { Slide { input: places[i], ..slide } } else { slide };
    }
    let sizes: Dims = resized(&input, rank, channels, places);
    let out = Images { batch: (images.batch.0, 0), channels: (channels, 0), sizes: places, strides: [0; 3] };
    Ok((Geometry { input: images, weight: kernel, out, slides, groups, transposed }, sizes))
}

/// The size of a transposed convolution's output.
fn spread(slide: &Slide, extra: usize) -> Option<usize> {
    let all = slide.input.checked_sub(1)? * slide.stride + slide.dilation * (slide.kernel - 1) + extra + 1;
    all.checked_sub(2 * slide.padding).filter(|&size| size > 0)
}

#[cold]
fn shapes(input: &TensorShape<'_>, weight: &TensorShape<'_>, why: &str) -> KernelError {
    KernelError::argument(format!("`input` is {}, `weight` is {}: {why}", Shape(input.sizes), Shape(weight.sizes)))
}

fn run<T: Number>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let geometry = geometry(cx)?;
    let views = cx.views();
    let (input, weight) = (views.tensor(0)?.as_slice::<T>()?, views.tensor(1)?.as_slice::<T>()?);
    let bias = views.tensor_opt(2)?.map(|bias| bias.as_slice::<T>()).transpose()?;
    direct::convolve(&geometry, input, weight, bias, views.out(OUT)?.into_slice::<T>()?);
    Ok(())
}

#[cfg(test)]
mod tests;
