//! Arguments that cannot be right: handles of nothing, of something else and of what was closed; pointers that are null or
//! not aligned; lengths and sizes that do not fit. Each is answered with an error that says which.

use std::ffi::c_void;

use edgepack_c::data::*;
use edgepack_c::error::*;
use edgepack_c::findings::*;
use edgepack_c::limits::*;
use edgepack_c::method::*;
use edgepack_c::options::*;
use edgepack_c::pointer::{In, Out};
use edgepack_c::program::*;
use edgepack_c::report::*;
use edgepack_c::signature::*;
use edgepack_c::value::*;

use crate::support::*;

/// Calls every function that takes a handle with this number, and gives its errors.
fn every_function(id: u64) -> Vec<(&'static str, Result<(), Told>)> {
    let mut room = [0u64; 64];
    let place = room.as_mut_ptr();
    macro_rules! calls {
        ($($name:ident($($argument:expr),*)),* $(,)?) => {
            vec![$((stringify!($name), call(|error| $name($($argument,)* error)))),*]
        };
    }
    /// Room for any result.
    fn room_at<T>(place: *mut u64) -> Out<T> {
        // SAFETY: it leads to 64 numbers, which no result is longer than.
        unsafe { Out::new(place.cast()) }
    }
    let (program, method, data) = (EdgepackProgram { id }, EdgepackMethod { id }, EdgepackData { id });
    let (signature, findings, report) = (EdgepackSignature { id }, EdgepackFindings { id }, EdgepackReport { id });
    let (name, value) = (text(c"forward"), [nothing()]);
    let mut calls = calls![
        edgepack_program_method_count(program, room_at(place)),
        edgepack_program_method_name(program, 0, room_at(place)),
        edgepack_signature_of(program, name, room_at(place)),
        edgepack_data_of_program(program, room_at(place)),
        edgepack_method_load(program, name, PLAIN, room_at(place)),
        edgepack_signature_counts(signature, room_at(place)),
        edgepack_signature_input(signature, 0, room_at(place)),
        edgepack_signature_output(signature, 0, room_at(place)),
        edgepack_signature_backend(signature, 0, room_at(place)),
        edgepack_signature_memory(signature, 0, room_at(place)),
        edgepack_method_run(method, In::NULL, 0, Out::NULL, 0),
        edgepack_method_set_input(method, 0, to(&value)),
        edgepack_method_execute(method),
        edgepack_method_reset(method),
        edgepack_method_counts(method, room_at(place), room_at(place)),
        edgepack_method_output(method, 0, room_at(place)),
        edgepack_method_copy_output(method, 0, room_at(place), 4),
        edgepack_method_memory(method, room_at(place)),
        edgepack_data_count(data, room_at(place)),
        edgepack_data_key(data, 0, room_at(place)),
        edgepack_data_find(data, name, room_at(place)),
        edgepack_data_layout(data, 0, room_at(place)),
        edgepack_data_read(data, 0, room_at(place), 4),
        edgepack_data_bytes(data, 0, room_at(place)),
        edgepack_bytes_view(EdgepackBytes { id }, room_at(place), room_at(place)),
        edgepack_findings_counts(findings, room_at(place)),
        edgepack_findings_kind(findings, room_at(place)),
        edgepack_findings_at(findings, 0, room_at(place)),
        edgepack_report_status(report, room_at(place)),
        edgepack_report_output(report, room_at(place)),
        edgepack_report_complaints(report, room_at(place)),
        edgepack_limits_set(EdgepackLimits { id }, 0, 1),
    ];
    let options = EdgepackOptions { id };
    calls.extend(calls![
        edgepack_options_set_threads(options, 1),
        edgepack_options_set_optimize(options, 1),
        edgepack_options_set_limits(options, MACHINE),
        edgepack_options_add_data(options, data),
        edgepack_options_set_backend_int(options, name, name, 1),
        edgepack_options_set_backend_bool(options, name, name, 1),
        edgepack_options_set_backend_text(options, name, name, name),
    ]);
    calls
}

