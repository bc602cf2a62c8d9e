//! Every fuzz body over its seeds, the hostile files and the findings of past campaigns (`fuzz/findings/BODY/`): what was
//! found once stays found.

use std::panic::{AssertUnwindSafe, catch_unwind};

use edgepack_fuzz::{BODIES, Body, body};
use libtest_mimic::{Failed, Trial};

/// Lists a test per body.
pub fn trials() -> Vec<Trial> {
    for entry in std::fs::read_dir(edgepack_fuzz::seeds::findings_path("")).expect("the folder of findings").flatten() {
        let name = entry.file_name().into_string().expect("plain names");
        assert!(body(&name).is_some(), "{name} names no body");
    }
    BODIES.iter().map(|body| Trial::test(format!("fuzz::{}", body.name), || replay(body))).collect()
}

fn replay(body: &'static Body) -> Result<(), Failed> {
    let (seeds, files) = ((body.seeds)(), body.files());
    if seeds.is_empty() && files.is_empty() {
        return Err(Failed::from("there is nothing to start from"));
    }
    let holds = |input: &[u8]| catch_unwind(AssertUnwindSafe(|| (body.run)(input))).is_ok();
    for (index, seed) in seeds.iter().enumerate() {
        if !holds(seed) {
            return Err(Failed::from(format!("seed {index} breaks its promise")));
        }
    }
    for path in files {
        if !holds(&std::fs::read(&path).expect("a readable file")) {
            return Err(Failed::from(format!("{} breaks its promise", path.display())));
        }
    }
    Ok(())
}
