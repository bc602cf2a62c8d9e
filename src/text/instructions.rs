//! Instructions as text and back.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_format::notation::ValueName;
use edgepack_format::pte::{
    BackendDelegate, DelegateCall, FreeCall, Instruction, InstructionArguments, JumpFalseCall, KernelCall, MoveCall,
    Operator,
};
use edgepack_format::row::{Rows, Scalars};

use super::lexer::{ParseError, Token};
use super::parser::Parser;
use crate::edit::Error;

/// Names of operators in a method's code: the name where it identifies one operator, else the number.
pub(super) struct Names {
    by_index: Vec<Option<String>>,
    by_name: BTreeMap<String, usize>,
}

impl Names {
    pub(super) fn new(operators: &[Operator<'_>]) -> Self {
        let mut by_name = BTreeMap::new();
        let mut by_index = Vec::new();
        for (index, operator) in operators.iter().enumerate() {
            let name = name_of(operator).filter(|name| !by_name.contains_key(name));
            if let Some(name) = &name {
                by_name.insert(name.clone(), index);
            }
            by_index.push(name);
        }
        Names { by_index, by_name }
    }
}

/// `aten::add.out`, if that is one word of the grammar.
fn name_of(operator: &Operator<'_>) -> Option<String> {
    let name = operator.name.as_deref()?;
    let full = match operator.overload.as_deref() {
        None | Some("") => name.to_owned(),
        Some(overload) => format!("{name}.{overload}"),
    };
    let word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
    };
    // With `::` it cannot be a word of the grammar itself.
    (full.contains("::") && full.split("::").all(word)).then_some(full)
}

/// The instructions that jumps go to, as far as there are such.
pub(super) fn labels(rows: &Rows<'_, Instruction<'_>>) -> Result<BTreeSet<usize>, Error> {
    let mut targets = BTreeSet::new();
    for row in rows.iter() {
        if let Some(InstructionArguments::JumpFalseCall(jump)) = row?.instr_args
            && let Some(target) = target(jump.destination_instruction, rows.len())
        {
            targets.insert(target);
        }
    }
    Ok(targets)
}

fn target(destination: i32, count: usize) -> Option<usize> {
    usize::try_from(destination).ok().filter(|target| *target <= count)
}

/// One instruction of a chain of `count`.
pub(super) fn print(row: &Instruction<'_>, names: &Names, delegates: &[BackendDelegate<'_>], count: usize) -> String {
    let arguments = |args: &Option<Scalars<'_, i32>>| match args {
        None => String::new(),
        Some(args) => {
            let items: Vec<String> = args.iter().map(|index| ValueName(index).to_string()).collect();
            format!("({})", items.join(", "))
        }
    };
    match &row.instr_args {
        None => "nothing".to_owned(),
        Some(InstructionArguments::KernelCall(call)) => {
            let known = usize::try_from(call.op_index).ok().and_then(|index| names.by_index.get(index)?.clone());
            let name = known.unwrap_or_else(|| format!("operator#{}", call.op_index));
            format!("{name}{}", arguments(&call.args))
        }
        Some(InstructionArguments::DelegateCall(call)) => {
            let found = usize::try_from(call.delegate_index).ok().and_then(|index| delegates.get(index)?.id.as_deref());
            let note = found.map(|id| format!(" // {}", id.escape_debug())).unwrap_or_default();
            format!("delegate#{}{}{note}", call.delegate_index, arguments(&call.args))
        }
        Some(InstructionArguments::MoveCall(call)) => {
            format!("move {} -> {}", ValueName(call.move_from), ValueName(call.move_to))
        }
        Some(InstructionArguments::JumpFalseCall(jump)) => {
            let destination = match target(jump.destination_instruction, count) {
                Some(target) => format!("L{target}"),
                None => format!("@{}", jump.destination_instruction),
            };
            format!("jump_if_false {} -> {destination}", ValueName(jump.cond_value_index))
        }
        Some(InstructionArguments::FreeCall(call)) => format!("free {}", ValueName(call.value_index)),
        Some(InstructionArguments::Unknown(tag)) => format!("unknown#{tag}"),
    }
}

