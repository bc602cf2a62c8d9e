//! A panic anywhere in code that a caller supplies leaves a method as an error would: nothing borrowed stays, nothing
//! is locked, and the next run gives the right result.
//!
//! Every place that calls out counts its calls here. A scenario is run again and again, with a panic at the first call,
//! the second, and so on, until one run ends without. Under Miri, which is slow, every eleventh.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use edgepack_builder::mlf::GraphBuilder;
use edgepack_executor::Registry;
use edgepack_executor::delegate::{Backend, Backends, Delegate, DelegateInit, Instructions};
use edgepack_executor::kernel::{Alias, KernelContext, KernelError, Operator, Prepare, Run};
use edgepack_executor::mlf::{GraphExecutor, RustFunctions};
use edgepack_executor::observer::{Event, Observer, Results};
use edgepack_executor::plan::{PlanGraph, Rewrite};
use edgepack_executor::rewrite::FoldConstants;
use edgepack_executor::{Arena, Input, LoadError, Method, Options, Output, RunError, ToInput};
use edgepack_format::limits::Limits;
use edgepack_format::mlf::DataType;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorLayout, TensorView};
use edgepack_loader::{Bytes, MemorySource, NamedDataMap, OpenOptions, Program, Source};
use edgepack_tests::assemble::{Assembly, float};
use edgepack_tests::operators;

thread_local! {
    /// Calls until the panic; none is due at 0.
    static FUSE: Cell<u32> = const { Cell::new(0) };
}

/// Counts down the fuse and panics when it is due; every call-out begins with it.
fn call_out() {
    let left = FUSE.get();
    FUSE.set(left.saturating_sub(1));
    if left == 1 {
        panic!("the fuse");
    }
}

/// Runs `scenario` with a panic at every one of its calls out, one after the other. Returns how many there are.
fn at_every_call_out<R>(mut scenario: impl FnMut() -> R, mut after: impl FnMut(Result<R, Box<dyn Any + Send>>)) -> u32 {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut calls = 0;
    loop {
        FUSE.set(calls + 1);
        let result = catch_unwind(AssertUnwindSafe(&mut scenario));
        let left = FUSE.replace(0);
        let done = result.is_ok();
        assert!(done == (left > 0), "call {calls}: a panic was swallowed");
        after(result);
        if done {
            std::panic::set_hook(hook);
            return calls;
        }
        calls += if cfg!(miri) { 11 } else { 1 };
    }
}

/// An operator that calls out in every method.
struct Fused(&'static dyn Operator);

impl Operator for Fused {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn schema(&self) -> &str {
        call_out();
        self.0.schema()
    }
    fn alias(&self) -> Alias {
        call_out();
        self.0.alias()
    }
    fn is_pure(&self) -> bool {
        call_out();
        self.name() == "t::neg.out"
    }
    fn prepare(&self, args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        call_out();
        let mut run = self.0.prepare(args)?;
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            call_out();
            run.run(cx)?;
            call_out();
            Ok(())
        }))
    }
}

/// Calls out before and after folding constants, which itself runs kernels.
struct FusedRewrite;

impl Rewrite for FusedRewrite {
    fn name(&self) -> &'static str {
        "fused"
    }
    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        call_out();
        let folded = FoldConstants.apply(graph);
        call_out();
        folded
    }
}

/// Folds constants and goes on if that panics: what it leaves must be whole.
struct Stubborn;

impl Rewrite for Stubborn {
    fn name(&self) -> &'static str {
        "stubborn"
    }
    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        let fold = AssertUnwindSafe(|| FoldConstants.apply(graph));
        catch_unwind(fold).unwrap_or(0)
    }
}

fn registry(rewrite: impl Rewrite + 'static) -> Registry {
    static PLAIN: LazyLock<Registry> = LazyLock::new(operators::registry);
    let fused = PLAIN.names().into_iter().map(|name| Fused(PLAIN.find(name).unwrap()));
    fused.fold(Registry::new(), Registry::with).with_rewrite(rewrite)
}

/// Copies its input, and calls out.
struct Copying;

impl Backend for Copying {
    fn id(&self) -> &str {
        call_out();
        "Copying"
    }
    fn is_available(&self) -> bool {
        call_out();
        true
    }
    fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
        call_out();
        cx.named_data.data("w").map_err(|error| KernelError::argument(error.to_string()))?;
        Ok(Box::new(Copying))
    }
}

impl Delegate for Copying {
    fn outputs(&self, count: usize) -> Range<usize> {
        call_out();
        1..count
    }
    fn instructions(&self, _: &Prepare<'_>) -> Result<Option<Instructions>, KernelError> {
        call_out();
        Ok(None)
    }
    fn prepare(&self, _: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        call_out();
        Ok(Box::new(|cx: &mut KernelContext<'_>| {
            call_out();
            let views = cx.views();
            views.out(1)?.as_mut_slice::<f32>()?.copy_from_slice(views.tensor(0)?.as_slice()?);
            call_out();
            Ok(())
        }))
    }
}

