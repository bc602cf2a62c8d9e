//! Patterns of quantisation: what surrounds a call that is computed on 8-bit numbers.

use edgepack_format::scalar::ScalarType;

use super::facts::{Call, Facts};
use super::op::{Filter, Input, Op, Params, Scales};
use super::reason::Reason;
use crate::graph::{Argument, Node, ValueId};

pub(super) const QUANTIZE: &str = "quantized_decomposed::quantize_per_tensor";
const DEQUANTIZE: &str = "quantized_decomposed::dequantize_per_tensor";
const CHANNEL: &str = "quantized_decomposed::dequantize_per_channel";
const GROUP: &str = "quantized_decomposed::dequantize_per_channel_group";

/// Least number of elements in a block of 4-bit weights, and what its length is a multiple of.
const BLOCK: usize = 32;

/// Calls that choose parameters at run time, those that quantise with them, and those that go back.
const CHOOSE: [&str; 3] = [
    "quantized_decomposed::choose_qparams.tensor",
    "quantized_decomposed::choose_qparams_per_token_asymmetric",
    "torchao::choose_qparams_affine",
];
const DYNAMIC: [&str; 3] = [
    "quantized_decomposed::quantize_per_tensor.tensor",
    "quantized_decomposed::quantize_per_token",
    "torchao::quantize_affine",
];
const BACK: [&str; 3] = [
    "quantized_decomposed::dequantize_per_tensor.tensor",
    "quantized_decomposed::dequantize_per_token",
    "torchao::dequantize_affine",
];

/// Operators that stay whole until weights and rows that they quantise were looked for.
pub(super) const WHOLE: [&str; 3] =
    ["torchao::choose_qparams_affine", "torchao::quantize_affine", "torchao::dequantize_affine"];

/// Returns whether a node takes numbers back to floats: each reader is to have its own.
pub(super) fn is_dequantize(node: &Node) -> bool {
    [DEQUANTIZE, CHANNEL, GROUP].iter().chain(&BACK).any(|name| node.calls(name))
}

/// Returns whether a node quantises with parameters that are numbers.
pub(super) fn is_static_quantize(node: &Node) -> bool {
    node.calls(QUANTIZE)
}

/// Returns whether a node goes back to floats with parameters that are numbers.
pub(super) fn is_static_dequantize(node: &Node) -> bool {
    node.calls(DEQUANTIZE)
}

fn is_one_of(node: &Node, names: &[&str]) -> bool {
    names.iter().any(|name| node.calls(name))
}

fn real(node: &Node, name: &str) -> Option<f64> {
    match node.arg(name)? {
        Argument::Float(number) => Some(*number),
        Argument::Int(number) => Some(*number as f64),
        _ => None,
    }
}

fn range(node: &Node) -> Option<(i64, i64)> {
    Some((node.arg("quant_min")?.as_int()?, node.arg("quant_max")?.as_int()?))
}

/// Returns the parameters of a call that quantises a tensor or goes back, if they are those of signed bytes.
fn params(node: &Node) -> Result<Params, Reason> {
    if node.arg("dtype") != Some(&Argument::ScalarType(ScalarType::CHAR)) {
        return Err(Reason::Quantised("its numbers are not signed bytes"));
    }
    let scale = real(node, "scale").ok_or(Reason::Quantised("its scale is not a number"))?;
    let zero_point = node.arg("zero_point").and_then(Argument::as_int);
    let zero_point = zero_point.and_then(|zero| i8::try_from(zero).ok());
    let zero_point = zero_point.ok_or(Reason::Quantised("its zero point is not a byte"))?;
    match (scale as f32).is_normal() && scale > 0.0 {
        true => Ok(Params { scale, zero_point: zero_point.into() }),
        false => Err(Reason::Quantised("its scale is not above 0")),
    }
}

/// Returns the parameters of a call on activations, which use all bytes.
fn activation(node: &Node) -> Result<Params, Reason> {
    match range(node) {
        Some((-128, 127)) => params(node),
        _ => Err(Reason::Quantised("its range is not that of bytes, -128 to 127")),
    }
}

