//! Opening, asking, loading and running, as a program in C does it.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use edgepack_c::data::*;
use edgepack_c::error::EdgepackCode;
use edgepack_c::findings::*;
use edgepack_c::limits::*;
use edgepack_c::method::*;
use edgepack_c::options::*;
use edgepack_c::pointer::{In, Out};
use edgepack_c::program::*;
use edgepack_c::report::*;
use edgepack_c::signature::*;
use edgepack_c::text::EdgepackText;
use edgepack_c::value::*;
use edgepack_c::version::*;

use crate::support::*;

/// Results of the facade for the same input.
fn expected(file: &[u8], sizes: &[usize], data: &[u8]) -> Vec<f32> {
    use edgepack::prelude::*;
    let program = Program::from_bytes(file.to_vec()).unwrap();
    let mut forward = program.method("forward").unwrap().load(&kernels::registry(), &Options::default()).unwrap();
    let outputs = forward.run(&[TensorView::of::<f32>(sizes, data).unwrap()]).unwrap();
    outputs.get(0).unwrap().tensor().unwrap().as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn a_program_is_opened_asked_loaded_and_run() {
    let file = model("mlp_portable");
    let program = open(&file).unwrap();
    let (mut count, mut name) = (0, EdgepackText { data: In::NULL, len: 0 });
    call(|error| edgepack_program_method_count(program, out(&mut count), error)).unwrap();
    call(|error| edgepack_program_method_name(program, 0, out(&mut name), error)).unwrap();
    assert_eq!((count, read(name)), (1, "forward".to_owned()));

    let mut signature = EdgepackSignature { id: 0 };
    call(|error| edgepack_signature_of(program, text(c"forward"), out(&mut signature), error)).unwrap();
    let mut port = EdgepackPort { value: nothing(), dynamic: 7, name };
    call(|error| edgepack_signature_input(signature, 0, out(&mut port), error)).unwrap();
    let input = port.value.tensor;
    assert_eq!((port.value.kind, sizes(&input), input.len), (EdgepackKind::Tensor as u32, vec![3, 8], 96));
    assert!(input.data.is_null() && port.dynamic == 0);
    let mut memory = 0;
    call(|error| edgepack_signature_memory(signature, 0, out(&mut memory), error)).unwrap();
    assert!(memory > 0);

    let method = load(program, "forward", PLAIN).unwrap();
    // All that was made of the program lives without it.
    assert_eq!(edgepack_program_close(program), EdgepackCode::Ok);
    let data = le(&(0..24).map(|index| index as f32 / 8.0).collect::<Vec<_>>());
    let value = [tensor(EdgepackDtype::Float, &[3, 8], &data)];
    let mut output = [nothing()];
    call(|error| edgepack_method_run(method, to(&value), 1, outs(&mut output), 1, error)).unwrap();
    assert_eq!(floats(&output[0].tensor), expected(&file, &[3, 8], &data));
    assert_eq!(sizes(&output[0].tensor), [3, 4]);

    // At an odd address, with inputs set one by one, and copied out.
    let moved = [&[0][..], &data].concat();
    let value = tensor(EdgepackDtype::Float, &[3, 8], &moved[1..]);
    call(|error| edgepack_method_reset(method, error)).unwrap();
    call(|error| edgepack_method_set_input(method, 0, to(&[value]), error)).unwrap();
    call(|error| edgepack_method_execute(method, error)).unwrap();
    let mut copy = vec![0; output[0].tensor.len];
    call(|error| edgepack_method_copy_output(method, 0, room(&mut copy), 48, error)).unwrap();
    assert_eq!(copy, le(&expected(&file, &[3, 8], &data)));

    let (mut inputs, mut outputs) = (0, 0);
    call(|error| edgepack_method_counts(method, out(&mut inputs), out(&mut outputs), error)).unwrap();
    call(|error| edgepack_method_counts(method, Out::NULL, Out::NULL, error)).unwrap();
    assert_eq!((inputs, outputs), (1, 1));
    let mut memory = EdgepackMemory {
        planned: 0,
        private_values: 0,
        scratch: 0,
        constants: 0,
        borrowed: 0,
        packed: 0,
        plan: 0,
        program: 0,
    };
    call(|error| edgepack_method_memory(method, out(&mut memory), error)).unwrap();
    assert!(memory.planned > 0 && memory.program > 0);
    edgepack_method_close(method);
    edgepack_signature_close(signature);
}

/// Outputs are given to the next run, without a copy of the caller's.
#[test]
fn outputs_may_be_inputs_of_the_next_run() {
    use edgepack::prelude::*;
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [4])).unwrap();
    let y = forward.call("aten::add.out", args![x, x, 1i64], TensorSpec::like(x)).unwrap();
    forward.output(y).unwrap();
    let program = open(&program.finish().unwrap().to_bytes().unwrap()).unwrap();
    let method = load(program, "forward", PLAIN).unwrap();
    let data = le(&[1.0, 2.0, 3.0, 4.0]);
    let mut value = [tensor(EdgepackDtype::Float, &[4], &data)];
    for _ in 0..5 {
        let mut output = [nothing()];
        call(|error| edgepack_method_run(method, to(&value), 1, outs(&mut output), 1, error)).unwrap();
        value = output;
    }
    assert_eq!(floats(&value[0].tensor), [32.0, 64.0, 96.0, 128.0]);
    call(|error| edgepack_method_set_input(method, 0, to(&value), error)).unwrap();
    call(|error| edgepack_method_execute(method, error)).unwrap();
    call(|error| edgepack_method_output(method, 0, outs(&mut value), error)).unwrap();
    assert_eq!(floats(&value[0].tensor), [64.0, 128.0, 192.0, 256.0]);
    edgepack_method_close(method);
    edgepack_program_close(program);
}

