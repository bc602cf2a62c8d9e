//! Tests a reader of programs with proptest: whatever program is generated, writing it again gives an equal one.
//!
//!     cargo run --example proptest

use edgepack::edit::{Opened, build, dump};
use edgepack_smith::strategy::built_programs;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    // In a test of yours this is `proptest! { fn survives(program in built_programs()) { … } }`.
    runner.run(&built_programs(), |program| {
        let failed = |error: edgepack::edit::Error| TestCaseError::fail(error.to_string());
        let file = Opened::from_bytes(program.file).map_err(failed)?;
        let before = file.package().map_err(failed)?;
        let after = build(&dump(&before).map_err(failed)?).map_err(failed)?;
        proptest::prop_assert_eq!(before.to_bytes().map_err(failed)?, after.to_bytes().map_err(failed)?);
        Ok(())
    })?;
    println!("64 programs survive JSON byte for byte");
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
