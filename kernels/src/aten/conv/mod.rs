//! Convolution over one, two or three spatial dimensions, forward and transposed: the loops are those of
//! [`edgepack_compute::conv`], by element type.

mod backward;
mod half_precision;
mod pair;

use std::sync::Arc;

use edgepack_compute::conv::{self, Convolution, Geometry, Operands, PackedWeight, direct};
use edgepack_compute::epilogue::Epilogue;
use edgepack_compute::number::Number;
use edgepack_compute::spatial::{Images, Slide};
use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run, Views, room};
use edgepack_executor::packing::{Layout, Shared};
use edgepack_executor::tensor::TensorShape;
use edgepack_executor::with_element;
use edgepack_format::room::copy_of;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::{Class, Shape, expect_class, expect_same};
use crate::fused::Base;
use crate::instruction::Instruction;
use crate::schema::{kernel, position};
use crate::spatial::{MOST, images, numbers, required, resized};

pub(crate) use pair::Pair;

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&CONVOLUTION, &backward::BACKWARD];

/// Convolution of every element type.
pub static CONVOLUTION: Kernel = kernel(FORWARD_NAME, Alias::Disjoint, |args| prepare(args, &PLAIN, None));

/// Convolution of `f32` and the operations behind it.
pub(crate) static FUSED: Base = Base {
    name: "edgepack::convolution.epilogue_out",
    schema: CONVOLUTION.schema,
    out: OUT,
    in_place: true,
    prepare: |args, epilogue| prepare(args, &PLAIN, Some(epilogue)),
};

/// Convolution of `f32` with a constant weight of which every output channel is multiplied by a factor.
pub(crate) static SCALED: Kernel = Kernel {
    name: "edgepack::convolution.scaled_out",
    schema: "(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, \
             bool transposed, SymInt[] output_padding, SymInt groups, Tensor factors, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    is_pure: true,
    prepare: |args| prepare(args, &WITH_FACTORS, None),
};

/// [`SCALED`] and the operations behind it.
pub(crate) static SCALED_FUSED: Base = Base {
    name: "edgepack::convolution.scaled_epilogue_out",
    schema: SCALED.schema,
    out: SCALED_OUT,
    in_place: true,
    prepare: |args, epilogue| prepare(args, &WITH_FACTORS, Some(epilogue)),
};

/// Convolution of `f32`, to whose results another tensor is added, and the operations behind the sum.
pub(crate) static ADDED: Base = Base {
    name: "edgepack::convolution.added_out",
    schema: "(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, \
             bool transposed, SymInt[] output_padding, SymInt groups, Tensor addend, *, Tensor(a!) out) -> Tensor(a!)",
    out: OUT + 1,
    in_place: true,
    prepare: |args, epilogue| prepare(args, &WITH_ADDEND, Some(epilogue)),
};

/// [`SCALED`], to whose results another tensor is added, and the operations behind the sum.
pub(crate) static SCALED_ADDED: Base = Base {
    name: "edgepack::convolution.scaled_added_out",
    schema: "(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, \
             bool transposed, SymInt[] output_padding, SymInt groups, Tensor factors, Tensor addend, *, \
             Tensor(a!) out) -> Tensor(a!)",
    out: SCALED_OUT + 1,
    in_place: true,
    prepare: |args, epilogue| prepare(args, &WITH_FACTORS_AND_ADDEND, Some(epilogue)),
};

const FORWARD_NAME: &str = "aten::convolution.out";

/// The output of a forward convolution.
pub(crate) const OUT: usize = position(FORWARD_NAME, "out");
/// The factors of [`SCALED`], one of DOUBLE for each output channel: they are where the output of a plain one is.
pub(crate) const FACTORS: usize = OUT;
/// The output of [`SCALED`].
pub(crate) const SCALED_OUT: usize = FACTORS + 1;

/// Arguments that a forward convolution has besides those of [`FORWARD`].
struct Form {
    factors: Option<usize>,
    addend: Option<usize>,
    out: usize,
}

static PLAIN: Form = Form { factors: None, addend: None, out: OUT };
static WITH_FACTORS: Form = Form { factors: Some(FACTORS), addend: None, out: SCALED_OUT };
static WITH_ADDEND: Form = Form { factors: None, addend: Some(OUT), out: ADDED.out };
static WITH_FACTORS_AND_ADDEND: Form = Form { factors: Some(FACTORS), addend: Some(SCALED_OUT), out: SCALED_ADDED.out };

/// The positions of the arguments that say what is convolved and how.
pub(crate) struct Arguments {
    pub input: usize,
    pub weight: usize,
    pub bias: Option<usize>,
    pub stride: usize,
    pub padding: usize,
    pub dilation: usize,
    pub transposed: usize,
    pub output_padding: usize,
    pub groups: usize,
}