#[test]
fn values_that_are_no_tensors_come_out() {
    let program = open(&model("multimethod_getters_portable")).unwrap();
    let run = |name| {
        let method = load(program, name, PLAIN).unwrap();
        let mut output = [nothing()];
        call(|error| edgepack_method_run(method, In::NULL, 0, outs(&mut output), 1, error)).unwrap();
        let text = (output[0].kind == EdgepackKind::Text as u32).then(|| read(output[0].text));
        edgepack_method_close(method);
        (output[0].kind, output[0].integer, text)
    };
    assert_eq!(run("shape"), (EdgepackKind::Int as u32, 2, None));
    let (kind, _, label) = run("label");
    assert!(kind == EdgepackKind::Text as u32 && label.is_some_and(|label| !label.is_empty()));
    edgepack_program_close(program);
}

static RELEASED: AtomicUsize = AtomicUsize::new(0);

extern "C-unwind" fn release(user: Out<c_void>) {
    RELEASED.fetch_add(user.as_ptr().addr(), Ordering::SeqCst);
}

#[test]
fn borrowed_memory_is_given_back_after_its_last_use() {
    let file = model("mlp_portable");
    let mut program = EdgepackProgram { id: 0 };
    // SAFETY: not a pointer to anything: it is a number that `release` adds.
    let user = unsafe { Out::new(std::ptr::without_provenance_mut(1000)) };
    let mut opening = |file: &[u8]| {
        call(|error| {
            edgepack_program_open_borrowed(
                bytes(file),
                file.len(),
                Some(release),
                user,
                MACHINE,
                out(&mut program),
                error,
            )
        })
    };
    // Nothing was taken over.
    opening(&file[..100]).unwrap_err();
    assert_eq!(RELEASED.load(Ordering::SeqCst), 0);
    opening(&file).unwrap();
    let method = load(program, "forward", PLAIN).unwrap();
    edgepack_program_close(program);
    let data = le(&[0.5; 24]);
    let (value, mut output) = ([tensor(EdgepackDtype::Float, &[3, 8], &data)], [nothing()]);
    call(|error| edgepack_method_run(method, to(&value), 1, outs(&mut output), 1, error)).unwrap();
    assert_eq!(floats(&output[0].tensor), expected(&file, &[3, 8], &data));
    assert_eq!(RELEASED.load(Ordering::SeqCst), 0);
    edgepack_method_close(method);
    assert_eq!(RELEASED.load(Ordering::SeqCst), 1000);
}

