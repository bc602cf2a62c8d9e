//! Operators and backends of the caller's: what they are given, when it is taken back, and their errors.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use edgepack_c::arguments::*;
use edgepack_c::backend::EdgepackBackend;
use edgepack_c::call::{EdgepackCall, EdgepackInit};
use edgepack_c::error::EdgepackCode;
use edgepack_c::init::*;
use edgepack_c::kernel::EdgepackKernel;
use edgepack_c::method::*;
use edgepack_c::options::*;
use edgepack_c::pointer::{In, Out};
use edgepack_c::text::EdgepackText;
use edgepack_c::value::*;

use crate::fixtures::{leaky, polynomial};
use crate::support::*;

/// Notes of callbacks, by `user`.
#[derive(Default)]
struct Notes {
    prepared: AtomicUsize,
    runs: AtomicUsize,
    dropped: AtomicUsize,
    released: AtomicUsize,
    /// Handle of the last call.
    call: AtomicU64,
    /// Method that is running.
    method: AtomicU64,
    /// Number of what the callback is to do.
    mode: AtomicUsize,
}

fn user(notes: &'static Notes) -> Out<c_void> {
    // SAFETY: callbacks read it as what it is, and it is there for as long as the process.
    unsafe { Out::new(std::ptr::from_ref(notes).cast_mut().cast()) }
}

fn notes(user: Out<c_void>) -> &'static Notes {
    // SAFETY: `user` made it.
    unsafe { &*user.as_ptr().cast() }
}

fn leak() -> &'static Notes {
    Box::leak(Box::default())
}

const NO_TENSOR: EdgepackTensor =
    EdgepackTensor { dtype: 0, rank: 0, sizes: In::NULL, dim_order: In::NULL, data: In::NULL, len: 0 };

fn no_output() -> EdgepackTensorMut {
    EdgepackTensorMut { dtype: 0, rank: 0, sizes: In::NULL, dim_order: In::NULL, data: Out::NULL, len: 0 }
}

extern "C-unwind" fn prepare(user: Out<c_void>, call: EdgepackCall, state: Out<Out<c_void>>) -> i32 {
    let notes = notes(user);
    notes.prepared.fetch_add(1, Ordering::SeqCst);
    let (mut count, mut none, mut slope, mut layout) = (0, 9, 0.0, NO_TENSOR);
    assert_eq!(edgepack_call_count(call, out(&mut count)), EdgepackCode::Ok);
    assert_eq!(edgepack_call_is_none(call, 1, out(&mut none)), EdgepackCode::Ok);
    assert_eq!(edgepack_call_double(call, 1, out(&mut slope)), EdgepackCode::Ok);
    assert_eq!(edgepack_call_layout(call, 0, out(&mut layout)), EdgepackCode::Ok);
    assert_eq!((count, none, slope, sizes(&layout)), (4, 0, 0.5, vec![3]));
    // What only a run has.
    assert_eq!(edgepack_call_tensor(call, 0, out(&mut layout)), EdgepackCode::InvalidState);
    assert_eq!(edgepack_call_output(call, 2, out(&mut no_output())), EdgepackCode::InvalidState);
    assert_eq!(edgepack_call_set_int(call, 2, 1), EdgepackCode::InvalidState);
    assert_eq!(edgepack_call_want_scratch(call, 100), EdgepackCode::Ok);
    if notes.mode.load(Ordering::SeqCst) == 9 {
        edgepack_call_fail(call, text(c"not today"));
        return EdgepackCode::NotSupported as i32;
    }
    // SAFETY: the library gave a place for a pointer.
    unsafe { state.as_ptr().write(Out::new(std::ptr::without_provenance_mut(77))) };
    0
}