/// Returns the bytes that a float was made of, and their parameters.
pub(super) fn dequantised(facts: &Facts<'_, '_>, value: ValueId) -> Option<(ValueId, Params)> {
    let node = facts.made_by(value, DEQUANTIZE)?;
    let bytes = node.value_arg("input").filter(|bytes| facts.constant(*bytes).is_none())?;
    Some((bytes, activation(node).ok()?))
}

/// Call that quantises a result, perhaps behind a range it is held to.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Requantised {
    /// Result of the call.
    pub(super) result: ValueId,
    pub(super) params: Params,
    pub(super) bounds: Option<(f32, f32)>,
    /// Places of the nodes in between, the last that of the call itself.
    pub(super) nodes: Vec<usize>,
}

/// Returns what a result is quantised to, if nothing else is done with it.
pub(super) fn requantised(facts: &Facts<'_, '_>, value: ValueId, with_bounds: bool) -> Option<Requantised> {
    let (mut value, mut bounds, mut nodes) = (value, None, Vec::new());
    loop {
        let reader = facts.only_reader(value)?;
        let node = facts.graph.nodes.get(reader)?;
        nodes.push(reader);
        if node.calls(QUANTIZE) {
            let params = activation(node).ok()?;
            return Some(Requantised { result: node.result()?, params, bounds, nodes });
        }
        if !with_bounds || bounds.is_some() {
            return None;
        }
        let Ok(Op::Clamp(_, least, most)) = super::elements::clamp(Call { facts, node }) else { return None };
        (value, bounds) = (node.result()?, Some((least, most)));
    }
}

/// Checks that bytes meet floats of single precision.
fn single(facts: &Facts<'_, '_>, value: ValueId) -> Result<(), Reason> {
    match facts.float(value)? {
        ScalarType::FLOAT => Ok(()),
        found => Err(Reason::Type { value: facts.name(value), found, want: "f32" }),
    }
}

/// Recognises calls that quantise and go back.
pub(super) fn recognise(call: Call<'_, '_, '_>, readers: &impl Fn(ValueId) -> Readers) -> Option<Result<Op, Reason>> {
    let (facts, node) = (call.facts, call.node);
    if node.calls(QUANTIZE) {
        return Some(
            call.float("input").and_then(|x| single(facts, x).and_then(|()| Ok(Op::Quantize(x, activation(node)?)))),
        );
    }
    let stored = node.value_arg("input").is_some_and(|bytes| facts.constant(bytes).is_some());
    if node.calls(DEQUANTIZE) && !stored {
        let back = || {
            let (bytes, result) = (call.value("input")?, call.result()?);
            let params = activation(node)?;
            single(facts, result)?;
            facts.shape(bytes)?;
            let agrees = |other: usize| {
                facts
                    .graph
                    .nodes
                    .get(other)
                    .is_none_or(|other| !other.calls(DEQUANTIZE) || activation(other) == Ok(params))
            };
            let maker = facts.made_by(bytes, QUANTIZE).map(activation);
            if maker.is_some_and(|maker| maker != Ok(params))
                || !facts.readers(bytes).iter().all(|other| agrees(*other))
            {
                return Err(Reason::Quantised("bytes are read with parameters that are not those they were made with"));
            }
            Ok(Op::Dequantize(bytes, params))
        };
        return Some(back());
    }
    let weights = is_dequantize(node) && (stored || is_one_of(node, &[CHANNEL, GROUP]));
    if weights || is_one_of(node, &CHOOSE) || is_one_of(node, &DYNAMIC) || is_one_of(node, &BACK) {
        let inside = node.results().into_iter().all(|result| match readers(result) {
            Readers::Take => true,
            Readers::None => is_one_of(node, &CHOOSE),
            Readers::Leave => false,
        });
        return Some(match inside {
            true => Ok(Op::Inside),
            false => Err(Reason::Quantised("what reads it does not compute on quantised numbers")),
        });
    }
    None
}

/// Kind of the readers of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Readers {
    /// There are none.
    None,
    /// All are products or convolutions that quantise by themselves, or parts of such patterns.
    Take,
    /// One is something else.
    Leave,
}

