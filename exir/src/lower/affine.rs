//! Operators of quantisation by blocks, as torchao exports them, written out in those of the library.
//!
//! A block is a part of a tensor whose elements share a scale and a zero point. Blocks along a dimension make two
//! dimensions of it, and the scale has one element for each block.

use edgepack_format::scalar::ScalarType;

use super::Options;
use crate::error::Error;
use crate::graph::{Argument, Graph, Node, Size, TensorMeta, ValueId};
use crate::operators;

/// Writes out all calls of a graph, and of those inside it.
pub(super) fn write_out(graph: &mut Graph, options: &Options) -> Result<(), Error> {
    graph.each_subgraph(|inner| write_out(inner, options))?;
    graph.rewrite(|graph, node, made| {
        let name = node.target.operator().map(ToString::to_string);
        let rule = name.filter(|name| !options.operators.is_preserved(name)).and_then(|name| rule(&name));
        let Some(rule) = rule else {
            made.push(node);
            return Ok(());
        };
        let schema = node.target.operator().and_then(|op| options.operators.schema(op));
        let arguments = schema.as_ref().map(|schema| operators::arguments(schema, &node)).unwrap_or_default();
        let arguments = arguments
            .into_iter()
            .filter_map(|(parameter, argument)| Some((parameter.name.to_owned(), argument?)))
            .collect();
        rule(&mut Writer { graph, node: &node, arguments, made })
    })
}

/// Returns whether lowering decomposes an operator, by full name, into those of the library before composites.
pub fn is_written_out(full_name: &str) -> bool {
    rule(full_name).is_some()
}

fn rule(full_name: &str) -> Option<Rule> {
    Some(match full_name {
        "torchao::dequantize_affine" => dequantize,
        "torchao::quantize_affine" => quantize,
        "torchao::choose_qparams_affine" => choose,
        "aten::_int_mm" => product,
        _ => return None,
    })
}

type Rule = fn(&mut Writer<'_>) -> Result<(), Error>;

/// Writes the calls that replace one call.
struct Writer<'w> {
    graph: &'w mut Graph,
    node: &'w Node,
    arguments: Vec<(String, Argument)>,
    made: &'w mut Vec<Node>,
}

/// Division of a tensor into blocks.
struct Blocks {
    /// Sizes of the tensor with two dimensions for each that consists of several blocks.
    split: Vec<Size>,
    /// Dimensions of the split sizes that are within a block.
    within: Vec<usize>,
}

impl Blocks {
    /// The sizes of what has one element for each block.
    fn each(&self) -> Vec<Size> {
        let one = |(dim, size): (usize, &Size)| match self.within.contains(&dim) {
            true => Size::Known(1),
            false => size.clone(),
        };
        self.split.iter().enumerate().map(one).collect()
    }
}

