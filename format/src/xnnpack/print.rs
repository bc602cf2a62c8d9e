//! Values and nodes as one line of text each.

use core::fmt;

use super::constants::{Constant, ShownKey};
use super::node::{Fields, Node};
use super::nodes::{NodeConv, Pooling2D};
use super::payload::Payload;
use super::tables::{Datatype, QuantParams, TensorValue, Value};
use crate::row::{Scalar, Scalars};

impl fmt::Display for Node<'_> {
    /// `%12 = Conv2d(%3, w:%4, b:%5) kernel=3,3 stride=2,2 pad=1,1,1,1 clamp[0, 6]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, output) in self.outputs().enumerate() {
            write!(f, "{}%{}", if index > 0 { ", " } else { "" }, output.id)?;
        }
        if self.outputs().next().is_some() {
            f.write_str(" = ")?;
        }
        let Some(kind) = &self.xnode_union else { return f.write_str("nothing") };
        match (kind.name(), kind.fields()) {
            (Some(name), _) => f.write_str(name)?,
            (None, Fields::Unknown(tag)) => write!(f, "node({tag})")?,
            (None, _) => f.write_str("node")?,
        }
        f.write_str("(")?;
        for (index, input) in self.inputs().filter(|input| input.is_present()).enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            let colon = if input.role.is_empty() { "" } else { ":" };
            write!(f, "{separator}{}{colon}%{}", input.role, input.id)?;
        }
        f.write_str(")")?;
        options(kind.fields(), f)?;
        if kind.flags() != 0 {
            write!(f, " flags={:#x}", kind.flags())?;
        }
        match &self.output_min_max {
            Some(bounds) => write!(f, " clamp[{}, {}]", bounds.output_min, bounds.output_max),
            None => Ok(()),
        }
    }
}

fn options(fields: Fields<'_, '_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fields {
        Fields::Convolution(node) => convolution(node, f),
        Fields::Pooling(node) => pooling(node, f),
        Fields::ArgMaxPooling(node) => {
            write!(f, " window={},{}", node.pooling_height, node.pooling_width)?;
            padding([node.padding_top, node.padding_right, node.padding_bottom, node.padding_left], f)
        }
        Fields::Concatenate(node, _) => write!(f, " axis={}", node.axis),
        Fields::Transpose(node) => listed("perm", &node.perm, f),
        Fields::Reshape(node) => listed("shape", &node.new_shape, f),
        Fields::Slice(node) => {
            listed("offsets", &node.offsets, f)?;
            listed("sizes", &node.sizes, f)
        }
        Fields::Pad(node) => {
            listed("pre", &node.pre_paddings, f)?;
            listed("post", &node.post_paddings, f)?;
            write!(f, " value={}", node.padding_value)
        }
        Fields::Resize(node) => write!(f, " size={},{}", node.new_height, node.new_width),
        Fields::LeakyReLU(node) => write!(f, " slope={}", node.negative_slope),
        Fields::ELU(node) => write!(f, " alpha={}", node.alpha),
        _ => Ok(()),
    }
}

fn convolution(node: &NodeConv, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, " kernel={},{}", node.kernel_height, node.kernel_width)?;
    unless_one("stride", node.subsampling_height, node.subsampling_width, f)?;
    padding([node.padding_top, node.padding_right, node.padding_bottom, node.padding_left], f)?;
    unless_one("dilation", node.dilation_height, node.dilation_width, f)?;
    if node.groups != 1 {
        write!(f, " groups={}", node.groups)?;
    }
    if (node.adjustment_height, node.adjustment_width) != (0, 0) {
        write!(f, " adjust={},{}", node.adjustment_height, node.adjustment_width)?;
    }
    Ok(())
}

fn pooling(node: &Pooling2D, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, " window={},{}", node.pooling_height, node.pooling_width)?;
    unless_one("stride", node.stride_height, node.stride_width, f)?;
    padding([node.padding_top, node.padding_right, node.padding_bottom, node.padding_left], f)?;
    match (node.dilation_height, node.dilation_width) {
        // Means have none.
        (0, 0) => Ok(()),
        (height, width) => unless_one("dilation", height, width, f),
    }
}

fn unless_one(name: &str, height: u32, width: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if (height, width) == (1, 1) { Ok(()) } else { write!(f, " {name}={height},{width}") }
}

