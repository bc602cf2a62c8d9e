//! Code in a child process: what it computes, how it may end, and what it has of its parent.

use std::env;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use edgepack_format::limits::Limits;
use edgepack_native::{Child, ChildModule, Error, Runner};

use crate::packages::{Code, Folder, floats, has_compiler, input, module};

/// Argument of the process that runs code; as a name of tests it is none.
const SERVE: &str = "this-process-runs-code";

/// The child: this program, started with this test alone.
#[test]
fn child_process() {
    if env::args().any(|argument| argument == SERVE) {
        // SAFETY: it is started so by the tests below alone, whose code it runs; nothing else runs in it.
        let served = unsafe { edgepack_native::child::serve() };
        panic!("{served:?}");
    }
}

fn child() -> Child {
    let arguments = ["--exact", "child::child_process", SERVE, "--nocapture", "--test-threads=1"];
    arguments.into_iter().fold(Child::new(env::current_exe().unwrap()), Child::with_argument)
}

fn open(folder: &Folder, child: &Child, code: &str) -> Result<ChildModule, Error> {
    let library = folder.package(Code::Source(code));
    child.open(&module(&library), None, &folder.options(), &Limits::hostile())
}

/// Runs code in a child once.
fn run(child: &Child, code: &str) -> Result<Vec<f32>, Error> {
    let folder = Folder::new();
    let outputs = open(&folder, child, code)?.run(&[input()], &[])?;
    Ok(floats(&outputs[0]))
}

const DOUBLE: &str = "PACKED(tvmgen_m_f) { for (int i = 0; i < 4; ++i) Y(args)[i] = 2 * X(args)[i]; return 0; }";

#[test]
fn a_child_computes_what_the_process_computes() {
    if !has_compiler() {
        return;
    }
    let folder = Folder::new();
    let library = folder.package(Code::Source(DOUBLE));
    let mut here = Runner::open(&module(&library), None, &folder.options(), &Limits::hostile()).unwrap();
    let mut there = child().open(&module(&library), None, &folder.options(), &Limits::hostile()).unwrap();
    assert_eq!((there.inputs(), there.call_count()), (here.inputs().as_slice(), 1));
    for _ in 0..3 {
        let (want, have) = (here.run(&[input()], &[]).unwrap(), there.run(&[input()], &[]).unwrap());
        assert_eq!((floats(&have[0]), have.len()), (floats(&want[0]), 1));
    }
    // One function of the module alone.
    let mut alone = child().open(&module(&library), Some("tvmgen_m_f"), &folder.options(), &Limits::hostile()).unwrap();
    assert_eq!(floats(&alone.run(&[input()], &[]).unwrap()[0]), [2.0, 4.0, 6.0, 8.0]);
    let missing = child().open(&module(&library), Some("tvmgen_m_g"), &folder.options(), &Limits::hostile());
    assert!(matches!(missing, Err(Error::Child(message)) if message.contains("tvmgen_m_g")));
    assert!(matches!(there.run(&[], &[]), Err(Error::Child(message)) if message.contains("0 inputs, the graph has 1")));
}

#[test]
fn a_crash_is_an_error_that_names_the_signal() {
    if !has_compiler() {
        return;
    }
    for (code, want) in [
        ("*(volatile int*)0 = 1;", "SIGSEGV (signal 11)"),
        ("extern void abort(void); abort();", "SIGABRT (signal 6)"),
        ("extern int raise(int); raise(9);", "SIGKILL (signal 9)"),
        ("extern void _exit(int); _exit(3);", "with status 3"),
    ] {
        let error = run(&child(), &format!("PACKED(tvmgen_m_f) {{ {code} return 0; }}")).unwrap_err();
        assert!(error.to_string().contains(want), "{error}");
    }
    let load = "__attribute__((constructor)) static void start(void) { extern void abort(void); abort(); } PACKED(tvmgen_m_f) { return 0; }";
    let error = run(&child(), load).unwrap_err();
    assert!(matches!(error, Error::Crash { name: "SIGABRT", .. }), "{error}");
}