#[test]
fn handles_of_nothing_are_refused() {
    let program = open(&model("mlp_portable")).unwrap();
    assert_eq!(edgepack_program_close(program), EdgepackCode::Ok);
    assert_eq!(edgepack_program_close(program), EdgepackCode::InvalidArgument);
    // Of a handle that is open, the same number but for one bit is none.
    let mut limits = EdgepackLimits { id: 0 };
    call(|error| edgepack_limits_new(0, out(&mut limits), error)).unwrap();
    for id in [0, program.id, 1, u64::MAX, 1 << 63, program.id + (1 << 34), limits.id ^ (1 << 32)] {
        for (name, outcome) in every_function(id) {
            let told = outcome.expect_err(name);
            let right = told.code == EdgepackCode::InvalidArgument && told.message.contains("the handle of");
            assert!(right, "{name} of {id:#x}: {told:?}");
        }
        // Errors are asked without an error.
        assert_eq!(read(edgepack_error_message(EdgepackError { id })), "");
        assert_eq!(edgepack_error_offset(EdgepackError { id }, Out::NULL), 0);
        let code = if id == 0 { EdgepackCode::Ok } else { EdgepackCode::InvalidArgument };
        assert_eq!(
            (edgepack_error_code(EdgepackError { id }), edgepack_error_close(EdgepackError { id })),
            (code, code)
        );
    }
    assert_eq!(edgepack_limits_close(limits), EdgepackCode::Ok);
}

#[test]
fn handles_of_something_else_are_refused() {
    let mut limits = EdgepackLimits { id: 0 };
    call(|error| edgepack_limits_new(0, out(&mut limits), error)).unwrap();
    for (name, outcome) in every_function(limits.id) {
        if name == "edgepack_limits_set" {
            outcome.unwrap();
            continue;
        }
        let told = outcome.expect_err(name);
        assert!(told.message.contains("this is one of limits"), "{name}: {told:?}");
    }
    assert_eq!(edgepack_program_close(EdgepackProgram { id: limits.id }), EdgepackCode::InvalidArgument);
    assert_eq!(edgepack_limits_close(limits), EdgepackCode::Ok);
}

#[test]
fn pointers_that_cannot_be_right_are_refused() {
    let file = model("mlp_portable");
    let mut program = EdgepackProgram { id: 0 };
    let len = file.len();
    let opened = |data, len, program| refused(|error| edgepack_program_open_copy(data, len, MACHINE, program, error));
    assert_eq!(opened(In::NULL, len, out(&mut program)), "data is null");
    assert!(opened(bytes(&file), usize::MAX, out(&mut program)).contains("more than memory can have"));
    assert_eq!(opened(bytes(&file), len, Out::NULL), "program is null");
    let mut room = [0u64; 2];
    // SAFETY: not aligned, and in the room.
    let odd = unsafe { Out::<EdgepackProgram>::new(room.as_mut_ptr().cast::<u8>().add(1).cast()) };
    assert_eq!(opened(bytes(&file), len, odd), "program is not aligned to 8 bytes");
    // No file at all is a file of no bytes.
    let told = call(|error| edgepack_program_open_copy(In::NULL, 0, MACHINE, out(&mut program), error)).unwrap_err();
    assert!(told.rule.starts_with("PTE-"), "{told:?}");

    // Places of errors that cannot be written to are left alone.
    assert_eq!(edgepack_program_open(In::NULL, MACHINE, out(&mut program), Out::NULL), EdgepackCode::InvalidArgument);
    // SAFETY: not aligned, and in the room.
    let odd = unsafe { Out::<EdgepackError>::new(room.as_mut_ptr().cast::<u8>().add(1).cast()) };
    assert_eq!(edgepack_program_open(In::NULL, MACHINE, out(&mut program), odd), EdgepackCode::InvalidArgument);
    assert_eq!(room, [0; 2]);

    let program = open(&file).unwrap();
    let name = |name, index, place| {
        refused_or_missing(|error| {
            let _: In<std::ffi::c_char> = name;
            edgepack_program_method_name(program, index, place, error)
        })
    };
    assert!(name(In::NULL, 0, Out::NULL).contains("name is null"));
    assert!(name(In::NULL, 7, Out::NULL).contains("no method 7"));
    let mut method = EdgepackMethod { id: 0 };
    let mut load =
        |name| call(|error| edgepack_method_load(program, name, PLAIN, out(&mut method), error)).unwrap_err();
    assert!(load(In::NULL).message.contains("name is null"));
    assert!(load(text(c"\xc3")).message.contains("not UTF-8"));
    assert_eq!(load(text(c"backward")).code, EdgepackCode::NotFound);
    edgepack_program_close(program);
}

