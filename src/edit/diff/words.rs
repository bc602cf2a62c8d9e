//! Values and instructions of programs in a few words, for differences.

use edgepack_format::notation::{TensorType, ValueName};
use edgepack_format::pte::notation::{Dynamism, kind};
use edgepack_format::pte::{Chain, KernelTypes, Tensor, TensorShapeDynamism};
use edgepack_format::wire::ReadError;

use super::made_up;
use super::matching::call;
use super::side::{Call, CallKind, Side, items, members, row};
use crate::edit::program::name_of;

/// Characters of a text that are shown.
const MOST: usize = 160;
/// Items of a list that are shown.
const ITEMS: usize = 12;
/// Instructions of several that are shown.
const CALLS: usize = 3;

/// A value: `f32[2, 3] weight`, `1`, `[0, 1]`.
pub(super) fn value(side: &Side<'_, '_>, index: i32) -> Result<String, ReadError> {
    let Some(found) = side.value(index)? else {
        return Ok(if index == -1 { "none".to_owned() } else { format!("{}, which is not there", ValueName(index)) });
    };
    Ok(match &found.val {
        Some(list) if members(list).is_some() => {
            let list = members(list).unwrap_or_default();
            let mut shown = Vec::new();
            for item in list.iter().take(ITEMS) {
                let inner = side.value(*item)?.and_then(|value| value.val);
                shown.push(inner.as_ref().map_or("none".to_owned(), plain));
            }
            listed(shown, list.len())
        }
        Some(other) => plain(other),
        None => "nothing".to_owned(),
    })
}

fn plain(value: &KernelTypes<'_>) -> String {
    let list = |items: &mut dyn Iterator<Item = String>| {
        let shown: Vec<String> = items.take(ITEMS).collect();
        let count = shown.len() + items.count();
        listed(shown, count)
    };
    match value {
        KernelTypes::Tensor(found) => tensor(found),
        KernelTypes::Int(int) => int.int_val.to_string(),
        KernelTypes::Bool(bool) => bool.bool_val.to_string(),
        KernelTypes::Double(double) => format!("{:?}", double.double_val),
        KernelTypes::String(text) => cut(&format!("{:?}", text.string_val.as_deref().unwrap_or_default())),
        KernelTypes::DoubleList(found) => list(&mut items(&found.items).map(|item| format!("{item:?}"))),
        KernelTypes::BoolList(found) => list(&mut items(&found.items).map(|item| item.to_string())),
        other => kind(other).to_owned(),
    }
}

fn tensor(found: &Tensor<'_>) -> String {
    let sizes: Vec<i64> = items(&found.sizes).map(i64::from).collect();
    let dim_order: Vec<u8> = items(&found.dim_order).collect();
    let mut text = TensorType { element: found.scalar_type, sizes: &sizes, dim_order: &dim_order }.to_string();
    if found.shape_dynamism != TensorShapeDynamism::STATIC {
        text = format!("{text} {}", Dynamism(found.shape_dynamism));
    }
    match name_of(found).filter(|name| !made_up(name)) {
        Some(name) => format!("{text} {}", cut(name)),
        None => text,
    }
}

fn listed(shown: Vec<String>, count: usize) -> String {
    let more = if count > shown.len() { ", …" } else { "" };
    format!("[{}{more}]", shown.join(", "))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// An operator or a kind of instruction: `aten::add.out`, `move`.
pub(super) fn operation(side: &Side<'_, '_>, kind: CallKind) -> Result<String, ReadError> {
    Ok(match kind {
        CallKind::Operator(index) => match usize::try_from(index).ok().map(|at| row(&side.plan.operators, at)) {
            Some(operator) => match operator? {
                Some(operator) => operator_name(operator.name.as_deref(), operator.overload.as_deref()),
                None => format!("operator {index}, which is not there"),
            },
            None => format!("operator {index}, which is not there"),
        },
        CallKind::Delegate(index) => match usize::try_from(index).ok().map(|at| row(&side.plan.delegates, at)) {
            Some(delegate) => match delegate? {
                Some(delegate) => format!("delegate {}", cut(delegate.id.as_deref().unwrap_or("?"))),
                None => format!("delegate {index}, which is not there"),
            },
            None => format!("delegate {index}, which is not there"),
        },
        CallKind::Move => "move".to_owned(),
        CallKind::Jump(_) => "jump if false".to_owned(),
        CallKind::Free => "free".to_owned(),
        CallKind::Unknown(Some(tag)) => format!("instruction of kind {tag}"),
        CallKind::Unknown(None) => "no instruction".to_owned(),
    })
}

/// The name of an operator with its overload.
pub(super) fn operator_name(name: Option<&str>, overload: Option<&str>) -> String {
    match overload.unwrap_or_default() {
        "" => cut(name.unwrap_or("?")),
        overload => cut(&format!("{}.{overload}", name.unwrap_or("?"))),
    }
}

/// An instruction with what it is called with.
pub(super) fn instruction(side: &Side<'_, '_>, call: &Call) -> Result<String, ReadError> {
    let mut args = Vec::new();
    for arg in call.args.iter().take(ITEMS) {
        args.push(value(side, *arg)?);
    }
    let more = if call.args.len() > ITEMS { ", …" } else { "" };
    let to = match call.kind {
        CallKind::Jump(to) => format!(" to {to}"),
        _ => String::new(),
    };
    Ok(cut(&format!("{}({}{more}){to}", operation(side, call.kind)?, args.join(", "))))
}

/// Instructions, one in full, of several the operators.
pub(super) fn instructions(side: &Side<'_, '_>, chain: &Chain<'_>, run: &[usize]) -> Result<String, ReadError> {
    match run {
        [] => Ok("absent".to_owned()),
        [one] => instruction(side, &call(chain, *one)?),
        several => {
            let mut shown = Vec::new();
            for index in several.iter().take(CALLS) {
                shown.push(operation(side, call(chain, *index)?.kind)?);
            }
            let more = match several.len() - shown.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            Ok(format!("{} instructions: {}{more}", several.len(), shown.join(", ")))
        }
    }
}
