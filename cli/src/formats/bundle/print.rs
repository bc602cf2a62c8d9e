//! A program with recorded runs, for people.

use std::io::{self, Write};

use super::summary::BundleSummary;
use crate::formats::pte;
use crate::style::{DIM, SHAPE, TITLE};
use crate::units::bytes;

/// Prints a bundle.
pub fn print(bundle: &BundleSummary, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{DIM}bundle version {}{DIM:#}", bundle.version)?;
    for suite in &bundle.suites {
        writeln!(out, "\n{TITLE}recorded runs of {}{TITLE:#}", suite.method)?;
        for (index, case) in suite.cases.iter().enumerate() {
            let expected = match case.outputs.len() {
                0 => format!("{DIM}nothing is expected{DIM:#}"),
                _ => format!("{SHAPE}{}{SHAPE:#}", case.outputs.join(", ")),
            };
            writeln!(out, "  {DIM}{index}{DIM:#}  ({SHAPE}{}{SHAPE:#}) -> {expected}", case.inputs.join(", "))?;
        }
    }
    match &bundle.program {
        Some(program) => {
            writeln!(out, "\n{TITLE}program inside{TITLE:#}  {}", bytes(program.bytes))?;
            pte::print(program, out)
        }
        None => writeln!(out, "\n{DIM}there is no readable program inside{DIM:#}"),
    }
}
