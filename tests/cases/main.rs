//! Cases that are files: one test per file found, by name. `cargo test -p edgepack-tests --test cases commands::inspect`
//! runs one; a folder without cases fails.

mod commands;
mod corpus;
mod fuzz;
mod hostile;
mod language;

use libtest_mimic::Arguments;

fn main() {
    let lists = [commands::trials(), corpus::trials(), fuzz::trials(), hostile::trials()];
    let trials = lists.into_iter().flatten().collect();
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    corpus::summary();
    conclusion.exit();
}
