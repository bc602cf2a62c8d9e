//! Replays every fuzz body over its seeds, the hostile files and the findings of past campaigns
//! (`fuzz/findings/BODY/`): what was found once stays found.

use edgepack_fuzz::{BODIES, body};

fn replay(name: &str) {
    let body = body(name).expect("a body of this name");
    let (seeds, files) = ((body.seeds)(), body.files());
    assert!(!seeds.is_empty() || !files.is_empty(), "{name} has nothing to start from");
    for seed in &seeds {
        (body.run)(seed);
    }
    for path in files {
        // A panic in a body does not say which file it was.
        println!("{}", path.display());
        (body.run)(&std::fs::read(&path).expect("a readable file"));
    }
}

macro_rules! bodies {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn every_body_is_replayed() {
            let names: Vec<&str> = BODIES.iter().map(|body| body.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

bodies! {
    header pte run kernels operators ptd flat_data bundle trace package model options named_data compile_specs library graph params
    operator_schema differential roundtrip json builder edit text pt2 pickle exir_text xnnpack
    packed_entry
}

#[test]
fn findings_belong_to_bodies() {
    let folder = edgepack_fuzz::seeds::findings_path("");
    for entry in std::fs::read_dir(folder).expect("the folder of findings").flatten() {
        let name = entry.file_name().into_string().expect("plain names");
        assert!(body(&name).is_some(), "{name} names no body");
    }
}