extern "C-unwind" fn run(user: Out<c_void>, state: Out<c_void>, call: EdgepackCall) -> i32 {
    let notes = notes(user);
    assert_eq!(state.as_ptr().addr(), 77);
    notes.runs.fetch_add(1, Ordering::SeqCst);
    notes.call.store(call.id, Ordering::SeqCst);
    let (mut input, mut output) = (NO_TENSOR, no_output());
    match notes.mode.load(Ordering::SeqCst) {
        // A wrong kind of argument: the reason is that of the function.
        1 => return edgepack_call_int(call, 0, out(&mut 0)) as i32,
        2 => {
            edgepack_call_fail(call, text(c"out of order"));
            return EdgepackCode::OutOfResources as i32;
        }
        3 => return 12345,
        // The method that is running is in use.
        4 => {
            let method = EdgepackMethod { id: notes.method.load(Ordering::SeqCst) };
            let told = self::call(|error| edgepack_method_reset(method, error)).unwrap_err();
            assert_eq!(told.code, EdgepackCode::InvalidState);
        }
        // More than the program has room for, and no place at all.
        5 => return edgepack_call_resize(call, 2, to(&[1000]), 1) as i32,
        6 => return edgepack_call_resize(call, 2, In::NULL, 99) as i32,
        7 => return edgepack_call_output(call, 0, out(&mut output)) as i32,
        8 => return edgepack_call_output(call, 1000, out(&mut output)) as i32,
        _ => {}
    }
    assert_eq!(edgepack_call_layout(call, 0, out(&mut input)), EdgepackCode::Ok);
    assert_eq!(edgepack_call_resize(call, 2, input.sizes, input.rank), EdgepackCode::Ok);
    assert_eq!(edgepack_call_tensor(call, 0, out(&mut input)), EdgepackCode::Ok);
    assert_eq!(edgepack_call_output(call, 2, out(&mut output)), EdgepackCode::Ok);
    // Once, and sizes stay from then on.
    assert_eq!(edgepack_call_output(call, 2, out(&mut output)), EdgepackCode::InvalidState);
    assert_eq!(edgepack_call_resize(call, 2, input.sizes, input.rank), EdgepackCode::InvalidState);
    let (mut scratch, mut len) = (Out::NULL, 0);
    assert_eq!(edgepack_call_scratch(call, out(&mut scratch), out(&mut len)), EdgepackCode::Ok);
    assert_eq!(edgepack_call_scratch(call, out(&mut scratch), out(&mut len)), EdgepackCode::InvalidState);
    assert!(len >= 100);
    // SAFETY: the library says that there is memory of these lengths, and nobody else uses it meanwhile.
    unsafe {
        scratch.as_ptr().write_bytes(1, len);
        let y = std::slice::from_raw_parts_mut(output.data.as_ptr().cast::<f32>(), output.len / 4);
        y.iter_mut().zip(floats(&input)).for_each(|(y, x)| *y = if x < 0.0 { x * 0.5 } else { x });
    }
    0
}

extern "C-unwind" fn drop_state(user: Out<c_void>, state: Out<c_void>) {
    assert_eq!(state.as_ptr().addr(), 77);
    notes(user).dropped.fetch_add(1, Ordering::SeqCst);
}

extern "C-unwind" fn release(user: Out<c_void>) {
    notes(user).released.fetch_add(1, Ordering::SeqCst);
}

fn kernel(notes: &'static Notes) -> EdgepackKernel {
    EdgepackKernel {
        schema: text(c"my::leaky.out(Tensor self, float slope, *, Tensor(a!) out) -> Tensor(a!)"),
        pure: 0,
        user: user(notes),
        prepare: Some(prepare),
        run: Some(run),
        drop_state: Some(drop_state),
        release: Some(release),
    }
}

fn options() -> EdgepackOptions {
    let mut options = EdgepackOptions { id: 0 };
    call(|error| edgepack_options_new(out(&mut options), error)).unwrap();
    options
}

fn run_on_three(method: EdgepackMethod) -> Result<Vec<f32>, Told> {
    let data = le(&[-2.0, 0.0, 3.0]);
    let (value, mut output) = ([tensor(EdgepackDtype::Float, &[3], &data)], [nothing()]);
    call(|error| edgepack_method_run(method, to(&value), 1, outs(&mut output), 1, error))?;
    Ok(floats(&output[0].tensor))
}

