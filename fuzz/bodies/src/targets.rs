//! The libFuzzer targets of the package around this one: one per body, each a macro call.

use std::collections::BTreeSet;
use std::path::Path;

use crate::BODIES;

/// Line of the manifest below which the test writes entries.
const MARK: &str = "# Below: written by the test `targets_are_those_of_the_bodies`.\n";

fn manifest_entry(name: &str) -> String {
    format!(
        "\n[[bin]]\nname = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\ntest = false\ndoc = false\nbench = false\n"
    )
}

#[test]
fn targets_are_those_of_the_bodies() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (manifest, folder) = (root.join("Cargo.toml"), root.join("fuzz_targets"));
    let have = std::fs::read_to_string(&manifest).expect("a manifest");
    let (written, _) = have.split_once(MARK).expect("the mark in the manifest");
    let entries: String = BODIES.iter().map(|body| manifest_entry(body.name)).collect();
    let mut files = vec![(manifest, format!("{written}{MARK}{entries}"))];
    for body in BODIES {
        let text = format!("#![no_main]\nedgepack_fuzz::target!({});\n", body.name);
        files.push((folder.join(format!("{}.rs", body.name)), text));
    }
    for (path, want) in files {
        if std::env::var_os("EDGEPACK_BLESS").is_some() {
            std::fs::create_dir_all(&folder).expect("a folder for targets");
            std::fs::write(&path, &want).expect("a file that can be written");
        }
        let have = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(have, want, "{} is stale: .ci/generate writes it again", path.display());
    }
    let names: BTreeSet<_> = BODIES.iter().map(|body| format!("{}.rs", body.name)).collect();
    for entry in std::fs::read_dir(&folder).expect("the folder of targets").flatten() {
        let name = entry.file_name().into_string().expect("plain names");
        assert!(names.contains(&name), "{name} is not the target of a body");
    }
}
