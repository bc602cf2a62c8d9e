//! `edgepack extract`: one raw piece of a file.

use std::path::PathBuf;

use serde::Serialize;

use crate::formats::{self, Piece};
use crate::session::Session;
use crate::status::{Failure, Status};

/// Take one raw piece out of a file
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The file
    pub file: PathBuf,

    /// Choice of the piece.
    #[command(flatten)]
    pub piece: Choice,

    /// Of the payload, only this weight: by its place in the list that `inspect --all` shows
    #[arg(long, value_name = "K", requires = "delegate")]
    pub weight: Option<usize>,

    /// File for the piece; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Choice of exactly one piece.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Choice {
    /// A segment, by index
    #[arg(long, value_name = "N")]
    pub segment: Option<u32>,

    /// A delegate's payload, by its place among the delegates of all methods
    #[arg(long, value_name = "N")]
    pub delegate: Option<usize>,

    /// Named data, by key
    #[arg(long, value_name = "KEY")]
    pub named: Option<String>,

    /// The program inside a bundle
    #[arg(long)]
    pub program: bool,

    /// An Edge TPU package inside a model, by index
    #[arg(long, value_name = "N")]
    pub package: Option<usize>,

    /// A file of a Model Library Format package, by its path in it; of an Edge TPU package a field, by its place
    #[arg(
        long,
        value_name = "PATH",
        help = "A file of a Model Library Format package, by its path in it; of an Edge TPU package a field, as \
                packages[0].executables[1].serialized_model"
    )]
    pub member: Option<String>,
}

impl Choice {
    fn piece(&self, weight: Option<usize>) -> Result<Piece<'_>, Failure> {
        let pieces = [
            self.segment.map(Piece::Segment),
            self.delegate.map(|index| weight.map_or(Piece::Delegate(index), |weight| Piece::Weight(index, weight))),
            self.named.as_deref().map(Piece::Named),
            self.program.then_some(Piece::Program),
            self.package.map(Piece::Package),
            self.member.as_deref().map(Piece::Member),
        ];
        pieces.into_iter().flatten().next().ok_or_else(|| Failure::usage("say which piece"))
    }
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Extracted<'a> {
    /// Bytes of the piece.
    bytes: usize,
    /// The file it is from.
    file: &'a str,
    /// The file that was written.
    output: String,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let (head, format) = formats::read(&args.file, session)?;
    let name = &head.file.name;
    let bytes =
        format.extract(&head, args.piece.piece(args.weight)?, session).map_err(|failure| failure.about(name))?;
    session.write_binary(&args.output, &bytes)?;
    if session.json {
        session.document(&Extracted { bytes: bytes.len(), file: name, output: args.output.display().to_string() })?;
    }
    Ok(Status::Fine)
}
