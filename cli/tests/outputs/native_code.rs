//! Code of packages in a process of its own: what comes out of the command when it crashes, prints or never ends.

use edgepack::builder::mlf::{GraphBuilder, LibraryParts};
use edgepack_format::mlf::{DataType, Memory, Module, Targets};

use super::*;

/// A package of modules that call `tvmgen_NAME_f` on four floats, with the body of that function in C.
fn package(modules: &[(&str, &str)]) -> Vec<u8> {
    let float32: DataType = "float32".parse().expect("a type");
    let mut parts = LibraryParts::new(7);
    for (name, body) in modules {
        let mut graph = GraphBuilder::new();
        let x = graph.argument("x", float32, &[4]);
        let y = graph.call(format!("tvmgen_{name}_f"), &[x], &[(float32, &[4])])[0];
        graph.output(y);
        let module = Module {
            name: (*name).into(),
            export_datetime: "2024-01-01 00:00:00Z".into(),
            executors: vec!["graph".into()],
            target: Targets::List(vec!["c".into()]),
            memory: Memory { main: Some(Vec::new()), operators: Some(Vec::new()), ..Memory::default() },
            ..Module::default()
        };
        parts.graph_module(module, &graph.finish().expect("a graph"), &[], None).expect("a module");
        let source = format!(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n#include \"tvm/runtime/c_runtime_api.h\"\n\
             TVM_DLL int32_t tvmgen_{name}_f(TVMValue* args, int32_t* codes, int32_t count, void* out, int32_t* code, void* \
             resource) {{\n  float* x = ((DLTensor*)args[0].v_handle)->data;\n  float* y = \
             ((DLTensor*)args[1].v_handle)->data;\n  for (int i = 0; i < 4; ++i) y[i] = x[i];\n  {body}\n  return 0;\n}}\n"
        );
        parts.code(name, "host", "c", source.into_bytes());
    }
    parts.finish().expect("a package")
}

/// Runs the command with a cache in the folder; `None` where there is no C compiler.
fn native(folder: &Folder, args: &[&str]) -> Option<Command> {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("there is no C compiler: not tried");
        return None;
    }
    let mut command = edgepack(folder, args);
    command.arg("--allow-native-code").env("XDG_CACHE_HOME", folder.path("cache"));
    Some(command)
}

fn output(folder: &Folder, args: &[&str]) -> Option<Output> {
    Some(native(folder, args)?.output().expect("the command"))
}

const RUN: [&str; 4] = ["run", "p.tar", "--inputs", "x.npy"];

/// A folder with a package, and an input of four floats.
fn prepared(name: &str, modules: &[(&str, &str)]) -> Folder {
    let folder = Folder::new(name);
    folder.write("p.tar", package(modules));
    let header = format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }");
    let values = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    folder.write("x.npy", [b"\x93NUMPY\x01\0\x76\0", header.as_bytes(), &values].concat());
    folder
}

#[test]
fn a_crash_is_an_error_with_status_4() {
    let folder = prepared("crash", &[("m", "*(volatile int*)0 = 1;")]);
    let Some(crashed) = output(&folder, &RUN) else { return };
    status(&crashed, 4, &RUN);
    let said = String::from_utf8_lossy(&crashed.stderr);
    assert!(said.contains("p.tar: the code ended its process by SIGSEGV (signal 11)"), "{said}");
    fs::create_dir_all(folder.path("cases")).expect("a folder");
    for side in ["case0_in0.npy", "case0_out0.npy", "case1_in0.npy"] {
        folder.write(&format!("cases/{side}"), folder.read("x.npy"));
    }
    let checked = output(&folder, &["check", "p.tar", "cases"]).expect("a compiler");
    status(&checked, 4, &"check");
    let said = String::from_utf8_lossy(&checked.stdout);
    assert_eq!(said.matches("by SIGSEGV (signal 11)").count(), 2, "{said}");
    // In the process of the command it is the end of the command.
    let ended = output(&folder, &["run", "p.tar", "--inputs", "x.npy", "--in-process"]).expect("a compiler");
    assert_eq!(ended.status.code(), None);
}

#[test]
fn what_the_code_prints_is_not_in_the_result() {
    let folder = prepared("prints", &[("m", "puts(\"{\\\"noise\\\": 1}\"); fflush(stdout);")]);
    let Some(ran) = output(&folder, &["run", "p.tar", "--inputs", "x.npy", "--json"]) else { return };
    status(&ran, 0, &"run");
    let document: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("one document");
    assert_eq!(document["outputs"][0]["values"], serde_json::json!(["1", "2", "3", "4"]), "{document}");
    assert!(String::from_utf8_lossy(&ran.stderr).contains("noise"));
}