impl Arguments {
    /// Returns the positions of an operator; `bias` is `None` if it has no bias.
    const fn of(operator: &str, bias: Option<usize>) -> Self {
        Arguments {
            input: position(operator, "input"),
            weight: position(operator, "weight"),
            bias,
            stride: position(operator, "stride"),
            padding: position(operator, "padding"),
            dilation: position(operator, "dilation"),
            transposed: position(operator, "transposed"),
            output_padding: position(operator, "output_padding"),
            groups: position(operator, "groups"),
        }
    }
}

/// The bias of a forward convolution.
pub(crate) const BIAS: usize = position(FORWARD_NAME, "bias");

/// Positions of the arguments of a forward convolution.
pub(crate) static FORWARD: Arguments = Arguments::of(FORWARD_NAME, Some(BIAS));

fn prepare(
    args: &Prepare<'_>,
    form: &'static Form,
    epilogue: Option<Arc<Epilogue>>,
) -> Result<Box<dyn Run>, KernelError> {
    let (input, weight) = (args.tensor(FORWARD.input)?, args.tensor(FORWARD.weight)?);
    let dtype = input.meta.dtype;
    expect_class("input", dtype, Class::Real)?;
    expect_same(("input", dtype), ("weight", weight.meta.dtype))?;
    expect_same(("input", dtype), ("out", args.tensor(form.out)?.meta.dtype))?;
    if let Some(bias) = args.tensor_opt(BIAS)? {
        expect_same(("input", dtype), ("bias", bias.meta.dtype))?;
    }
    if dtype == ScalarType::FLOAT {
        args.scratch(scratch_bytes(args, form)?);
        let is_constant = weight.constant.is_some() && args.optimize();
        let convolution = Convolution::new(is_constant, epilogue);
        let factors = form.factors.map(|at| factors(args, &FORWARD, at)).transpose()?;
        let weight = match if is_constant { packed(args, form, factors)? } else { None } {
            Some(packed) => Weight::Packed(packed),
            None => factors.map_or(Ok(Weight::AsStored), |factors| scaled(args, factors).map(Weight::Scaled))?,
        };
        return Ok(Box::new(Single { convolution, form, weight }));
    }
    if epilogue.is_some() || form.factors.is_some() {
        return Err(KernelError::unsupported(format!("operations with results or weights of type {dtype}")));
    }
    match dtype {
        ScalarType::HALF => return half_precision::prepare::<half::f16>(args),
        ScalarType::BFLOAT16 => return half_precision::prepare::<half::bf16>(args),
        _ => {}
    }
    with_element!(dtype, T => Ok(Box::new(run::<T>)), else => Err(KernelError::unsupported(dtype.to_string())))
}

/// Bytes of scratch memory that a convolution of `f32` needs up to the bounds of its arguments.
fn scratch_bytes(args: &Prepare<'_>, form: &Form) -> Result<usize, KernelError> {
    let (input, weight) = (args.tensor(FORWARD.input)?.meta, args.tensor(FORWARD.weight)?.meta);
    let rank = weight.rank().saturating_sub(2);
    let out = args.tensor(form.out)?.meta;
    let area = |sizes: &[usize]| sizes.iter().rev().take(rank).product();
    let transposed = args.bool(FORWARD.transposed)? != Some(false);
    let channels = |sizes: &[usize], at: usize| sizes.get(at).copied().unwrap_or(1);
    let has_batch = input.rank() > rank + 1;
    let bounds = conv::Bounds {
        images: if has_batch { input.sizes[0] } else { 1 },
        pixels: [area(input.sizes), area(out.sizes)],
        channels: [channels(weight.sizes, usize::from(!transposed)), channels(out.sizes, usize::from(has_batch))],
        taps: area(weight.sizes),
        groups: args.int(FORWARD.groups)?.and_then(|groups| usize::try_from(groups).ok()),
        transposed,
        reordered: input.dim_order != out.dim_order,
        channels_last: out.dim_order.last().is_some_and(|&dim| usize::from(dim) == usize::from(has_batch)),
    };
    Ok(bounds.scratch().saturating_mul(size_of::<f32>()))
}

/// The factors of the output channels of a constant weight that is not transposed.
fn factors<'p>(args: &Prepare<'p>, arguments: &Arguments, at: usize) -> Result<&'p [f64], KernelError> {
    let weight = args.tensor(arguments.weight)?;
    let factors = args.tensor(at)?.constant;
    let known = weight.constant.is_some() && args.bool(arguments.transposed)? == Some(false);
    match factors.filter(|_| known).map(|factors| factors.as_slice::<f64>()).transpose()? {
        Some(factors) if weight.meta.sizes.first() == Some(&factors.len()) => Ok(factors),
        _ => Err(KernelError::argument("`factors` are not one for each output channel of a constant `weight`")),
    }
}

