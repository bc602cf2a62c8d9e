//! Convolutions and products of matrices.

use super::elements::floats;
use super::facts::Call;
use super::op::{Conv, Input, Linear, Op, Scales};
use super::quant;
use super::reason::Reason;
use crate::graph::ValueId;

/// Recognises such a call.
pub(super) fn recognise(call: Call<'_, '_, '_>, name: &str) -> Option<Result<Op, Reason>> {
    Some(match name {
        "aten::convolution" => convolution(call),
        "aten::linear" => linear(call, "input", "weight", Some("bias"), false),
        "aten::addmm" => factors(call).and_then(|()| linear(call, "mat1", "mat2", Some("self"), true)),
        "aten::mm" => linear(call, "self", "mat2", None, true),
        "aten::bmm" => batches(call),
        "aten::_native_batch_norm_legit_no_training" => norm(call),
        _ => return None,
    })
}

/// Checks a bias: a constant number for each output channel.
fn bias(call: Call<'_, '_, '_>, name: &'static str, channels: usize) -> Result<Option<ValueId>, Reason> {
    let Some(bias) = call.optional(name)? else { return Ok(None) };
    call.facts.float(bias)?;
    if call.facts.constant(bias).is_none() {
        return Err(Reason::NotConstant("bias"));
    }
    let count: usize = call.facts.sizes(bias, "biases are constants")?.iter().product();
    match count == channels {
        true => Ok(Some(bias)),
        false => Err(Reason::Argument { argument: name, why: "it has not one number for each output channel" }),
    }
}

fn factors(call: Call<'_, '_, '_>) -> Result<(), Reason> {
    for argument in ["alpha", "beta"] {
        if call.number(argument)?.is_some_and(|factor| factor != 1.0) {
            return Err(Reason::Argument { argument, why: "nodes have no factor" });
        }
    }
    Ok(())
}

/// Checks that floats of a product are of one type, as far as they are floats.
fn same_type(
    call: Call<'_, '_, '_>,
    input: Input,
    weight: Option<ValueId>,
    bias: Option<ValueId>,
) -> Result<(), Reason> {
    let operands = [Some(input.value()).filter(|_| !matches!(input, Input::Static(_))), weight, bias];
    let operands: Vec<ValueId> = operands.into_iter().flatten().collect();
    floats(call, &operands).map(drop)
}

fn linear(
    call: Call<'_, '_, '_>,
    x: &'static str,
    weight: &'static str,
    bias_name: Option<&'static str>,
    by_input: bool,
) -> Result<Op, Reason> {
    let (facts, x, weight, result) = (call.facts, call.float(x)?, call.value(weight)?, call.result()?);
    let rank = facts.rank(x);
    if rank < 2 {
        return Err(Reason::Rank { value: facts.name(x), found: rank, want: "2 to 6" });
    }
    let filter = quant::filter(facts, weight, usize::from(by_input))?;
    let input = quant::agree(facts, x, &filter, result)?;
    let sizes = facts.sizes(filter.value, "weights are constants")?;
    let [rows, columns] = sizes.as_slice() else {
        return Err(Reason::Rank { value: facts.name(weight), found: sizes.len(), want: "2" });
    };
    if by_input && matches!(filter.scales, Scales::Group { .. }) {
        return Err(Reason::Quantised("blocks of weights are not along input channels"));
    }
    let channels = if by_input { *columns } else { *rows };
    let bias = bias_name.map(|name| bias(call, name, channels)).transpose()?.flatten();
    super::elements::made(call, x)?;
    same_type(call, input, Some(filter.value).filter(|_| filter.scales == Scales::None), bias)?;
    Ok(Op::Linear(Linear { input, filter, by_input, bias }))
}

fn batches(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let (a, b) = (call.float("self")?, call.float("mat2")?);
    floats(call, &[a, b])?;
    super::elements::made(call, a)?;
    Ok(Op::Product(a, b))
}

