//! Cases that are files: one test per file found, by name. `cargo test -p edgepack-tests --test cases commands::inspect`
//! runs one; a folder without cases fails.

mod commands;
mod corpus;
mod fuzz;
mod hostile;
mod language;

use libtest_mimic::Arguments;

fn main() {
    // This program runs the code of packages, too, for the tests that want a process for it.
    #[cfg(unix)]
    if std::env::args_os().nth(1).is_some_and(|first| first == edgepack_tests::mlf::HELPER) {
        std::process::exit(edgepack_cli::serve_native_code().code().into());
    }
    let lists = [commands::trials(), corpus::trials(), fuzz::trials(), hostile::trials()];
    let trials = lists.into_iter().flatten().collect();
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    corpus::summary();
    conclusion.exit();
}
