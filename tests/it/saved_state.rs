//! The state that runs leave: found, saved and restored, and nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};

use edgepack_executor::delegate::Backends;
use edgepack_executor::observer::{Event, Observer};
use edgepack_executor::{Arena, Method, Options, Output, RunError, StateScope};
use edgepack_format::tensor::TensorView;
use edgepack_loader::Program;
use edgepack_tests::assemble::{Assembly, float};
use edgepack_tests::operators::registry;
use edgepack_tests::programs::models;

fn bytes(values: &[f32]) -> &[u8] {
    bytemuck::cast_slice(values)
}

fn view(values: &[f32]) -> TensorView<'_> {
    TensorView::of::<f32>(&[values.len()], bytes(values)).unwrap()
}

fn floats(output: Option<Output<'_>>) -> Vec<f32> {
    output.unwrap().tensor().unwrap().as_slice().unwrap().to_vec()
}

fn load(program: &Program, options: &Options) -> Method {
    Method::load(program, "forward", &registry(), options).unwrap()
}

fn saved(method: &mut Method, scope: StateScope) -> Vec<u8> {
    let mut image = Vec::new();
    let written = method.save_state(scope, |bytes| {
        image.extend_from_slice(bytes);
        Ok::<_, RunError>(())
    });
    written.unwrap();
    assert_eq!(method.state_len(scope).unwrap(), image.len() as u64);
    assert!(image.len() as u64 <= method.most_state_bytes(scope).unwrap());
    image
}

/// `sum = reverse(sum + x)`, and the number of runs so far; between them memory that is written first.
fn counting(len: i32) -> Program {
    let mut a = Assembly::new();
    let x = a.planned(float(&[len]));
    let before = a.planned(float(&[len]));
    let sum = a.mutable(float(&[len]), 0, bytes(&vec![1.0; len as usize]));
    let fresh = a.planned(float(&[len]));
    let (runs, ran) = (a.int(0), a.planned(float(&[1])));
    let list = a.ints(&[runs]);
    a.call("t::neg.out", &[x, before, before]);
    a.call("t::add.out", &[sum, x, fresh, fresh]);
    a.mov(fresh, sum);
    a.call("t::inc", &[runs, runs]);
    a.call("t::fill_ints.out", &[list, ran, ran]);
    a.inputs(&[x]);
    a.outputs(&[fresh, ran]);
    Program::from_bytes(a.build()).unwrap()
}

#[test]
fn a_restored_method_goes_on_as_the_saved_one() {
    let program = counting(2);
    let mut method = load(&program, &Options::default());
    let run = |method: &mut Method| {
        let outputs = method.run(&[view(&[10.0, 20.0])]).unwrap();
        (floats(outputs.get(0)), floats(outputs.get(1)))
    };
    let first = run(&mut method);
    let image = saved(&mut method, StateScope::Own);
    // Eight bytes of the sum are state, in one block; the rest of the method's memory is not.
    assert_eq!(image.len(), 16 + 9 + (1 + 8) + (8 + 1 + 8));
    assert_eq!(method.state_values().unwrap().len(), 1);
    let second = run(&mut method);
    assert_ne!(first, second);
    let third = run(&mut method);
    let mut other = load(&program, &Options::default());
    method.restore_state(StateScope::Own, &image).unwrap();
    other.restore_state(StateScope::Own, &image).unwrap();
    for method in [&mut method, &mut other] {
        assert!(method.execute().is_err(), "no input is set any more");
        assert_eq!(run(method), second);
        assert_eq!(run(method), third);
    }
    let plain = Options { no_optimize: true, ..Options::default() };
    load(&program, &plain).restore_state(StateScope::Own, &image).unwrap();
    // Fresh state is state, too.
    let mut fresh = load(&program, &Options::default());
    let image = saved(&mut fresh, StateScope::Own);
    other.restore_state(StateScope::Own, &image).unwrap();
    assert_eq!(run(&mut other), first);
}

