//! Methods that share a planned memory: each sees of the other what programs with shared mutable buffers expect, and no
//! reference ever sees a write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use edgepack_executor::observer::{Event, Observer};
use edgepack_executor::{Arena, Method, Options, Output, RunError};
use edgepack_format::finding::ErrorCode;
use edgepack_format::tensor::TensorView;
use edgepack_loader::Program;
use edgepack_tests::assemble::{Assembly, float};
use edgepack_tests::operators;

fn view<'a>(values: &'a [f32]) -> TensorView<'a> {
    TensorView::of::<f32>(&[values.len()], bytemuck::cast_slice(values)).unwrap()
}

fn floats<'m>(output: Option<Output<'m>>) -> &'m [f32] {
    output.unwrap().tensor().unwrap().as_slice().unwrap()
}

/// `y = x + x`, reversed; `x` planned or left to the caller.
fn doubling(len: i32, planned: bool) -> Program {
    let mut a = Assembly::new();
    let x = if planned { a.planned(float(&[len])) } else { a.unplanned(float(&[len])) };
    let y = a.planned(float(&[len]));
    a.call("t::add.out", &[x, x, y, y]);
    a.inputs(&[x]);
    a.outputs(&[y]);
    Program::from_bytes(a.build()).unwrap()
}

fn sharing(arena: &Arena) -> Options {
    Options { arenas: vec![(1, arena.clone())], ..Options::default() }
}

fn pair(program: &Program, bytes: usize) -> [Method; 2] {
    let options = sharing(&Arena::new(bytes).unwrap());
    [(); 2].map(|()| Method::load(program, "forward", &operators::registry(), &options).unwrap())
}

#[test]
fn an_output_stays_what_it_was_while_another_method_runs() {
    let [mut first, mut second] = pair(&doubling(4, true), 4096);
    let out = first.run(&[view(&[1.0, 2.0, 3.0, 4.0])]).unwrap();
    let slice = floats(out.get(0));
    second.run(&[view(&[10.0; 4])]).unwrap();
    assert_eq!(slice, [8.0, 6.0, 4.0, 2.0]);
    // Loading and resetting write to the arena, too.
    second.reset().unwrap();
    assert_eq!(slice, [8.0, 6.0, 4.0, 2.0]);
}

#[test]
fn an_output_can_be_the_input_of_another_method_on_the_same_arena() {
    for planned in [true, false] {
        let [mut first, mut second] = pair(&doubling(4, planned), 4096);
        let out = first.run(&[view(&[1.0, 2.0, 3.0, 4.0])]).unwrap();
        let doubled = out.get(0).unwrap().tensor().unwrap();
        let again = second.run(&[doubled]).unwrap();
        assert_eq!(floats(again.get(0)), [4.0, 8.0, 12.0, 16.0]);
    }
}

