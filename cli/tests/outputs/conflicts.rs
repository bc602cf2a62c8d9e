//! No command writes over what it reads, and no two outputs go to one file.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// A folder with a file of every kind that commands read.
fn inputs(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.take("models/mlp_portable.pte", "m.pte");
    folder.take("models/external_portable.pte", "e.pte");
    folder.take("models/external_portable._default_external_constant.ptd", "e.ptd");
    folder.take("models/external_portable.safetensors", "e.safetensors");
    folder.take("models/counter_portable.pte", "c.pte");
    folder.take("models/counter_portable.safetensors", "c.safetensors");
    folder.take("pt2/gru/model_raw.pt2", "a.pt2");
    folder.take("data/tensors.safetensors", "t.safetensors");
    folder.take("edgetpu/left.tflite", "left.tflite");
    done(&folder, &["dump", "m.pte", "-o", "d.json"]);
    done(&folder, &["dump", "m.pte", "--data-dir", "parts", "-o", "parts/d.json"]);
    done(&folder, &["print", "m.pte", "-o", "m.txt"]);
    done(&folder, &["convert", "e.ptd", "w.safetensors"]);
    done(&folder, &["split", "m.pte", "-o", "s.pte", "--data-out", "s.ptd"]);
    done(&folder, &["convert", "s.ptd", "s.safetensors"]);
    folder.write("tape", [7; 64]);
    folder.write("segment-0.bin", folder.read("m.pte"));
    folder.write("p.txt.bin", folder.read("m.pte"));
    folder.write("chunk0.bin", folder.read("left.tflite"));
    folder.write("v.0.pte", folder.read("m.pte"));
    folder
}

/// Every output of every command that reads files: the input that it must not be, and the command without it.
const WRITING: &[(&str, &[&str])] = &[
    ("m.pte", &["dump", "m.pte", "-o"]),
    ("m.pte", &["print", "m.pte", "-o"]),
    ("m.pte", &["extract", "m.pte", "--segment", "0", "-o"]),
    ("c.pte", &["run", "c.pte", "--inputs", "c.safetensors", "--outputs"]),
    ("c.safetensors", &["run", "c.pte", "--inputs", "c.safetensors", "--outputs"]),
    ("e.ptd", &["run", "e.pte", "--data", "e.ptd", "--inputs", "e.safetensors", "--outputs"]),
    ("d.json", &["build", "d.json", "-o"]),
    ("parts/segment-0.bin", &["build", "parts/d.json", "-o"]),
    ("m.txt", &["parse", "m.txt", "-o"]),
    ("m.txt.bin", &["parse", "m.txt", "-o"]),
    ("m.pte", &["mutate", "m.pte", "-o"]),
    ("tape", &["smith", "--bytes", "tape", "-o"]),
    ("m.pte", &["shrink", "m.pte", "--test", "true", "-o"]),
    ("m.pte", &["split", "m.pte", "--data-out", "x.ptd", "-o"]),
    ("m.pte", &["split", "m.pte", "-o", "x.pte", "--data-out"]),
    ("e.pte", &["join", "e.pte", "--data", "e.ptd", "-o"]),
    ("e.ptd", &["join", "e.pte", "--data", "e.ptd", "-o"]),
    ("e.ptd", &["convert", "e.ptd"]),
    ("w.safetensors", &["convert", "w.safetensors"]),
    ("m.pte", &["patch", "m.pte", "constant.1=s.safetensors", "-o"]),
    ("s.safetensors", &["patch", "m.pte", "constant.1=s.safetensors", "-o"]),
    ("a.pt2", &["lower", "a.pt2", "-o"]),
    ("a.pt2", &["lower", "two=a.pt2", "-o", "x.pte", "--external-weights"]),
    ("left.tflite", &["darwinn", "relayout", "left.tflite", "--output", "y", "--input", "device", "-o"]),
    ("device", &["darwinn", "relayout", "left.tflite", "--output", "y", "--input", "device", "-o"]),
];

#[test]
fn no_output_takes_the_place_of_an_input() {
    let folder = inputs("over-inputs");
    folder.write("device", vec![0; 40]);
    for (input, command) in WRITING {
        fs::hard_link(folder.path(input), folder.path("hard")).expect("a hard link");
        symlink(input, folder.path("soft")).expect("a link");
        let before = folder.all();
        for output in [*input, "hard", "soft", &format!("./parts/../{input}")] {
            let args: Vec<&str> = command.iter().copied().chain([output]).collect();
            let ran = run(&folder, &args);
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            status(&ran, 2, &args);
            assert!(said.contains("--force") && said.contains("is the file that is read"), "{args:?}: {said}");
            assert!(folder.all() == before, "{args:?} changed a file");
        }
        fs::remove_file(folder.path("hard")).expect("the link");
        fs::remove_file(folder.path("soft")).expect("the link");
    }
}

