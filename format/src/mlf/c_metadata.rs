//! The table about inputs and outputs that exporters put into C: names, element types and shapes, read off the text
//! without compiling it. A text of another form says nothing.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::data_type::{Class, DataType};
use super::silent::{Silent, said};
use crate::room;

/// Inputs or outputs of a table: name, element type and shape.
pub type Listed = Vec<(String, DataType, Vec<u64>)>;

/// Reads the inputs and outputs of a C file; `None` if it has no such table.
pub fn read(source: &str) -> room::Result<Option<(Listed, Listed)>> {
    if !source.contains("struct TVMTensorInfo") {
        return Ok(None);
    }
    said(tables(source))
}

fn tables(source: &str) -> Result<(Listed, Listed), Silent> {
    let mut shapes: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let (mut inputs, mut outputs) = (None, None);
    for statement in source.split("};") {
        let Some((head, body)) = statement.split_once("= {") else { continue };
        let Some((declared, _)) = head.rsplit_once('[') else { continue };
        let name = declared.rsplit([' ', '*']).next().unwrap_or_default();
        if declared.contains("int64_t") && name.ends_with("_shape") {
            let mut sizes = Vec::new();
            for size in parts(body) {
                room::push(&mut sizes, number(size).ok_or(Silent::Form)?)?;
            }
            shapes.insert(name, sizes);
        } else if declared.contains("struct TVMTensorInfo") {
            let place = match name {
                name if name.ends_with("_inputs") => &mut inputs,
                name if name.ends_with("_outputs") => &mut outputs,
                _ => continue,
            };
            *place = Some(listed(body, &shapes)?);
        }
    }
    inputs.zip(outputs).ok_or(Silent::Form)
}

/// The parts of a list that are not empty, without comments.
fn parts(body: &str) -> impl Iterator<Item = &str> {
    let bare = |part: &'_ str| part.split("/*").next().unwrap_or_default().trim().len();
    body.split(',').filter_map(move |part| {
        // A comment stands behind what it is about, or in front of the next.
        let part = part.trim();
        let part = part.strip_prefix("/*").and_then(|inner| inner.split_once("*/")).map_or(part, |(_, behind)| behind);
        let part = part.trim_start();
        Some(part.split_at_checked(bare(part))?.0.trim()).filter(|part| !part.is_empty())
    })
}

/// A number with the suffix of its type.
fn number(text: &str) -> Option<u64> {
    text.trim_end_matches(['L', 'l', 'U', 'u']).parse().ok()
}

/// Elements `{ "name", shape, rank, {class, bits, lanes} }`.
fn listed(body: &str, shapes: &BTreeMap<&str, Vec<u64>>) -> Result<Listed, Silent> {
    let mut list = Listed::new();
    let mut rest = body;
    while let Some((_, behind)) = rest.split_once('"') {
        let (name, data_type, shape, behind) = element(behind, shapes).ok_or(Silent::Form)?;
        room::push(&mut list, (name.to_owned(), data_type, room::copy_of(shape)?))?;
        rest = behind;
    }
    Ok(list)
}

/// Name, element type and shape of the element whose name begins the text, and what follows it.
fn element<'t, 's>(
    text: &'t str,
    shapes: &'s BTreeMap<&str, Vec<u64>>,
) -> Option<(&'t str, DataType, &'s [u64], &'t str)> {
    let (name, behind) = text.split_once('"')?;
    let (fields, behind) = behind.split_once('{')?;
    let (data_type, behind) = behind.split_once('}')?;
    let mut fields = parts(fields);
    let (shape, rank) = (fields.next()?, number(fields.next()?)?);
    let shape = match rank {
        0 => &[],
        _ => shapes.get(shape)?.as_slice(),
    };
    let mut codes = parts(data_type).map(number);
    let mut code = || u8::try_from(codes.next()??).ok();
    let (class, bits, lanes) = (Class::from_code(code()?)?, code()?, code()?);
    Some((name, DataType::new(class, bits, u16::from(lanes))?, shape, behind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    const TABLE: &str = "#include <stdint.h>
        static const int64_t kMeta_inputs_0_shape[2] = {\n1L, \n3L};
        static const struct TVMTensorInfo kMeta_inputs[2] = {
        {\n\"data\" /* name*/, \nkMeta_inputs_0_shape, \n2L /* num_shape*/, \n{2, 32, 1} /* dtype*/},
        {\"n\" /* name*/, 0, 0L /* num_shape*/, {0, 64, 1} /* dtype*/}
        };
        static const struct TVMTensorInfo kMeta_outputs[0] = {\n};
        static const struct TVMTensorInfo kMeta_workspace_pools[0] = {\n};";

    #[test]
    fn tables_are_read() {
        let (inputs, outputs) = read(TABLE).unwrap().unwrap();
        let shown: Vec<_> =
            inputs.iter().map(|(name, kind, shape)| (name.as_str(), kind.to_string(), shape.clone())).collect();
        assert_eq!(shown, [("data", "float32".to_string(), vec![1, 3]), ("n", "int64".to_string(), vec![])]);
        assert!(outputs.is_empty());
    }

    #[test]
    fn other_texts_say_nothing() {
        for end in 0..TABLE.len() {
            read(&TABLE[..end]).unwrap();
        }
        for text in
            ["int x;", "struct TVMTensorInfo;", "struct TVMTensorInfo a_inputs[1] = { {\"x\", s, 1L, {2, 32, 1}} };"]
        {
            assert_eq!(read(text), Ok(None), "{text}");
        }
    }
}