#[test]
fn an_operator_is_prepared_run_and_taken_back() {
    let notes = leak();
    let program = open(&leaky()).unwrap();
    let told = load(program, "forward", PLAIN).unwrap_err();
    assert!(told.code == EdgepackCode::OperatorMissing && told.message.contains("my::leaky.out"), "{told:?}");
    let options = options();
    call(|error| edgepack_options_add_kernel(options, to(&[kernel(notes)]), error)).unwrap();
    let method = load(program, "forward", options).unwrap();
    edgepack_options_close(options);
    assert_eq!(run_on_three(method).unwrap(), [-1.0, 0.0, 3.0]);
    assert_eq!(run_on_three(method).unwrap(), [-1.0, 0.0, 3.0]);
    assert_eq!((notes.prepared.load(Ordering::SeqCst), notes.runs.load(Ordering::SeqCst)), (1, 2));

    // A call is over when its callback is.
    let over = EdgepackCall { id: notes.call.load(Ordering::SeqCst) };
    let mut input = NO_TENSOR;
    assert_eq!(edgepack_call_tensor(over, 0, out(&mut input)), EdgepackCode::InvalidArgument);
    assert_eq!(edgepack_call_fail(over, text(c"late")), EdgepackCode::InvalidArgument);
    assert_eq!(
        edgepack_init_payload(EdgepackInit { id: over.id }, Out::NULL, Out::NULL),
        EdgepackCode::InvalidArgument
    );

    assert_eq!((notes.dropped.load(Ordering::SeqCst), notes.released.load(Ordering::SeqCst)), (0, 0));
    edgepack_method_close(method);
    assert_eq!((notes.dropped.load(Ordering::SeqCst), notes.released.load(Ordering::SeqCst)), (1, 1));
    close_program(program);
}

fn close_program(program: edgepack_c::program::EdgepackProgram) {
    assert_eq!(edgepack_c::program::edgepack_program_close(program), EdgepackCode::Ok);
}

#[test]
fn errors_of_callbacks_are_errors_of_the_run() {
    let notes = leak();
    let program = open(&leaky()).unwrap();
    let options = options();
    call(|error| edgepack_options_add_kernel(options, to(&[kernel(notes)]), error)).unwrap();
    let method = load(program, "forward", options).unwrap();
    notes.method.store(method.id, Ordering::SeqCst);
    for (mode, code, words) in [
        (1, EdgepackCode::InvalidType, "argument 0 is a Tensor"),
        (2, EdgepackCode::OutOfResources, "out of order"),
        (3, EdgepackCode::Internal, "12345, which is no code"),
        (5, EdgepackCode::NotSupported, "static with sizes [3]"),
        (6, EdgepackCode::InvalidArgument, "99 dimensions"),
        (7, EdgepackCode::Internal, "argument 0 is not an output"),
        (8, EdgepackCode::Internal, "argument 1000 is not an output"),
    ] {
        notes.mode.store(mode, Ordering::SeqCst);
        let told = run_on_three(method).unwrap_err();
        assert!(told.code == code && told.message.contains(words), "{mode}: {told:?}");
        assert!(told.message.contains("my::leaky.out") && told.path == "chains[0].instructions[0]", "{told:?}");
        // An error leaves the method as it was.
        notes.mode.store(0, Ordering::SeqCst);
        assert_eq!(run_on_three(method).unwrap(), [-1.0, 0.0, 3.0]);
    }
    notes.mode.store(4, Ordering::SeqCst);
    assert_eq!(run_on_three(method).unwrap(), [-1.0, 0.0, 3.0]);
    notes.mode.store(9, Ordering::SeqCst);
    let told = load(program, "forward", options).unwrap_err();
    assert!(told.code == EdgepackCode::NotSupported && told.message.contains("not today"), "{told:?}");
    // What a failed `prepare` made is not taken back, for it made nothing.
    assert_eq!(notes.dropped.load(Ordering::SeqCst), 0);
    edgepack_options_close(options);
    edgepack_method_close(method);
    close_program(program);
    assert_eq!((notes.dropped.load(Ordering::SeqCst), notes.released.load(Ordering::SeqCst)), (1, 1));
}

#[test]
fn operators_that_make_no_sense_are_refused_and_not_taken_over() {
    let notes = leak();
    let options = options();
    let add = |kernel: EdgepackKernel| refused(|error| edgepack_options_add_kernel(options, to(&[kernel]), error));
    assert!(add(EdgepackKernel { run: None, ..kernel(notes) }).contains("run is null"));
    assert!(add(EdgepackKernel { schema: In::NULL, ..kernel(notes) }).contains("null"));
    assert!(add(EdgepackKernel { schema: text(c"my::leaky.out"), ..kernel(notes) }).contains("no arguments"));
    assert!(add(EdgepackKernel { schema: text(c"my::x(Nonsense y) ->"), ..kernel(notes) }).contains("schema"));
    assert!(add(EdgepackKernel { schema: text(c"\xff()"), ..kernel(notes) }).contains("UTF-8"));
    refused(|error| edgepack_options_add_kernel(options, In::NULL, error));
    edgepack_options_close(options);
    refused(|error| edgepack_options_add_kernel(options, to(&[kernel(notes)]), error));
    assert_eq!(notes.released.load(Ordering::SeqCst), 0);
}

