//! `edgepack mutate`: variants of a file, most of them broken.

use std::path::{Path, PathBuf};

use edgepack_format::detect;
use edgepack_smith::Rng;
use edgepack_smith::mutate;

use crate::formats;
use crate::outputs::is_stream;
use crate::progress::Unit;
use crate::session::Session;
use crate::status::{Failure, Status};

/// Change a file in places that matter: numbers, offsets, lengths, vtables, union tags, whole rows, or the document of an
/// archive
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The file
    pub file: PathBuf,

    /// Seed of the choice of places; an equal seed makes an equal variant
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Number of variants; of several, variant K goes to OUT with K in front of its extension
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,

    /// File for the variant; - is standard output
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    if args.count > 1 && is_stream(&args.output) {
        let output = args.output.display();
        return Err(Failure::usage(format!("{output}: several variants are several files, and this is none")));
    }
    let (bytes, mut rng) = (session.read_filled(&args.file)?, Rng::new(args.seed));
    let changing = session.progress.counted("mutating", args.count.into(), Unit::Pieces);
    for number in 0..args.count {
        changing.advance(1);
        let path = if args.count == 1 { args.output.clone() } else { numbered(&args.output, number) };
        let variant = match formats::of(detect(&bytes)) {
            Some(format) => format.variant(&bytes, &mut rng),
            None => mutate::variant(&bytes, &mut rng),
        };
        session.stage(&path, |out| Ok(out.write_all(&variant)?))?;
    }
    session.outputs.commit()?;
    Ok(Status::Fine)
}

/// `out.pte` as `out.3.pte`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let extension = path.extension().map(|extension| extension.to_string_lossy().into_owned());
    path.with_extension(extension.map_or_else(|| number.to_string(), |extension| format!("{number}.{extension}")))
}