#[test]
fn images_that_do_not_fit_change_nothing() {
    let program = counting(1500);
    let mut method = load(&program, &Options::default());
    let ones = vec![1.0; 1500];
    method.run(&[view(&ones)]).unwrap();
    let image = saved(&mut method, StateScope::Own);
    method.run(&[view(&ones)]).unwrap();
    let before = saved(&mut method, StateScope::Own);
    for len in (0..40).chain(image.len() - 20..image.len()) {
        let error = method.restore_state(StateScope::Own, &image[..len]).unwrap_err();
        assert_eq!(error.to_string(), "the saved state: it ends too early");
    }
    let longer = [&image[..], &[0]].concat();
    let error = method.restore_state(StateScope::Own, &longer).unwrap_err().to_string();
    assert_eq!(error, "the saved state: 1 bytes after its end");
    for other in [counting(1499), counting(1501)] {
        let mut other = load(&other, &Options::default());
        let foreign = saved(&mut other, StateScope::Own);
        let error = method.restore_state(StateScope::Own, &foreign).unwrap_err().to_string();
        assert!(error.contains("the method has"), "{error}");
    }
    assert_eq!(saved(&mut method, StateScope::Own), before);
    // Every byte of the head: refused, or a state of the method; never a panic.
    let mut refused = 0;
    for at in 0..60 {
        for change in [1, 0x80] {
            let mut damaged = image.clone();
            damaged[at] ^= change;
            let checked = method.check_state(StateScope::Own, &damaged).is_ok();
            assert_eq!(method.restore_state(StateScope::Own, &damaged).is_ok(), checked);
            refused += usize::from(!checked);
            // It runs, or says that the state was given up.
            if let Err(error) = method.run(&[view(&ones)]) {
                assert!(error.to_string().contains("freed"), "{error}");
            }
            method.restore_state(StateScope::Own, &before).unwrap();
        }
    }
    assert!(refused > 60, "{refused}");
    assert_eq!(saved(&mut method, StateScope::Own), before);
}

#[test]
fn blocks_of_zeros_take_a_byte() {
    let program = counting(1 << 16);
    let mut method = load(&program, &Options::default());
    let mut x = vec![-1.0; 1 << 16];
    x[5] = 7.0;
    method.run(&[view(&x)]).unwrap();
    let image = saved(&mut method, StateScope::Own);
    assert!(image.len() < 4096 + 200, "{} bytes", image.len());
    let mut other = load(&program, &Options::default());
    other.restore_state(StateScope::Own, &image).unwrap();
    assert_eq!(saved(&mut other, StateScope::Own), image);
}

#[test]
fn shared_memories_are_saved_with_one_of_their_methods() {
    let program = counting(2);
    let len = program.method_meta("forward").unwrap().planned_memory[0] as usize;
    let pair = || {
        let options = Options { arenas: vec![(1, Arena::new(len).unwrap())], ..Options::default() };
        [load(&program, &options), load(&program, &options)]
    };
    let [mut first, mut second] = pair();
    let x = [1.0, 2.0];
    first.run(&[view(&x)]).unwrap();
    second.run(&[view(&x)]).unwrap();
    let images = [saved(&mut first, StateScope::WithShared), saved(&mut second, StateScope::Own)];
    let want = floats(first.run(&[view(&x)]).unwrap().get(0));
    let [mut third, mut fourth] = pair();
    fourth.set_input(0, view(&x)).unwrap();
    third.restore_state(StateScope::WithShared, &images[0]).unwrap();
    fourth.restore_state(StateScope::Own, &images[1]).unwrap();
    assert!(fourth.execute().is_err(), "the memory of its input was restored");
    assert_eq!(floats(third.run(&[view(&x)]).unwrap().get(0)), want);
    let own = third.restore_state(StateScope::Own, &images[0]).unwrap_err().to_string();
    assert!(own.contains("count of pieces"), "{own}");
}

/// Saves and restores another method that shares the memory of the one it watches.
struct Meddling<'m>(&'m mut Method, Vec<u8>, usize);

impl Observer for Meddling<'_> {
    fn before(&mut self, _: &Event<'_>) {
        let busy = |result: Result<(), RunError>| assert!(matches!(result, Err(RunError::Busy { memory_id: 1 })));
        busy(self.0.save_state(StateScope::WithShared, |_| Ok(())));
        busy(self.0.restore_state(StateScope::WithShared, &self.1));
        busy(self.0.state_len(StateScope::Own).map(|_| ()));
        self.2 += 1;
    }
}

