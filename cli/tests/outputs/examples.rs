//! Every example of the help texts, run by a shell in a folder of files that have the names it uses.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Folder, done, env};

/// Names of the examples' files, and those of the corpus that stand for them.
const FILES: [(&str, &str); 24] = [
    ("model.pte", "models/classifier_portable.pte"),
    ("same.pte", "models/classifier_portable.pte"),
    ("cases.safetensors", "models/classifier_portable.safetensors"),
    ("photo.jpg", "inputs/picture.jpg"),
    ("labels.txt", "inputs/classes.txt"),
    ("program.pte", "models/external_portable.pte"),
    ("weights.ptd", "models/external_portable._default_external_constant.ptd"),
    ("copied.ptd", "models/external_portable._default_external_constant.ptd"),
    ("other.ptd", "data/tensors.ptd"),
    ("tensors.safetensors", "data/tensors.safetensors"),
    ("delegated.pte", "models/mlp_xnnpack.pte"),
    ("delegated.safetensors", "models/mlp_xnnpack.safetensors"),
    ("bundle.bpte", "bundled/mlp_two_cases.bpte"),
    ("model.pt2", "pt2/add/model.pt2"),
    ("other.pt2", "pt2/cond/model.pt2"),
    ("linear.pt2", "xnnpack_lowering/half.pt2"),
    ("left_edgetpu.tflite", "edgetpu/left.tflite"),
    ("right_edgetpu.tflite", "edgetpu/right.tflite"),
    ("story.pte", "llm_demo/story.pte"),
    ("tokenizer.json", "llm_demo/tokenizer.json"),
    ("tokenizer_config.json", "llm_demo/tokenizer_config.json"),
    ("questions.txt", "llm_demo/questions.txt"),
    ("text.txt", "llm_demo/sample.txt"),
    ("device.bin", "edgetpu/alone.dwn"),
];

#[test]
fn examples_of_the_help_work() {
    let folder = Folder::new("examples");
    for (name, file) in FILES {
        folder.take(file, name);
    }
    // The output `y` of the model has this many bytes on the device.
    let device = folder.read("device.bin");
    folder.write("device.bin", &device[..40]);
    let text = folder.read("text.txt");
    folder.write("text.txt", &text[..200]);
    done(&folder, &["dump", "model.pte", "-o", "dumped.json"]);
    done(&folder, &["print", "model.pte", "-o", "printed.txt"]);
    done(&folder, &["extract", "weights.ptd", "--named", "net.0.bias", "-o", "bias.bin"]);
    folder.write("bias.npy", numpy(&folder.read("bias.bin")));
    let manifest = super::run(&folder, &["digest", "--parts", "model.pte", "weights.ptd"]);
    folder.write("manifest", manifest.stdout);
    folder.write("bad.pte", &folder.read("model.pte")[..600]);

    let binary = Path::new(env!("CARGO_BIN_EXE_edgepack")).parent().expect("its folder").to_owned();
    let path = env::join_paths(std::iter::once(binary).chain(env::split_paths(&env::var_os("PATH").expect("PATH"))));
    let path = path.expect("a path");
    let table = include_str!("../../src/examples.txt");
    let lines: Vec<&str> = table.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    assert!(lines.len() > 90, "only {} examples", lines.len());
    let mut failed = Vec::new();
    for line in lines {
        let line = line.split_once("  # ").map_or(line, |(line, _)| line);
        if cfg!(not(feature = "llm")) && line.contains("story.pte") {
            continue;
        }
        // The status of every command of a pipe counts.
        let mut shell = Command::new("bash");
        shell.args(["-o", "pipefail", "-c", line]).current_dir(&folder.0).env("PATH", &path).stdin(Stdio::null());
        let output = shell.output().expect("a shell");
        if !output.status.success() {
            failed.push(format!("{line}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// These floats as a NumPy array.
fn numpy(floats: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", floats.len() / 4);
    header.push_str(&" ".repeat(118 - 1 - header.len()));
    header.push('\n');
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), floats].concat()
}
