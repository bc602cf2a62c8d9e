//! Values and nodes as one line of text each.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::constants::{Constant, ShownKey};
use super::datatype::Meaning;
use super::node::{Fields, Node, NodeUnion, Operand, OutputMinMax};
use super::nodes::{NodeConv, Pooling2D};
use super::payload::Payload;
use super::tables::{Datatype, QuantParams, TensorValue, Value};
use crate::notation::{Counted, List, ValueName};
use crate::row::{Scalar, Scalars, Union as _};

/// The value that nodes call so, if it is known.
pub(super) type FindValue<'p, 'a> = dyn Fn(u32) -> Option<&'p Value<'a>> + 'p;

/// A node of a payload as one line, with the types of its constants and results:
/// `%12 = Conv2d(%3, w %4 qcint8[16, 3, 3, 3], b %5 qcint32[16]) kernel 3 stride 2 pad 1 clamp[0, 6] -> qint8[1, 8, 8, 16]`.
pub struct NodeLine<'p, 'a> {
    node: &'p Node<'a>,
    find: Box<FindValue<'p, 'a>>,
}

impl<'p, 'a> NodeLine<'p, 'a> {
    pub(super) fn new(node: &'p Node<'a>, find: impl Fn(u32) -> Option<&'p Value<'a>> + 'p) -> Self {
        NodeLine { node, find: Box::new(find) }
    }
}

impl fmt::Display for NodeLine<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_node(self.node, &*self.find, f)?;
        for (index, output) in self.node.outputs().enumerate() {
            let Some(value) = (self.find)(output.id) else { continue };
            write!(f, "{}{}", if index > 0 { ", " } else { " -> " }, ValueType(value))?;
        }
        Ok(())
    }
}

impl fmt::Display for Node<'_> {
    /// `%12 = Conv2d(%3, w %4, b %5) kernel 3 stride 2 pad 1 clamp[0, 6]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_node(self, &|_| None, f)
    }
}

/// A node; constants among its inputs with their types, where `find` knows them.
fn write_node<'p>(node: &Node<'_>, find: &FindValue<'p, '_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, output) in node.outputs().enumerate() {
        write!(f, "{}{}", if index > 0 { ", " } else { "" }, ValueName(output.id))?;
    }
    if node.outputs().next().is_some() {
        f.write_str(" = ")?;
    }
    let Some(kind) = &node.xnode_union else { return f.write_str("nothing") };
    write!(f, "{}(", KindName(kind))?;
    for (index, input) in node.inputs().filter(Operand::is_present).enumerate() {
        let separator = if index > 0 { ", " } else { "" };
        let space = if input.role.is_empty() { "" } else { " " };
        write!(f, "{separator}{}{space}{}", input.role, ValueName(input.id))?;
        let value = find(input.id).filter(|value| value.tensor().is_some_and(TensorValue::is_constant));
        if let Some(value) = value {
            write!(f, " {}", ValueType(value))?;
        }
    }
    f.write_str(")")?;
    options(kind.fields(), f)?;
    if kind.flags() != 0 {
        write!(f, " flags {:#x}", kind.flags())?;
    }
    match &node.output_min_max {
        Some(range) => write!(f, " {range}"),
        None => Ok(()),
    }
}

/// The kind of a node: `Conv2d`, `node(77)` where the schema has no name.
pub(super) struct KindName<'k, 'a>(pub &'k NodeUnion<'a>);

impl fmt::Display for KindName<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "node({})", self.0.tag()),
        }
    }
}

impl fmt::Display for OutputMinMax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clamp[{}, {}]", self.output_min, self.output_max)
    }
}

/// The type of a value: `qcint8[16, 3, 3, 3]`.
pub(super) struct ValueType<'v, 'a>(pub &'v Value<'a>);

impl fmt::Display for ValueType<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.tensor() {
            Some(tensor) => write!(f, "{}{}", Name(tensor.datatype), Numbers(&tensor.dims)),
            None => f.write_str("a value without a tensor"),
        }
    }
}

fn options(fields: Fields<'_, '_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match fields {
        Fields::Convolution(node) => convolution(node, f),
        Fields::Pooling(node) => pooling(node, f),
        Fields::ArgMaxPooling(node) => {
            pair("window", node.pooling_height, node.pooling_width, f)?;
            padding([node.padding_top, node.padding_right, node.padding_bottom, node.padding_left], f)
        }
        Fields::Concatenate(node, _) => write!(f, " axis {}", node.axis),
        Fields::Transpose(node) => write!(f, " perm {}", Numbers(&node.perm)),
        Fields::Reshape(node) => write!(f, " shape {}", Numbers(&node.new_shape)),
        Fields::Slice(node) => write!(f, " offsets {} sizes {}", Numbers(&node.offsets), Numbers(&node.sizes)),
        Fields::Pad(node) => {
            write!(f, " before {} after {}", Numbers(&node.pre_paddings), Numbers(&node.post_paddings))?;
            write!(f, " value {}", node.padding_value)
        }
        Fields::Resize(node) => write!(f, " size [{}, {}]", node.new_height, node.new_width),
        Fields::LeakyReLU(node) => write!(f, " slope {}", node.negative_slope),
        Fields::ELU(node) => write!(f, " alpha {}", node.alpha),
        _ => Ok(()),
    }
}

