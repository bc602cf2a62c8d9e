//! A program, for people.

use std::io::{self, Write};

use edgepack_format::header::ProgramHeader;
use edgepack_format::pte::backends::{ADVICE, known_backend};
use edgepack_format::pte::{ExecutionPlan, Program};
use edgepack_format::row::Text;

use super::code::Code;
use super::summary::{MethodSummary, NamedSummary, ProgramSummary};
use super::tables;
use crate::setting::Setting;
use crate::style::{BAD, DIM, NAME, SHAPE, TITLE, WARN};
use crate::table::{Align, Cell, Columns};
use crate::units::{bytes, count, part_of_file};
use crate::{readable, spelling};

/// Prints a program.
pub fn print(program: &ProgramSummary, out: &mut dyn Write) -> io::Result<()> {
    let header = match program.header {
        None => "no extended header".to_owned(),
        Some(ProgramHeader { length, .. }) => format!("extended header of {length} bytes"),
    };
    let (version, flatbuffer) = (program.version, bytes(program.flatbuffer_bytes));
    writeln!(out, "{DIM}version {version}, {header}, flatbuffer {flatbuffer}{DIM:#}")?;
    let (constant, methods): (Vec<_>, Vec<_>) = program.methods.iter().partition(|one| !one.constants.is_empty());
    for method in methods {
        print_method(method, out)?;
    }
    print_metadata(&constant, &program.named_data, out)?;
    print_data(program, out)
}

/// Prints values, instructions and stack traces of every method.
pub fn print_code(program: &Program<'_>, out: &mut dyn Write) -> io::Result<()> {
    tables::plans(program).iter().try_for_each(|plan| print_method_code(plan, out))
}

fn print_method_code(plan: &ExecutionPlan<'_>, out: &mut dyn Write) -> io::Result<()> {
    let name = spelling::name(plan.name.as_deref().unwrap_or("?"));
    let code = Code::new(plan);
    writeln!(out, "\n{TITLE}values of {name}{TITLE:#}")?;
    let mut columns = Columns::new(2, &[Align::Right, Align::Left, Align::Left, Align::Left]);
    for line in code.values() {
        let what = if line.literal.is_empty() { line.kind } else { format!("{} {}", line.kind, line.literal) };
        columns.row([Cell::new(line.id, NAME), Cell::new(what, SHAPE), Cell::new(line.place, DIM)]);
    }
    columns.print(out)?;
    let chains = tables::chains(plan);
    for (index, (lines, chain)) in code.chains().zip(&chains).enumerate() {
        let which = if chains.len() > 1 { format!(", chain {index}") } else { String::new() };
        writeln!(out, "\n{TITLE}instructions of {name}{which}{TITLE:#}")?;
        let traces = readable::rows(&chain.stacktrace);
        let width = lines.len().saturating_sub(1).to_string().len();
        for (index, line) in lines.iter().enumerate() {
            writeln!(out, "  {DIM}{index:>width$}{DIM:#}  {line}")?;
            let Some(Some(trace)) = traces.get(index) else { continue };
            for frame in readable::rows(&trace.items).into_iter().flatten() {
                let text = |text: &Option<Text<'_>>| spelling::name(text.as_deref().unwrap_or("?"));
                let (file, function) = (text(&frame.filename), text(&frame.name));
                write!(out, "  {:width$}    {DIM}{file}:{} in {function}", "", frame.lineno)?;
                if let Some(context) = frame.context.as_deref().filter(|context| !context.is_empty()) {
                    write!(out, ": {}", spelling::name(context.trim()))?;
                }
                writeln!(out, "{DIM:#}")?;
            }
        }
    }
    Ok(())
}

/// A value on one line that is read at a glance; documents have all of it.
fn shortened(value: &str) -> String {
    /// Characters that are shown.
    const MOST: usize = 160;
    match value.char_indices().nth(MOST) {
        None => value.to_owned(),
        Some((end, _)) => format!("{}… {} bytes", &value[..end], value.len()),
    }
}