/// First operand of a product: how it is quantised.
pub(super) fn input(facts: &Facts<'_, '_>, value: ValueId) -> Input {
    if let Some((bytes, _)) = dequantised(facts, value) {
        return Input::Static(bytes);
    }
    match dynamic(facts, value) {
        Some(x) => Input::Dynamic(x),
        None => Input::Float(value),
    }
}

/// Returns what was quantised at run time and taken back, if parameters were chosen of the same tensor.
fn dynamic(facts: &Facts<'_, '_>, value: ValueId) -> Option<ValueId> {
    let node = |value| facts.graph.nodes.get(facts.maker(value)?);
    let back = node(value).filter(|node| is_one_of(node, &BACK))?;
    let family = BACK.iter().position(|name| back.calls(name))?;
    let operands = |node: &Node| {
        let arg = |names: [&str; 2]| names.iter().find_map(|name| node.value_arg(name));
        Some((arg(["input", "input"])?, arg(["scale", "scales"])?, arg(["zero_point", "zero_points"])?))
    };
    let (bytes, scale, zero_point) = operands(back)?;
    let quantize = node(bytes).filter(|node| DYNAMIC.get(family).is_some_and(|name| node.calls(name)))?;
    let (x, own_scale, own_zero_point) = operands(quantize)?;
    let choose = node(scale).filter(|node| CHOOSE.get(family).is_some_and(|name| node.calls(name)))?;
    let chosen = choose.results();
    let same = (scale, zero_point) == (own_scale, own_zero_point) && chosen.as_slice() == [scale, zero_point];
    let of = choose.value_arg("input") == Some(x);
    (same && of && is_byte_range(choose) && is_byte_range(quantize) && is_whole_rows(facts, choose, x)).then_some(x)
}

/// Returns whether numbers are bytes as far as the call says a range.
fn is_byte_range(node: &Node) -> bool {
    node.arg("quant_min").is_none_or(|least| *least == Argument::Int(-128))
        && node.arg("quant_max").is_none_or(|most| *most == Argument::Int(127))
}

/// Returns whether parameters belong to rows, or to the whole tensor, and are not symmetric.
fn is_whole_rows(facts: &Facts<'_, '_>, choose: &Node, x: ValueId) -> bool {
    let symmetric = choose.arg("mapping_type").is_some_and(|kind| *kind != Argument::Text("ASYMMETRIC".to_owned()));
    let Some(block) = choose.arg("block_size").map(Argument::items) else { return !symmetric };
    let Some(meta) = facts.graph.tensor(x) else { return false };
    let (Some((last, leading)), Some(row)) = (block.split_last(), meta.sizes.last().and_then(|size| size.known()))
    else {
        return false;
    };
    !symmetric
        && block.len() == meta.rank()
        && last.as_int() == Some(row)
        && leading.iter().all(|one| one.as_int() == Some(1))
}