/// The constant weight in the order that a convolution of images of known sizes reads it.
fn packed(
    args: &Prepare<'_>,
    form: &Form,
    factors: Option<&[f64]>,
) -> Result<Option<Shared<PackedWeight>>, KernelError> {
    let known = |arg| args.tensor(arg).is_ok_and(|tensor| !tensor.dynamic);
    // What is wrong with the arguments is an error of the run.
    let (true, true, Ok((geometry, sizes))) = (known(FORWARD.input), known(form.out), measure(args, &FORWARD)) else {
        return Ok(None);
    };
    let (out, rank) = (args.tensor(form.out)?.meta, args.tensor(FORWARD.weight)?.meta.rank() - 2);
    if out.sizes != &sizes[..] || sizes.contains(&0) {
        return Ok(None);
    }
    let geometry = Geometry { out: images("out", &out, rank)?, ..geometry };
    let scratch = PackedWeight::scratch(&geometry).saturating_mul(size_of::<f32>());
    args.scratch(scratch_bytes(args, form)?.saturating_add(scratch));
    packed_for(args, FORWARD.weight, &geometry, factors)
}

/// A constant weight in the order that the convolution of this geometry reads it; `None` if it reads it as it is stored.
fn packed_for(
    args: &Prepare<'_>,
    weight: usize,
    geometry: &Geometry,
    factors: Option<&[f64]>,
) -> Result<Option<Shared<PackedWeight>>, KernelError> {
    let Some(bytes) = PackedWeight::packed_len(geometry) else { return Ok(None) };
    let layout =
        Layout { name: &PackedWeight::layout(geometry), numbers: bytemuck::cast_slice(factors.unwrap_or(&[])) };
    let (geometry, factors) = (*geometry, factors.map(copy_of).transpose()?);
    let make = move |weight: &[f32]| {
        PackedWeight::new(None, &geometry, weight, factors.as_deref())?
            .ok_or_else(|| KernelError::unsupported("a weight that is read as it is stored"))
    };
    args.share(weight, layout, bytes, make).map(Some)
}

/// The constant weight with each output channel times its factor, in the order it is stored in.
fn scaled(args: &Prepare<'_>, factors: &[f64]) -> Result<Shared<Vec<f32>>, KernelError> {
    let weight = args.tensor(FORWARD.weight)?.meta;
    if weight.dim_order.first() != Some(&0) {
        return Err(KernelError::unsupported("a `weight` with `factors` whose output channels are not outermost"));
    }
    let each = weight.sizes[1..].iter().product::<usize>().max(1);
    let layout = Layout { name: "as stored", numbers: bytemuck::cast_slice(factors) };
    let factors = copy_of(factors)?;
    let make = move |weight: &[f32]| {
        let mut all = room(weight.len())?;
        for (channel, factor) in weight.chunks_exact(each).zip(&factors) {
            all.extend(channel.iter().map(|x| conv::scaled(*x, *factor)));
        }
        Ok(all)
    };
    args.share(FORWARD.weight, layout, weight.byte_len(), make)
}

/// A convolution of `f32`.
struct Single {
    convolution: Convolution,
    form: &'static Form,
    weight: Weight,
}

/// Form in which a convolution has its weight at load.
enum Weight {
    /// The argument: it is packed when it is first needed, or not.
    AsStored,
    /// Multiplied by factors.
    Scaled(Shared<Vec<f32>>),
    /// Multiplied by factors, if there are any, and packed.
    Packed(Shared<PackedWeight>),
}

impl Run for Single {
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        let geometry = geometry(cx, self.form)?;
        if !matches!(self.weight, Weight::Packed(_)) {
            cx.retained().charge(self.convolution.bytes_to_retain(&geometry))?;
        }
        let views = cx.views();
        let (weight, packed) = match &self.weight {
            Weight::AsStored => (None, None),
            Weight::Scaled(weight) => (Some(&weight[..]), None),
            Weight::Packed(packed) => (None, Some(&**packed)),
        };
        let operands = Operands {
            input: views.tensor(FORWARD.input)?.as_slice::<f32>()?,
            weight: weight.map_or_else(|| views.tensor(FORWARD.weight)?.as_slice::<f32>(), Ok)?,
            bias: views.tensor_opt(BIAS)?.map(|bias| bias.as_slice::<f32>()).transpose()?,
        };
        let addend = self.form.addend.map(|at| addend(&views, at, self.form.out)).transpose()?;
        let (scratch, out) = (floats(views.scratch()?)?, views.out(self.form.out)?.into_slice::<f32>()?);
        Ok(self.convolution.run_adding(&geometry, &operands, addend, packed, scratch, out)?)
    }

    fn retained_bytes(&self) -> usize {
        self.convolution.retained_bytes()
    }
}