#[test]
fn threads_never_see_each_other_in_a_run() {
    const LEN: usize = 1 << 16;
    let [mut first, mut second] = pair(&doubling(LEN as i32, true), LEN * 8 + 4096);
    let stop = AtomicBool::new(false);
    let mut runs = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let values = vec![100.0f32; LEN];
            while !stop.load(Ordering::Relaxed) {
                match second.set_input(0, view(&values)) {
                    Ok(()) | Err(RunError::Busy { memory_id: 1 }) => {}
                    Err(error) => panic!("{error}"),
                }
                match second.execute() {
                    Ok(()) => assert!(floats(second.outputs().get(0)).iter().all(|&x| x == 200.0)),
                    Err(RunError::Busy { memory_id: 1 } | RunError::Input { index: 0, .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        let values = vec![1.0f32; LEN];
        // The other thread may hold the memory for long where cores are few.
        let (mut tries, most) = (0, 100_000);
        while runs < 100 && tries < most {
            tries += 1;
            match first.run(&[view(&values)]) {
                Ok(outputs) => {
                    assert!(floats(outputs.get(0)).iter().all(|&x| x == 2.0));
                    runs += 1;
                }
                Err(RunError::Busy { memory_id: 1 }) => std::thread::sleep(Duration::from_micros(50)),
                Err(error) => panic!("{error}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(runs > 0);
}

#[test]
fn an_input_in_a_memory_that_another_method_had_since_is_asked_for_again() {
    let [mut first, mut second] = pair(&doubling(2, true), 4096);
    first.set_input(0, view(&[1.0, 2.0])).unwrap();
    first.execute().unwrap();
    first.execute().unwrap();
    assert_eq!(floats(first.outputs().get(0)), [4.0, 2.0]);
    second.run(&[view(&[5.0, 5.0])]).unwrap();
    assert!(matches!(first.execute(), Err(RunError::Input { index: 0, code: ErrorCode::InvalidArgument, .. })));
    first.set_input(0, view(&[3.0, 4.0])).unwrap();
    first.execute().unwrap();
    assert_eq!(floats(first.outputs().get(0)), [8.0, 6.0]);
    // An attempt that found the arena in use changes nothing.
    let mut nested = Nested { other: &mut second, said: None };
    first.run_observed(&[view(&[1.0, 1.0])], Some(&mut nested)).unwrap();
    assert!(matches!(nested.said, Some(Err(RunError::Busy { memory_id: 1 }))));
    first.execute().unwrap();
}

/// Runs another method in the middle of a run.
struct Nested<'a> {
    other: &'a mut Method,
    said: Option<Result<(), RunError>>,
}

impl Observer for Nested<'_> {
    fn before(&mut self, _: &Event<'_>) {
        self.said = Some(self.other.run(&[view(&[7.0, 7.0])]).map(|_| ()));
    }
}

#[test]
fn an_input_whose_memory_is_used_again_is_asked_for_again() {
    let mut a = Assembly::new();
    let x = a.planned_at(float(&[2]), 0);
    let y = a.planned_at(float(&[2]), 64);
    // In the place of the input, once that was read.
    let z = a.planned_at(float(&[2]), 0);
    a.call("t::add.out", &[x, x, y, y]);
    a.call("t::add.out", &[y, y, z, z]);
    a.inputs(&[x]);
    a.outputs(&[z]);
    let program = Program::from_bytes(a.build()).unwrap();
    let mut method = Method::load(&program, "forward", &operators::registry(), &Options::default()).unwrap();
    method.set_input(0, view(&[1.0, 2.0])).unwrap();
    method.execute().unwrap();
    assert_eq!(floats(method.outputs().get(0)), [4.0, 8.0]);
    let error = method.execute().unwrap_err();
    assert_eq!(error.to_string(), "input 0 was not set");
}

#[test]
fn one_arena_is_no_two_memories_of_a_method() {
    let mut a = Assembly::new();
    let (x, y) = (a.planned(float(&[2])), a.planned(float(&[2])));
    a.call("t::add.out", &[x, x, y, y]);
    a.outputs(&[y]);
    let (mut program, segments) = a.program();
    let mut plan = a.plan("forward");
    plan.non_const_buffer_sizes = Some(vec![0i64, 1024, 64].into());
    program.execution_plan = Some(vec![plan].into());
    let program = Program::from_bytes(edgepack_tests::assemble::write(&program, &segments)).unwrap();
    let arena = Arena::new(4096).unwrap();
    let load = |second: &Arena| {
        let options = Options { arenas: vec![(1, arena.clone()), (2, second.clone())], ..Options::default() };
        Method::load(&program, "forward", &operators::registry(), &options)
    };
    let error = load(&arena).err().unwrap();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    assert_eq!(error.to_string(), "planned memory 2 was given an arena that another memory of the method has");
    load(&Arena::new(64).unwrap()).unwrap();
}

#[test]
fn loading_onto_an_arena_in_use_is_refused() {
    struct Loading<'a>(&'a Program, Options, Option<ErrorCode>);
    impl Observer for Loading<'_> {
        fn before(&mut self, _: &Event<'_>) {
            self.2 = Method::load(self.0, "forward", &operators::registry(), &self.1).err().map(|error| error.code());
        }
    }
    let program = doubling(2, true);
    let options = sharing(&Arena::new(4096).unwrap());
    let mut method = Method::load(&program, "forward", &operators::registry(), &options).unwrap();
    let mut loading = Loading(&program, options, None);
    method.run_observed(&[view(&[1.0, 2.0])], Some(&mut loading)).unwrap();
    assert_eq!(loading.2, Some(ErrorCode::InvalidState));
}

#[test]
fn a_result_repeated_after_the_arguments_is_nobody_elses_to_read() {
    use edgepack_executor::call::{Arg, call};
    use edgepack_executor::kernel::{Alias, Kernel, KernelContext, Run};
    use edgepack_format::scalar::ScalarType;

    static PEEK: Kernel = Kernel {
        name: "p::peek.out",
        schema: "(Tensor a, *, Tensor(a!) out) -> Tensor(a!)",
        alias: Alias::Disjoint,
        is_pure: false,
        prepare: |_| {
            Ok(Box::new(|cx: &mut KernelContext<'_>| {
                let views = cx.views();
                let repeated = views.tensor(2)?;
                assert!(repeated.is_in_place() && repeated.bytes().is_empty());
                assert!(views.out(2).is_err());
                views.out(1)?.as_mut_slice::<f32>()?.fill(1.0);
                Ok(())
            }) as Box<dyn Run>)
        },
    };
    call(&PEEK, &[Arg::tensor(&[2], &[1.0f32, 2.0]), Arg::out(ScalarType::FLOAT, &[2])]).unwrap();
}
