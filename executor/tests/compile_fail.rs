//! Checks of code that the macros refuse, and of their messages. `.ci/generate` writes the expected messages.

use std::env;
use std::process::Command;

#[test]
fn refusals_say_what_and_where() {
    // The tool that compares messages has its own variable for writing them.
    if env::var_os("EDGEPACK_BLESS").is_some() && env::var_os("TRYBUILD").is_none() {
        let again = Command::new(env::current_exe().unwrap()).env("TRYBUILD", "overwrite").status().unwrap();
        assert!(again.success());
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
