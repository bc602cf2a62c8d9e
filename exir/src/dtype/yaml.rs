//! The language of tables: the corner of YAML that exporters write, with the line of every mistake.

use std::collections::BTreeMap;

use edgepack_format::scalar::ScalarType;

use super::{Cell, Constraint, Table, by_name};

/// The most bytes of a table: the built-in one has some hundred thousand.
const MOST: usize = 16 << 20;

/// Error in a table, with its line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct DslError {
    /// Counted from 1.
    pub line: usize,
    /// Description of the error.
    pub message: String,
}

/// Part of an item that the lines belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Keys,
    Aliases,
    Rows,
}

/// An item that is not complete yet.
#[derive(Default)]
struct Item {
    line: usize,
    func: String,
    keys: BTreeMap<String, String>,
    aliases: BTreeMap<String, Vec<ScalarType>>,
    rows: Vec<(usize, Vec<(String, String)>)>,
}

pub(super) fn parse(text: &str) -> Result<Table, DslError> {
    if text.len() > MOST {
        return Err(DslError { line: 1, message: format!("{} bytes, at most {MOST} are read", text.len()) });
    }
    let mut table = Table::default();
    let mut item: Option<Item> = None;
    let mut part = Part::Keys;
    for (line, text) in (1usize..).zip(text.lines()) {
        let error = |message: String| DslError { line, message };
        let content = text.trim_end();
        if content.trim_start().is_empty() || content.trim_start().starts_with('#') {
            continue;
        }
        let indent = content.len().saturating_sub(content.trim_start().len());
        let content = content.trim_start();
        if indent == 0 {
            let first = content.strip_prefix("- ").ok_or_else(|| error("an item begins with `- func:`".to_owned()))?;
            let (key, value) = split(first).ok_or_else(|| error(format!("`{first}` is not `key: value`")))?;
            if key != "func" {
                return Err(error(format!("an item begins with `func`, not with `{key}`")));
            }
            finish(item.take(), &mut table)?;
            item = Some(Item { line, func: value.to_owned(), ..Item::default() });
            part = Part::Keys;
            continue;
        }
        let Some(current) = &mut item else { return Err(error("there is no item yet".to_owned())) };
        let (begins, content) = match content.strip_prefix("- ") {
            Some(rest) => (true, rest),
            None => (false, content),
        };
        let (key, value) = split(content).ok_or_else(|| error(format!("`{content}` is not `key: value`")))?;
        match (key, value) {
            ("type_alias", "") if !begins => part = Part::Aliases,
            ("type_constraint", "") if !begins => part = Part::Rows,
            _ if part == Part::Rows && begins => {
                current.rows.push((line, vec![(key.to_owned(), value.to_owned())]));
            }
            _ if begins => return Err(error("a row outside `type_constraint`".to_owned())),
            _ if part == Part::Rows => {
                let row = current.rows.last_mut().ok_or_else(|| error("a row begins with `- `".to_owned()))?;
                if row.1.iter().any(|(known, _)| known == key) {
                    return Err(error(format!("`{key}` occurs twice in the row")));
                }
                row.1.push((key.to_owned(), value.to_owned()));
            }
            _ if part == Part::Aliases => {
                let list = value.strip_prefix('[').and_then(|list| list.strip_suffix(']'));
                let list = list.ok_or_else(|| error(format!("`{value}` is not a list in brackets")))?;
                let mut types = Vec::new();
                for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
                    types.push(by_name(name).ok_or_else(|| error(format!("`{name}` is not an element type")))?);
                }
                if current.aliases.insert(key.to_owned(), types).is_some() {
                    return Err(error(format!("`{key}` is said twice")));
                }
            }
            _ => {
                if !["namespace", "inherits"].contains(&key) {
                    return Err(error(format!("the key `{key}` is not known")));
                }
                current.keys.insert(key.to_owned(), value.to_owned());
            }
        }
    }
    finish(item, &mut table)?;
    Ok(table)
}