/// The numbers that are added to the results, in the order of the output.
fn addend<'v>(views: &Views<'v>, at: usize, out: usize) -> Result<&'v [f32], KernelError> {
    let (addend, out) = (views.tensor(at)?, views.context().meta(out)?);
    if addend.sizes == out.sizes && addend.dim_order == out.dim_order {
        return addend.as_slice();
    }
    Err(KernelError::argument(format!(
        "`addend` has sizes {:?} in the order {:?}, `out` {:?} in {:?}",
        addend.sizes, addend.dim_order, out.sizes, out.dim_order
    )))
}

/// Scratch memory as floats.
fn floats(scratch: &mut [u8]) -> Result<&mut [f32], KernelError> {
    bytemuck::try_cast_slice_mut(scratch).map_err(|_| KernelError::unsupported("the scratch memory is not aligned"))
}

/// Reads the arguments and resizes the output.
fn geometry(cx: &mut KernelContext<'_>, form: &Form) -> Result<Geometry, KernelError> {
    let (geometry, sizes) = measure(cx, &FORWARD)?;
    let rank = cx.meta(FORWARD.weight)?.rank() - 2;
    cx.resize(form.out, &sizes)?;
    Ok(Geometry { out: images("out", &cx.meta(form.out)?, rank)?, ..geometry })
}

/// Reads the arguments: everything but the strides of the output, and its sizes.
fn measure(cx: &impl Instruction, args: &Arguments) -> Result<(Geometry, Dims), KernelError> {
    let (input, weight) = (cx.meta(args.input)?, cx.meta(args.weight)?);
    let rank = match weight.rank() {
        rank @ 3..=5 => rank - 2,
        _ => return Err(shapes(&input, &weight, "the operator wants one to three spatial dimensions")),
    };
    let transposed = cx.bool(args.transposed)?;
    let stride = required(cx, args.stride, "stride", rank, 1, 1)?;
    let padding = required(cx, args.padding, "padding", rank, 0, 0)?;
    let dilation = required(cx, args.dilation, "dilation", rank, 1, 1)?;
    let extra = match transposed {
        true => numbers(cx, args.output_padding, "output_padding", rank, 0, 0)?.unwrap_or([0; 3]),
        false => [0; 3],
    };
    let groups = cx.int(args.groups)?;
    let from = images("input", &input, rank)?;
    let kernel = images("weight", &weight, rank)?;
    if !(1..MOST).contains(&groups) {
        return Err(KernelError::argument(format!("`groups` is {groups}")));
    }
    let groups = groups as usize;
    if kernel.sizes.contains(&0) {
        return Err(shapes(&input, &weight, "the weight has no taps"));
    }
    let (channels, fits) = if transposed {
        (kernel.channels.0 * groups, from.channels.0 == kernel.batch.0 && kernel.batch.0 % groups == 0)
    } else {
        (kernel.batch.0, from.channels.0 == kernel.channels.0 * groups && kernel.batch.0 % groups == 0)
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
    let mut slides = [Slide::POINT; 3];
    let mut places = [1; 3];
    for i in 3 - rank..3 {
        let slide = Slide {
            input: from.sizes[i],
            kernel: kernel.sizes[i],
            stride: stride[i],
            padding: padding[i],
            dilation: dilation[i],
        };
        let size = if transposed { slide.transposed_size(extra[i]) } else { slide.places(false) };
        places[i] = size.ok_or_else(|| shapes(&input, &weight, "the padded input is smaller than the kernel"))?;
        slides[i] = if transposed { Slide { input: places[i], ..slide } } else { slide };
    }
    let sizes: Dims = resized(&input, rank, channels, places);
    let out = Images { batch: (from.batch.0, 0), channels: (channels, 0), sizes: places, strides: [0; 3] };
    Ok((Geometry { input: from, weight: kernel, out, slides, groups, transposed }, sizes))
}

#[cold]
fn shapes(input: &TensorShape<'_>, weight: &TensorShape<'_>, why: &str) -> KernelError {
    KernelError::argument(format!("`input` is {}, `weight` is {}: {why}", Shape(input.sizes), Shape(weight.sizes)))
}

fn run<T: Number>(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let geometry = geometry(cx, &PLAIN)?;
    let views = cx.views();
    let operands = Operands {
        input: views.tensor(FORWARD.input)?.as_slice::<T>()?,
        weight: views.tensor(FORWARD.weight)?.as_slice::<T>()?,
        bias: views.tensor_opt(BIAS)?.map(|bias| bias.as_slice::<T>()).transpose()?,
    };
    direct::convolve(&geometry, &operands, views.out(OUT)?.into_slice::<T>()?);
    Ok(())
}

#[cfg(test)]
mod tests;
