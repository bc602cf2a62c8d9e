//! Commands on files of servers: the same answers as on files of this machine, and no secret in any of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{env, fs, process};

use super::server::{File, Server};

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/corpus/models")
}

pub fn read(name: &str) -> Vec<u8> {
    fs::read(models().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A server of one file.
fn serving(bytes: Vec<u8>) -> Server {
    let len = bytes.len() as u64;
    Server::of(File::new(bytes, len))
}

pub fn edgepack(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_edgepack"));
    command.args(args).stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    edgepack(args).arg("--loopback-http").output().expect("the command")
}

#[track_caller]
fn fine(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn fails(status: i32, args: &[&str]) -> String {
    let output = run(args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
    said
}

#[test]
fn commands_answer_as_on_files_of_this_machine() {
    let name = "classifier_portable.pte";
    let server = serving(read(name));
    let (url, path) = (server.url(name), models().join(name).display().to_string());
    for args in [
        &["inspect", "FILE", "--all"][..],
        &["inspect", "FILE", "--json"],
        &["verify", "FILE"],
        &["ops", "FILE"],
        &["size", "FILE", "--all"],
        &["list", "FILE"],
        &["print", "FILE"],
        &["dump", "FILE"],
        &["digest", "FILE", "--parts"],
        &["extract", "FILE", "--segment", "0", "-o", "-"],
        &["run", "FILE", "--random", "1"],
    ] {
        let of =
            |file: &str| args.iter().map(|arg| if *arg == "FILE" { file } else { arg }.to_owned()).collect::<Vec<_>>();
        let [there, here] = [&url, &path].map(|file| {
            let output = run(&of(file).iter().map(String::as_str).collect::<Vec<_>>());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{args:?} of {file}: {said}");
            output.stdout
        });
        let there = String::from_utf8_lossy(&there).replace(&url, "FILE");
        assert!(there == String::from_utf8_lossy(&here).replace(&path, "FILE"), "{args:?}: {there}");
    }
    assert_eq!(fine(&["diff", &url, &path]), "same\n");
    let other = serving(read("mlp_portable.pte"));
    assert_eq!(run(&["diff", &url, &other.url("x")]).status.code(), Some(1));
}

#[test]
fn nothing_is_written_to_servers() {
    let server = serving(read("mlp_portable.pte"));
    let url = server.url("a.pte");
    let said = fails(2, &["patch", &url, "constant.0=x.npy", "--in-place"]);
    assert!(said.contains("not changed in place"), "{said}");
    let said = fails(2, &["extract", &url, "--segment", "0", "-o", &url]);
    assert!(said.contains("nothing is written to servers"), "{said}");
}

#[test]
fn urls_that_are_not_taken_are_refused_before_anything_is_asked() {
    let server = serving(read("mlp_portable.pte"));
    let secret = server.url("a.pte").replace("http://", "http://user:SECRET@");
    for (url, about) in [
        (secret.as_str(), "user's name or password"),
        ("http://example.com/a.pte", "http:// is taken of this machine alone"),
        ("http://10.0.0.1/a.pte", "http:// is taken of this machine alone"),
        ("https://", "this is not a URL of a file"),
        ("s3://bucket/key", "s3"),
    ] {
        if url.starts_with("s3") && cfg!(feature = "s3") {
            continue;
        }
        let said = fails(2, &["inspect", url]);
        assert!(said.contains(about) && !said.contains("SECRET"), "{said}");
    }
    // Without the option, this machine is as any other.
    let output = edgepack(&["inspect", &server.url("a.pte")]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let output =
        edgepack(&["inspect", &server.url("a"), "--loopback-http"]).env("EDGEPACK_REMOTE_TOKEN", "SECRET").output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("SECRET"));
    assert!(server.asked().is_empty());
}

#[test]
fn tokens_go_to_their_host_and_queries_are_not_shown() {
    let server = serving(read("mlp_portable.pte"));
    let url = server.url("a.pte?signature=SECRET#SECRET");
    let broken = serving(vec![0x7f; 5000]);
    let lost = Server::new(|_, out| write!(out, "HTTP/1.1 403 SECRET\r\nContent-Length: 6\r\n\r\nSECRET"));
    for url in [url, broken.url("a.pte?signature=SECRET"), lost.url("a.pte?signature=SECRET")] {
        for args in [
            &["inspect", &url][..],
            &["inspect", &url, "--json"],
            &["verify", &url, "--json"],
            &["size", &url],
            &["ops", &url],
            &["digest", &url],
            &["list", &url],
            &["diff", &url, &url, "--json"],
            &["extract", &url, "--segment", "99", "-o", "-"],
            &["run", &url],
            &["dump", &url],
        ] {
            let mut command = edgepack(args);
            command.arg("--loopback-http").env("EDGEPACK_REMOTE_HOST", server.host());
            let output = command.env("EDGEPACK_REMOTE_TOKEN", "SECRET").output().unwrap();
            for bytes in [&output.stdout, &output.stderr] {
                assert!(
                    !String::from_utf8_lossy(bytes).contains("SECRET"),
                    "{args:?}: {}",
                    String::from_utf8_lossy(bytes)
                );
            }
        }
    }
    let asked = server.asked();
    assert!(!asked.is_empty());
    assert!(asked.iter().all(|one| one.header("authorization") == Some("Bearer SECRET")));
    assert!(asked.iter().all(|one| one.path() == "/a.pte?signature=SECRET"));
    let others = [broken.asked(), lost.asked()].concat();
    assert!(!others.is_empty() && others.iter().all(|one| one.header("authorization").is_none()));
}

/// Names in a file, in JSON and in text lead to nothing that is asked for.
#[test]
fn names_in_files_never_become_questions() {
    let lure = serving(read("mlp_portable.pte"));
    let folder = env::temp_dir().join(format!("edgepack-remote-names-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    let here = |name: &str| folder.join(name).display().to_string();
    let source = models().join("mlp_portable.pte").display().to_string();
    fine(&["dump", &source, "--data-dir", &here("blobs"), "-o", &here("model.json")]);
    let json = fs::read_to_string(here("model.json")).unwrap();
    let blob = fs::read_dir(here("blobs")).unwrap().next().unwrap().unwrap().file_name().into_string().unwrap();
    for name in [lure.url("blob"), "/etc/hostname".to_owned(), blob.clone()] {
        let json = serving(json.replace(&blob, &name).into_bytes());
        let url = json.url("model.json");
        let said = fails(1, &["build", &url, "-o", &here("out.pte")]);
        let why = if name == blob { "files next to one of a server are not looked for" } else { "not the plain name" };
        assert!(said.contains(why), "{said}");
        assert!(json.asked().iter().all(|one| one.path() == "/model.json"));
    }
    // Data files are those of the command line alone, however a program names them.
    let mut program = edgepack::prelude::ProgramBuilder::new();
    program.named_data(&lure.url("key"), vec![1; 8], 1, None).unwrap();
    let program = serving(program.finish().unwrap().to_bytes().unwrap());
    for command in ["inspect", "size", "list", "dump"] {
        run(&[command, &program.url("program")]);
    }
    assert!(!program.asked().is_empty() && lure.asked().is_empty());
    fs::remove_dir_all(&folder).unwrap();
}