struct Watching;

impl Observer for Watching {
    fn started(&mut self) {
        call_out();
    }
    fn before(&mut self, _: &Event<'_>) {
        call_out();
    }
    fn after(&mut self, _: &Event<'_>, results: &Results<'_>) {
        assert!(!results.tensors().is_empty());
        call_out();
    }
    fn finished(&mut self) {
        call_out();
    }
}

struct Weights;

impl NamedDataMap for Weights {
    fn data(&self, key: &str) -> Result<Option<Bytes>, edgepack_loader::Error> {
        call_out();
        Ok((key == "w").then(|| bytemuck::cast_slice(&[10.0f32; 16]).to_vec().into()))
    }
    fn layout(&self, key: &str) -> Result<Option<TensorLayout>, edgepack_loader::Error> {
        call_out();
        Ok((key == "w").then(|| TensorLayout::contiguous(ScalarType::FLOAT, &[16]).unwrap()))
    }
    fn len(&self) -> usize {
        call_out();
        1
    }
    fn key(&self, index: usize) -> Option<&str> {
        call_out();
        (index == 0).then_some("w")
    }
    fn contains(&self, key: &str) -> bool {
        call_out();
        key == "w"
    }
}

/// A source from which nothing can be borrowed, and which calls out.
struct Reading(MemorySource);

impl Source for Reading {
    fn len(&self) -> u64 {
        call_out();
        self.0.len()
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        call_out();
        self.0.read_at(offset, into)
    }
}

struct Tensor<'a>(&'a [f32]);

impl ToInput for Tensor<'_> {
    fn to_input(&self) -> Input<'_> {
        call_out();
        let data = bytemuck::cast_slice(self.0);
        Input::Tensor(TensorView::of::<f32>(&[16], data).unwrap())
    }
}

/// `-(constant) + borrowed + w + planned`, which a delegate copies, and a mutable buffer.
fn program() -> Assembly {
    let mut a = Assembly::new();
    let spec = || float(&[16]);
    let (lent, planned, weight) = (a.unplanned(spec()), a.planned(spec()), a.external(spec(), "w"));
    let constant = a.constant(spec(), bytemuck::cast_slice(&[1.0f32; 16]));
    let state = a.mutable(spec(), 0, bytemuck::cast_slice(&[100.0f32; 16]));
    let (negative, x, y, z, w) =
        (a.planned(spec()), a.planned(spec()), a.planned(spec()), a.unplanned(spec()), a.planned(spec()));
    a.call("t::neg.out", &[constant, negative, negative]);
    a.call("t::add.out", &[lent, negative, x, x]);
    a.call("t::add.out", &[x, weight, y, y]);
    a.call("t::add.out", &[y, planned, z, z]);
    a.delegate("Copying", &[1], &[z, w]);
    a.call("t::add.out", &[w, state, w, w]);
    a.inputs(&[lent, planned]);
    a.outputs(&[w, z]);
    a
}

const WANT: [f32; 2] = [2.0 - 1.0 + 10.0 + 5.0 + 100.0, 2.0 - 1.0 + 10.0 + 5.0];

fn firsts(method: &Method) -> Vec<f32> {
    let first = |output: Output<'_>| output.tensor().unwrap().as_slice::<f32>().unwrap()[0];
    method.outputs().iter().map(first).collect()
}

fn options(arena: &Arena, threads: Option<usize>) -> Options {
    Options {
        backends: Backends::new().with(Copying),
        data: vec![Arc::new(Weights)],
        arenas: vec![(1, arena.clone())],
        threads,
        ..Options::default()
    }
}

#[test]
fn loading_gives_back_what_it_took() {
    let bytes = program().build();
    let arena = Arena::new(4096).unwrap();
    for threads in [None, Some(2)] {
        let load = || {
            let source = Arc::new(Reading(MemorySource::new(bytes.clone())));
            let program = OpenOptions::default().open_source(source).unwrap();
            Method::load(&program, "forward", &registry(FusedRewrite), &options(&arena, threads))
        };
        let calls = at_every_call_out(load, |result| match result {
            Ok(method) => drop(method.unwrap()),
            // The arena is free again: another method can be loaded on it and run.
            Err(_) => {
                let mut method = load().unwrap();
                method.run(&[Tensor(&[2.0; 16]), Tensor(&[5.0; 16])]).unwrap();
                assert_eq!(firsts(&method), WANT);
            }
        });
        assert!(calls > 30, "{calls} calls out");
    }
}