#[test]
fn named_data_are_listed_read_and_loaded_with() {
    let path = root().join("tests/data/corpus/models/external_portable._default_external_constant.ptd");
    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    let mut weights = EdgepackData { id: 0 };
    call(|error| edgepack_data_open(text(&path), MACHINE, out(&mut weights), error)).unwrap();
    let mut count = 0;
    call(|error| edgepack_data_count(weights, out(&mut count), error)).unwrap();
    assert!(count > 1);
    for index in 0..count {
        let mut key = EdgepackText { data: In::NULL, len: 0 };
        call(|error| edgepack_data_key(weights, index, out(&mut key), error)).unwrap();
        let name = std::ffi::CString::new(read(key)).unwrap();
        let mut found = usize::MAX;
        call(|error| edgepack_data_find(weights, text(&name), out(&mut found), error)).unwrap();
        assert_eq!(found, index);
        let mut layout = nothing().tensor;
        call(|error| edgepack_data_layout(weights, index, out(&mut layout), error)).unwrap();
        assert_eq!(sizes(&layout).iter().product::<usize>() * edgepack_dtype_size(layout.dtype), layout.len);
        let mut copy = vec![7; layout.len];
        call(|error| edgepack_data_read(weights, index, room(&mut copy), layout.len, error)).unwrap();
        let (mut handle, mut at, mut len) = (EdgepackBytes { id: 0 }, In::NULL, 0);
        call(|error| edgepack_data_bytes(weights, index, out(&mut handle), error)).unwrap();
        call(|error| edgepack_bytes_view(handle, out(&mut at), out(&mut len), error)).unwrap();
        assert_eq!(data(&EdgepackTensor { data: at, len, ..layout }), copy);
        edgepack_bytes_close(handle);
        let short = layout.len - 1;
        assert!(refused(|error| edgepack_data_read(weights, index, room(&mut copy), short, error)).contains("bytes"));
    }
    let program = open(&model("external_portable")).unwrap();
    let told = load(program, "forward", PLAIN).unwrap_err();
    assert!(told.message.contains("net"), "{told:?}");
    let mut options = EdgepackOptions { id: 0 };
    call(|error| edgepack_options_new(out(&mut options), error)).unwrap();
    call(|error| edgepack_options_add_data(options, weights, error)).unwrap();
    call(|error| edgepack_options_set_threads(options, 2, error)).unwrap();
    call(|error| edgepack_options_set_optimize(options, 0, error)).unwrap();
    edgepack_data_close(weights);
    let method = load(program, "forward", options).unwrap();
    edgepack_options_close(options);
    edgepack_method_close(method);
    edgepack_program_close(program);
}

#[test]
fn limits_hold() {
    let mut limits = EdgepackLimits { id: 0 };
    call(|error| edgepack_limits_new(EdgepackPreset::Hostile as u32, out(&mut limits), error)).unwrap();
    let mut value = 0;
    call(|error| edgepack_limits_get(limits, EdgepackLimit::Instructions as u32, out(&mut value), error)).unwrap();
    assert_eq!(value, 100_000);
    call(|error| edgepack_limits_set(limits, EdgepackLimit::MemoryBytes as u32, 10, error)).unwrap();
    let file = model("mlp_portable");
    let mut program = EdgepackProgram { id: 0 };
    call(|error| edgepack_program_open_copy(bytes(&file), file.len(), limits, out(&mut program), error)).unwrap();
    let told = load(program, "forward", PLAIN).unwrap_err();
    assert_eq!(told.code, EdgepackCode::MemoryAllocationFailed, "{told:?}");
    let mut options = EdgepackOptions { id: 0 };
    call(|error| edgepack_options_new(out(&mut options), error)).unwrap();
    call(|error| edgepack_options_set_limits(options, MACHINE, error)).unwrap();
    edgepack_method_close(load(program, "forward", options).unwrap());
    edgepack_options_close(options);
    edgepack_program_close(program);
    edgepack_limits_close(limits);
}