impl Writer<'_> {
    fn arg(&self, name: &str) -> Argument {
        let found = self.arguments.iter().find(|(known, _)| known == name);
        found.map_or(Argument::None, |(_, argument)| argument.clone())
    }

    fn refuse(&self, what: impl std::fmt::Display) -> Error {
        Error::unsupported(format!("node `{}`", self.node.name), format!("{} with {what}", self.node.target))
    }

    fn value(&self, name: &str) -> Result<ValueId, Error> {
        self.arg(name).value().ok_or_else(|| self.refuse(format!("`{name}` that is not a tensor")))
    }

    fn number(&self, name: &str) -> Option<f64> {
        match self.arg(name) {
            Argument::Int(number) => Some(number as f64),
            Argument::Float(number) => Some(number),
            _ => None,
        }
    }

    fn meta(&self, id: ValueId) -> Result<TensorMeta, Error> {
        self.graph.tensor(id).cloned().ok_or_else(|| self.refuse("something that is not a tensor"))
    }

    fn call<const N: usize>(&mut self, name: &str, args: [(&str, Argument); N], meta: TensorMeta) -> ValueId {
        let mut node = self.graph.make(name, args, meta);
        node.metadata.clone_from(&self.node.metadata);
        let result = node.result().unwrap_or(ValueId(u32::MAX));
        self.made.push(node);
        result
    }

    /// A call that keeps sizes and element type.
    fn unary(&mut self, name: &str, input: ValueId) -> Result<ValueId, Error> {
        let meta = self.meta(input)?;
        Ok(self.call(name, [("self", input.into())], meta))
    }

    /// A call on two tensors, or a tensor and a number: the result is as the first, or as the sizes that are given.
    fn binary(&mut self, name: &str, a: ValueId, b: impl Into<Argument>, sizes: &[Size]) -> Result<ValueId, Error> {
        let meta = TensorMeta::contiguous(self.meta(a)?.scalar_type, sizes);
        Ok(self.call(name, [("self", a.into()), ("other", b.into())], meta))
    }

    fn cast(&mut self, input: ValueId, scalar_type: ScalarType) -> Result<ValueId, Error> {
        let meta = self.meta(input)?;
        if meta.scalar_type == scalar_type {
            return Ok(input);
        }
        let args = [("self", input.into()), ("dtype", Argument::ScalarType(scalar_type))];
        Ok(self.call("aten::_to_copy", args, TensorMeta::contiguous(scalar_type, &meta.sizes)))
    }

    fn clamp(&mut self, input: ValueId, least: Option<f64>, most: Option<f64>) -> Result<ValueId, Error> {
        let meta = self.meta(input)?;
        let end = |end: Option<f64>| end.map_or(Argument::None, Argument::Float);
        Ok(self.call("aten::clamp", [("self", input.into()), ("min", end(least)), ("max", end(most))], meta))
    }

    /// Returns the elements of `input` in other sizes, of which one may be computed.
    fn view(&mut self, input: ValueId, sizes: &[Size]) -> Result<ValueId, Error> {
        let meta = self.meta(input)?;
        if meta.sizes == sizes {
            return Ok(input);
        }
        if sizes.iter().filter(|size| size.known().is_none()).count() > 1 {
            return Err(self.refuse("blocks of a tensor with several computed sizes"));
        }
        let list = Argument::ints(sizes.iter().map(|size| size.known().unwrap_or(-1)));
        let meta = TensorMeta::contiguous(meta.scalar_type, sizes);
        Ok(self.call("aten::view", [("self", input.into()), ("size", list)], meta))
    }

    /// A zero without dimensions.
    fn zero(&mut self, scalar_type: ScalarType) -> ValueId {
        let args =
            [("size", Argument::ints([])), ("fill_value", 0.0.into()), ("dtype", Argument::ScalarType(scalar_type))];
        self.call("aten::full", args, TensorMeta::contiguous(scalar_type, &[]))
    }

    fn blocks(&self, input: ValueId) -> Result<Blocks, Error> {
        let sizes = self.meta(input)?.sizes;
        let Some(block) = self.arg("block_size").as_ints().filter(|block| block.len() == sizes.len()) else {
            return Err(self.refuse("blocks that do not fit the tensor"));
        };
        let (mut split, mut within) = (Vec::new(), Vec::new());
        for (size, block) in sizes.iter().zip(block) {
            match size.known() {
                Some(known) if known != block && block > 1 => {
                    let count = known.checked_div(block).filter(|count| count.checked_mul(block) == Some(known));
                    let count = count.ok_or_else(|| self.refuse(format!("a size of {known} in blocks of {block}")))?;
                    split.push(Size::Known(count));
                    within.push(split.len());
                    split.push(Size::Known(block));
                }
                None if block != 1 => return Err(self.refuse(format!("a computed size in blocks of {block}"))),
                _ => {
                    if block != 1 {
                        within.push(split.len());
                    }
                    split.push(size.clone());
                }
            }
        }
        Ok(Blocks { split, within })
    }

    /// Scale and zero point with one element for each block; the zero point in the type of the scale.
    fn parameters(&mut self, blocks: &Blocks, scalar_type: ScalarType) -> Result<(ValueId, Option<ValueId>), Error> {
        let each = blocks.each();
        let scale = self.value("scale")?;
        let scale = self.cast(scale, scalar_type)?;
        let scale = self.view(scale, &each)?;
        let zero = match self.arg("zero_point").value() {
            Some(zero) if self.meta(zero)?.sizes.contains(&Size::Known(0)) => None,
            Some(zero) => {
                let zero = self.cast(zero, scalar_type)?;
                Some(self.view(zero, &each)?)
            }
            None => None,
        };
        Ok((scale, zero))
    }

    /// The range of integers that is used.
    fn range(&self, scalar_type: ScalarType) -> Result<(f64, f64), Error> {
        let whole = match scalar_type {
            ScalarType::CHAR => Some((-128.0, 127.0)),
            ScalarType::BYTE => Some((0.0, 255.0)),
            ScalarType::SHORT => Some((-32768.0, 32767.0)),
            _ => None,
        };
        let end = |name: &str, end: Option<f64>| self.number(name).or(end);
        let (least, most) =
            (end("quant_min", whole.map(|whole| whole.0)), end("quant_max", whole.map(|whole| whole.1)));
        least.zip(most).ok_or_else(|| self.refuse(format!("elements of {scalar_type} and no range")))
    }

    fn scalar_type(&self, name: &str) -> Option<ScalarType> {
        match self.arg(name) {
            Argument::ScalarType(scalar_type) => Some(scalar_type),
            _ => None,
        }
    }

    /// Lets what was made take the place of a result: the last call gives it.
    fn finish(&mut self, result: usize, value: ValueId) -> Result<(), Error> {
        let Some(Argument::Value(wanted)) = self.node.outputs.get(result).cloned() else { return Ok(()) };
        let (have, want) = (self.meta(value)?, self.meta(wanted)?);
        let hints = |meta: &TensorMeta| meta.sizes.iter().map(Size::hint).collect::<Option<Vec<_>>>();
        let differ = hints(&have).zip(hints(&want)).is_some_and(|(have, want)| have != want);
        if have.scalar_type != want.scalar_type || differ {
            let message = format!("was recorded as {} and written out as {}", want.scalar_type, have.scalar_type);
            return Err(Error::program(format!("node `{}`", self.node.name), message));
        }
        let made = self.made.iter_mut().rev().find(|node| node.result() == Some(value));
        let fresh = made.is_some_and(|node| {
            node.outputs = vec![Argument::Value(wanted)];
            true
        });
        match fresh {
            true => Ok(()),
            false => Err(self.refuse("nothing to do")),
        }
    }
}