fn convolution(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let (facts, x, weight, result) = (call.facts, call.float("input")?, call.value("weight")?, call.result()?);
    let transposed = call.flag("transposed", false)?;
    let filter = quant::filter(facts, weight, usize::from(transposed))?;
    let input = quant::agree(facts, x, &filter, result)?;
    let sizes = facts.sizes(filter.value, "weights are constants")?;
    let flat = sizes.len() == 3;
    let sizes = match sizes.as_slice() {
        [a, b, width] => [*a, *b, 1, *width],
        [a, b, height, width] => [*a, *b, *height, *width],
        other => return Err(Reason::Rank { value: facts.name(weight), found: other.len(), want: "3 or 4" }),
    };
    if facts.rank(x) != if flat { 3 } else { 4 } {
        return Err(Reason::Rank { value: facts.name(x), found: facts.rank(x), want: "as many as the weight" });
    }
    let wrong = Reason::Argument { argument: "groups", why: "it does not divide the channels" };
    let groups =
        usize::try_from(call.int("groups", 1)?).ok().filter(|groups| *groups > 0).ok_or_else(|| wrong.clone())?;
    let [outer, inner, ..] = sizes;
    let channels = if transposed { inner.checked_mul(groups) } else { Some(outer) }.ok_or_else(|| wrong.clone())?;
    if sizes.contains(&0) || outer.checked_rem(groups) != Some(0) {
        return Err(wrong);
    }
    let pair = |name, otherwise| -> Result<[u32; 2], Reason> {
        let [height, width] = call.pair(name, otherwise)?;
        // One number is that of the only dimension.
        Ok(if flat {
            [if name == "padding" || name == "output_padding" { 0 } else { 1 }, width]
        } else {
            [height, width]
        })
    };
    let (stride, dilation) = (pair("stride", 1)?, pair("dilation", 1)?);
    if stride.contains(&0) || dilation.contains(&0) {
        return Err(Reason::Argument { argument: "stride", why: "it is 0" });
    }
    let conv = Conv {
        bias: bias(call, "bias", channels)?,
        input,
        filter,
        sizes,
        flat,
        stride,
        padding: pair("padding", 0)?,
        dilation,
        transposed,
        adjustment: pair("output_padding", 0)?,
        groups,
    };
    if conv.adjustment.iter().zip(&conv.stride).any(|(adjustment, stride)| adjustment >= stride) && transposed {
        return Err(Reason::Argument { argument: "output_padding", why: "it is not below the stride" });
    }
    let quantised = filter.scales != Scales::None;
    if quantised && transposed && groups > 1 {
        return Err(Reason::Quantised("transposed convolutions of groups are computed on floats alone"));
    }
    if matches!(filter.scales, Scales::Group { .. }) {
        return Err(Reason::Quantised("filters of convolutions have scales by channel"));
    }
    if let (Input::Dynamic(_), Scales::Channel { four_bits, .. }) = (input, filter.scales)
        && (flat || conv.is_depthwise() || transposed || four_bits)
    {
        return Err(Reason::Quantised(
            "rows are quantised at run time for dense two-dimensional convolutions of bytes",
        ));
    }
    super::elements::made(call, x)?;
    same_type(call, input, Some(filter.value).filter(|_| !quantised), conv.bias)?;
    Ok(Op::Conv(conv))
}

fn norm(call: Call<'_, '_, '_>) -> Result<Op, Reason> {
    let (facts, x) = (call.facts, call.float("input")?);
    let results = call.node.results();
    if let Some(used) = results.iter().skip(1).position(|result| !facts.is_unused(*result)) {
        return Err(Reason::Result(used.saturating_add(1)));
    }
    floats(call, &[x])?;
    let rank = facts.rank(x);
    if rank < 2 {
        return Err(Reason::Rank { value: facts.name(x), found: rank, want: "2 to 6" });
    }
    let constant = |name: &'static str| -> Result<Option<ValueId>, Reason> {
        let Some(value) = call.optional(name)? else { return Ok(None) };
        facts.float(value)?;
        facts.constant(value).map(|_| Some(value)).ok_or(Reason::NotConstant(name))
    };
    super::elements::made(call, x)?;
    Ok(Op::Norm {
        x,
        weight: constant("weight")?,
        bias: constant("bias")?,
        mean: constant("running_mean")?.ok_or(Reason::NotConstant("running_mean"))?,
        variance: constant("running_var")?.ok_or(Reason::NotConstant("running_var"))?,
        epsilon: call.number("eps")?.ok_or(Reason::Argument { argument: "eps", why: "it is missing" })?,
    })
}
