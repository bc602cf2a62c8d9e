//! One recorded value against the place of the method it is for.

use alloc::format;
use alloc::string::ToString;

use super::{Tensor, Value, ValueUnion};
use crate::check::{Checker, Path};
use crate::finding::Rule;
use crate::pte::{self, KernelTypes, TensorShapeDynamism};
use crate::row::Scalars;
use crate::rules::bundle as rule;
use crate::tensor::{LayoutError, MAX_RANK, TensorLayout};
use crate::wire;

/// Side of a method that a value is on.
#[derive(Clone, Copy)]
pub(super) enum Expected {
    Input,
    Output,
}

/// Checks a value and, if the method's own is known, whether the two fit.
pub(super) fn check_value(
    table: &wire::Table<'_>,
    declared: Option<&KernelTypes<'_>>,
    side: Expected,
    path: &Path<'_>,
    out: &mut Checker,
) {
    let at = Some(table.offset());
    // A tag without a table reads as an empty one; here it is an error, so the wire is asked.
    let value = match (table.union(Value::VAL.index), table.get(Value::VAL)) {
        (Ok(Some((_, Some(_)))), Ok(Some(value))) if !matches!(value, ValueUnion::Unknown(_)) => value,
        (Ok(found), Ok(_)) => {
            let message = match found {
                None => "there is no value".to_string(),
                Some((tag, None)) => format!("tag {tag} has no table"),
                Some((tag, Some(_))) => format!("tag {tag} is of no known kind"),
            };
            return out.report(&rule::VALUE, path, at, message);
        }
        // Reported by the structural check.
        _ => return,
    };
    if let ValueUnion::Tensor(tensor) = &value {
        check_tensor(tensor, declared, path, at, out);
    } else if let Expected::Output = side {
        out.report(&rule::OUTPUT_SCALAR, path, at, format!("{} is not compared everywhere", kind(&value)));
    }
    let Some(declared) = declared else { return };
    let fits = matches!(
        (&value, declared),
        (ValueUnion::Tensor(_), KernelTypes::Tensor(_))
            | (ValueUnion::Int(_), KernelTypes::Int(_))
            | (ValueUnion::Bool(_), KernelTypes::Bool(_))
            | (ValueUnion::Double(_), KernelTypes::Double(_))
    );
    if !fits {
        let rule: &'static Rule = match side {
            Expected::Input => &rule::INPUT_KIND,
            Expected::Output => &rule::OUTPUT_KIND,
        };
        out.report(rule, path, at, format!("{} where the method has {}", kind(&value), declared_kind(declared)));
    }
}

fn kind(value: &ValueUnion<'_>) -> &'static str {
    match value {
        ValueUnion::Tensor(_) => "a tensor",
        ValueUnion::Int(_) => "an integer",
        ValueUnion::Bool(_) => "a bool",
        ValueUnion::Double(_) => "a double",
        ValueUnion::Unknown(_) => "an unknown value",
    }
}

fn declared_kind(value: &KernelTypes<'_>) -> &'static str {
    match value {
        KernelTypes::Null(_) => "nothing",
        KernelTypes::Int(_) => "an integer",
        KernelTypes::Bool(_) => "a bool",
        KernelTypes::Double(_) => "a double",
        KernelTypes::Tensor(_) => "a tensor",
        KernelTypes::String(_) => "text",
        KernelTypes::Unknown(_) => "an unknown value",
        _ => "a list",
    }
}

fn check_tensor(
    tensor: &Tensor<'_>,
    declared: Option<&KernelTypes<'_>>,
    path: &Path<'_>,
    at: Option<u32>,
    out: &mut Checker,
) {
    let (Some(sizes), Some(order), Some(data)) = (&tensor.sizes, &tensor.dim_order, &tensor.data) else {
        let which = match (&tensor.sizes, &tensor.dim_order) {
            (None, _) => "sizes",
            (_, None) => "dim_order",
            _ => "data",
        };
        return out.report(&rule::TENSOR_PARTS, path, at, format!("the tensor has no {which}"));
    };
    let layout = match sizes.len() {
        rank if rank > MAX_RANK => Err(LayoutError::Rank(rank)),
        _ => TensorLayout::from_wire(tensor.scalar_type, sizes.iter(), &order.to_le_bytes()),
    };
    let layout = match layout {
        Ok(layout) => layout,
        Err(error) => return out.report(&rule::LAYOUT, path, at, error.to_string()),
    };
    let (have, want) = (data.as_slice().len(), layout.byte_len());
    if have != want {
        let rule: &'static Rule = if have < want { &rule::DATA_SHORT } else { &rule::DATA_LONG };
        out.report(rule, path, at, format!("{have} bytes of data for a tensor of {want}"));
    }
    if let Some(KernelTypes::Tensor(declared)) = declared {
        check_against(&layout, declared, path, at, out);
    }
}

fn check_against(
    layout: &TensorLayout,
    declared: &pte::Tensor<'_>,
    path: &Path<'_>,
    at: Option<u32>,
    out: &mut Checker,
) {
    if layout.scalar_type() != declared.scalar_type {
        let message = format!("{}, the method declares {}", layout.scalar_type(), declared.scalar_type);
        out.report(&rule::DTYPE, path, at, message);
    }
    let Some(sizes) = &declared.sizes else { return };
    let same = layout.sizes().iter().map(|size| *size as i64).eq(sizes.iter().map(i64::from));
    let fits = match declared.shape_dynamism {
        TensorShapeDynamism::STATIC => same,
        // The bound is one on elements: runtimes only ever compare byte counts.
        _ => layout.sizes().len() == sizes.len() && layout.element_count() as u64 <= bound(sizes),
    };
    if !fits {
        let message = format!("sizes {:?}, the method declares {:?}", layout.sizes(), sizes);
        out.report(&rule::SHAPE, path, at, message);
    }
    if let Some(order) = declared.dim_order.as_ref().filter(|order| order.len() == layout.dim_order().len())
        && !order.iter().eq(layout.dim_order().iter().copied())
    {
        let message = format!("dim_order {:?}, the method declares {order:?}", layout.dim_order());
        out.report(&rule::DIM_ORDER, path, at, message);
    }
}

/// Elements of the largest tensor that sizes allow.
fn bound(sizes: &Scalars<'_, i32>) -> u64 {
    sizes.iter().fold(1u64, |product, size| product.saturating_mul(u64::try_from(size).unwrap_or(0)))
}