fn split(text: &str) -> Option<(&str, &str)> {
    // Names have colons in them, so the one that ends a key is followed by space or nothing.
    let at = text.find(": ").or_else(|| text.strip_suffix(':').map(str::len))?;
    let (key, rest) = text.split_at_checked(at)?;
    Some((key.trim(), rest.trim_start_matches(':').trim()))
}

fn finish(item: Option<Item>, table: &mut Table) -> Result<(), DslError> {
    let Some(item) = item else { return Ok(()) };
    let error = |line: usize, message: String| Err(DslError { line, message });
    for key in ["namespace", "inherits"] {
        if !item.keys.contains_key(key) {
            return error(item.line, format!("`{}` has no `{key}`", item.func));
        }
    }
    let names: Vec<String> = match item.rows.first() {
        Some((_, row)) => row.iter().map(|(name, _)| name.clone()).collect(),
        None => return error(item.line, format!("`{}` has no row", item.func)),
    };
    let aliases: Vec<&String> = item.aliases.keys().collect();
    let mut rows = Vec::with_capacity(item.rows.len());
    for (line, row) in &item.rows {
        if row.len() != names.len() {
            return error(*line, format!("{} names in a row, the first has {}", row.len(), names.len()));
        }
        let mut cells = Vec::with_capacity(names.len());
        for name in &names {
            let Some((_, alias)) = row.iter().find(|(known, _)| known == name) else {
                return error(*line, format!("the row has no `{name}`"));
            };
            let (Some(number), Some(set)) = (aliases.iter().position(|known| *known == alias), item.aliases.get(alias))
            else {
                return error(*line, format!("`{alias}` is not among the aliases"));
            };
            cells.push(Cell { alias: number, set: set.clone() });
        }
        rows.push(cells);
    }
    let lookup = item.keys.get("inherits").cloned().unwrap_or_default();
    if table.operators.insert(lookup, Constraint { names, rows }).is_some() {
        return error(item.line, format!("`{}` is there twice", item.func));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# a table\n- func: my::op.x\n  namespace: edge\n  inherits: my::op.x\n  type_alias:\n    \
                        T0: [Float, Double]\n    T1: [Bool]\n  type_constraint:\n  - self: T0\n    __ret_0: T1\n  \
                        - self: T1\n    __ret_0: T1\n";

    #[test]
    fn tables_are_read() {
        let table = parse(GOOD).unwrap();
        let constraint = table.constraint("my::op.x").unwrap();
        assert_eq!((constraint.rows(), constraint.names().len()), (2, 2));
        assert_eq!(constraint.allowed_types("self").len(), 3);
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn mistakes_are_named_with_their_lines() {
        for (from, to, line, message) in [
            ("- func", "- fund", 2, "`func`"),
            ("Double]", "Doubel]", 6, "`Doubel` is not an element type"),
            ("[Bool]", "Bool", 7, "is not a list"),
            ("T1: [Bool]", "T0: [Bool]", 7, "said twice"),
            ("  - self: T1\n    __ret_0: T1", "  - self: T1", 11, "1 names"),
            ("  - self: T1\n    __ret_0", "  - self: T1\n    result", 11, "no `__ret_0`"),
            ("  - self: T1\n    __ret_0: T1", "  - self: T1\n    __ret_0: T9", 11, "`T9`"),
            ("  namespace: edge\n", "", 2, "no `namespace`"),
            ("  inherits", "  inherit", 4, "`inherit`"),
            ("    T0:", "  - T0:", 6, "outside"),
        ] {
            let error = parse(&GOOD.replacen(from, to, 1)).unwrap_err();
            assert!(error.line == line && error.message.contains(message), "{from}: {error}");
        }
        assert_eq!(parse(&format!("{GOOD}{GOOD}")).unwrap_err().message, "`my::op.x` is there twice");
        assert!(parse("  x: y").is_err());
    }
}
