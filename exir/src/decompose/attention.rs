//! Attention as two products with a softmax between them.

use edgepack_format::scalar::ScalarType;

use super::maker::Maker;
use super::products::matmul;
use super::{Answer, Composite, Rule, one};
use crate::graph::{Argument, Size};

pub(super) fn find(name: &str) -> Option<Rule> {
    Some(match name {
        "scaled_dot_product_attention" => attention,
        _ => return None,
    })
}

fn attention(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (query, mut key, mut value) = (node.value("query")?, node.value("key")?, node.value("value")?);
    if node.number("dropout_p").is_some_and(|p| p != 0.0) {
        return Err(node.wrong("dropout_p"));
    }
    let meta = make.meta(query)?;
    let scalar_type = meta.scalar_type;
    if node.flag("enable_gqa") {
        let times = make.known_size(query, -3)?.checked_div(make.known_size(key, -3)?).unwrap_or(1);
        for tensor in [&mut key, &mut value] {
            *tensor = repeat_heads(make, *tensor, times)?;
        }
    }
    let scale = match node.number("scale") {
        Some(scale) => scale,
        None => 1.0 / (make.known_size(query, -1)? as f64).sqrt(),
    };
    // Both sides are scaled, so that neither product grows large.
    let root = scale.abs().sqrt();
    let query = make.binary("mul.Tensor", query, if scale < 0.0 { -root } else { root })?;
    let key = make.transpose(key, -2, -1)?;
    let key = make.binary("mul.Tensor", key, root)?;
    let mut scores = matmul(make, query, key)?;
    let mut mask = None;
    if node.flag("is_causal") {
        let (rows, columns) = (make.size(scores, -2)?, make.size(scores, -1)?);
        let (row, column) = (make.count(&rows)?, make.count(&columns)?);
        let row = make.unsqueeze(row, 1)?;
        mask = Some(make.binary("le.Tensor", column, row)?);
    } else if let Some(given) = node.arg("attn_mask").value() {
        mask = Some(given);
    }
    let masked = mask.is_some();
    if let Some(mask) = mask {
        let mask = match make.meta(mask)?.scalar_type {
            ScalarType::BOOL => {
                let zero = make.scalar(Argument::Float(0.0), scalar_type)?;
                let never = make.scalar(Argument::Float(f64::NEG_INFINITY), scalar_type)?;
                make.choose(mask, zero, never)?
            }
            _ => mask,
        };
        scores = make.binary("add.Tensor", scores, mask)?;
    }
    let args = [("self", scores.into()), ("dim", Argument::Int(-1)), ("half_to_float", false.into())];
    let mut weights = make.call("_softmax", args)?;
    if masked {
        // A row that may look at nothing gives nothing, where a softmax alone would give no number.
        let never = make.binary("eq.Scalar", scores, f64::NEG_INFINITY)?;
        let may = make.unary("logical_not", never)?;
        let args = [("self", may.into()), ("dim", Argument::Int(-1)), ("keepdim", true.into())];
        let any = make.call("any.dim", args)?;
        let zero = make.scalar(Argument::Float(0.0), scalar_type)?;
        weights = make.choose(any, weights, zero)?;
    }
    one(matmul(make, weights, value)?)
}

/// Each head several times, one after the other.
fn repeat_heads(
    make: &mut Maker<'_>,
    tensor: crate::graph::ValueId,
    times: i64,
) -> Result<crate::graph::ValueId, crate::error::Error> {
    if times == 1 {
        return Ok(tensor);
    }
    let sizes = make.sizes(tensor)?;
    let at = sizes.len().saturating_sub(2);
    let apart = make.unsqueeze(tensor, i64::try_from(at).unwrap_or(0))?;
    let mut repeated = sizes.clone();
    repeated.insert(at, Size::Known(times));
    let apart = make.expand(apart, &repeated)?;
    let mut joined = sizes;
    if let Some(heads) = joined.get_mut(at.saturating_sub(1)) {
        *heads = heads.times(&Size::Known(times));
    }
    let args =
        [("self", apart.into()), ("memory_format", Argument::MemoryFormat(crate::graph::MemoryFormat::Contiguous))];
    let apart = make.call("clone", args)?;
    make.view(apart, &joined)
}
