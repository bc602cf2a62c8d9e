//! Programs in C and C++: the examples, the quick start of README.md, and one that takes every bad file. Each is compiled with
//! the compilers that are there, against the shared and the static library, and with AddressSanitizer where it is.
//!
//! Tests without their compiler say so, by name.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::root;

/// System libraries that the static library needs.
const SYSTEM: &[&str] = &["-lpthread", "-ldl", "-lm", "-lgcc_s"];

/// Ways of linking a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Linked {
    Shared,
    Static,
    /// Shared, with AddressSanitizer and the sanitizer of undefined behaviour on the side of C.
    Sanitized,
}

/// The folder in which cargo put the libraries: that of this test or the one above.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let folders = test.ancestors().skip(1).take(2);
    let found = folders.map(Path::to_owned).find(|folder| folder.join("libedgepack_c.so").exists());
    found.expect("libedgepack_c.so next to the tests")
}

/// Writes a line that is seen although the test passes.
fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("standard error");
}

fn has(compiler: &str) -> bool {
    Command::new(compiler).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The compiler of a source; `None`, and a line that says so, where there is none.
fn compiler(source: &Path) -> Option<&'static str> {
    let name = if source.extension().is_some_and(|extension| extension == "cpp") { "c++" } else { "cc" };
    if !has(name) {
        say(&format!("skipped: {}: there is no {name}", source.display()));
        return None;
    }
    Some(name)
}

/// Compiles a source; returns the program.
fn compile(compiler: &str, source: &Path, linked: Linked) -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let stem = source.file_stem().expect("a name").to_string_lossy().into_owned();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{stem}-{number}"));
    let mut command = Command::new(compiler);
    let standard = if compiler == "c++" { "-std=c++17" } else { "-std=c11" };
    command.args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-O1"]);
    command.arg("-I").arg(here.join("include")).arg(source).arg("-o").arg(&program);
    let libraries = libraries();
    match linked {
        Linked::Static => command.arg(libraries.join("libedgepack_c.a")).args(SYSTEM),
        _ => command.arg(libraries.join("libedgepack_c.so")).arg(format!("-Wl,-rpath,{}", libraries.display())),
    };
    if linked == Linked::Sanitized {
        command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]);
    }
    let output = command.output().expect("the compiler");
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run(program: &Path, args: &[&Path]) -> Output {
    // Paths of the README are those of the repository.
    let output = Command::new(program)
        .current_dir(root())
        .args(args)
        .env("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0")
        .output();
    output.unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}

/// Runs a program that has to end well; returns what it printed.
fn fine(program: &Path, args: &[&Path]) -> String {
    let output = run(program, args);
    let (printed, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{} {args:?}: {}\n{printed}\n{complained}", program.display(), output.status);
    printed.into_owned()
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

fn corpus(name: &str) -> PathBuf {
    root().join("tests/data/corpus/models").join(name)
}

/// Ways of linking that most programs are tried in. The static library is large: one program is linked with it.
const SHARED: [Linked; 2] = [Linked::Shared, Linked::Sanitized];

/// Returns whether programs with sanitizers can be made here.
fn sanitizers(compiler: &str) -> bool {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sanitized.c");
    let program = source.with_extension("out");
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("a source");
    let mut command = Command::new(compiler);
    command.args(["-x", "c", "-fsanitize=address,undefined"]).arg(&source).arg("-o").arg(&program);
    let made = command.output().is_ok_and(|output| output.status.success());
    if !made {
        say(&format!("skipped: AddressSanitizer: {compiler} has none"));
    }
    made && Command::new(&program).status().is_ok_and(|status| status.success())
}

/// Compiles a source in each of these ways that there is here, and hands each program on.
fn each(source: &Path, ways: &[Linked], mut test: impl FnMut(&Path)) {
    let Some(compiler) = compiler(source) else { return };
    for &linked in ways {
        if linked != Linked::Sanitized || sanitizers("cc") {
            test(&compile(compiler, source, linked));
        }
    }
}

#[test]
fn a_program_is_run_from_c() {
    each(&example("run.c"), &[Linked::Shared, Linked::Static, Linked::Sanitized], |program| {
        let printed = fine(program, &[&corpus("mlp_portable.pte")]);
        assert!(printed.starts_with("output 0: [3, 4] "), "{printed}");
        let (name, data) = (Path::new("forward"), corpus("external_portable._default_external_constant.ptd"));
        let printed = fine(program, &[&corpus("external_portable.pte"), name, &data]);
        assert!(printed.starts_with("output 0: ["), "{printed}");
        let output = run(program, &[&root().join("tests/data/hostile/pte/short.pte")]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    });
}

#[test]
fn a_file_is_inspected_from_c() {
    each(&example("inspect.c"), &SHARED, |program| {
        let printed = fine(program, &[&corpus("mlp_portable.pte")]);
        let document: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
        assert!(document["schema"].as_str().is_some_and(|schema| schema.starts_with("edgepack/inspect/")));
        let output = run(program, &[&root().join("tests/data/hostile/ptd/key_twice.ptd")]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("PTD-"), "{output:?}");
    });
}

#[test]
fn an_operator_is_written_in_c() {
    each(&example("custom_kernel.c"), &SHARED, |program| {
        assert_eq!(fine(program, &[&example("leaky.pte")]), "-1 0 3\n");
    });
}

#[test]
fn a_backend_is_written_in_c() {
    each(&example("custom_backend.c"), &SHARED, |program| {
        assert_eq!(fine(program, &[&example("polynomial.pte")]), "1 + 2x^2: 1 3 9\n");
    });
}

#[test]
fn an_operator_is_written_in_cpp() {
    each(&example("own_operator.cpp"), &SHARED, |program| {
        let printed = fine(program, &[&example("leaky.pte")]);
        assert_eq!(printed, "-1 0 3 \ninputs[0]: input 0 wants f32[3], got f32[2]\n");
    });
}

/// The lines of README.md, as they are there.
#[test]
fn the_quick_start_runs() {
    let page = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    let after = page.split("<!-- c -->").nth(1).expect("the mark of the quick start");
    let code = after.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block of C");
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("quick_start.c");
    std::fs::write(&source, code).expect("a source");
    each(&source, &SHARED, |program| {
        let printed = fine(program, &[]);
        assert!(printed.trim().parse::<f32>().is_ok(), "{printed}");
    });
}

/// Every bad file through every function that takes one, in a process that a crash would end.
#[test]
fn bad_files_are_answered_in_c() {
    let mut files = Vec::new();
    for family in std::fs::read_dir(root().join("tests/data/hostile")).expect("the bad files") {
        let folder = family.expect("a folder").path();
        files.extend(std::fs::read_dir(folder).expect("bad files").map(|file| file.expect("a file").path()));
    }
    files.sort();
    assert!(files.len() > 500, "{} bad files", files.len());
    let args: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile.c");
    let way = if has("cc") && sanitizers("cc") { Linked::Sanitized } else { Linked::Shared };
    each(&source, &[way], |program| {
        let printed = fine(program, &args);
        assert!(printed.contains(&format!("{} files", files.len())), "{printed}");
    });
}