/// The instructions of a chain, from after the opening brace to after the closing one.
pub(super) fn parse(parser: &mut Parser<'_, '_>, names: &Names) -> Result<Vec<Instruction<'static>>, ParseError> {
    let mut rows: Vec<Instruction<'static>> = Vec::new();
    let mut labels: BTreeMap<String, i32> = BTreeMap::new();
    // Jumps whose label may come later: which instruction, where the label is named.
    let mut jumps: Vec<(usize, String, usize)> = Vec::new();
    loop {
        let place = parser.lexer.place();
        match parser.lexer.take()? {
            Token::Mark('}') => break,
            Token::Label(label) => {
                let index = parser.fits(place, rows.len() as i128)?;
                if labels.insert(label.to_owned(), index).is_some() {
                    return Err(parser.lexer.error_at(place, format!("the label `{label}` is there twice")));
                }
            }
            Token::Name(name) => {
                let jump = instruction(parser, place, name, names)?;
                if let (row, Some((label, at))) = jump {
                    jumps.push((rows.len(), label, at));
                    rows.push(row);
                } else {
                    rows.push(jump.0);
                }
            }
            other => return Err(parser.lexer.error_at(place, format!("expected an instruction, found {other}"))),
        }
    }
    for (index, label, at) in jumps {
        let unknown = || parser.lexer.error_at(at, format!("there is no label `{label}` in this chain"));
        let destination = *labels.get(&label).ok_or_else(unknown)?;
        if let Some(Instruction { instr_args: Some(InstructionArguments::JumpFalseCall(jump)) }) = rows.get_mut(index) {
            jump.destination_instruction = destination;
        }
    }
    Ok(rows)
}

type Parsed = (Instruction<'static>, Option<(String, usize)>);

fn instruction(parser: &mut Parser<'_, '_>, place: usize, name: &str, names: &Names) -> Result<Parsed, ParseError> {
    let mut jump = None;
    let arguments = match name {
        "nothing" => return Ok((Instruction { instr_args: None }, None)),
        "move" => {
            let move_from = parser.value()?;
            parser.arrow()?;
            InstructionArguments::MoveCall(MoveCall { move_from, move_to: parser.value()? })
        }
        "free" => InstructionArguments::FreeCall(FreeCall { value_index: parser.value()? }),
        "jump_if_false" => {
            let cond_value_index = parser.value()?;
            parser.arrow()?;
            let at = parser.lexer.place();
            let destination_instruction = match parser.lexer.take()? {
                Token::At(index) => parser.fits(at, index)?,
                Token::Name(label) => {
                    jump = Some((label.to_owned(), at));
                    0
                }
                other => return Err(parser.lexer.error_at(at, format!("expected a label or `@N`, found {other}"))),
            };
            InstructionArguments::JumpFalseCall(JumpFalseCall { cond_value_index, destination_instruction })
        }
        "operator" => {
            let op_index = parser.hash()?;
            InstructionArguments::KernelCall(KernelCall { op_index, args: parser.arguments()? })
        }
        "delegate" => {
            let delegate_index = parser.hash()?;
            InstructionArguments::DelegateCall(DelegateCall { delegate_index, args: parser.arguments()? })
        }
        "unknown" => InstructionArguments::Unknown(parser.hash()?),
        name => {
            let unknown = || parser.lexer.error_at(place, format!("`{name}` is not an operator of this method"));
            let index = *names.by_name.get(name).ok_or_else(unknown)?;
            let op_index = parser.fits(place, index as i128)?;
            InstructionArguments::KernelCall(KernelCall { op_index, args: parser.arguments()? })
        }
    };
    Ok((Instruction { instr_args: Some(arguments) }, jump))
}