fn refused_or_missing(function: impl FnOnce(Out<EdgepackError>) -> EdgepackCode) -> String {
    call(function).expect_err("this is refused").message
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let program = open(&model("mlp_portable")).unwrap();
    let method = load(program, "forward", PLAIN).unwrap();
    let data = le(&[0.5; 24]);
    let mut output = [nothing()];
    let mut run = |value: EdgepackValue| {
        let told = call(|error| edgepack_method_run(method, to(&[value]), 1, outs(&mut output), 1, error));
        let told = told.expect_err("this is refused");
        assert_eq!(told.path, "inputs[0]", "{told:?}");
        told.message
    };
    let right = tensor(EdgepackDtype::Float, &[3, 8], &data);
    let with = |change: &dyn Fn(&mut EdgepackTensor)| {
        let mut value = right;
        change(&mut value.tensor);
        value
    };
    assert!(run(with(&|tensor| tensor.dtype = 99)).contains("99 is no element type"));
    assert!(run(with(&|tensor| tensor.dtype = 6 + 256)).contains("262 is no element type"));
    assert!(run(with(&|tensor| tensor.dtype = EdgepackDtype::Int as i32)).contains("wants f32[3, 8], got i32[3, 8]"));
    assert!(run(with(&|tensor| tensor.len = 95)).contains("has 96 bytes, len is 95"));
    assert!(run(with(&|tensor| tensor.len = usize::MAX)).contains("has 96 bytes, len is"));
    assert!(run(with(&|tensor| tensor.rank = 17)).contains("17 dimensions"));
    assert!(run(with(&|tensor| tensor.rank = usize::MAX)).contains("dimensions"));
    assert!(run(with(&|tensor| tensor.sizes = In::NULL)).contains("sizes is null"));
    assert!(run(with(&|tensor| tensor.data = In::NULL)).contains("data is null"));
    assert!(run(with(&|tensor| tensor.sizes = to(&[usize::MAX, 8]))).contains("overflows"));
    assert!(run(with(&|tensor| tensor.sizes = to(&[0, usize::MAX]))).contains("overflows"));
    assert!(run(with(&|tensor| tensor.sizes = to(&[8, 3]))).contains("wants f32[3, 8], got f32[8, 3]"));
    assert!(run(with(&|tensor| tensor.dim_order = to(&[0, 0]))).contains("not a permutation"));
    assert!(run(with(&|tensor| tensor.dim_order = to(&[1, 0]))).contains("wants f32[3, 8]"));
    assert!(run(EdgepackValue { kind: 77, ..right }).contains("77 is no kind of input"));
    assert!(run(EdgepackValue { kind: EdgepackKind::List as u32, ..right }).contains("no kind of input"));
    assert!(run(EdgepackValue { kind: EdgepackKind::Bool as u32, integer: 2, ..right }).contains("0 or 1"));
    assert!(run(EdgepackValue { kind: EdgepackKind::None as u32, ..right }).contains("wants f32[3, 8], got None"));
    let wild = edgepack_c::text::EdgepackText { data: In::NULL, len: 5 };
    assert!(run(EdgepackValue { kind: EdgepackKind::Text as u32, text: wild, ..right }).contains("text is null"));

    // Numbers of inputs and outputs.
    let mut counted = |inputs: In<EdgepackValue>, count, wanted| {
        call(|error| edgepack_method_run(method, inputs, count, outs(&mut output), wanted, error)).unwrap_err().message
    };
    assert!(counted(to(&[right, right]), 2, 1).contains("the method takes 1 input, got 2"));
    assert!(counted(In::NULL, 0, 1).contains("the method takes 1 input, got 0"));
    assert!(counted(In::NULL, 1, 1).contains("inputs is null"));
    assert!(counted(to(&[right]), usize::MAX, 1).contains("more than memory can have"));
    assert!(counted(to(&[right]), 1, 2).contains("the method has 1 outputs, 2 are wanted"));

    // Outputs.
    call(|error| edgepack_method_run(method, to(&[right]), 1, Out::NULL, 0, error)).unwrap();
    let mut bytes = [0; 64];
    let copied = |index, place: Out<c_void>, len| {
        call(|error| edgepack_method_copy_output(method, index, place, len, error)).unwrap_err().message
    };
    assert!(copied(1, room(&mut bytes), 48).contains("no output 1"));
    assert!(copied(0, room(&mut bytes), 47).contains("has 48 bytes, there is room for 47"));
    assert!(copied(0, Out::NULL, 48).contains("data is null"));
    let mut output = [nothing()];
    call(|error| edgepack_method_output(method, 0, outs(&mut output), error)).unwrap();
    // SAFETY: memory of the method, which is refused before it is written to.
    let own = unsafe { Out::new(output[0].tensor.data.as_ptr().cast_mut()) };
    assert!(copied(0, own, 48).contains("the output itself"));
    edgepack_method_close(method);
    edgepack_program_close(program);
}