#[test]
fn a_memory_in_use_is_neither_saved_nor_restored() {
    let program = counting(2);
    let options = Options { arenas: vec![(1, Arena::new(4096).unwrap())], ..Options::default() };
    let (mut method, mut other) = (load(&program, &options), load(&program, &options));
    let image = saved(&mut other, StateScope::WithShared);
    let mut meddling = Meddling(&mut other, image, 0);
    method.run_observed(&[view(&[1.0, 2.0])], Some(&mut meddling)).unwrap();
    assert!(meddling.2 > 3);
}

#[test]
fn a_writer_that_panics_or_fails_gives_the_memory_back() {
    let program = counting(2);
    let options = Options { arenas: vec![(1, Arena::new(4096).unwrap())], ..Options::default() };
    let (mut method, mut other) = (load(&program, &options), load(&program, &options));
    for at in 0..10 {
        let mut calls = 0;
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            method.save_state(StateScope::WithShared, |_| {
                calls += 1;
                assert!(calls <= at, "the writer");
                Ok::<_, RunError>(())
            })
        }));
        assert!(panicked.is_err());
        other.run(&[view(&[1.0, 2.0])]).unwrap();
    }
    #[derive(Debug)]
    enum Failure {
        Full,
        Run,
    }
    impl From<RunError> for Failure {
        fn from(_: RunError) -> Self {
            Failure::Run
        }
    }
    let failed = method.save_state(StateScope::WithShared, |_| Err(Failure::Full));
    assert!(matches!(failed, Err(Failure::Full)), "{failed:?}");
    other.run(&[view(&[1.0, 2.0])]).unwrap();
}

/// `Method::reset` brings back what an image of a fresh load does: over every program that runs here.
#[test]
fn state_of_every_program_is_found() {
    let mut with_state = 0;
    for (model, data) in models() {
        let Ok(program) = Program::from_bytes(std::fs::read(&model).unwrap()) else { continue };
        let backends = Backends::new().with(edgepack::xnnpack::Xnnpack);
        let options = Options { backends, data, ..Options::default() };
        for name in program.method_names().unwrap() {
            let inputs = edgepack_tests::programs::PlainInputs::of(&program, &name);
            let inputs = inputs.views();
            let Ok(mut method) = Method::load(&program, &name, &edgepack_kernels::registry(), &options) else {
                continue;
            };
            let fresh = saved(&mut method, StateScope::Own);
            let outputs = |method: &mut Method| -> Option<Vec<Vec<u8>>> {
                let outputs = method.run(&inputs).ok()?;
                Some(
                    outputs.iter().filter_map(|output| output.tensor()).map(|tensor| tensor.bytes().to_vec()).collect(),
                )
            };
            let Some(first) = outputs(&mut method) else { continue };
            let image = saved(&mut method, StateScope::Own);
            let second = outputs(&mut method);
            let mut other = Method::load(&program, &name, &edgepack_kernels::registry(), &options).unwrap();
            other.restore_state(StateScope::Own, &image).unwrap();
            assert_eq!(outputs(&mut other), second, "{}", model.display());
            method.restore_state(StateScope::Own, &fresh).unwrap();
            assert_eq!(outputs(&mut method), Some(first), "{}", model.display());
            with_state += usize::from(!method.state_values().unwrap().is_empty());
        }
    }
    assert!(with_state > 0);
}

/// Jumps: any memory may be read before it is written, so all of it is state.
#[test]
fn methods_with_jumps_are_saved_whole() {
    let mut a = Assembly::new();
    let (x, y) = (a.planned(float(&[2])), a.planned(float(&[2])));
    let condition = a.bool(true);
    a.jump_false(condition, 2);
    a.call("t::neg.out", &[x, y, y]);
    a.inputs(&[x]);
    a.outputs(&[y]);
    let program = Program::from_bytes(a.build()).unwrap();
    let mut method = load(&program, &Options::default());
    method.run(&[view(&[3.0, 4.0])]).unwrap();
    let image = saved(&mut method, StateScope::Own);
    assert!(image.len() > 16 + 16, "{}", image.len());
    load(&program, &Options::default()).restore_state(StateScope::Own, &image).unwrap();
}
