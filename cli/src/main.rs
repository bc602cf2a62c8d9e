//! The `edgepack` command. Everything it does is in the library, so that tests run it without a process.

use std::process::ExitCode;

use edgepack_cli::Io;

fn main() -> ExitCode {
    edgepack_cli::interrupt::install();
    edgepack_cli::run(std::env::args_os(), Io::standard()).into()
}