/// Above, to the right, below, to the left.
fn padding(sides: [u32; 4], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let [top, right, bottom, left] = sides;
    if sides == [0; 4] { Ok(()) } else { write!(f, " pad={top},{right},{bottom},{left}") }
}

fn listed(name: &str, list: &Option<Scalars<'_, u32>>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, " {name}=")?;
    commas(list, f)
}

fn commas<T: Scalar + fmt::Display>(list: &Option<Scalars<'_, T>>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    /// Most items of a list in a line.
    const MOST: usize = 16;
    for (index, item) in list.iter().flat_map(|list| list.iter()).take(MOST).enumerate() {
        write!(f, "{}{item}", if index > 0 { "," } else { "" })?;
    }
    match list {
        Some(list) if list.len() > MOST => write!(f, ",… {} in all", list.len()),
        _ => Ok(()),
    }
}

/// A value of a payload as one line: `%4: qcint8[8,16] per channel 0, 8 scales in constant 2 = constant 1, 128 bytes of "…"`.
pub struct ValueLine<'p, 'a> {
    payload: &'p Payload<'a>,
    value: &'p Value<'a>,
}

impl<'a> Payload<'a> {
    /// A value of this payload as one line.
    pub fn line<'p>(&'p self, value: &'p Value<'a>) -> ValueLine<'p, 'a> {
        ValueLine { payload: self, value }
    }
}

impl fmt::Display for ValueLine<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(tensor) = self.value.tensor() else { return f.write_str("a value without a tensor") };
        write!(f, "%{}: {}[", tensor.id_out, Name(tensor.datatype))?;
        commas(&tensor.dims, f)?;
        f.write_str("]")?;
        quantization(self.value, f)?;
        role(tensor, f)?;
        if tensor.is_constant() {
            write!(f, " = constant {}", tensor.constant_buffer_idx)?;
            let index = usize::try_from(tensor.constant_buffer_idx).ok();
            match index.and_then(|index| self.payload.constants.get(index)) {
                Some(Constant::Inline(bytes)) => write!(f, ", {} bytes", bytes.len())?,
                Some(Constant::Named { key, size }) => write!(f, ", {size} bytes of {}", ShownKey(key))?,
                Some(Constant::None) | None => f.write_str(", which is not there")?,
            }
        }
        Ok(())
    }
}

/// A type by its name in text, or by its number.
struct Name(Datatype);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.label() {
            Some(label) => f.write_str(label),
            None => write!(f, "type({})", self.0.0),
        }
    }
}

fn role(tensor: &TensorValue<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let names = [(tensor.is_input(), "input"), (tensor.is_output(), "output")];
    for (_, name) in names.iter().filter(|(is_one, _)| *is_one) {
        write!(f, " {name}")?;
        if let Some(position) = tensor.position() {
            write!(f, " {position}")?;
        }
    }
    match tensor.dq_datatype {
        Datatype::INVALID => Ok(()),
        datatype => write!(f, " read as {}", Name(datatype)),
    }
}

fn quantization(value: &Value<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let scales = |inline: usize, index: u32, count: u32, f: &mut fmt::Formatter<'_>| match index {
        0 => write!(f, "{inline} scales"),
        index => write!(f, "{count} scales in constant {index}"),
    };
    match value.quant_params() {
        None => Ok(()),
        Some(QuantParams::PerTensorQuant(params)) => {
            write!(f, " scale {} zero {}", params.scale, params.zero_point)
        }
        Some(QuantParams::PerChannelQuant(params)) => {
            write!(f, " per channel {}, ", params.channel_dim)?;
            let inline = params.scale.as_ref().map_or(0, Scalars::len);
            scales(inline, params.scale_buffer_idx, params.num_scales, f)
        }
        Some(QuantParams::PerChannelGroupQuant(params)) => {
            write!(f, " per {} of channel {}, ", params.group_size, params.channel_dim)?;
            let inline = params.scale.as_ref().map_or(0, Scalars::len);
            let inline = inline.max(params.scale_bf16.as_ref().map_or(0, Scalars::len));
            scales(inline, params.scale_buffer_idx, params.num_scales, f)
        }
        Some(QuantParams::PerTokenDynamicQuant(params)) => {
            write!(f, " per row of {} dimensions", params.num_nonbatch_dims)
        }
        Some(QuantParams::Unknown(tag)) => write!(f, " params({tag})"),
    }
}
