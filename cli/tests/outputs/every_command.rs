//! Every command with every kind of thing in the place of every file it reads, and in the place of its output: a path,
//! `-`, a pipe with a name, a file that is not there, an empty one, a folder; a pipe that nobody reads and a full disk.
//!
//! Invariant: every command of the command line has a row, or is listed as one that reads no file.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::process::{Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::CommandFactory;

use super::*;

/// A command line with `FILE` in the place of the file it is about, and `OUT` in that of its output.
struct Row {
    line: &'static str,
    /// The file.
    file: &'static str,
    /// Behaviour that differs from that of the other commands.
    special: Special,
}

#[derive(Clone, Copy, PartialEq)]
enum Special {
    No,
    /// Output that is another one each time.
    Varies,
    /// An empty file is as good as any other.
    EmptyIsFine,
    /// An empty file is as good as any other, and standard input is called `-`.
    DigestOfAnything,
    /// Standard input has another use.
    StdinIsTaken,
}

use Special::{DigestOfAnything, EmptyIsFine, No, StdinIsTaken, Varies};

const fn row(line: &'static str, file: &'static str) -> Row {
    Row { line, file, special: No }
}

const fn special(line: &'static str, file: &'static str, special: Special) -> Row {
    Row { line, file, special }
}

const ROWS: &[Row] = &[
    row("inspect FILE", "m.pte"),
    row("inspect FILE", "p.ptd"),
    row("inspect FILE --json", "a.pt2"),
    row("verify FILE", "m.pte"),
    row("verify s.pte --data FILE", "s.ptd"),
    row("ops FILE", "m.pte"),
    row("ops FILE", "a.pt2"),
    row("size FILE", "m.pte"),
    row("run FILE --inputs m.safetensors", "m.pte"),
    row("run FILE --inputs m.safetensors --outputs OUT", "m.pte"),
    row("run m.pte --inputs FILE", "m.safetensors"),
    row("run s.pte --inputs m.safetensors --data FILE", "s.ptd"),
    row("check FILE m.safetensors", "m.pte"),
    row("check m.pte FILE", "m.safetensors"),
    row("check s.pte m.safetensors --data FILE", "s.ptd"),
    row("compare FILE m.pte", "m.pte"),
    row("compare a.pt2 FILE", "a.pt2"),
    row("compare FILE --rewrites", "m.pte"),
    special("compare FILE m.pte --html OUT", "m.pte", Varies),
    row("compare FILE trace.pte --trace-buffer trace.bin --inputs trace.npy", "trace.etdp"),
    row("compare trace.pte trace.etdp --trace-buffer FILE --inputs trace.npy", "trace.bin"),
    row("compare trace.pte trace.etdp --trace-buffer trace.bin --inputs FILE", "trace.npy"),
    special("bench FILE --time 0.01", "m.pte", Varies),
    special("bench m.pte --time 0.01 --inputs FILE", "m.safetensors", Varies),
    special("profile FILE --runs 1", "m.pte", Varies),
    special("profile m.pte --runs 1 --inputs FILE", "m.safetensors", Varies),
    special("profile b.pte --runs 1 --etrecord FILE", "b.etrecord", Varies),
    row("profile FILE", "b.etdp"),
    special("profile FILE --runs 1 --html OUT", "m.pte", Varies),
    special("run FILE --inputs m.safetensors --etdump OUT", "m.pte", Varies),
    special("view FILE -o OUT", "m.pte", Varies),
    special("view b.pte --etrecord FILE -o OUT", "b.etrecord", Varies),
    row("view FILE --dot", "e.tflite"),
    row("view FILE --memory", "m.pte"),
    row("view FILE --model-explorer", "a.pt2"),
    row("extract FILE --segment 0 -o OUT", "m.pte"),
    row("dump FILE", "m.pte"),
    row("dump FILE -o OUT", "m.pte"),
    row("build FILE -o OUT", "m.json"),
    row("print FILE", "m.pte"),
    row("print FILE", "a.pt2"),
    row("print FILE -o OUT", "m.pte"),
    row("parse FILE -o OUT", "m.txt"),
    row("diff FILE m.pte", "m.pte"),
    row("diff m.pte FILE", "m.pte"),
    row("split FILE -o OUT --data-out more.ptd", "m.pte"),
    row("join FILE --data s.ptd -o OUT", "s.pte"),
    row("join s.pte --data FILE -o OUT", "s.ptd"),
    row("merge FILE p.ptd -o OUT", "s.ptd"),
    row("merge p.ptd FILE -o OUT", "s.ptd"),
    row("list FILE", "m.pte"),
    special("digest FILE", "m.pte", DigestOfAnything),
    row("verify --against FILE", "manifest"),
    row("lower FILE -o OUT", "a.pt2"),
    row("lower one=FILE two=a.pt2 -o OUT", "a.pt2"),
    row("lower a.pt2 -o OUT --cases FILE", "a.safetensors"),
    row("patch FILE bias=b.npy -o OUT", "p.ptd"),
    row("patch FILE --set metadata.a=1 -o OUT", "m.pte"),
    row("ops FILE --releases", "m.pte"),
    row("patch p.ptd bias=FILE -o OUT", "b.npy"),
    row("convert FILE OUT", "p.ptd"),
    row("convert FILE OUT", "p.safetensors"),
    special("smith --bytes FILE -o OUT", "m.pte", EmptyIsFine),
    row("mutate FILE -o OUT", "m.pte"),
    row("shrink FILE --test test~-s -o OUT", "m.pte"),
    #[cfg(feature = "llm")]
    row("generate FILE -t t.json Once -n 1 --quiet", "l.pte"),
    #[cfg(feature = "llm")]
    row("generate l.pte -t FILE Once -n 1 --quiet", "t.json"),
    #[cfg(feature = "llm")]
    special("generate l.pte -t t.json --prompt-file FILE -n 1 --quiet", "prompt.txt", EmptyIsFine),
    #[cfg(feature = "llm")]
    special("chat FILE -t t.json --template c.json -n 1 --quiet", "l.pte", StdinIsTaken),
    #[cfg(feature = "llm")]
    special("chat l.pte -t FILE --template c.json -n 1 --quiet", "t.json", StdinIsTaken),
    #[cfg(feature = "llm")]
    special("chat l.pte -t t.json --template FILE -n 1 --quiet", "c.json", StdinIsTaken),
    #[cfg(feature = "llm")]
    row("perplexity FILE -t t.json sample.txt", "l.pte"),
    #[cfg(feature = "llm")]
    row("perplexity l.pte -t t.json FILE", "sample.txt"),
    row("darwinn dma FILE", "e.tflite"),
    row("darwinn link FILE --parameter 0x100001000 --input x=0x100002000 --output y=0x100003000 -o linked", "e.tflite"),
    row("darwinn relayout FILE --output y --input device.bin -o OUT", "e.tflite"),
    row("darwinn relayout e.tflite --output y --input FILE -o OUT", "device.bin"),
    row("darwinn caching FILE", "e.tflite"),
    row("darwinn plan FILE", "e.tflite"),
];

