//! Compiled objects: what their loader supplies to them, and objects that are not for this machine.

use edgepack_format::limits::Limits;
use edgepack_native::{Error, Options, Runner};

use crate::packages::{Code, Folder, floats, has_compiler, input, module};

/// Runs a package in this process.
fn run(folder: &Folder, code: Code<'_>, options: &Options) -> Result<Vec<f32>, Error> {
    let library = folder.package(code);
    let mut runner = Runner::open(&module(&library), None, options, &Limits::hostile())?;
    Ok(floats(&runner.run(&[input()], &[])?[0]))
}

fn ran(code: &str) -> Result<Vec<f32>, Error> {
    let folder = Folder::new();
    run(&folder, Code::Object(code), &folder.options())
}

/// Declares a weak null pointer of this name, as compilers write it into objects.
fn pointer(name: &str, declaration: &str) -> String {
    format!("__attribute__((weak)) {declaration} = NULL;\nstatic int has_{name}(void) {{ return {name} != NULL; }}\n")
}

#[test]
fn weak_null_pointers_are_filled() {
    if !has_compiler() {
        return;
    }
    let pointers = [
        ("__TVMFuncCall", "int (*__TVMFuncCall)(void*, void*, int32_t*, int32_t, void*, int32_t*)"),
        ("__TVMAPISetLastError", "void (*__TVMAPISetLastError)(const char*)"),
        ("__TVMBackendGetFuncFromEnv", "int (*__TVMBackendGetFuncFromEnv)(void*, const char*, void**)"),
        ("__TVMBackendAllocWorkspace", "void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int)"),
        ("__TVMBackendFreeWorkspace", "int (*__TVMBackendFreeWorkspace)(int, int, void*)"),
        ("__TVMBackendParallelLaunch", "int (*__TVMBackendParallelLaunch)(void*, void*, int)"),
        ("__TVMBackendParallelBarrier", "int (*__TVMBackendParallelBarrier)(int, void*)"),
        ("__tvm_module_ctx", "void* __tvm_module_ctx"),
    ];
    // Each alone, and all in one object.
    let each = pointers.iter().map(|(name, declaration)| (pointer(name, declaration), format!("has_{name}()")));
    let all = pointers.map(|(name, declaration)| pointer(name, declaration)).concat();
    let all = (all, pointers.map(|(name, _)| format!("has_{name}()")).join(" + "));
    for (index, (declared, sum)) in each.chain([all]).enumerate() {
        let body =
            format!("{declared} PACKED(tvmgen_m_f) {{ for (int i = 0; i < 4; ++i) Y(args)[i] = {sum}; return 0; }}");
        let want = if index < 8 { 1.0 } else { 8.0 };
        assert_eq!(ran(&body).unwrap(), [want; 4], "{body}");
    }
}

#[test]
fn workspace_is_aligned_and_writable() {
    if !has_compiler() {
        return;
    }
    let body = "__attribute__((weak)) void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int);
        __attribute__((weak)) int (*__TVMBackendFreeWorkspace)(int, int, void*);
        PACKED(tvmgen_m_f) {
          float* scratch = __TVMBackendAllocWorkspace(1, 0, 1000, 2, 32);
          if (scratch == NULL || (uintptr_t)scratch % 128 != 0) return -1;
          memset(scratch, 1, 1000);
          for (int i = 0; i < 4; ++i) scratch[i] = 2 * X(args)[i];
          for (int i = 0; i < 4; ++i) Y(args)[i] = scratch[i];
          return __TVMBackendFreeWorkspace(1, 0, scratch);
        }";
    assert_eq!(ran(body).unwrap(), [2.0, 4.0, 6.0, 8.0]);
}