fn dequantize(writer: &mut Writer<'_>) -> Result<(), Error> {
    let input = writer.value("input")?;
    let sizes = writer.meta(input)?.sizes;
    // Types of results are numbered as programs number them where the call names none.
    let wanted = writer.node.result().map(|id| writer.meta(id)).transpose()?;
    let scalar_type = wanted.map_or(ScalarType::FLOAT, |meta| meta.scalar_type);
    let blocks = writer.blocks(input)?;
    let (scale, zero) = writer.parameters(&blocks, scalar_type)?;
    let input = writer.view(input, &blocks.split)?;
    let mut value = writer.cast(input, scalar_type)?;
    if let Some(zero) = zero {
        value = writer.binary("aten::sub.Tensor", value, zero, &blocks.split)?;
    }
    let value = writer.binary("aten::mul.Tensor", value, scale, &blocks.split)?;
    let value = writer.view(value, &sizes)?;
    writer.finish(0, value)
}

fn quantize(writer: &mut Writer<'_>) -> Result<(), Error> {
    let input = writer.value("input")?;
    let meta = writer.meta(input)?;
    let scalar_type = writer.scalar_type("output_dtype").ok_or_else(|| writer.refuse("no element type"))?;
    let (least, most) = writer.range(scalar_type)?;
    let blocks = writer.blocks(input)?;
    let (scale, zero) = writer.parameters(&blocks, meta.scalar_type)?;
    let inverse = writer.unary("aten::reciprocal", scale)?;
    let input = writer.view(input, &blocks.split)?;
    let value = writer.binary("aten::mul.Tensor", input, inverse, &blocks.split)?;
    let mut value = writer.unary("aten::round", value)?;
    if let Some(zero) = zero {
        value = writer.binary("aten::add.Tensor", value, zero, &blocks.split)?;
    }
    let value = writer.clamp(value, Some(least), Some(most))?;
    let value = writer.view(value, &meta.sizes)?;
    let value = writer.cast(value, scalar_type)?;
    writer.finish(0, value)
}