#[test]
fn the_run_after_a_crash_starts_another_process() {
    if !has_compiler() {
        return;
    }
    let folder = Folder::new();
    let code = "PACKED(tvmgen_m_f) { if (X(args)[0] != 1) *(volatile int*)0 = 1; Y(args)[0] = X(args)[3]; return 0; }";
    let mut module = open(&folder, &child(), code).unwrap();
    let mut zeros = input().into_data();
    zeros.fill(0);
    let zeros = edgepack_format::tensor::TensorBuf::from_bytes(input().layout().clone(), zeros).unwrap();
    for _ in 0..2 {
        assert!(matches!(module.run(std::slice::from_ref(&zeros), &[]), Err(Error::Crash { .. })));
        assert_eq!(floats(&module.run(&[input()], &[]).unwrap()[0])[0], 4.0);
    }
}

#[test]
fn code_that_goes_on_is_ended_with_all_it_started() {
    if !has_compiler() {
        return;
    }
    let folder = Folder::new();
    let file = folder.path().join("alive");
    // A process of its own that would make a file, started by code that never returns.
    let code = format!(
        "extern int fork(void); extern unsigned sleep(unsigned); extern int creat(const char*, unsigned);
        PACKED(tvmgen_m_f) {{ if (fork() == 0) {{ sleep(3); creat(\"{}\", 0600); }} for (;;) sleep(1); }}",
        file.display()
    );
    let start = Instant::now();
    let mut module = open(&folder, &child().with_deadline(Duration::from_secs(1)), &code).unwrap();
    let error = module.run(&[input()], &[]).unwrap_err();
    assert!(matches!(error, Error::Deadline { .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(60));
    std::thread::sleep(Duration::from_secs(4));
    assert!(!file.exists(), "a process was left behind");
}

#[test]
fn no_descriptor_is_inherited_and_printing_is_harmless() {
    if !has_compiler() {
        return;
    }
    // One that is not closed when another program is started.
    let file = std::fs::File::open("/dev/null").unwrap();
    let open = rustix::io::fcntl_dupfd_cloexec(&file, 300).unwrap();
    rustix::io::fcntl_setfd(&open, rustix::io::FdFlags::empty()).unwrap();
    let code = format!(
        "extern int fcntl(int, int, ...); extern int puts(const char*); extern long read(int, void*, unsigned long);
        PACKED(tvmgen_m_f) {{
          char byte;
          for (int i = 0; i < 100; ++i) puts(\"\\x05\\0\\0\\0 this is no answer\");
          Y(args)[0] = fcntl({}, 1) == -1, Y(args)[1] = read(0, &byte, 1);
          int open = 0;
          for (int i = 3; i < 1024; ++i) open += fcntl(i, 1) != -1;
          Y(args)[2] = open <= 3;
          return 0;
        }}",
        open.as_raw_fd()
    );
    assert_eq!(run(&child(), &code).unwrap()[..3], [1.0, 0.0, 1.0]);
}

#[test]
fn a_helper_that_says_something_else_is_refused() {
    if !has_compiler() {
        return;
    }
    // Programs that answer at once, with anything, and that never answer.
    for (program, arguments, want) in [
        ("/bin/sh", &["-c", "printf '\\003\\377\\377\\377\\377\\377\\377\\377\\177' >&0; sleep 5"][..], "at most"),
        ("/bin/sh", &["-c", "printf 'nonsense that is long' >&0; sleep 5"], "another question"),
        ("/bin/sh", &["-c", "exit 0"], "status 0"),
        ("/bin/sh", &["-c", "sleep 30"], "after 1 seconds"),
        ("/nowhere/helper", &[], "/nowhere/helper"),
    ] {
        let helper = Child::new(program).with_deadline(Duration::from_secs(1));
        let helper = arguments.iter().fold(helper, |helper, argument| helper.with_argument(argument));
        let error = run(&helper, DOUBLE).unwrap_err().to_string();
        assert!(error.contains(want), "{program} {arguments:?}: {error}");
    }
}

#[test]
fn nothing_is_compiled_or_started_without_leave() {
    let folder = Folder::new();
    let library = folder.package(Code::Source(DOUBLE));
    let refused = child().open(&module(&library), None, &edgepack_native::Options::default(), &Limits::hostile());
    assert!(matches!(refused, Err(Error::NotAllowed)));
}