#[test]
fn code_that_never_ends_is_ended() {
    let folder = prepared("endless", &[("m", "for (;;) sleep(1);")]);
    let Some(ended) = output(&folder, &["run", "p.tar", "--inputs", "x.npy", "--time-limit", "1"]) else { return };
    status(&ended, 4, &"run");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("the code was ended after 1 seconds"));
}

/// Processes that have this text in their command line or environment, besides this one.
fn processes(text: &str) -> usize {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let environments = folders.filter_map(|entry| fs::read(entry.path().join("environ")).ok());
    environments.filter(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes())).count()
}

#[test]
fn a_signal_ends_the_code_with_the_command() {
    let folder = prepared(
        "interrupted",
        &[("m", "fprintf(stderr, \"running\\n\"); if (fork() == 0) sleep(1000); for (;;) sleep(1);")],
    );
    let mark = format!("EDGEPACK_TEST_MARK={}", folder.0.display());
    // SIGINT is handled as SIGTERM is; whoever runs the tests in the background has it ignored.
    for signal in ["TERM", "KILL"] {
        let Some(mut command) = native(&folder, &RUN) else { return };
        let (name, value) = mark.split_once('=').expect("a pair");
        command.env(name, value).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command");
        let mut said = [0; 8];
        std::io::Read::read_exact(child.stderr.as_mut().expect("its complaints"), &mut said).expect("the code runs");
        let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(kill.expect("kill").success());
        child.wait().expect("its end");
        let start = std::time::Instant::now();
        while processes(&mark) > 0 && start.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(processes(&mark), 0, "SIG{signal} left processes");
    }
}

#[test]
fn modules_and_functions_are_chosen_and_checked_with_runs_of_their_own() {
    let folder = prepared("modules", &[("a", ""), ("b", "for (int i = 0; i < 4; ++i) y[i] = 2 * x[i];")]);
    let run = |more: &[&str]| output(&folder, &[&RUN[..], more].concat());
    let Some(unclear) = run(&[]) else { return };
    status(&unclear, 2, &"no module");
    assert!(String::from_utf8_lossy(&unclear.stderr).contains("name one of the modules with --module: a, b"));
    for (more, want) in [
        (&["--module", "a"][..], "a\n  0  f32[4]  1, 2, 3, 4\n"),
        (&["--method", "b"], "b\n  0  f32[4]  2, 4, 6, 8\n"),
        (&["--module", "b", "--function", "tvmgen_b_f"], "b.tvmgen_b_f\n  0  f32[4]  2, 4, 6, 8\n"),
    ] {
        let ran = run(more).expect("a compiler");
        status(&ran, 0, &more);
        assert_eq!(String::from_utf8_lossy(&ran.stdout), want);
    }
    let missing = run(&["--module", "a", "--function", "tvmgen_b_f"]).expect("a compiler");
    status(&missing, 4, &"a function of another module");
    // Runs of both modules in one file, and in folders.
    for (module, function) in [("a", "tvmgen_a_f"), ("b", "tvmgen_b_f")] {
        let out = format!("{module}.npy");
        status(&run(&["--module", module, "--outputs", &out]).expect("a compiler"), 0, &module);
        for place in [format!("cases/{module}"), format!("cases/{module}/{function}")] {
            fs::create_dir_all(folder.path(&place)).expect("a folder");
            folder.write(&format!("{place}/case0_in0.npy"), folder.read("x.npy"));
            folder.write(&format!("{place}/case0_out0.npy"), folder.read(&out));
        }
    }
    for (more, want) in [
        (&[][..], "runs that agree: 2 of 2"),
        (&["--module", "b"], "runs that agree: 1 of 1"),
        (&["--module", "b", "--function", "tvmgen_b_f"], "runs that agree: 1 of 1"),
    ] {
        let checked = output(&folder, &[&["check", "p.tar", "cases"][..], more].concat()).expect("a compiler");
        status(&checked, 0, &more);
        assert!(String::from_utf8_lossy(&checked.stdout).contains(want), "{more:?}");
    }
    fs::rename(folder.path("cases/b"), folder.path("cases/c")).expect("a folder");
    let checked = output(&folder, &["check", "p.tar", "cases"]).expect("a compiler");
    assert!(String::from_utf8_lossy(&checked.stdout).contains("runs that agree: 1 of 1"));
}