/// An operator that replaces another in options that use the first one's release to come back in.
#[test]
fn replaced_operators_are_taken_back_when_nothing_is_locked() {
    static OPTIONS: AtomicU64 = AtomicU64::new(0);
    extern "C-unwind" fn comes_back(user: Out<c_void>) {
        let options = EdgepackOptions { id: OPTIONS.load(Ordering::SeqCst) };
        call(|error| edgepack_options_set_threads(options, 1, error)).unwrap();
        release(user);
    }
    let notes = leak();
    let options = options();
    OPTIONS.store(options.id, Ordering::SeqCst);
    let first = EdgepackKernel { release: Some(comes_back), ..kernel(notes) };
    call(|error| edgepack_options_add_kernel(options, to(&[first]), error)).unwrap();
    call(|error| edgepack_options_add_kernel(options, to(&[kernel(notes)]), error)).unwrap();
    assert_eq!(notes.released.load(Ordering::SeqCst), 1);
    edgepack_options_close(options);
    assert_eq!(notes.released.load(Ordering::SeqCst), 2);
}

extern "C-unwind" fn make(user: Out<c_void>, init: EdgepackInit, delegate: Out<Out<c_void>>) -> i32 {
    let notes = notes(user);
    let (mut payload, mut len, mut count) = (In::NULL, 0, 9);
    assert_eq!(edgepack_init_payload(init, out(&mut payload), out(&mut len)), EdgepackCode::Ok);
    assert_eq!(edgepack_init_spec_count(init, out(&mut count)), EdgepackCode::Ok);
    assert_eq!((len, count), (12, 0));
    let mut name = EdgepackText { data: In::NULL, len: 0 };
    assert_eq!(edgepack_init_method(init, out(&mut name)), EdgepackCode::Ok);
    assert_eq!(read(name), "forward");
    let mut value = nothing();
    assert_eq!(edgepack_init_option(init, text(c"scale"), out(&mut value)), EdgepackCode::Ok);
    assert_eq!((value.kind, value.integer), (EdgepackKind::Int as u32, 3));
    assert_eq!(edgepack_init_option(init, text(c"name"), out(&mut value)), EdgepackCode::Ok);
    assert_eq!(read(value.text), "quick");
    assert_eq!(edgepack_init_option(init, text(c"none"), out(&mut value)), EdgepackCode::NotFound);
    assert_eq!(edgepack_init_named_data(init, text(c"none"), out(&mut payload), out(&mut len)), EdgepackCode::NotFound);
    // A delegate is no call.
    assert_eq!(edgepack_call_count(EdgepackCall { id: init.id }, out(&mut len)), EdgepackCode::InvalidState);
    if notes.mode.load(Ordering::SeqCst) == 1 {
        edgepack_init_fail(init, text(c"a payload of strangers"));
        return EdgepackCode::InvalidProgram as i32;
    }
    // SAFETY: the library gave a place for a pointer.
    unsafe { delegate.as_ptr().write(Out::new(payload.as_ptr().cast_mut())) };
    0
}

extern "C-unwind" fn evaluate(_: Out<c_void>, delegate: Out<c_void>, state: Out<c_void>, call: EdgepackCall) -> i32 {
    assert!(state.is_null());
    let (mut input, mut output) = (NO_TENSOR, no_output());
    assert_eq!(edgepack_call_tensor(call, 0, out(&mut input)), EdgepackCode::Ok);
    assert_eq!(edgepack_call_output(call, 1, out(&mut output)), EdgepackCode::Ok);
    // The payload is there for as long as the delegate.
    // SAFETY: as the library says; its length was looked at when the delegate was made.
    let payload = unsafe { std::slice::from_raw_parts(delegate.as_ptr().cast::<u8>(), 12) };
    let coefficients: Vec<f32> = payload.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    // SAFETY: the library says that there is memory of this length, and nobody else uses it meanwhile.
    let y = unsafe { std::slice::from_raw_parts_mut(output.data.as_ptr().cast::<f32>(), output.len / 4) };
    for (y, x) in y.iter_mut().zip(floats(&input)) {
        *y = coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient);
    }
    0
}

