//! Files that are mapped because they are large: read as others, and replaced, not written into.

use std::fs;

use super::*;

/// A safetensors file of one tensor of zeros, but for the last byte.
fn tensors(bytes: usize) -> Vec<u8> {
    let head = format!(r#"{{"w":{{"dtype":"U8","shape":[{bytes}],"data_offsets":[0,{bytes}]}}}}"#);
    let mut file = (head.len() as u64).to_le_bytes().to_vec();
    file.extend(head.bytes());
    file.resize(file.len() + bytes, 0);
    *file.last_mut().expect("bytes") = 7;
    file
}

#[test]
fn large_files_are_mapped_and_read_alike() {
    let folder = Folder::new("mapped");
    folder.write("w.safetensors", tensors(17 << 20));
    done(&folder, &["convert", "w.safetensors", "w.ptd"]);
    let answer = |args: &[&str]| {
        let output = run(&folder, args);
        status(&output, 0, &args);
        output.stdout
    };
    for command in ["inspect", "verify", "size"] {
        let mapped = answer(&[command, "w.ptd"]);
        assert!(mapped == answer(&["--no-map", command, "w.ptd"]), "{command}");
    }
    for how in [&["w.ptd", "back"][..], &["--no-map", "w.ptd", "read"]] {
        done(&folder, &[&["convert"], how].concat());
    }
    assert!(folder.read("back") == folder.read("read"));
    // The file is mapped while the new one takes its place.
    let before = fs::metadata(folder.path("w.ptd")).expect("a file").len();
    let mut changed = tensors(17 << 20);
    let last = changed.len() - (1 << 10);
    changed[last..].fill(9);
    folder.write("changed.safetensors", changed);
    done(&folder, &["patch", "w.ptd", "w=changed.safetensors", "--in-place"]);
    assert_eq!(fs::metadata(folder.path("w.ptd")).expect("a file").len(), before);
    done(&folder, &["convert", "w.ptd", "patched"]);
    assert!(folder.read("patched").ends_with(&[9; 1 << 10]));
}