#[test]
fn files_are_inspected_and_verified() {
    let file = model("mlp_portable");
    for (function, field) in [
        (edgepack_inspect as extern "C" fn(_, _, _, _) -> _, "\"schema\":\"edgepack/inspect/"),
        (edgepack_ops, "\"schema\":\"edgepack/ops/"),
        (edgepack_size, "\"schema\":\"edgepack/size/"),
    ] {
        let mut report = EdgepackReport { id: 0 };
        let (mut status, mut printed) = (9, EdgepackText { data: In::NULL, len: 0 });
        call(|error| function(to(&[in_memory(&file)]), 0, out(&mut report), error)).unwrap();
        call(|error| edgepack_report_status(report, out(&mut status), error)).unwrap();
        call(|error| edgepack_report_output(report, out(&mut printed), error)).unwrap();
        let printed = read(printed);
        let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(status, 0);
        assert!(document["schema"].is_string() && printed.replace(' ', "").contains(field), "{printed}");
        edgepack_report_close(report);
    }

    let broken = &file[..file.len() / 2];
    let mut findings = EdgepackFindings { id: 0 };
    let mut counts = EdgepackFindingCounts { listed: 0, more: 0, broken: 0 };
    call(|error| edgepack_verify(to(&[in_memory(broken)]), 0, out(&mut findings), error)).unwrap();
    call(|error| edgepack_findings_counts(findings, out(&mut counts), error)).unwrap();
    assert!(counts.broken == 1 && counts.listed > 0);
    let none = EdgepackText { data: In::NULL, len: 0 };
    let mut finding = EdgepackFinding {
        severity: 9,
        rule: none,
        path: none,
        has_offset: 9,
        offset: 0,
        message: none,
        code: EdgepackCode::Internal,
    };
    call(|error| edgepack_findings_at(findings, 0, out(&mut finding), error)).unwrap();
    assert!(read(finding.rule).starts_with("PTE-") && !read(finding.message).is_empty());
    let mut kind = none;
    call(|error| edgepack_findings_kind(findings, out(&mut kind), error)).unwrap();
    assert_eq!(read(kind), "program");
    edgepack_findings_close(findings);
    let told = open(broken).unwrap_err();
    assert!(told.rule.starts_with("PTE-"), "{told:?}");

    let told = call(|error| edgepack_verify(to(&[in_memory(b"no model")]), 0, out(&mut findings), error)).unwrap_err();
    assert_eq!(told.code, EdgepackCode::AccessFailed, "{told:?}");
}

#[test]
fn the_command_runs_with_its_input() {
    let args = [text(c"explain"), text(c"PTE-HEAD-001"), text(c"--nonsense")];
    let mut report = EdgepackReport { id: 0 };
    let (mut status, mut printed) = (9, EdgepackText { data: In::NULL, len: 0 });
    call(|error| edgepack_command(to(&args), 3, In::NULL, 0, out(&mut report), error)).unwrap();
    call(|error| edgepack_report_status(report, out(&mut status), error)).unwrap();
    call(|error| edgepack_report_complaints(report, out(&mut printed), error)).unwrap();
    assert!(status == 2 && read(printed).contains("--nonsense"));
    edgepack_report_close(report);
    let file = model("mlp_portable");
    let args = [text(c"verify"), text(c"-")];
    call(|error| edgepack_command(to(&args), 2, bytes(&file), file.len(), out(&mut report), error)).unwrap();
    call(|error| edgepack_report_status(report, out(&mut status), error)).unwrap();
    call(|error| edgepack_report_output(report, out(&mut printed), error)).unwrap();
    assert!(status == 0 && read(printed).contains("valid"));
    edgepack_report_close(report);
}

#[test]
fn versions_are_those_of_the_crate() {
    assert_eq!(edgepack_abi_version(), EDGEPACK_ABI_VERSION);
    // SAFETY: the library says that it ends with a zero byte.
    let version = unsafe { std::ffi::CStr::from_ptr(edgepack_version().as_ptr()) };
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}