extern "C-unwind" fn drop_delegate(user: Out<c_void>, _: Out<c_void>) {
    notes(user).dropped.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn a_backend_makes_delegates_of_payloads() {
    let notes = leak();
    let program = open(&polynomial()).unwrap();
    let options = options();
    let backend = EdgepackBackend {
        id: text(c"Polynomial"),
        user: user(notes),
        init: Some(make),
        first_output: None,
        prepare: None,
        run: Some(evaluate),
        drop_state: None,
        drop_delegate: Some(drop_delegate),
        release: Some(release),
    };
    let nameless = EdgepackBackend { init: None, ..backend };
    assert!(refused(|error| edgepack_options_add_backend(options, to(&[nameless]), error)).contains("init is null"));
    let told = load(program, "forward", options).unwrap_err();
    assert!(told.message.contains("Polynomial"), "{told:?}");
    call(|error| edgepack_options_add_backend(options, to(&[backend]), error)).unwrap();
    call(|error| edgepack_options_set_backend_int(options, backend.id, text(c"scale"), 3, error)).unwrap();
    call(|error| edgepack_options_set_backend_bool(options, backend.id, text(c"exact"), 1, error)).unwrap();
    call(|error| edgepack_options_set_backend_text(options, backend.id, text(c"name"), text(c"quick"), error)).unwrap();
    let method = load(program, "forward", options).unwrap();
    assert_eq!(run_on_three(method).unwrap(), [9.0, 1.0, 19.0]);
    notes.mode.store(1, Ordering::SeqCst);
    let told = load(program, "forward", options).unwrap_err();
    assert!(told.code == EdgepackCode::InvalidProgram && told.path == "delegates[0]", "{told:?}");
    assert!(told.message.contains("a payload of strangers"), "{told:?}");
    edgepack_options_close(options);
    close_program(program);
    assert_eq!((notes.dropped.load(Ordering::SeqCst), notes.released.load(Ordering::SeqCst)), (0, 0));
    edgepack_method_close(method);
    assert_eq!((notes.dropped.load(Ordering::SeqCst), notes.released.load(Ordering::SeqCst)), (1, 1));
}

extern "C-unwind" fn panics(_: Out<c_void>, _: Out<c_void>, _: EdgepackCall) -> i32 {
    panic!("on purpose")
}

/// A panic inside of a method, here of a callback in Rust, ends in the function that was called, and the method says so.
#[test]
fn a_method_that_panicked_refuses_to_go_on() {
    let program = open(&leaky()).unwrap();
    let options = options();
    let loud = EdgepackKernel { run: Some(panics), prepare: None, drop_state: None, release: None, ..kernel(leak()) };
    call(|error| edgepack_options_add_kernel(options, to(&[loud]), error)).unwrap();
    let method = load(program, "forward", options).unwrap();
    let told = run_on_three(method).unwrap_err();
    assert!(told.code == EdgepackCode::Internal && told.message.contains("on purpose"), "{told:?}");
    let told = run_on_three(method).unwrap_err();
    assert!(told.code == EdgepackCode::InvalidState && told.message.contains("panicked"), "{told:?}");
    let told = call(|error| edgepack_method_output(method, 0, out(&mut nothing()), error)).unwrap_err();
    assert_eq!(told.code, EdgepackCode::InvalidState);
    assert_eq!(edgepack_method_close(method), EdgepackCode::Ok);
    edgepack_options_close(options);
    close_program(program);
}

/// Two threads, one method: one call at a time, and the other is refused.
#[test]
fn a_method_is_used_by_one_thread_at_a_time() {
    static BUSY: AtomicUsize = AtomicUsize::new(0);
    static GO_ON: AtomicUsize = AtomicUsize::new(0);
    extern "C-unwind" fn waits(_: Out<c_void>, _: Out<c_void>, _: EdgepackCall) -> i32 {
        BUSY.store(1, Ordering::SeqCst);
        while GO_ON.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        0
    }
    let program = open(&leaky()).unwrap();
    let options = options();
    let slow = EdgepackKernel { run: Some(waits), prepare: None, drop_state: None, release: None, ..kernel(leak()) };
    call(|error| edgepack_options_add_kernel(options, to(&[slow]), error)).unwrap();
    let method = load(program, "forward", options).unwrap();
    let other = std::thread::spawn(move || run_on_three(method).map(|_| ()));
    while BUSY.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    let told = run_on_three(method).unwrap_err();
    assert!(told.code == EdgepackCode::InvalidState && told.message.contains("in use"), "{told:?}");
    // Closed while it runs: the run is finished first.
    assert_eq!(edgepack_method_close(method), EdgepackCode::Ok);
    GO_ON.store(1, Ordering::SeqCst);
    other.join().unwrap().unwrap();
    edgepack_options_close(options);
    close_program(program);
}