/// Filter of a product or convolution, which has its output channels along `axis`.
pub(super) fn filter(facts: &Facts<'_, '_>, value: ValueId, axis: usize) -> Result<Filter, Reason> {
    if facts.constant(value).is_some() {
        facts.float(value)?;
        return Ok(Filter { value, scales: Scales::None });
    }
    let missing = Reason::NotConstant("weight");
    let node = facts.maker(value).and_then(|maker| facts.graph.nodes.get(maker)).ok_or_else(|| missing.clone())?;
    let bytes = node.value_arg("input").filter(|bytes| is_dequantize(node) && facts.constant(*bytes).is_some());
    let bytes = bytes.ok_or(missing)?;
    if facts.only_reader(value).is_none() {
        return Err(Reason::Quantised("weights are read more than once"));
    }
    if facts.tensor(bytes)?.scalar_type != ScalarType::CHAR {
        return Err(Reason::Quantised("weights are not signed bytes"));
    }
    let (least, most) = range(node).unwrap_or((-128, 127));
    let four_bits = least >= -8 && most <= 7;
    if node.calls(DEQUANTIZE) {
        let params = params(node)?;
        return match params.zero_point {
            0 => Ok(Filter { value: bytes, scales: Scales::Tensor(params.scale) }),
            _ => Err(Reason::Quantised("weights have a zero point other than 0")),
        };
    }
    let named = |name: [&str; 2]| name.iter().find_map(|name| node.value_arg(name));
    let scales = named(["scale", "scales"]).filter(|scales| facts.constant(*scales).is_some());
    let scales = scales.ok_or(Reason::NotConstant("scales of the weight"))?;
    if facts.tensor(scales)?.scalar_type != ScalarType::FLOAT {
        return Err(Reason::Quantised("scales of weights are not of single precision"));
    }
    let zeros = named(["zero_point", "zero_points"]);
    if !zeros.is_none_or(|zeros| super::weights::is_zero(facts, zeros)) {
        return Err(Reason::Quantised("weights have zero points other than 0"));
    }
    let sizes = facts.sizes(bytes, "weights are constants")?;
    let count: usize = facts.sizes(scales, "scales are constants")?.iter().product();
    let (channels, row) = (sizes.get(axis).copied().unwrap_or(0), sizes.last().copied().unwrap_or(0));
    let group = match (node.calls(CHANNEL), node.calls(GROUP)) {
        (true, _) => {
            let along = node.arg("axis").and_then(Argument::as_int);
            let along = along.and_then(|along| super::facts::dim(along, sizes.len()));
            if along != Some(axis) {
                return Err(Reason::Quantised("scales of weights are not those of output channels"));
            }
            None
        }
        (_, true) => node.arg("group_size").and_then(Argument::as_int).and_then(|size| usize::try_from(size).ok()),
        _ => {
            let block = node.arg("block_size").and_then(Argument::as_ints).unwrap_or_default();
            match block.as_slice() {
                [1, size] if sizes.len() == 2 => usize::try_from(*size).ok(),
                _ => return Err(Reason::Quantised("blocks of weights are not parts of rows")),
            }
        }
    };
    match group.filter(|size| *size != row) {
        None if count == channels => Ok(Filter { value: bytes, scales: Scales::Channel { scales, four_bits } }),
        None => Err(Reason::Quantised("there is not one scale for each output channel")),
        Some(_) if !four_bits => Err(Reason::Quantised("weights with scales by block are not of four bits")),
        Some(size) if size == 0 || size % BLOCK != 0 || row.checked_rem(size) != Some(0) => {
            Err(Reason::Quantised("blocks of weights are not of 32 elements or a multiple of that, or cut a row"))
        }
        Some(size) if Some(count) == row.checked_div(size).and_then(|blocks| blocks.checked_mul(channels)) => {
            Ok(Filter { value: bytes, scales: Scales::Group { scales, size } })
        }
        Some(_) => Err(Reason::Quantised("there is not one scale for each block of weights")),
    }
}

/// Says whether a product or convolution with this operand and filter can be computed, and how it reads the operand.
pub(super) fn agree(facts: &Facts<'_, '_>, x: ValueId, filter: &Filter, result: ValueId) -> Result<Input, Reason> {
    match (input(facts, x), filter.scales) {
        (_, Scales::None) => Ok(Input::Float(x)),
        // Weights of four bits are bytes here.
        (Input::Static(bytes), Scales::Tensor(_) | Scales::Channel { .. }) => match requantised(facts, result, true) {
            Some(_) => Ok(Input::Static(bytes)),
            None => Err(Reason::Quantised("its operands are of 8 bits and its result is not quantised")),
        },
        (Input::Dynamic(x), Scales::Channel { .. } | Scales::Group { .. }) => match facts.float(x)? {
            ScalarType::FLOAT => Ok(Input::Dynamic(x)),
            _ => Err(Reason::Quantised("rows that are quantised at run time are of half precision")),
        },
        (Input::Dynamic(_), Scales::Tensor(_)) => {
            Err(Reason::Quantised("rows are quantised at run time and weights have one scale for all channels"))
        }
        (Input::Static(_), Scales::Group { .. }) => {
            Err(Reason::Quantised("weights have scales by block, which needs rows that are quantised at run time"))
        }
        (Input::Float(_), _) => Err(Reason::Quantised("weights are quantised and the other operand is not")),
    }
}