/// Files whose names follow from other arguments.
#[test]
fn names_that_are_made_up_are_outputs_too() {
    let folder = inputs("derived");
    let before = folder.all();
    for args in [
        &["dump", "segment-0.bin", "--data-dir", ".", "-o", "x.json"][..],
        &["print", "p.txt.bin", "-o", "p.txt"],
        &["mutate", "v.0.pte", "--count", "2", "-o", "v.pte"],
        &["darwinn", "link", "chunk0.bin", "--parameter", "1", "--input", "x=2", "--output", "y=3", "-o", "."],
        &["split", "s.pte", "--data-out", ".", "-o", "./s.pte"],
        // Two outputs in one place.
        &["split", "m.pte", "-o", "x", "--data-out", "./x"],
        &["dump", "m.pte", "--data-dir", "parts", "-o", "parts/segment-0.bin"],
    ] {
        status(&run(&folder, args), 2, &args);
        assert!(folder.all() == before, "{args:?} changed a file");
    }
    fs::hard_link(folder.path("s.pte"), folder.path("hard")).expect("a hard link");
    status(&run(&folder, &["split", "m.pte", "-o", "s.pte", "--data-out", "hard"]), 2, &"hard links");
    assert_eq!(folder.read("s.pte"), folder.read("hard"));
}

#[test]
fn weights_do_not_go_where_the_program_goes() {
    let folder = Folder::new("weights");
    folder.take("pt2/gru/model_raw.pt2", "m.pt2");
    folder.write("g.pte", "old");
    symlink("g.pte", folder.path("link")).expect("a link");
    for weights in ["g.pte", "link", "./g.pte"] {
        let args = ["lower", "m.pt2", "-o", "g.pte", "--external-weights", weights];
        status(&run(&folder, &args), 2, &args);
        assert_eq!(folder.read("g.pte"), b"old");
    }
    done(&folder, &["lower", "m.pt2", "-o", "g.pte", "--external-weights", "g.ptd"]);
    done(&folder, &["verify", "g.pte", "--data", "g.ptd"]);
}

#[test]
fn standard_input_is_an_input() {
    let folder = inputs("stdin");
    let before = folder.read("m.pte");
    let input = fs::File::open(folder.path("m.pte")).expect("the file");
    let ran = edgepack(&folder, &["dump", "-", "-o", "m.pte"]).stdin(input).output().expect("the command");
    status(&ran, 2, &"standard input");
    assert_eq!(folder.read("m.pte"), before);
}

#[test]
fn force_and_in_place_do_it_all_the_same() {
    let folder = inputs("force");
    done(&folder, &["dump", "m.pte", "-o", "m.pte", "--force"]);
    assert_eq!(folder.read("m.pte"), folder.read("d.json"));
    done(&folder, &["build", "--force", "m.pte", "-o", "m.pte"]);
    done(&folder, &["verify", "m.pte"]);
    let before = folder.read("m.pte");
    folder.write("one.json", "");
    done(&folder, &["patch", "m.pte", "constant.1=s.safetensors", "--in-place"]);
    assert_eq!(folder.read("m.pte").len(), before.len());
    assert!(folder.hidden().is_empty());
}

/// A result that its own verifier refuses replaces no file.
#[test]
fn what_is_not_valid_is_not_written() {
    let folder = inputs("valid");
    let text = String::from_utf8(folder.read("d.json")).expect("text");
    let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    json["program"]["execution_plan"][0]["inputs"] = serde_json::json!([1_000_000]);
    folder.write("broken.json", json.to_string());
    let before = folder.read("m.pte");
    let ran = run(&folder, &["build", "broken.json", "-o", "m.pte"]);
    status(&ran, 1, &"a broken program");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains("PTE-") && said.contains("not written"), "{said}");
    assert_eq!(folder.read("m.pte"), before);
    status(&run(&folder, &["build", "broken.json", "-o", "-"]), 1, &"a broken program");
    done(&folder, &["build", "broken.json", "-o", "broken.pte", "--force"]);
    status(&run(&folder, &["verify", "broken.pte"]), 1, &"a broken program");
    // An edit of what is broken says so, too.
    status(&run(&folder, &["patch", "broken.pte", "constant.1=s.safetensors", "-o", "x.pte"]), 1, &"patch");
    assert!(!folder.path("x.pte").exists());
    assert!(folder.hidden().is_empty());
}
