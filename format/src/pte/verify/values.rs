//! Checks of a value, kind by kind, reported in full. [`super::quick`] decides the common cases first; this module is
//! its reference.

use alloc::format;

use super::data::Data;
use super::facts::{Facts, mark};
use super::tensor;
use crate::check::{Checker, Path};
use crate::notation::ValueName;
use crate::pte::{BoolList, DoubleList, EValue, IntList, OptionalTensorList, String, TensorList};
use crate::rules::pte as rule;
use crate::wire::Table;

/// Checks structure and meaning of value `index` and returns its mark. What lists refer to is left to [`list`], which
/// needs the marks of all values.
pub(super) fn check(
    table: Table<'_>,
    input: bool,
    plan: &Facts<'_>,
    data: &Data<'_>,
    path: &Path<'_>,
    out: &mut Checker,
) -> u8 {
    out.table::<EValue<'_>>(table, path);
    let path = path.field("val");
    let at = Some(table.offset());
    let (kind, value) = match table.union(EValue::VAL.index) {
        Ok(Some(union)) => union,
        Ok(None) => {
            out.report(&rule::VALUE_KIND, &path, at, "it has none".into());
            return mark::UNCLEAR;
        }
        Err(_) => return mark::UNCLEAR,
    };
    if kind > mark::LAST_KIND {
        out.report(&rule::VALUE_KIND, &path, at, format!("kind {kind}"));
        return mark::UNCLEAR;
    }
    let Some(value) = value else {
        // The reference, too, is content with a tag when the value is None.
        if kind != mark::NULL {
            out.report(&rule::VALUE_PAYLOAD, &path, at, "its table is absent".into());
        }
        return kind;
    };
    match kind {
        mark::TENSOR => return tensor::check(&value, input, plan, data, &path, out),
        mark::BOOL => return mark::BOOL | mark::TRUTH,
        _ => {}
    }
    let content = match kind {
        mark::STRING => Some((String::STRING_VAL.index, "string_val")),
        mark::INT_LIST => Some((IntList::ITEMS.index, "items")),
        mark::DOUBLE_LIST => Some((DoubleList::ITEMS.index, "items")),
        mark::BOOL_LIST => Some((BoolList::ITEMS.index, "items")),
        mark::TENSOR_LIST => Some((TensorList::ITEMS.index, "items")),
        mark::OPTIONAL_TENSOR_LIST => Some((OptionalTensorList::ITEMS.index, "items")),
        _ => None,
    };
    if let Some((slot, name)) = content
        && !value.has(slot)
    {
        out.report(&rule::VALUE_PAYLOAD, &path.field(name), at, "it is absent".into());
    }
    kind
}

/// Checks what the list that is value `index` refers to, once all values have their marks.
pub(super) fn list(index: usize, plan: &Facts<'_>, path: &Path<'_>, out: &mut Checker) {
    let Some(Ok(Some((kind, Some(value))))) = plan.values.get(index).map(|table| table.union(EValue::VAL.index)).ok()
    else {
        return;
    };
    let path = path.field("val");
    let path = path.field("items");
    let at = Some(value.offset());
    let walk = List { index, kind, marks: &plan.marks, path: &path, at };
    match kind {
        mark::INT_LIST => {
            if let Ok(Some(items)) = value.get(IntList::ITEMS) {
                items.iter().enumerate().for_each(|(place, item)| walk.item(place, item, out));
            }
        }
        mark::TENSOR_LIST | mark::OPTIONAL_TENSOR_LIST => {
            // Both keep their items in the same slot as the same type.
            if let Ok(Some(items)) = value.get(TensorList::ITEMS) {
                items.iter().enumerate().for_each(|(place, item)| walk.item(place, i64::from(item), out));
            }
        }
        _ => {}
    }
}

struct List<'p> {
    index: usize,
    kind: u8,
    marks: &'p [u8],
    path: &'p Path<'p>,
    at: Option<u32>,
}

impl List<'_> {
    fn item(&self, place: usize, item: i64, out: &mut Checker) {
        let optional = self.kind == mark::OPTIONAL_TENSOR_LIST;
        if optional && item == -1 {
            return;
        }
        let found = usize::try_from(item).ok().and_then(|item| self.marks.get(item).map(|mark| (item, mark)));
        let Some((item, found)) = found else {
            let message = format!("{item} of {}", self.marks.len(), item = ValueName(item));
            out.report(&rule::LIST_INDEX, &self.path.index(place), self.at, message);
            return;
        };
        let kind = found & mark::KIND;
        let fits = match self.kind {
            _ if kind == mark::UNCLEAR => return,
            mark::INT_LIST => kind == mark::INT,
            mark::TENSOR_LIST => kind == mark::TENSOR,
            _ => kind == mark::TENSOR || kind == mark::NULL,
        };
        if !fits {
            let message = format!("{item} is of kind {}", mark::name(kind), item = ValueName(item));
            out.report(&rule::LIST_KIND, &self.path.index(place), self.at, message);
        } else if self.kind != mark::INT_LIST && item >= self.index {
            let message =
                format!("{item} comes after the list, which is {}", ValueName(self.index), item = ValueName(item));
            out.report(&rule::LIST_FORWARD, &self.path.index(place), self.at, message);
        }
    }
}
