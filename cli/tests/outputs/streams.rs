//! A destination that is not a regular file is written into and stays as it is; output that fails is reported.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixListener;
use std::thread::{self, JoinHandle};

use super::*;

fn models(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.take("models/mlp_portable.pte", "m.pte");
    folder.take("pt2/gru/model_raw.pt2", "m.pt2");
    done(&folder, &["dump", "m.pte", "-o", "d.json"]);
    folder
}

fn pipe(folder: &Folder, name: &str) -> PathBuf {
    let path = folder.path(name);
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    path
}

fn reader(path: PathBuf) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || fs::read(path).expect("a pipe"))
}

#[test]
fn pipes_get_their_data_and_stay() {
    let folder = models("pipes");
    let path = pipe(&folder, "pipe");
    symlink("pipe", folder.path("link")).expect("a link");
    for args in [
        &["dump", "m.pte", "-o"][..],
        &["print", "m.pte", "-o"],
        &["build", "d.json", "-o"],
        &["extract", "m.pte", "--segment", "0", "-o"],
        &["smith", "-o"],
        &["mutate", "m.pte", "-o"],
        &["lower", "m.pt2", "-o"],
        &["shrink", "m.pte", "--test", "true", "-o"],
        &["split", "m.pte", "--data-out", "x.ptd", "-o"],
    ] {
        for output in ["pipe", "link"] {
            let reader = reader(path.clone());
            let args: Vec<&str> = args.iter().copied().chain([output]).collect();
            done(&folder, &args);
            let through = reader.join().expect("a reader");
            done(&folder, &[&args[..args.len() - 1], &["file"]].concat());
            if args[0] != "print" {
                assert_eq!(through, folder.read("file"), "{args:?}");
            }
            assert!(!through.is_empty() || args[0] == "shrink", "{args:?}");
            assert!(fs::metadata(&path).expect("the pipe").file_type().is_fifo(), "{args:?}");
        }
    }
    assert!(folder.hidden().is_empty() && !folder.path("pipe.bin").exists());
}

#[test]
fn devices_are_written_into() {
    let folder = models("devices");
    symlink("/dev/null", folder.path("null")).expect("a link");
    symlink("/dev/full", folder.path("full")).expect("a link");
    for args in [&["dump", "m.pte", "-o"][..], &["lower", "m.pt2", "-o"], &["build", "d.json", "-o"]] {
        let with = |output: &'static str| args.iter().copied().chain([output]).collect::<Vec<_>>();
        done(&folder, &with("null"));
        let ran = run(&folder, &with("full"));
        status(&ran, 3, &with("full"));
        assert!(String::from_utf8_lossy(&ran.stderr).contains("No space left"));
    }
    done(&folder, &["split", "m.pte", "-o", "null", "--data-out", "null"]);
    for device in ["/dev/null", "/dev/full"] {
        assert!(fs::metadata(device).expect("a device").file_type().is_char_device(), "{device}");
    }
    for link in ["null", "full"] {
        assert!(fs::symlink_metadata(folder.path(link)).expect("the link").is_symlink());
    }
    status(&run(&folder, &["mutate", "m.pte", "--count", "2", "-o", "null"]), 2, &"several variants");

    let _socket = UnixListener::bind(folder.path("socket")).expect("a socket");
    status(&run(&folder, &["dump", "m.pte", "-o", "socket"]), 3, &"a socket");
    assert!(fs::metadata(folder.path("socket")).expect("the socket").file_type().is_socket());
    fs::create_dir(folder.path("folder")).expect("a folder");
    status(&run(&folder, &["dump", "m.pte", "-o", "folder"]), 3, &"a folder");
    assert!(folder.hidden().is_empty());
}

#[test]
fn open_descriptors_are_written_into() {
    let folder = models("descriptors");
    for output in ["-", "/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"] {
        let args = ["build", "d.json", "-o", output];
        // A file with another name keeps its number and gets the content.
        let file = File::create(folder.path("out")).expect("a file");
        fs::hard_link(folder.path("out"), folder.path("other")).expect("a link");
        assert!(edgepack(&folder, &args).stdout(file).status().expect("the command").success());
        done(&folder, &["diff", "m.pte", "other", "--exact"]);
        let ran = run(&folder, &args);
        assert_eq!(ran.stdout, folder.read("other"), "{output}");
        for name in ["out", "other"] {
            fs::remove_file(folder.path(name)).expect("the file");
        }
    }
    folder.write("log", "before\n");
    let log = OpenOptions::new().append(true).open(folder.path("log")).expect("a file");
    let args = ["dump", "m.pte", "-o", "/proc/self/fd/2"];
    assert!(edgepack(&folder, &args).stderr(log).status().expect("the command").success());
    assert_eq!(folder.read("log"), [b"before\n".to_vec(), folder.read("d.json")].concat());
}

#[test]
fn output_that_fails_is_a_failure() {
    let folder = models("full");
    let commands: &[&[&str]] = &[
        &["help"],
        &["--help"],
        &["--version"],
        &["inspect", "--help"],
        &["help", "inspect"],
        &["completions", "bash"],
        &["man"],
        &["inspect", "m.pte"],
        &["dump", "m.pte"],
        &["man", "--json"],
    ];
    for args in commands {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let ran = edgepack(&folder, args).stdout(full).output().expect("the command");
        status(&ran, 3, args);
        assert!(String::from_utf8_lossy(&ran.stderr).contains("cannot write"), "{args:?}");
        // Nobody listens: nothing to say.
        let (read, write) = std::io::pipe().expect("a pipe");
        drop(read);
        let ran = edgepack(&folder, args).stdout(write).output().expect("the command");
        assert!(ran.status.code() == Some(0) && ran.stderr.is_empty(), "{args:?}: {ran:?}");
    }
}

/// Names and paths that are commands to a shell.
#[test]
fn no_name_is_run_by_shrink() {
    let folder = Folder::new("shell");
    folder.write("input", b"some text with an x in it");
    let tmp = folder.path("a tmp $(touch broken-tmp)");
    fs::create_dir(&tmp).expect("a folder");
    for name in
        ["a.$(touch broken)", "a;touch broken", "`touch broken`.pte", "a.pte&touch broken", "a 'b\".x y", "-e.x"]
    {
        let file = format!("./{name}");
        fs::copy(folder.path("input"), folder.path(&file)).expect("a file");
        for test in ["grep -q x", "grep -q x {}", "sh -c 'grep -q x \"$1\"' sh", "sh -c 'cat | grep -q x' sh {}"] {
            let mut command = edgepack(&folder, &["shrink", &file, "--test", test, "-o", "small"]);
            let ran = command.env("TMPDIR", &tmp).output().expect("the command");
            if test.contains("cat") {
                // It looks at its input, which is empty.
                status(&ran, 2, &test);
                continue;
            }
            status(&ran, 0, &(name, test));
            assert_eq!(folder.read("small"), b"x");
        }
    }
    assert!(!folder.names().iter().any(|name| name.starts_with("broken")), "{:?}", folder.names());
    assert_eq!(fs::read_dir(&tmp).expect("the folder").count(), 0);
    let args = |test: &'static str| ["shrink", "input", "--test", test, "-o", "x"];
    status(&run(&folder, &args("no-such-command-here {}")), 3, &"no command");
    status(&run(&folder, &args("")), 2, &"nothing");
    status(&run(&folder, &args("grep 'x")), 2, &"an open quote");
}
