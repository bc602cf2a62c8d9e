//! Time that a run through C takes next to a run in Rust, on a program that adds four numbers:
//! `cargo test --release --test overhead -- --ignored --nocapture`.

#[path = "it/support.rs"]
#[expect(dead_code, reason = "shared with the other tests")]
mod support;

use std::hint::black_box;
use std::time::Instant;

use edgepack::prelude::*;
use edgepack_c::method::*;
use edgepack_c::value::*;
use support::*;

fn doubling() -> Vec<u8> {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [4])).unwrap();
    let y = forward.call("aten::add.out", args![x, x, 1i64], TensorSpec::like(x)).unwrap();
    forward.output(y).unwrap();
    program.finish().unwrap().to_bytes().unwrap()
}

/// Nanoseconds of one of many calls: the best and the median of rounds.
fn time(mut work: impl FnMut()) -> (f64, f64) {
    const CALLS: u32 = 20_000;
    let mut rounds: Vec<f64> = (0..41)
        .map(|_| {
            let start = Instant::now();
            (0..CALLS).for_each(|_| work());
            start.elapsed().as_nanos() as f64 / f64::from(CALLS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    (rounds[0], rounds[rounds.len() / 2])
}

#[test]
#[ignore = "a measurement"]
fn a_run_through_c_next_to_one_in_rust() {
    let (file, data) = (doubling(), le(&[1.0, 2.0, 3.0, 4.0]));
    let program = Program::from_bytes(file.clone()).unwrap();
    let mut forward = program.method("forward").unwrap().load(&kernels::registry(), &Options::default()).unwrap();
    let rust = time(|| {
        let x = TensorView::of::<f32>(&[4], black_box(&data)).unwrap();
        black_box(forward.run(&[x]).unwrap().get(0).unwrap().tensor().unwrap().bytes().as_ptr());
    });

    let program = open(&file).unwrap();
    let method = load(program, "forward", PLAIN).unwrap();
    let (value, mut output) = ([tensor(EdgepackDtype::Float, &[4], &data)], [nothing()]);
    let c = time(|| {
        let mut error = edgepack_c::error::EdgepackError::NONE;
        let code =
            edgepack_method_run(method, black_box(to(&value)), 1, black_box(outs(&mut output)), 1, out(&mut error));
        assert_eq!(code, edgepack_c::error::EdgepackCode::Ok);
    });
    assert_eq!(floats(&output[0].tensor), [2.0, 4.0, 6.0, 8.0]);
    let (mut inputs, mut outputs) = (0, 0);
    let call = time(|| {
        let mut error = edgepack_c::error::EdgepackError::NONE;
        edgepack_method_counts(method, out(&mut inputs), out(&mut outputs), black_box(out(&mut error)));
    });
    println!("a run in Rust: {:.0} ns best, {:.0} ns median", rust.0, rust.1);
    println!("a run through C: {:.0} ns best, {:.0} ns median", c.0, c.1);
    println!("a call through C that asks for two numbers: {:.0} ns best, {:.0} ns median", call.0, call.1);
    edgepack_method_close(method);
    edgepack_c::program::edgepack_program_close(program);
}