fn choose(writer: &mut Writer<'_>) -> Result<(), Error> {
    let input = writer.value("input")?;
    let meta = writer.meta(input)?;
    let target = writer.scalar_type("target_dtype").ok_or_else(|| writer.refuse("no element type"))?;
    let (least, most) = writer.range(target)?;
    let span = most - least;
    let smallest = match meta.scalar_type {
        ScalarType::HALF => 6.103_515_625e-5,
        _ => f64::from(f32::MIN_POSITIVE),
    };
    let epsilon = writer.number("eps").unwrap_or(smallest);
    let blocks = writer.blocks(input)?;
    let each = blocks.each();
    let dims = Argument::ints(blocks.within.iter().filter_map(|dim| i64::try_from(*dim).ok()));
    let split = writer.view(input, &blocks.split)?;
    let zeros = writer.zero(meta.scalar_type);
    let mut ends = Vec::new();
    for (reduce, combine) in [("aten::amin", "aten::minimum"), ("aten::amax", "aten::maximum")] {
        let made = TensorMeta::contiguous(meta.scalar_type, &each);
        let args = [("self", split.into()), ("dim", dims.clone()), ("keepdim", true.into())];
        let end = writer.call(reduce, args, made);
        ends.push(writer.binary(combine, end, zeros, &each)?);
    }
    let [low, high] = ends.as_slice() else { return Err(writer.refuse("no ends")) };
    let Argument::Text(mapping) = writer.arg("mapping_type") else { return Err(writer.refuse("no mapping")) };
    let (scale, zero) = match mapping.as_str() {
        "ASYMMETRIC" => {
            let width = writer.binary("aten::sub.Tensor", *high, *low, &each)?;
            let scale = writer.binary("aten::div.Tensor", width, span, &each)?;
            let scale = writer.clamp(scale, Some(epsilon), None)?;
            let steps = writer.binary("aten::div.Tensor", *low, scale, &each)?;
            let steps = writer.unary("aten::round", steps)?;
            let steps = writer.unary("aten::neg", steps)?;
            let zero = writer.binary("aten::add.Tensor", steps, least, &each)?;
            (scale, writer.clamp(zero, Some(least), Some(most))?)
        }
        "SYMMETRIC" => {
            let low = writer.unary("aten::neg", *low)?;
            let reach = writer.binary("aten::maximum", low, *high, &each)?;
            let scale = writer.binary("aten::div.Tensor", reach, span / 2.0, &each)?;
            let middle = ((most + least + 1.0) / 2.0).trunc();
            let meta = writer.meta(scale)?;
            let args = [("self", scale.into()), ("fill_value", Argument::Float(middle))];
            let zero = writer.call("aten::full_like", args, meta);
            (writer.clamp(scale, Some(epsilon), None)?, zero)
        }
        other => return Err(writer.refuse(format!("mapping {other:?}"))),
    };
    for (index, value) in [scale, zero].into_iter().enumerate() {
        let Some(Argument::Value(wanted)) = writer.node.outputs.get(index).cloned() else { continue };
        let wanted = writer.meta(wanted)?;
        let value = writer.cast(value, wanted.scalar_type)?;
        let sizes = wanted.sizes.clone();
        let viewed = writer.view(value, &sizes)?;
        // Both may be needed once more, so a result is a value of its own.
        let result = match viewed == value {
            true => writer.call("aten::clone", [("self", value.into())], wanted),
            false => viewed,
        };
        writer.finish(index, result)?;
    }
    Ok(())
}

/// A product of integers of 8 bits, in 32.
fn product(writer: &mut Writer<'_>) -> Result<(), Error> {
    let (a, b) = (writer.value("self")?, writer.value("mat2")?);
    let (a, b) = (writer.cast(a, ScalarType::INT)?, writer.cast(b, ScalarType::INT)?);
    let wanted = writer.node.result().map(|id| writer.meta(id)).transpose()?;
    let wanted = wanted.ok_or_else(|| writer.refuse("no result"))?;
    let value = writer.call("aten::mm", [("self", a.into()), ("mat2", b.into())], wanted);
    writer.finish(0, value)
}