/// Commands that read no file.
const WITHOUT_FILES: &[&str] = &["explain", "completions", "man"];

/// Lines of commands that read no file, and the help.
const LINES: &[&str] = &[
    "help",
    "help inspect",
    "help darwinn dma",
    "inspect --help",
    "-h",
    "--version",
    "explain",
    "explain PTE-H01 --json",
    "completions bash",
    "man",
];

/// A folder with all the files.
fn files(name: &str) -> Folder {
    let folder = Folder::new(name);
    for (from, to) in [
        ("models/mlp_portable.pte", "m.pte"),
        ("models/mlp_portable.safetensors", "m.safetensors"),
        ("data/tensors.ptd", "p.ptd"),
        ("data/tensors.safetensors", "p.safetensors"),
        ("pt2/add/model.pt2", "a.pt2"),
        ("pt2/add/cases.safetensors", "a.safetensors"),
        ("edgetpu/left.tflite", "e.tflite"),
        ("trace/mlp.pte", "trace.pte"),
        ("trace/mlp_intermediate.etdp", "trace.etdp"),
        ("trace/mlp_intermediate.debug.bin", "trace.bin"),
        ("trace/mlp_intermediate.npy", "trace.npy"),
        ("trace/blocks.pte", "b.pte"),
        ("trace/blocks.etrecord", "b.etrecord"),
        ("trace/blocks.etdp", "b.etdp"),
        ("llm_demo/story.pte", "l.pte"),
        ("llm_demo/tokenizer.json", "t.json"),
        ("llm_demo/tokenizer_config.json", "c.json"),
        ("llm_demo/sample.txt", "sample.txt"),
    ] {
        folder.take(from, to);
    }
    folder.write("device.bin", [7; 40]);
    folder.write("b.npy", npy(&[0.5, 1.0, -1.0, 2.0]));
    folder.write("prompt.txt", "Once upon");
    folder.write("empty", b"");
    fs::create_dir(folder.path("folder")).expect("a folder");
    for args in [
        &["dump", "m.pte", "-o", "m.json"][..],
        &["print", "m.pte", "-o", "m.txt"],
        &["split", "m.pte", "-o", "s.pte", "--data-out", "s.ptd"],
    ] {
        done(&folder, args);
    }
    let digests = run(&folder, &["digest", "m.pte", "p.ptd"]);
    folder.write("manifest", digests.stdout);
    folder
}