#[test]
fn numbers_that_name_nothing_are_refused() {
    let mut limits = EdgepackLimits { id: 0 };
    let told = call(|error| edgepack_limits_new(2, out(&mut limits), error)).unwrap_err();
    assert_eq!(told.code, EdgepackCode::NotFound);
    call(|error| edgepack_limits_new(0, out(&mut limits), error)).unwrap();
    assert!(call(|error| edgepack_limits_set(limits, 7, 0, error)).is_err());
    assert!(call(|error| edgepack_limits_get(limits, 7, out(&mut 0), error)).is_err());
    edgepack_limits_close(limits);
    let mut options = EdgepackOptions { id: 0 };
    call(|error| edgepack_options_new(out(&mut options), error)).unwrap();
    assert!(refused(|error| edgepack_options_set_threads(options, usize::MAX, error)).contains("at most 1024"));
    let nowhere = text(c"/proc/none/of/this");
    assert!(call(|error| edgepack_options_set_pack_folder(options, nowhere, error)).is_err());
    edgepack_options_close(options);
    let file = model("mlp_portable");
    let mut findings = EdgepackFindings { id: 0 };
    assert!(call(|error| edgepack_verify(to(&[in_memory(&file)]), 2, out(&mut findings), error)).is_err());
    let mut report = EdgepackReport { id: 0 };
    let folder = edgepack_c::file::EdgepackFile { path: text(c"/"), ..in_memory(&[]) };
    let mut status = 9;
    call(|error| edgepack_inspect(to(&[folder]), 0, out(&mut report), error)).unwrap();
    call(|error| edgepack_report_status(report, out(&mut status), error)).unwrap();
    assert_eq!(status, 3);
    edgepack_report_close(report);
    let mut program = EdgepackProgram { id: 0 };
    for path in [c"/", c"/none", c""] {
        let told = call(|error| edgepack_program_open(text(path), MACHINE, out(&mut program), error)).unwrap_err();
        assert_eq!(told.code, EdgepackCode::AccessFailed, "{told:?}");
    }
}
