//! A program from its text: what is not in a method.

use edgepack_format::pte::{BackendDelegateInlineData, Buffer, DataSegment, NamedData, Program, SubsegmentOffsets};

use super::lexer::{ParseError, Token};
use super::parser::{Parser, Seen};
use super::{MAGIC, VERSION, parse_method};
use crate::edit::{Content, Layout, Package, Root, plain_name};

/// The program of a text with all bytes in it.
pub fn parse(text: &str) -> Result<Package<'static>, ParseError> {
    parse_with(text, &mut |name| Err(format!("{name:?} is in a folder that was not given")))
}

/// Parses the program of a text. `open` gives the file next to the text by its name, which leads to no other folder; an
/// error is its message.
pub fn parse_with(
    text: &str,
    open: &mut dyn FnMut(&str) -> Result<Content, String>,
) -> Result<Package<'static>, ParseError> {
    Parser::new(text, open)?.package()
}

type Result<T, E = ParseError> = std::result::Result<T, E>;

impl Parser<'_, '_> {
    fn package(&mut self) -> Result<Package<'static>> {
        self.keyword(MAGIC)?;
        let place = self.lexer.place();
        let version: i128 = self.integer()?;
        if version != VERSION {
            return Err(self.lexer.error_at(place, format!("version {version} of the text form; {VERSION} is known")));
        }
        let mut program = Program::default();
        let mut package = Package::new(Root::Program(Program::default()));
        let mut seen = Seen::default();
        loop {
            let place = self.lexer.place();
            let word = match self.lexer.take()? {
                Token::End => break,
                Token::Name(word) => word,
                other => {
                    return Err(self.lexer.error_at(place, format!("expected a part of a program, found {other}")));
                }
            };
            seen.once(self, place, word)?;
            match word {
                "version" => program.version = self.number()?,
                "layout" => package.layout = self.layout()?,
                "file" => {
                    let place = self.lexer.place();
                    let name = self.text()?;
                    plain_name(&name).map_err(|error| self.lexer.error_at(place, error.to_string()))?;
                    self.side = (self.open)(&name).map_err(|message| self.lexer.error_at(place, message))?;
                }
                "methods" => {
                    program.execution_plan = Some(self.block("method", parse_method::parse)?.into());
                }
                "constants" => program.constant_segment = Some(self.subsegments()?),
                "initial_values" => {
                    program.mutable_data_segments = Some(self.block("values", |parser| parser.subsegments())?.into());
                }
                "named_data" => {
                    let entries = self.block("entry", |parser| {
                        let key = parser.optional_text()?.map(Into::into);
                        parser.keyword("segment")?;
                        Ok(NamedData { key, segment_index: parser.number()? })
                    })?;
                    program.named_data = Some(entries.into());
                }
                "segments" => {
                    let segments = self.block("segment", |parser| {
                        parser.keyword("at")?;
                        let offset = parser.number()?;
                        parser.keyword("size")?;
                        let size = parser.number()?;
                        let content = parser.bytes()?;
                        let content = content.ok_or_else(|| parser.lexer.expected("the bytes of the segment"))?;
                        Ok((DataSegment { offset, size }, content))
                    })?;
                    let (rows, contents): (Vec<_>, Vec<_>) = segments.into_iter().unzip();
                    program.segments = Some(rows.into());
                    package.segments = contents;
                }
                "inline_constants" => {
                    let rows = self.block("data", |parser| Ok(Buffer { storage: parser.blob()? }))?;
                    program.constant_buffer = Some(rows.into());
                }
                "inline_delegates" => {
                    let rows = self.block("data", |parser| Ok(BackendDelegateInlineData { data: parser.blob()? }))?;
                    program.backend_delegate_data = Some(rows.into());
                }
                other => {
                    return Err(self.lexer.error_at(place, format!("expected a part of a program, found `{other}`")));
                }
            }
        }
        package.root = Root::Program(program);
        Ok(package)
    }

    fn layout(&mut self) -> Result<Layout> {
        self.keyword("header")?;
        let header = match self.lexer.peek() {
            Token::Name("none") => {
                self.lexer.take()?;
                None
            }
            _ => Some(self.number()?),
        };
        self.keyword("segments")?;
        let segment_alignment = self.number()?;
        self.keyword("data")?;
        Ok(Layout { header, segment_alignment, data_alignment: self.number()? })
    }

    fn subsegments(&mut self) -> Result<SubsegmentOffsets<'static>> {
        self.keyword("segment")?;
        let segment_index = self.number()?;
        Ok(SubsegmentOffsets { segment_index, offsets: self.maybe_list(Parser::number)? })
    }
}