/// The command line with these in the places of its file and of its output; `~` is a space within a word.
fn words(line: &str, file: &str, out: &str) -> Vec<String> {
    line.split(' ').map(|word| word.replace('~', " ").replace("FILE", file).replace("OUT", out)).collect()
}

fn execute(folder: &Folder, line: &[String], stdin: &[u8]) -> Output {
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let mut command = edgepack(folder, &line);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it");
    let mut input = child.stdin.take().expect("its input");
    let stdin = stdin.to_vec();
    // A command that does not read is no failure.
    let writer = thread::spawn(move || drop(input.write_all(&stdin)));
    let output = child.wait_with_output().expect("its end");
    writer.join().expect("the writer");
    output
}

/// Runs a command line that reads the pipe of the folder, into which the content goes.
fn fed(folder: &Folder, line: &[String], content: &[u8]) -> Output {
    let (path, bytes) = (folder.path("pipe"), content.to_vec());
    let writer = thread::spawn(move || fs::write(path, bytes));
    let output = execute(folder, line, b"");
    let waiting = Instant::now();
    while !writer.is_finished() && waiting.elapsed() < Duration::from_secs(5) {
        thread::sleep(Duration::from_millis(1));
    }
    if !writer.is_finished() {
        // The command did not open the pipe: somebody has to, or the writer waits for ever.
        drop(fs::read(folder.path("pipe")));
    }
    // A reader that stops early is no failure of the writer.
    let _ = writer.join().expect("the writer");
    output
}