#[test]
fn the_message_of_an_error_arrives() {
    if !has_compiler() {
        return;
    }
    let body = "__attribute__((weak)) void (*__TVMAPISetLastError)(const char*);
        PACKED(tvmgen_m_f) { __TVMAPISetLastError(\"Assert fail: shape\"); return -1; }";
    let error = ran(body).unwrap_err().to_string();
    assert!(error.contains("tvmgen_m_f answered -1: Assert fail: shape"), "{error}");
}

/// A loop whose tasks meet twice: each writes, meets the others, reads what all wrote, and says which task it was.
const LOOP: &str = "typedef struct { void* sync; int32_t num_task; } Env;
    __attribute__((weak)) int (*__TVMBackendParallelLaunch)(int (*)(int, Env*, void*), void*, int);
    __attribute__((weak)) int (*__TVMBackendParallelBarrier)(int, Env*);
    static float seen[256];
    static int task(int id, Env* env, void* out) {
      for (int round = 0; round < 50; ++round) {
        seen[id] = round + 1;
        __TVMBackendParallelBarrier(id, env);
        float sum = 0;
        for (int i = 0; i < env->num_task; ++i) sum += seen[i];
        if (sum != env->num_task * (round + 1.0f)) return 1;
        __TVMBackendParallelBarrier(id, env);
      }
      __atomic_fetch_add((int32_t*)out, 1, __ATOMIC_SEQ_CST);
      return 0;
    }
    PACKED(tvmgen_m_f) {
      int32_t tasks = 0;
      if (__TVMBackendParallelLaunch(task, &tasks, TASKS) != 0) return -1;
      for (int i = 0; i < 4; ++i) Y(args)[i] = tasks;
      return 0;
    }";

#[test]
fn parallel_tasks_run_together_and_meet() {
    if !has_compiler() {
        return;
    }
    // As many as the code asks for; where it leaves that open, as many as the options say.
    for (asked, threads, want) in [(1, 4, 1.0), (5, 1, 5.0), (0, 1, 1.0), (0, 3, 3.0)] {
        let folder = Folder::new();
        let mut options = folder.options();
        options.threads = threads;
        let code = LOOP.replace("TASKS", &asked.to_string());
        assert_eq!(run(&folder, Code::Object(&code), &options).unwrap(), [want; 4], "{asked} of {threads}");
    }
    let error = ran(&LOOP.replace("TASKS", "1000")).unwrap_err().to_string();
    assert!(error.contains("a loop of 1000 parallel tasks, at most 256 are run"), "{error}");
}

#[test]
fn a_task_that_fails_stops_nobody_and_is_told() {
    if !has_compiler() {
        return;
    }
    let body = "typedef struct { void* sync; int32_t num_task; } Env;
        __attribute__((weak)) int (*__TVMBackendParallelLaunch)(int (*)(int, Env*, void*), void*, int);
        __attribute__((weak)) int (*__TVMBackendParallelBarrier)(int, Env*);
        __attribute__((weak)) void (*__TVMAPISetLastError)(const char*);
        static int task(int id, Env* env, void* out) {
          if (id == 2) { __TVMAPISetLastError(\"task two\"); return 7; }
          return __TVMBackendParallelBarrier(id, env);
        }
        PACKED(tvmgen_m_f) { return __TVMBackendParallelLaunch(task, NULL, 4); }";
    let error = ran(body).unwrap_err().to_string();
    assert!(error.contains("answered 7: task two"), "{error}");
}

#[test]
fn functions_are_found_by_name_in_the_package_and_nowhere_else() {
    if !has_compiler() {
        return;
    }
    let body = |name: &str| {
        format!(
            "__attribute__((weak)) int (*__TVMBackendGetFuncFromEnv)(void*, const char*, void**);
            __attribute__((weak)) int (*__TVMFuncCall)(void*, void*, int32_t*, int32_t, void*, int32_t*);
            __attribute__((weak)) void* __tvm_module_ctx;
            int TVMBackendRegisterSystemLibSymbol(const char* name, void* symbol);
            PACKED(tvmgen_m_other) {{ for (int i = 0; i < 4; ++i) Y(args)[i] = X(args)[i] + 1; return 0; }}
            static PACKED(hidden) {{ for (int i = 0; i < 4; ++i) Y(args)[i] = X(args)[i] + 2; return 0; }}
            __attribute__((constructor)) static void startup(void) {{
              TVMBackendRegisterSystemLibSymbol(\"tvm.contrib.hidden\", (void*)hidden);
            }}
            PACKED(tvmgen_m_f) {{
              void* function;
              if (__TVMBackendGetFuncFromEnv(__tvm_module_ctx, \"{name}\", &function) != 0) return -1;
              return __TVMFuncCall(function, args, codes, count, out, out_code);
            }}"
        )
    };
    assert_eq!(ran(&body("tvmgen_m_other")).unwrap(), [2.0, 3.0, 4.0, 5.0]);
    assert_eq!(ran(&body("tvm.contrib.hidden")).unwrap(), [3.0, 4.0, 5.0, 6.0]);
    // A function of the C library is no packed function.
    for name in ["abort", "tvm.contrib.sort.argsort"] {
        let error = ran(&body(name)).unwrap_err().to_string();
        assert!(error.contains(&format!("asks for the function {name}, which is not in the package")), "{error}");
    }
}

#[test]
fn symbols_that_nobody_has_are_named_when_it_is_linked() {
    if !has_compiler() {
        return;
    }
    let error = ran("void nobody(void); PACKED(tvmgen_m_f) { nobody(); return 0; }").unwrap_err();
    assert!(
        matches!(&error, Error::Compiler { file, message, .. } if file == "the library" && message.contains("nobody"))
    );
}

#[test]
fn an_object_of_another_machine_is_refused_before_any_linker_runs() {
    let mut object = b"\x7fELF\x01\x01\x01".to_vec();
    object.resize(16, 0);
    object.extend([1, 0, 40, 0]);
    let folder = Folder::new();
    let mut options = folder.options();
    // It would fail if it were started.
    options.compiler = "/nowhere/cc".into();
    let error = run(&folder, Code::Bytes(&object), &options).unwrap_err();
    let Error::Machine { file, have, want } = &error else { panic!("{error}") };
    assert_eq!(
        (file.as_str(), have.as_str()),
        ("codegen/host/lib/m_lib0.o", "an ELF object for ARM (32 bits, little-endian)")
    );
    assert_eq!(*want, edgepack_format::mlf::ObjectCode::of_this_process().to_string());
    for other in [&b"BC\xc0\xde"[..], b"no object"] {
        assert!(matches!(run(&folder, Code::Bytes(other), &options), Err(Error::Machine { .. })));
    }
}
