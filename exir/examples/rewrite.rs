//! Reads an archive of `torch.export.save`, prints its program, and saves it again.
//!
//! usage: rewrite FROM.pt2 TO.pt2
//!
//! What stands between reading and saving is the place for changes to the graph. `torch.export.load` reads the result.

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
    match rewrite(&from, &to) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{from}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn rewrite(from: &str, to: &str) -> Result<(), Error> {
    let program = Archive::open(from)?.program()?;
    println!("{program}");
    program.save(BufWriter::new(File::create(to)?))
}
