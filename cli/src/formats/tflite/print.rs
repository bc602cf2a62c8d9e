//! A TensorFlow Lite model around its compiled parts, for people: what the CPU still has to do.

use std::io::{self, Write};

use edgepack_format::tflite::{ModelRef, OPERATOR};

use crate::readable::sound_rows;
use crate::spelling;
use crate::style::DIM;
use crate::units::count;

/// Prints what is around the packages of a model.
pub fn print(model: &ModelRef<'_>, out: &mut dyn Write) -> io::Result<()> {
    let row = model.model();
    let from = spelling::name(row.description.as_deref().unwrap_or("of unknown origin"));
    writeln!(out, "{DIM}version {}, {from}{DIM:#}", row.version)?;
    let codes = sound_rows(&row.operator_codes);
    let mut uses = vec![0usize; codes.len()];
    for graph in sound_rows(&row.subgraphs) {
        for operator in sound_rows(&graph.operators) {
            if let Some(uses) = uses.get_mut(operator.opcode_index as usize) {
                *uses += 1;
            }
        }
    }
    let mut rest = Vec::new();
    for (code, uses) in codes.iter().zip(&uses) {
        match code.custom_code.as_deref() {
            Some(OPERATOR) => {}
            Some(custom) => rest.push(format!("{uses}× {}", spelling::name(custom))),
            None => rest.push(format!("{uses}× builtin {}", code.code())),
        }
    }
    let rest = if rest.is_empty() { "nothing".to_owned() } else { rest.join(", ") };
    writeln!(out, "{DIM}{} compiled; left to the CPU: {rest}{DIM:#}", count(model.operators().len(), "operator"))?;
    if let Some(zip) = model.zip() {
        let names: Vec<String> = zip.members.iter().map(|member| spelling::name(&member.name)).collect();
        writeln!(out, "{DIM}an archive behind it: {}{DIM:#}", names.join(", "))?;
    }
    Ok(())
}