/// Constant methods and named metadata: what runners read first.
fn print_metadata(constant: &[&MethodSummary], named: &[NamedSummary], out: &mut dyn Write) -> io::Result<()> {
    let mut columns = Columns::new(2, &[]);
    for method in constant {
        columns.row([Cell::new(&method.name, NAME), method.constants.join(", ").into()]);
    }
    for entry in named {
        match (&entry.value, &entry.unreadable) {
            (Some(Setting(value)), _) => {
                columns.row([Cell::new(&entry.key, NAME), shortened(&value.to_string()).into()])
            }
            (None, Some(reason)) => {
                columns.row([Cell::new(&entry.key, NAME), Cell::new(format!("no setting: {reason}"), BAD)]);
            }
            (None, None) => {}
        }
    }
    if columns.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{TITLE}metadata{TITLE:#}")?;
    columns.print(out)
}

fn print_method(method: &MethodSummary, out: &mut dyn Write) -> io::Result<()> {
    let (inputs, outputs) = method.arguments();
    let name = &method.name;
    writeln!(out, "\n{TITLE}{name}{TITLE:#}({SHAPE}{inputs}{SHAPE:#}) -> {SHAPE}{outputs}{SHAPE:#}")?;
    let mut facts = Columns::new(2, &[]);
    let fact = |facts: &mut Columns, name: &str, text: String| facts.row([Cell::new(name, DIM), text.into()]);
    let memory: Vec<String> = method.planned_memory.iter().map(|&size| arena(size)).collect();
    let memory = match memory.len() {
        0 => "none".to_owned(),
        1 => memory.join(""),
        n => {
            // The sizes are what the file says, so their sum may be anything.
            let total = method.planned_memory.iter().fold(0i64, |total, &size| total.saturating_add(size));
            format!("{} in {n} memories: {}", arena(total), memory.join(", "))
        }
    };
    fact(&mut facts, "planned memory", memory);
    let total: usize = method.values.values().sum();
    let mut kinds: Vec<_> = method.values.iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(": {}", kinds.join(", ")) };
    fact(&mut facts, "values", format!("{total}{kinds}"));
    fact(&mut facts, "instructions", method.instructions.to_string());
    facts.print(out)?;
    if !method.operators.is_empty() {
        writeln!(out, "  {DIM}operators{DIM:#}")?;
        let mut columns = Columns::new(4, &[Align::Right, Align::Left]);
        for operator in &method.operators {
            columns.row([format!("{}×", operator.calls).into(), Cell::new(&operator.name, NAME)]);
        }
        columns.print(out)?;
    }
    if !method.delegates.is_empty() {
        writeln!(out, "  {DIM}delegates{DIM:#}")?;
        let mut columns = Columns::new(4, &[Align::Right, Align::Left, Align::Right, Align::Left]);
        for delegate in &method.delegates {
            let options = match delegate.options.is_empty() {
                true => delegate.place.clone(),
                false => format!("{}, options {}", delegate.place, delegate.options.join(", ")),
            };
            columns.row([
                format!("{}×", delegate.calls).into(),
                Cell::new(&delegate.backend, NAME),
                delegate.bytes.map_or("?".to_owned(), bytes).into(),
                Cell::new(options, DIM),
            ]);
        }
        columns.print(out)?;
        print_known(method, out)?;
    }
    Ok(())
}

/// Says of backends of other runtimes what they are for.
fn print_known(method: &MethodSummary, out: &mut dyn Write) -> io::Result<()> {
    let mut ids: Vec<&str> = method.delegates.iter().map(|delegate| delegate.backend.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    let known: Vec<_> = ids.into_iter().filter_map(known_backend).collect();
    for backend in &known {
        writeln!(out, "    {WARN}{} is {backend}{WARN:#}", backend.id)?;
    }
    match known.is_empty() {
        true => Ok(()),
        false => writeln!(out, "    {WARN}to run it here, {ADVICE}{WARN:#}"),
    }
}

fn arena(size: i64) -> String {
    // A negative size is a finding; here it is only shown.
    u64::try_from(size).map_or_else(|_| size.to_string(), bytes)
}

fn print_data(program: &ProgramSummary, out: &mut dyn Write) -> io::Result<()> {
    let constants = &program.constants;
    if constants.count > 0 {
        let place = match constants.segment {
            Some(segment) => format!("in segment {segment}"),
            None => "inside the flatbuffer".to_owned(),
        };
        let (number, size) = (count(constants.count, "constant"), bytes(constants.bytes));
        writeln!(out, "\n{TITLE}constants{TITLE:#}  {number}, {size} {place}")?;
    }
    if !constants.external.is_empty() {
        writeln!(out, "\n{TITLE}in data files{TITLE:#}")?;
        for name in &constants.external {
            writeln!(out, "  {NAME}{name}{NAME:#}")?;
        }
    }
    if !program.segments.is_empty() {
        writeln!(out, "\n{TITLE}segments{TITLE:#}")?;
        let mut columns = Columns::new(2, &[Align::Right, Align::Right, Align::Right, Align::Right, Align::Left]);
        columns.heading(&["", "offset", "size", "of file", "holds"]);
        for (index, segment) in program.segments.iter().enumerate() {
            let holds = match segment.holds.is_empty() {
                true if segment.bytes == 0 => Cell::new("-", DIM),
                true => Cell::new("nothing refers to it", WARN),
                false => Cell::new(segment.holds.join(", "), NAME),
            };
            columns.row([
                Cell::new(index.to_string(), DIM),
                segment.offset.map_or("?".to_owned(), |offset| format!("{offset:#x}")).into(),
                bytes(segment.bytes).into(),
                Cell::new(part_of_file(segment.offset, segment.bytes, program.bytes), DIM),
                holds,
            ]);
        }
        columns.print(out)?;
    }
    if !program.named_data.is_empty() {
        writeln!(out, "\n{TITLE}named data{TITLE:#}")?;
        let mut columns = Columns::new(2, &[Align::Left, Align::Right, Align::Left]);
        for named in &program.named_data {
            columns.row([
                Cell::new(&named.key, NAME),
                named.bytes.map_or("?".to_owned(), bytes).into(),
                Cell::new(format!("segment {}", named.segment), DIM),
            ]);
        }
        columns.print(out)?;
    }
    Ok(())
}