#[test]
fn a_run_gives_back_what_it_took() {
    let program = Program::from_bytes(program().build()).unwrap();
    let arena = Arena::new(4096).unwrap();
    // Kernels and delegates run on the method's own threads, where the fuse is another one.
    let load = || Method::load(&program, "forward", &registry(FusedRewrite), &options(&arena, None)).unwrap();
    let (method, mut other) = (RefCell::new(load()), load());
    let run = || {
        let (lent, planned) = (vec![2.0f32; 16], vec![5.0f32; 16]);
        method.borrow_mut().run_observed(&[Tensor(&lent), Tensor(&planned)], Some(&mut Watching)).map(|_| ()).unwrap();
    };
    let calls = at_every_call_out(run, |_| {
        let mut left = method.borrow_mut();
        // The memory of the inputs is gone, and so is every trace of it.
        assert!(matches!(left.execute(), Err(RunError::Input { index: 0, .. })));
        // No method holds the arena.
        other.run(&[Tensor(&[2.0; 16]), Tensor(&[5.0; 16])]).unwrap();
        assert_eq!(firsts(&other), WANT);
        left.run(&[Tensor(&[2.0; 16]), Tensor(&[5.0; 16])]).unwrap();
        assert_eq!(firsts(&left), WANT);
    });
    assert!(calls > 20, "{calls} calls out");
}

#[test]
fn a_panic_on_a_thread_of_the_pool_ends_the_run_and_nothing_else() {
    struct Bomb(bool);
    impl Observer for Bomb {
        fn after(&mut self, _: &Event<'_>, _: &Results<'_>) {
            assert!(!self.0, "the bomb");
        }
    }
    let program = Program::from_bytes(program().build()).unwrap();
    let arena = Arena::new(4096).unwrap();
    let mut method = Method::load(&program, "forward", &registry(FusedRewrite), &options(&arena, Some(2))).unwrap();
    for bomb in [true, false, true, false] {
        let (lent, planned) = (vec![2.0f32; 16], vec![5.0f32; 16]);
        let run = || method.run_observed(&[Tensor(&lent), Tensor(&planned)], Some(&mut Bomb(bomb))).map(|_| ());
        let result = catch_unwind(AssertUnwindSafe(run));
        drop((lent, planned));
        assert_eq!(result.is_err(), bomb);
        assert!(matches!(method.execute(), Err(RunError::Input { index: 0, .. })));
    }
    assert_eq!(firsts(&method), WANT);
}

#[test]
fn a_rewrite_that_goes_on_after_a_panic_leaves_a_whole_graph() {
    let program = Program::from_bytes(program().build()).unwrap();
    let arena = Arena::new(4096).unwrap();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut panics = 0;
    for fuse in 1..60 {
        FUSE.set(fuse);
        let load = || Method::load(&program, "forward", &registry(Stubborn), &options(&arena, None));
        let method: Result<Result<Method, LoadError>, _> = catch_unwind(AssertUnwindSafe(load));
        let swallowed = FUSE.replace(0) == 0;
        let Ok(method) = method else { continue };
        panics += u32::from(swallowed);
        let mut method = method.unwrap();
        method.run(&[Tensor(&[2.0; 16]), Tensor(&[5.0; 16])]).unwrap();
        assert_eq!(firsts(&method), WANT);
    }
    std::panic::set_hook(hook);
    assert!(panics > 0);
}

#[test]
fn functions_of_a_graph_may_panic() {
    let float32: DataType = "float32".parse().unwrap();
    let mut graph = GraphBuilder::new();
    let x = graph.argument("x", float32, &[4]);
    let twice = graph.call("twice", &[x], &[(float32, &[4])])[0];
    let y = graph.call("twice", &[twice], &[(float32, &[4])])[0];
    graph.output(y);
    let functions = RustFunctions::new().with("twice", |call| {
        call_out();
        let x = call.argument(0)?.as_slice::<f32>()?;
        call.result(0)?.as_slice::<f32>()?.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
        call_out();
        Ok(())
    });
    let executor = GraphExecutor::new(&graph.finish().unwrap(), &functions, &Limits::default()).unwrap();
    let executor = RefCell::new(executor);
    let x = TensorView::from_slice(&[4], &[1.0f32, 2.0, 3.0, 4.0]).unwrap().untyped();
    executor.borrow_mut().set_input("x", &x).unwrap();
    let run = || executor.borrow_mut().run_with(&mut |_| call_out()).unwrap();
    let calls = at_every_call_out(run, |_| {
        let mut executor = executor.borrow_mut();
        executor.run().unwrap();
        let y: Vec<f32> = bytemuck::pod_collect_to_vec(executor.output(0).unwrap().data());
        assert_eq!(y, [4.0, 8.0, 12.0, 16.0]);
    });
    assert!(calls >= 6, "{calls} calls out");
}
