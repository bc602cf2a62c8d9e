//! A method from its text.

use edgepack_format::notation::ValueName;
use edgepack_format::pte::{
    BackendDelegate, BackendDelegateDataReference, Chain, CompileSpec, ContainerMetadata, DataLocation, DeviceType,
    ExecutionPlan, Frame, FrameList, NonConstBufferDevice, Operator,
};

use super::instructions::{self, Names};
use super::lexer::{ParseError, Token};
use super::parser::{Parser, Seen};
use super::values;

type Result<T> = std::result::Result<T, ParseError>;

/// A method after its keyword.
pub(super) fn parse(parser: &mut Parser<'_, '_>) -> Result<ExecutionPlan<'static>> {
    let mut plan = ExecutionPlan { name: parser.optional_text()?.map(Into::into), ..ExecutionPlan::default() };
    let mut names = Names::new(&[]);
    let mut seen = Seen::default();
    parser.mark('{')?;
    while *parser.lexer.peek() != Token::Mark('}') {
        let place = parser.lexer.place();
        let word = parser.name("a part of a method or `}`")?;
        seen.once(parser, place, word)?;
        match word {
            "trees" => {
                let encoded_inp_str = parser.optional_text()?.map(Into::into);
                parser.arrow()?;
                let encoded_out_str = parser.optional_text()?.map(Into::into);
                plan.container_meta_type = Some(ContainerMetadata { encoded_inp_str, encoded_out_str });
            }
            "memory" => plan.non_const_buffer_sizes = Some(parser.list(Parser::number)?.into()),
            "devices" => plan.non_const_buffer_device = Some(parser.block("memory", device)?.into()),
            "operators" => {
                let operators = parser.block("operator", operator)?;
                names = Names::new(&operators);
                plan.operators = Some(operators.into());
            }
            "delegates" => plan.delegates = Some(parser.block("delegate", delegate)?.into()),
            "values" => plan.values = Some(values_of(parser)?.into()),
            "inputs" => plan.inputs = Some(parser.list(Parser::value)?.into()),
            "outputs" => plan.outputs = Some(parser.list(Parser::value)?.into()),
            "chains" => plan.chains = Some(parser.block("chain", |parser| chain(parser, &names))?.into()),
            other => {
                let message = format!("expected a part of a method or `}}`, found `{other}`");
                return Err(parser.lexer.error_at(place, message));
            }
        }
    }
    parser.mark('}')?;
    Ok(plan)
}

fn device(parser: &mut Parser<'_, '_>) -> Result<NonConstBufferDevice> {
    let buffer_idx = parser.number()?;
    parser.keyword("on")?;
    let device_type = DeviceType(parser.named(|name| DeviceType::from_name(name).map(|kind| kind.0))?);
    Ok(NonConstBufferDevice { buffer_idx, device_type, device_index: parser.number()? })
}

fn operator(parser: &mut Parser<'_, '_>) -> Result<Operator<'static>> {
    let name = parser.optional_text()?.map(Into::into);
    let overload = match parser.lexer.peek() {
        Token::Text(_) => Some(parser.text()?.into()),
        _ => None,
    };
    Ok(Operator { name, overload })
}

fn delegate(parser: &mut Parser<'_, '_>) -> Result<BackendDelegate<'static>> {
    let mut row = BackendDelegate { id: parser.optional_text()?.map(Into::into), ..BackendDelegate::default() };
    if *parser.lexer.peek() == Token::Name("data") {
        parser.lexer.take()?;
        let known = |name: &str| match name {
            "inline" => Some(DataLocation::INLINE.0),
            "segment" => Some(DataLocation::SEGMENT.0),
            _ => None,
        };
        let location = DataLocation(parser.named(known)?);
        row.processed = Some(BackendDelegateDataReference { location, index: parser.number()? });
    }
    if *parser.lexer.peek() == Token::Mark('{') {
        let specs = parser.block("option", |parser| {
            let key = parser.optional_text()?.map(Into::into);
            Ok(CompileSpec { key, value: parser.small_bytes()? })
        })?;
        row.compile_specs = Some(specs.into());
    }
    Ok(row)
}

fn values_of(parser: &mut Parser<'_, '_>) -> Result<Vec<edgepack_format::pte::EValue<'static>>> {
    parser.mark('{')?;
    let mut list = Vec::new();
    while *parser.lexer.peek() != Token::Mark('}') {
        let place = parser.lexer.place();
        let number: i128 = parser.value()?;
        if number != list.len() as i128 {
            let message = format!(
                "expected `{}`, found `{}`: values are numbered in order",
                ValueName(list.len()),
                ValueName(number)
            );
            return Err(parser.lexer.error_at(place, message));
        }
        parser.mark('=')?;
        list.push(values::parse(parser)?);
    }
    parser.mark('}')?;
    Ok(list)
}

fn chain(parser: &mut Parser<'_, '_>, names: &Names) -> Result<Chain<'static>> {
    let mut row = Chain::default();
    let mut seen = Seen::default();
    parser.mark('{')?;
    while *parser.lexer.peek() != Token::Mark('}') {
        let place = parser.lexer.place();
        let word = parser.name("a part of a chain or `}`")?;
        seen.once(parser, place, word)?;
        match word {
            "inputs" => row.inputs = Some(parser.list(Parser::value)?.into()),
            "outputs" => row.outputs = Some(parser.list(Parser::value)?.into()),
            "code" => {
                parser.mark('{')?;
                row.instructions = Some(instructions::parse(parser, names)?.into());
            }
            "stack" => row.stacktrace = Some(parser.block("frames", frames)?.into()),
            other => {
                let message = format!("expected a part of a chain or `}}`, found `{other}`");
                return Err(parser.lexer.error_at(place, message));
            }
        }
    }
    parser.mark('}')?;
    Ok(row)
}

fn frames(parser: &mut Parser<'_, '_>) -> Result<FrameList<'static>> {
    if *parser.lexer.peek() != Token::Mark('{') {
        return Ok(FrameList { items: None });
    }
    let frames = parser.block("frame", |parser| {
        let filename = parser.optional_text()?.map(Into::into);
        let lineno = parser.number()?;
        parser.keyword("in")?;
        let name = parser.optional_text()?.map(Into::into);
        Ok(Frame { filename, lineno, name, context: parser.optional_text()?.map(Into::into) })
    })?;
    Ok(FrameList { items: Some(frames.into()) })
}
