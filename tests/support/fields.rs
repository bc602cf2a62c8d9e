//! Fields of a schema: which there are, which a file has, and which a document tells of.

use std::collections::BTreeSet;

use edgepack_format::row::{FieldKind, TableDesc};
use edgepack_format::wire::Table;
use serde_json::Value;

/// All fields there are.
pub fn all(desc: &TableDesc, fields: &mut BTreeSet<String>) {
    for field in desc.fields {
        fields.insert(format!("{}.{}", desc.name, field.name));
        match field.kind {
            FieldKind::Table(desc) | FieldKind::Rows(desc) => all(desc, fields),
            FieldKind::Union(union) => {
                for (_, name, desc) in union.variants {
                    fields.insert(format!("{}::{name}", union.name));
                    all(desc, fields);
                }
            }
            _ => {}
        }
    }
}

/// Notes the fields that are written.
pub fn written(table: Table<'_>, desc: &TableDesc, seen: &mut BTreeSet<String>) {
    for field in desc.fields.iter().filter(|field| table.has(field.slot)) {
        seen.insert(format!("{}.{}", desc.name, field.name));
        match field.kind {
            FieldKind::Table(desc) => written(table.table(field.slot).unwrap().unwrap(), desc, seen),
            FieldKind::Rows(desc) => {
                let rows = table.tables(field.slot).unwrap().unwrap();
                rows.iter().for_each(|row| written(row.unwrap(), desc, seen));
            }
            FieldKind::Union(union) => {
                let (tag, value) = table.union(field.slot).unwrap().unwrap();
                let (_, name, desc) = union.variants.iter().find(|variant| variant.0 == tag).unwrap();
                seen.insert(format!("{}::{name}", union.name));
                written(value.unwrap(), desc, seen);
            }
            _ => {}
        }
    }
}

/// Notes the fields that a document gives with another value than the one that is not written.
pub fn told(value: &Value, desc: &TableDesc, seen: &mut BTreeSet<String>) {
    let nothing = [Value::Null, 0.into(), 0.0.into(), false.into(), "".into()];
    for field in desc.fields {
        let Some(value) = value.get(field.name).filter(|value| !nothing.contains(value)) else { continue };
        seen.insert(format!("{}.{}", desc.name, field.name));
        match field.kind {
            FieldKind::Table(desc) => told(value, desc, seen),
            FieldKind::Rows(desc) => value.as_array().into_iter().flatten().for_each(|row| told(row, desc, seen)),
            FieldKind::Union(union) => {
                for (_, name, desc) in union.variants {
                    let Some(value) = value.get(name) else { continue };
                    seen.insert(format!("{}::{name}", union.name));
                    told(value, desc, seen);
                }
            }
            _ => {}
        }
    }
}