fn convolution(node: &NodeConv, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    pair("kernel", node.kernel_height, node.kernel_width, f)?;
    unless_one("stride", node.subsampling_height, node.subsampling_width, f)?;
    padding([node.padding_top, node.padding_right, node.padding_bottom, node.padding_left], f)?;
    unless_one("dilation", node.dilation_height, node.dilation_width, f)?;
    if node.groups != 1 {
        write!(f, " groups {}", node.groups)?;
    }
    if (node.adjustment_height, node.adjustment_width) != (0, 0) {
        pair("adjust", node.adjustment_height, node.adjustment_width, f)?;
    }
    Ok(())
}

fn pooling(node: &Pooling2D, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    pair("window", node.pooling_height, node.pooling_width, f)?;
    unless_one("stride", node.stride_height, node.stride_width, f)?;
    padding([node.padding_top, node.padding_right, node.padding_bottom, node.padding_left], f)?;
    match (node.dilation_height, node.dilation_width) {
        // Means have none.
        (0, 0) => Ok(()),
        (height, width) => unless_one("dilation", height, width, f),
    }
}

fn unless_one(name: &str, height: u32, width: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if (height, width) == (1, 1) { Ok(()) } else { pair(name, height, width, f) }
}

/// Numbers of height and width; once where they are equal.
fn pair(name: &str, height: u32, width: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if height == width { write!(f, " {name} {height}") } else { write!(f, " {name} [{height}, {width}]") }
}

/// Above, to the right, below, to the left; once where they are equal.
fn padding(sides: [u32; 4], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let [top, right, bottom, left] = sides;
    match sides {
        [0, 0, 0, 0] => Ok(()),
        _ if top == right && top == bottom && top == left => write!(f, " pad {top}"),
        _ => write!(f, " pad {}", List(&sides)),
    }
}

/// Numbers in brackets: all of a list of any length that a sound payload has.
struct Numbers<'n, 'a, T>(&'n Option<Scalars<'a, T>>);

impl<T: Scalar + fmt::Display> fmt::Display for Numbers<'_, '_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Most items of a list in a line.
        const MOST: usize = 16;
        let Some(list) = self.0 else { return f.write_str("[]") };
        let shown: Vec<T> = list.iter().take(MOST).collect();
        match list.len() {
            len if len > MOST => write!(f, "{} and more, {len} in all", List(&shown)),
            _ => write!(f, "{}", List(&shown)),
        }
    }
}

/// A value of a payload as one line: `%4: qcint8[8, 16] per channel 0, 8 scales in constant 2 = constant 1, 128 bytes of "…"`.
pub struct ValueLine<'p, 'a> {
    payload: &'p Payload<'a>,
    value: &'p Value<'a>,
}

impl<'a> Payload<'a> {
    /// A node of this payload as one line, with types.
    pub fn node_line<'p>(&'p self, node: &'p Node<'a>) -> NodeLine<'p, 'a> {
        NodeLine::new(node, |id| self.value(id))
    }

    /// A value of this payload as one line.
    pub fn line<'p>(&'p self, value: &'p Value<'a>) -> ValueLine<'p, 'a> {
        ValueLine { payload: self, value }
    }
}

impl fmt::Display for ValueLine<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(tensor) = self.value.tensor() else { return f.write_str("a value without a tensor") };
        write!(f, "{}: {}{}", ValueName(tensor.id_out), ValueType(self.value), Quantized(self.value))?;
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

/// An element type: as everywhere where numbers are as they are, `f32`; else by its name in payloads, `qcint8`, or by its number.
pub(super) struct Name(pub Datatype);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = self.0.scalar_type().filter(|_| self.0.meaning() == Some(Meaning::Plain));
        match (plain, self.0.label()) {
            (Some(plain), _) => write!(f, "{plain}"),
            (None, Some(label)) => f.write_str(label),
            (None, None) => write!(f, "type({})", self.0.0),
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

/// Parameters of a value, with a space in front; nothing if it has none.
pub(super) struct Quantized<'v, 'a>(pub &'v Value<'a>);

impl fmt::Display for Quantized<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantization(self.0, f)
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
            write!(f, " per row of {}", Counted(params.num_nonbatch_dims, "dimension"))
        }
        Some(QuantParams::Unknown(tag)) => write!(f, " params({tag})"),
    }
}
