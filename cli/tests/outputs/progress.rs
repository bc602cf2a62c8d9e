//! Bars of long work: on a terminal they are there, in a pipe they are not. The work is a file that is written when the
//! test says so, thus no time decides.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use super::*;

const COMMAND: &str = env!("CARGO_BIN_EXE_edgepack");

fn model() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/corpus/models/mlp_portable.pte");
    fs::read(path).unwrap()
}

/// Reads until the text has been seen, or until the end; returns everything that was read.
fn read_until(stream: &mut impl Read, text: &str) -> String {
    let (mut seen, mut piece) = (String::new(), [0; 256]);
    while !seen.contains(text) {
        match stream.read(&mut piece) {
            Ok(count @ 1..) => seen.push_str(&String::from_utf8_lossy(&piece[..count])),
            _ => break,
        }
    }
    seen
}

#[test]
fn long_work_has_a_bar_on_a_terminal() {
    let folder = Folder::new("progress_terminal");
    let pipe = folder.path("model.pte");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    for (option, colored) in [("", true), ("--color never", false)] {
        let line = format!("{COMMAND} inspect {} {option}", pipe.display());
        let mut terminal = Command::new("script");
        terminal.args(["-qefc", &line, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR");
        let terminal = terminal.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut terminal = terminal.expect("`script` of util-linux");
        // Opens when the command does.
        let mut writer = OpenOptions::new().write(true).open(&pipe).unwrap();
        let mut screen = terminal.stdout.take().unwrap();
        let before = read_until(&mut screen, "reading");
        assert!(before.contains("reading"), "{before:?}");
        let drawn = before.clone() + &read_until(&mut screen, "model.pte");
        assert_eq!(drawn.contains("\x1b[1m"), colored, "{drawn:?}");
        writer.write_all(&model()).unwrap();
        drop(writer);
        let after = read_until(&mut screen, "no findings");
        assert!(after.contains("no findings"), "{after:?}");
        // The line of the bar was cleared before the result.
        assert!(after.contains("\x1b[2K") || after.contains("\x1b[K"), "{after:?}");
        assert!(terminal.wait().unwrap().success());
    }
}

#[test]
fn no_bar_goes_into_a_pipe() {
    let folder = Folder::new("progress_pipe");
    let pipe = folder.path("model.pte");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let mut started = Command::new(COMMAND);
    started.arg("inspect").arg(&pipe).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = started.spawn().unwrap();
    let mut writer = OpenOptions::new().write(true).open(&pipe).unwrap();
    // Longer than work may take without a bar; a slower machine makes it longer.
    thread::sleep(Duration::from_millis(1500));
    writer.write_all(&model()).unwrap();
    drop(writer);
    let ran = started.wait_with_output().unwrap();
    assert!(ran.status.success());
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
    assert!(!ran.stdout.contains(&0x1b));
}
