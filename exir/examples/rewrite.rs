//! Reads an archive of an exported program, prints the program, and saves it again.
//!
//! usage: rewrite FROM.pt2 TO.pt2 [--serde]
//!
//! Code that changes the graph goes between reading and saving. `torch.export.load` reads the result; with `--serde`
//! `executorch.exir.serde` does, which knows the Edge dialect and lowered modules.

use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;

use edgepack_exir::Error;
use edgepack_exir::archive::Archive;

fn main() -> ExitCode {
    let mut paths = std::env::args().skip(1);
    let (Some(from), Some(to)) = (paths.next(), paths.next()) else {
        eprintln!("usage: rewrite FROM.pt2 TO.pt2");
        return ExitCode::from(2);
    };
    match rewrite(&from, &to, paths.next().as_deref() == Some("--serde")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{from}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn rewrite(from: &str, to: &str, serde: bool) -> Result<(), Error> {
    let program = Archive::open(from)?.program()?;
    println!("{program}");
    let out = BufWriter::new(File::create(to)?);
    if serde { program.save_serde(out) } else { program.save(out) }
}