/// Text that it printed, with one name for its file; columns that names make wider do not count.
fn said(output: &[u8], name: &str) -> String {
    let text = String::from_utf8_lossy(output).replace(name, "SUBJECT");
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

/// A NumPy array.
fn npy(values: &[f32]) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", values.len());
    let header = format!("{header:117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// Complaints of all rows: every one is seen in one run.
#[derive(Default)]
struct Complaints(Vec<String>);

impl Complaints {
    fn check(&mut self, right: bool, line: &[String], output: &Output, about: &str) {
        if !right {
            let (status, said) = (output.status, String::from_utf8_lossy(&output.stderr));
            self.0.push(format!("{about}: {}: {status}: {said}", line.join(" ")));
        }
    }

    #[track_caller]
    fn report(self) {
        assert!(self.0.is_empty(), "{} complaints:\n{}", self.0.len(), self.0.join("\n"));
    }
}

#[test]
fn every_command_has_a_row() {
    fn names(command: &clap::Command, above: &str, found: &mut BTreeSet<String>) {
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            let name = format!("{above} {}", below.get_name()).trim().to_owned();
            match below.has_subcommands() {
                true => names(below, &name, found),
                false => drop(found.insert(name)),
            }
        }
    }
    let mut wanted = BTreeSet::new();
    names(&edgepack_cli::args::Cli::command(), "", &mut wanted);
    wanted.retain(|name| !WITHOUT_FILES.contains(&name.as_str()));
    let has_row = |name: &&String| ROWS.iter().any(|row| row.line.starts_with(&format!("{name} ")));
    let missing: Vec<_> = wanted.iter().filter(|name| !has_row(name)).collect();
    assert!(wanted.len() > 25 && missing.is_empty(), "{missing:?}");
}

#[test]
fn a_path_standard_input_and_a_pipe_are_alike() {
    let folder = files("alike");
    assert!(Command::new("mkfifo").arg(folder.path("pipe")).status().expect("mkfifo").success());
    let mut complaints = Complaints::default();
    let out = || fs::read(folder.path("out")).ok();
    for Row { line, file, special } in ROWS {
        let content = folder.read(file);
        let subject = format!("subject{}", Path::new(file).extension().map_or("", |_| ".bin"));
        folder.write(&subject, &content);
        let _ = fs::remove_file(folder.path("out"));
        let plain = words(line, &subject, "out");
        let by_path = execute(&folder, &plain, b"");
        complaints.check(by_path.status.success(), &plain, &by_path, "a path");
        let written = out();
        complaints.check(written.is_some() == line.contains("OUT"), &plain, &by_path, "its output");
        for file in ["-", "pipe"] {
            let words = words(line, file, "out");
            let _ = fs::remove_file(folder.path("out"));
            let output = match file {
                "-" => execute(&folder, &words, &content),
                _ => fed(&folder, &words, &content),
            };
            if file == "-" && *special == StdinIsTaken {
                let refused = String::from_utf8_lossy(&output.stderr).contains("standard input can be read only once");
                complaints.check(refused && output.status.code() == Some(2), &words, &output, "standard input twice");
                continue;
            }
            let name = if file == "-" { "standard input" } else { file };
            let same = said(&output.stdout, name) == said(&by_path.stdout, &subject) && out() == written;
            complaints.check(
                output.status.success() && (same || matches!(special, Varies | DigestOfAnything)),
                &words,
                &output,
                name,
            );
        }
    }
    complaints.report();
}

#[test]
fn what_is_not_there_is_named() {
    let folder = files("named");
    let mut complaints = Complaints::default();
    for Row { line, special, .. } in ROWS {
        for (file, reason) in
            [("nothing", "No such file or directory"), ("empty", "the file is empty"), ("folder", "this is a folder")]
        {
            if file == "empty" && matches!(special, EmptyIsFine | DigestOfAnything) {
                continue;
            }
            let words = words(line, file, "out");
            let output = execute(&folder, &words, b"");
            let shown = [output.stdout.as_slice(), &output.stderr].concat();
            let right = output.status.code() == Some(3)
                && String::from_utf8_lossy(&shown).contains(&format!("{file}: {reason}"));
            complaints.check(right, &words, &output, file);
            assert!(!folder.path("out").exists(), "{words:?}");
        }
        let words = words(line, "-", "out");
        if !matches!(special, EmptyIsFine | DigestOfAnything | StdinIsTaken) {
            let output = execute(&folder, &words, b"");
            let shown = [output.stdout.as_slice(), &output.stderr].concat();
            let right = String::from_utf8_lossy(&shown).contains("standard input: the file is empty");
            complaints.check(right && output.status.code() == Some(3), &words, &output, "nothing on standard input");
        }
    }
    complaints.report();
}

#[test]
fn output_nobody_takes_is_dealt_with() {
    let folder = files("taken");
    let mut complaints = Complaints::default();
    let rows = ROWS.iter().map(|row| words(row.line, row.file, "-"));
    let lines = LINES.iter().map(|line| words(line, "", ""));
    for words in rows.chain(lines) {
        if words[0] == "split" {
            // Two files; neither can be standard output.
            continue;
        }
        let line: Vec<&str> = words.iter().map(String::as_str).collect();
        if edgepack(&folder, &line).output().expect("it").stdout.is_empty() {
            continue;
        }
        let full = OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let output = edgepack(&folder, &line).stdout(full).output().expect("it");
        let said = String::from_utf8_lossy(&output.stderr).contains("cannot write");
        complaints.check(said && output.status.code() == Some(3), &words, &output, "a full disk");
        let (read, write) = std::io::pipe().expect("a pipe");
        drop(read);
        let output = edgepack(&folder, &line).stdout(write).output().expect("it");
        // A conversation has its prompts there, and `build` says whether bytes are the same.
        let silent = output.stderr.is_empty() || ["chat", "build"].contains(&&*words[0]);
        complaints.check(silent && output.status.success(), &words, &output, "a closed pipe");
    }
    for Row { line, file, .. } in ROWS.iter().filter(|row| row.line.contains("OUT")) {
        for (out, reason) in [("/dev/full", "No space left"), ("folder", "folder"), ("nowhere/out", "No such file")] {
            let words = words(line, file, out);
            let output = execute(&folder, &words, b"");
            let said = String::from_utf8_lossy(&output.stderr);
            let right = said.contains(reason) && said.contains(&format!("cannot write {out}"));
            complaints.check(right && output.status.code() == Some(3), &words, &output, out);
        }
    }
    complaints.report();
}
