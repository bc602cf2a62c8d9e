//! The `edgepack` command. Everything it does is in the library, so that tests run it without a process.

use std::process::ExitCode;

use edgepack_cli::{HELPER, Io};

fn main() -> ExitCode {
    // Before anything else has a descriptor: the code that this runs inherits none.
    if std::env::args_os().nth(1).is_some_and(|first| first == HELPER) {
        return edgepack_cli::serve_native_code().into();
    }
    edgepack_cli::interrupt::install();
    let io = Io { helper: std::env::current_exe().ok(), ..Io::standard() };
    edgepack_cli::run(std::env::args_os(), io).into()
}
