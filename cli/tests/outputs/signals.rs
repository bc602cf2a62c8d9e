//! A command that is ended leaves nothing half done.
//!
//! A pipe without a reader blocks `split` at the point where its data file is complete and its program is not.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::*;

/// Time a process may take for work that normally takes a moment.
const PATIENCE: Duration = Duration::from_secs(60);

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(5));
    }
}

fn prepared(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.take("models/mlp_portable.pte", "m.pte");
    folder.write("m.ptd", "old");
    assert!(Command::new("mkfifo").arg(folder.path("pipe")).status().expect("mkfifo").success());
    folder
}

const SPLIT: [&str; 6] = ["split", "m.pte", "-o", "pipe", "--data-out", "m.ptd"];

/// A child that is ended with the test, however the test ends.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Started {
    fn signal(&self, signal: &str) {
        let number = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &number]).status().expect("kill").success());
    }
}

/// Starts the command, and waits until it has written the data file to its hidden folder and waits for the pipe.
fn started(folder: &Folder, command: &mut Command) -> Started {
    let child = Started(command.stderr(Stdio::null()).spawn().expect("the command"));
    wait_until("a temporary", || {
        let complete = |name: &String| fs::metadata(folder.path(name).join("1")).is_ok_and(|found| found.len() > 2000);
        folder.hidden().iter().any(complete)
    });
    // The pipe is opened shortly after; the outcome is the same if that has not happened yet.
    sleep(Duration::from_millis(50));
    child
}

/// Returns whether the process that runs the tests ignores a signal, as `nohup` does: children inherit that.
fn is_ignored(signal: &str) -> bool {
    let script = format!("kill -s {signal} $$; exit 0");
    Command::new("sh").args(["-c", &script]).status().expect("sh").success()
}

#[test]
fn signals_leave_no_temporary_and_the_old_files() {
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        if is_ignored(signal) {
            println!("SIG{signal} is ignored here: not tried");
            continue;
        }
        let folder = prepared(&format!("signal-{signal}"));
        let mut child = started(&folder, &mut edgepack(&folder, &SPLIT));
        child.signal(signal);
        let status = child.0.wait().expect("its end");
        assert_eq!(status.signal(), Some(number), "{status:?}");
        assert!(folder.hidden().is_empty(), "{:?}", folder.names());
        assert_eq!(folder.read("m.ptd"), b"old");
    }
}

#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    let folder = prepared("ignored");
    let mut shell = Command::new("sh");
    let script = "trap '' HUP; exec \"$0\" \"$@\"";
    shell.current_dir(&folder.0).args(["-c", script, env!("CARGO_BIN_EXE_edgepack")]).args(SPLIT);
    let mut child = started(&folder, &mut shell);
    child.signal("HUP");
    sleep(Duration::from_millis(200));
    assert!(child.0.try_wait().expect("its state").is_none());
    assert!(!fs::read(folder.path("pipe")).expect("the pipe").is_empty());
    assert!(child.0.wait().expect("its end").success());
    assert_ne!(folder.read("m.ptd"), b"old");
    assert!(folder.hidden().is_empty());
}

/// Nothing can be done about SIGKILL, so the next command in the folder does it. What a living process has stays.
#[test]
fn what_a_killed_process_left_goes_with_the_next_and_nothing_else() {
    let folder = prepared("killed");
    let mut killed = started(&folder, &mut edgepack(&folder, &SPLIT));
    killed.signal("KILL");
    killed.0.wait().expect("its end");
    let left = folder.hidden();
    assert_eq!(left.len(), 1);
    assert_eq!(folder.read("m.ptd"), b"old");
    let living = {
        let child = Started(edgepack(&folder, &SPLIT).spawn().expect("the command"));
        wait_until("another temporary", || folder.hidden().len() == 1 && folder.hidden() != left);
        child
    };
    let mine = folder.hidden();
    done(&folder, &["dump", "m.pte", "-o", "d.json"]);
    assert_eq!(folder.hidden(), mine);
    drop(living);
    done(&folder, &["dump", "m.pte", "-o", "d.json"]);
    assert!(folder.hidden().is_empty());
}

/// Both files or none, whenever the command is ended.
#[test]
fn a_pair_is_old_or_new_whenever_the_command_is_ended() {
    let folder = Folder::new("pairs");
    folder.take("models/mlp_portable.pte", "m.pte");
    let split = |pattern: &'static str| ["split", "m.pte", "-o", "s.pte", "--data-out", "s.ptd", "--match", pattern];
    let pair = || (folder.read("s.pte"), folder.read("s.ptd"));
    done(&folder, &split("*.3"));
    let new = pair();
    done(&folder, &split("*"));
    let old = pair();
    assert!(old.0 != new.0 && old.1 != new.1);
    let mut ended = 0;
    for attempt in 0..60u64 {
        done(&folder, &split("*"));
        let mut command = edgepack(&folder, &split("*.3"));
        let mut child = Started(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command"));
        sleep(Duration::from_micros(attempt * 200));
        child.signal("TERM");
        ended += u32::from(!child.0.wait().expect("its end").success());
        assert!(pair() == old || pair() == new, "a mixed pair");
        assert!(folder.hidden().is_empty());
    }
    assert!(ended > 0, "no command was ended before it was done");
}
