//! Delegates whose backend answers with instructions compute what their opaque form computes, in as much memory: with
//! dynamic sizes, inside branches and loops, called twice, on memory that arguments share, and refuse what it refuses.

use std::ops::Range;
use std::sync::Mutex;

use edgepack_executor::delegate::{Backend, Backends, Delegate, DelegateInit, Instructions};
use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::observer::{Event, Observer};
use edgepack_executor::{LoadError, Method, Options, Output};
use edgepack_format::finding::ErrorCode;
use edgepack_format::limits::Limits;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{Dims, TensorLayout, TensorView};
use edgepack_loader::{AlignedBytes, Bytes, Program};
use edgepack_tests::assemble::{Assembly, Spec, float};
use edgepack_tests::operators::registry;

/// `out = reverse(x) + by`, which reads what it would overwrite if memory were shared.
static STAGE: Kernel = Kernel {
    name: "stages::stage.out",
    schema: "(Tensor x, Tensor by, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    is_pure: false,
    prepare: |_| {
        Ok(Box::new(|cx: &mut KernelContext<'_>| {
            let sizes: Dims = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
            cx.resize(2, &sizes)?;
            let views = cx.views();
            let (x, by, mut out) = (views.tensor(0)?, views.tensor(1)?, views.out(2)?);
            stage(x.as_slice()?, by.as_slice::<f32>()?[0], out.as_mut_slice()?);
            Ok(())
        }))
    },
};

fn stage(x: &[f32], by: f32, out: &mut [f32]) {
    out.iter_mut().zip(x.iter().rev()).for_each(|(out, x)| *out = x + by);
}

/// Runs as many stages as its payload says; the second byte is a bound on what is between them, if it is not zero.
struct Stages {
    inline: bool,
}

#[derive(Clone, Copy)]
struct Staged {
    inline: bool,
    stages: usize,
    bound: usize,
    /// Elements of the input at most.
    most: usize,
}

impl Backend for Stages {
    fn id(&self) -> &str {
        "Stages"
    }
    fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
        let &[stages, bound] = &*cx.processed else { return Err(KernelError::argument("two bytes are wanted")) };
        Ok(Box::new(Staged { inline: self.inline, stages: stages.into(), bound: bound.into(), most: 0 }))
    }
}

const BLOCK: usize = 64;

impl Staged {
    /// Bytes between two stages.
    fn between(&self) -> usize {
        (if self.bound > 0 { self.bound } else { self.most }) * 4
    }
}

impl Delegate for Staged {
    fn outputs(&self, count: usize) -> Range<usize> {
        1..count
    }

    fn instructions(&self, call: &Prepare<'_>) -> Result<Option<Instructions>, KernelError> {
        if !self.inline {
            return Ok(None);
        }
        let mut all = Instructions::new(call.len());
        let one = TensorLayout::contiguous(ScalarType::FLOAT, &[1]).unwrap();
        // Not aligned for floats: it is copied.
        let bytes = [&[0u8][..], &1f32.to_ne_bytes()].concat();
        let by = all.constant(one, Bytes::from(AlignedBytes::copy_of(&bytes).unwrap()).slice(1..5).unwrap());
        let operator = all.operator(&STAGE);
        let info = call.tensor(0)?;
        let bound = if self.bound > 0 { self.bound } else { info.meta.sizes[0] };
        let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[bound]).unwrap();
        let mut from = all.argument(0);
        for stage in 0..self.stages {
            let to = if stage + 1 < self.stages {
                all.temporary(layout.clone(), true)
            } else {
                all.argument(call.len() - 1)
            };
            all.call(operator, &[from, by, to], stage as u32);
            from = to;
        }
        Ok(Some(all))
    }

    fn prepare(&self, call: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        let staged = Staged { most: call.tensor(0)?.meta.sizes[0], ..*self };
        let buffers = self.stages.saturating_sub(1).min(2);
        call.scratch(staged.between().next_multiple_of(BLOCK) * buffers);
        Ok(Box::new(staged))
    }
}

impl Run for Staged {
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        let last = cx.len() - 1;
        let count = cx.meta(0)?.sizes[0];
        if self.stages > 1 && self.bound > 0 && count > self.bound {
            return Err(KernelError::unsupported("more than the bound"));
        }
        cx.resize(last, &[count])?;
        let views = cx.views();
        let (x, mut out) = (views.tensor(0)?, views.out(last)?);
        let (mut x, out) = (x.as_slice::<f32>()?.to_vec(), out.as_mut_slice::<f32>()?);
        let _two_buffers_are_here = views.scratch()?;
        for _ in 0..self.stages {
            stage(&x, 1.0, out);
            x.copy_from_slice(out);
        }
        Ok(())
    }
}

fn load(assembly: &Assembly, inline: bool) -> Result<Method, LoadError> {
    let program = Program::from_bytes(assembly.build()).unwrap();
    let options = Options { backends: Backends::new().with(Stages { inline }), ..Options::default() };
    Method::load(&program, "forward", &registry(), &options)
}

fn bytes(values: &[f32]) -> &[u8] {
    bytemuck::cast_slice(values)
}

fn outputs(method: &mut Method, inputs: &[&[f32]]) -> Result<Vec<Vec<f32>>, String> {
    let inputs: Vec<_> = inputs.iter().map(|x| TensorView::of::<f32>(&[x.len()], bytes(x)).unwrap()).collect();
    let outputs = method.run(&inputs).map_err(|error| error.code().to_string())?;
    let floats = outputs.iter().map(|output| match output {
        Output::Tensor(tensor) => tensor.as_slice::<f32>().unwrap().to_vec(),
        other => panic!("{other:?}"),
    });
    Ok(floats.collect())
}

/// Memory beyond what both forms need for the program: scratch, and temporaries.
fn extra(method: &Method) -> usize {
    let memory = method.memory_bytes();
    memory.scratch + memory.private
}

/// Both forms on the same inputs, one after another; the opaque one's results.
fn both(assembly: &Assembly, runs: &[&[&[f32]]]) -> Vec<Result<Vec<Vec<f32>>, String>> {
    let (mut opaque, mut inlined) = (load(assembly, false).unwrap(), load(assembly, true).unwrap());
    let results = runs.iter().map(|inputs| {
        let want = outputs(&mut opaque, inputs);
        assert_eq!(outputs(&mut inlined, inputs), want, "{inputs:?}");
        want
    });
    results.collect()
}

fn dynamic(size: i32) -> Spec {
    float(&[size]).dynamic()
}

/// One call of a delegate with so many stages.
fn one_call(stages: u8, bound: u8) -> Assembly {
    let mut a = Assembly::new();
    let (x, y) = (a.planned(dynamic(40)), a.planned(dynamic(40)));
    a.delegate("Stages", &[stages, bound], &[x, y]);
    a.inputs(&[x]);
    a.outputs(&[y]);
    a
}

#[test]
fn dynamic_sizes_and_as_much_memory() {
    for stages in 1..9 {
        let assembly = one_call(stages, 0);
        let results = both(&assembly, &[&[&[1.0, 2.0, 3.0]], &[&[5.0; 40]], &[&[]], &[&[7.0]]]);
        assert_eq!(results[3], Ok(vec![vec![7.0 + f32::from(stages)]]));
        let (opaque, inlined) = (load(&assembly, false).unwrap(), load(&assembly, true).unwrap());
        assert_eq!(extra(&opaque) + 4, extra(&inlined), "{stages} stages, and a constant that was not aligned");
    }
}

#[test]
fn bounds_that_lie_are_errors_of_the_run() {
    let results = both(&one_call(4, 8), &[&[&[1.0; 8]], &[&[1.0; 9]], &[&[2.0; 8]]]);
    assert_eq!(results[1], Err("NotSupported".to_owned()));
    assert_eq!(results[2], Ok(vec![vec![6.0; 8]]));
    // Too large for any memory.
    let mut a = Assembly::new();
    let (x, y) = (a.planned(dynamic(4)), a.planned(dynamic(4)));
    a.delegate("Answering", &[], &[x, y]);
    a.inputs(&[x]);
    a.outputs(&[y]);
    let refused = |count, size| {
        answered(&a, move |all, _| {
            let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[size]).unwrap();
            let (operator, by) = (all.operator(&STAGE), one(all));
            let mut from = all.argument(0);
            for node in 0..count {
                let to = all.temporary(layout.clone(), true);
                all.call(operator, &[from, by, to], node);
                from = to;
            }
        })
    };
    assert_eq!(refused(1, usize::MAX / 16).err().unwrap().code(), ErrorCode::MemoryAllocationFailed);
    assert_eq!(refused(9, usize::MAX / 16).err().unwrap().code(), ErrorCode::MemoryAllocationFailed);
    assert!(refused(20_000, 1 << 10).is_ok(), "temporaries one after another share memory");
}

#[test]
fn arguments_may_share_memory() {
    // The tensor that is read is written too.
    let mut a = Assembly::new();
    let x = a.planned(dynamic(8));
    a.delegate("Stages", &[3, 0], &[x, x]);
    a.inputs(&[x]);
    a.outputs(&[x]);
    assert_eq!(both(&a, &[&[&[1.0, 2.0, 3.0]]])[0], Ok(vec![vec![6.0, 5.0, 4.0]]));
    // So are some bytes of it.
    let mut a = Assembly::new();
    let x = a.planned_at(float(&[8]), 0);
    let y = a.planned_at(float(&[8]), 16);
    a.delegate("Stages", &[2, 0], &[x, y]);
    a.inputs(&[x]);
    a.outputs(&[y]);
    let x: Vec<f32> = (0..8).map(|x| x as f32).collect();
    assert_eq!(both(&a, &[&[&x], &[&x]])[1], Ok(vec![x.iter().map(|x| x + 2.0).collect()]));
    // One value as two outputs is refused by both.
    let mut a = Assembly::new();
    let (x, y) = (a.planned(dynamic(8)), a.planned(dynamic(8)));
    a.delegate("Stages", &[2, 0], &[x, y, y]);
    a.inputs(&[x]);
    a.outputs(&[y]);
    for inline in [false, true] {
        let error = load(&a, inline).err().unwrap();
        assert!(error.to_string().contains("two outputs share memory"), "{error}");
    }
}

#[test]
fn branches_and_loops() {
    // Over the delegate, or through it, and what follows.
    let mut a = Assembly::new();
    let (x, y) = (a.planned(dynamic(4)), a.planned(dynamic(4)));
    let condition = a.planned(Spec::new(ScalarType::BOOL, &[1]));
    let never = a.bool(false);
    a.jump_false(condition, 3);
    a.delegate("Stages", &[5, 0], &[x, y]);
    a.jump_false(never, 4);
    a.delegate("Stages", &[2, 0], &[x, y]);
    a.delegate("Stages", &[1, 0], &[y, x]);
    a.inputs(&[x, condition]);
    a.outputs(&[x, y]);
    let (mut opaque, mut inlined) = (load(&a, false).unwrap(), load(&a, true).unwrap());
    for (taken, added) in [(1u8, 6.0), (0, 3.0), (1, 6.0)] {
        let (x, condition) = ([1.0f32, 2.0], [taken]);
        let inputs = [TensorView::of::<f32>(&[2], bytes(&x)).unwrap(), TensorView::of::<u8>(&[1], &condition).unwrap()];
        let inputs = [
            inputs[0].clone(),
            TensorView::new(TensorLayout::contiguous(ScalarType::BOOL, &[1]).unwrap(), inputs[1].data()).unwrap(),
        ];
        let results = [&mut opaque, &mut inlined].map(|method| {
            let outputs = method.run(&inputs).unwrap();
            let Some(Output::Tensor(tensor)) = outputs.get(0) else { panic!() };
            tensor.as_slice::<f32>().unwrap().to_vec()
        });
        assert_eq!(results[0], results[1]);
        assert_eq!(results[0].iter().sum::<f32>(), 3.0 + 2.0 * added);
    }

    // In a loop, each turn on what the last one left.
    let mut a = Assembly::new();
    let (i, limit, always, less) = (a.int(0), a.int(10), a.bool(false), a.bool(true));
    let zero = a.int(0);
    let (x, y) = (a.planned(dynamic(4)), a.planned(dynamic(4)));
    a.mov(zero, i);
    let head = a.here();
    a.call("t::lt", &[i, limit, less]);
    let exit = a.here() + 6;
    a.jump_false(less, exit);
    a.delegate("Stages", &[4, 0], &[x, y]);
    a.delegate("Stages", &[3, 0], &[y, x]);
    a.call("t::inc", &[i, i]);
    a.call("t::neg.out", &[x, x, x]);
    a.jump_false(always, head);
    a.outputs(&[x]);
    a.inputs(&[x]);
    let results = both(&a, &[&[&[1.0, 2.0, 3.0]], &[&[9.0]]]);
    assert_eq!(results[1], Ok(vec![vec![9.0]]), "ten turns of 7 - x");
}

#[test]
fn one_delegate_called_twice() {
    let mut a = Assembly::new();
    let (x, y, z) = (a.planned(dynamic(4)), a.planned(dynamic(4)), a.planned(dynamic(4)));
    a.delegate("Stages", &[3, 0], &[x, y]);
    a.call_delegate(0, &[x, z]);
    a.call_delegate(0, &[y, x]);
    a.inputs(&[x]);
    a.outputs(&[x, y, z]);
    let results = both(&a, &[&[&[1.0, 2.0]], &[&[4.0, 3.0, 2.0, 1.0]]]);
    assert_eq!(results[0], Ok(vec![vec![7.0, 8.0], vec![5.0, 4.0], vec![5.0, 4.0]]));
}

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Observer for &Log {
    fn before(&mut self, event: &Event<'_>) {
        let line = format!("{} {} {:?} {:?}", event.instruction, event.name, event.delegate, event.node);
        self.0.lock().unwrap().push(line);
    }
}

#[test]
fn observers_and_errors_name_instruction_and_node() {
    let mut method = load(&one_call(2, 3), true).unwrap();
    let log = Log::default();
    let input = TensorView::of::<f32>(&[2], bytes(&[1.0, 2.0])).unwrap();
    method.run_observed(&[input], Some(&mut &log)).unwrap();
    let lines = log.0.lock().unwrap().join("\n");
    assert_eq!(lines, "0 stages::stage.out Some(0) Some(0)\n0 stages::stage.out Some(0) Some(1)");
    let input = TensorView::of::<f32>(&[4], bytes(&[1.0; 4])).unwrap();
    let error = method.run(&[input]).err().unwrap().to_string();
    assert!(error.starts_with("forward chains[0].instructions[0] (stages::stage.out) node 0: "), "{error}");
}

/// A constant of one.
fn one(all: &mut Instructions) -> edgepack_executor::delegate::Local {
    let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[1]).unwrap();
    all.constant(layout, Bytes::from(1f32.to_ne_bytes().to_vec()))
}

/// Answers calls of any id with what a function makes.
struct Answer<F>(F);

impl<F: Fn(&mut Instructions, &Prepare<'_>) + Copy + Send + Sync + 'static> Backend for Answer<F> {
    fn id(&self) -> &str {
        "Answering"
    }
    fn init(&self, _: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
        Ok(Box::new(Answer(self.0)))
    }
}

impl<F: Fn(&mut Instructions, &Prepare<'_>) + Send> Delegate for Answer<F> {
    fn outputs(&self, count: usize) -> Range<usize> {
        1..count
    }
    fn instructions(&self, call: &Prepare<'_>) -> Result<Option<Instructions>, KernelError> {
        let mut all = Instructions::new(call.len());
        (self.0)(&mut all, call);
        Ok(Some(all))
    }
    fn prepare(&self, _: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        Err(KernelError::unsupported("instructions only"))
    }
}

fn answered<F>(assembly: &Assembly, answer: F) -> Result<Method, LoadError>
where
    F: Fn(&mut Instructions, &Prepare<'_>) + Copy + Send + Sync + 'static,
{
    answered_within(Limits::default(), assembly, answer)
}

fn answered_within<F>(limits: Limits, assembly: &Assembly, answer: F) -> Result<Method, LoadError>
where
    F: Fn(&mut Instructions, &Prepare<'_>) + Copy + Send + Sync + 'static,
{
    let program = Program::from_bytes(assembly.build()).unwrap();
    let backends = Backends::new().with(Answer(answer));
    let options = Options { backends, limits: Some(limits), ..Options::default() };
    Method::load(&program, "forward", &registry(), &options)
}

#[test]
fn what_instructions_reserve_is_charged_to_the_method() {
    static RESERVED: Mutex<Vec<bool>> = Mutex::new(Vec::new());
    let mut a = Assembly::new();
    let (x, y) = (a.planned(dynamic(40)), a.planned(dynamic(40)));
    a.delegate("Answering", &[], &[x, y]);
    a.inputs(&[x]);
    a.outputs(&[y]);
    let load = |bytes: usize| {
        let mut limits = Limits::default();
        limits.method_bytes = 4096;
        let method = answered_within(limits, &a, move |all, call| {
            RESERVED.lock().unwrap().push(call.retained().reserve(bytes).is_ok());
            // An answer that is taken over.
            let (stage, by) = (all.operator(&STAGE), one(all));
            let to = all.temporary(TensorLayout::contiguous(ScalarType::FLOAT, &[512]).unwrap(), true);
            all.call(stage, &[all.argument(0), by, to], 0);
            all.call(stage, &[to, by, all.argument(1)], 1);
        });
        (RESERVED.lock().unwrap().pop().unwrap(), method.map(|_| ()).map_err(|error| error.code()))
    };
    assert_eq!(load(0), (true, Ok(())));
    assert_eq!(load(2048), (true, Ok(())));
    assert_eq!(load(2049), (true, Err(ErrorCode::MemoryAllocationFailed)), "temporaries have what is left");
    assert!(!load(4097).0);
}

#[test]
fn instructions_that_are_wrong_are_refused() {
    let mut a = Assembly::new();
    let (x, y) = (a.planned(float(&[4])), a.planned(float(&[4])));
    a.delegate("Answering", &[], &[x, y]);
    a.inputs(&[x]);
    a.outputs(&[y]);
    fn layout(sizes: &[usize]) -> TensorLayout {
        TensorLayout::contiguous(ScalarType::FLOAT, sizes).unwrap()
    }
    type Wrong = fn(&mut Instructions, &Prepare<'_>);
    let wrong: [(&str, Wrong); 11] = [
        ("writes argument 2, an input or a constant", |all, _| {
            let (stage, by) = (all.operator(&STAGE), one(all));
            all.call(stage, &[all.argument(1), by, all.argument(0)], 3);
        }),
        ("writes argument 2, an input or a constant", |all, _| {
            let (stage, by) = (all.operator(&STAGE), one(all));
            all.call(stage, &[all.argument(0), by, by], 0);
        }),
        ("writes argument 2, an input or a constant", |all, _| {
            let (stage, by) = (all.operator(&STAGE), one(all));
            let view = all.view(all.argument(0), layout(&[2, 2]), false);
            all.call(stage, &[all.argument(0), by, view], 0);
        }),
        // Packed weights have no bytes.
        ("writes argument 2, an input or a constant", |all, _| {
            let (stage, by) = (all.operator(&STAGE), one(all));
            let packed = all.packed(layout(&[4]));
            all.call(stage, &[all.argument(0), by, packed], 0);
        }),
        ("a view f32[4] of 16 bytes of a tensor with 0", |all, _| {
            let packed = all.packed(layout(&[4]));
            all.view(packed, layout(&[4]), false);
        }),
        ("have no %", |all, _| {
            let stage = all.operator(&STAGE);
            all.call(stage, &[all.argument(0), all.argument(2), all.argument(1)], 0);
        }),
        ("have no such operator", |all, _| {
            let mut other = Instructions::new(2);
            other.operator(&STAGE);
            let operator = other.operator(&STAGE);
            all.call(operator, &[], 0);
        }),
        ("a call with 2 values, the operator takes 4", |all, _| {
            let stage = all.operator(&STAGE);
            all.call(stage, &[all.argument(0), all.argument(0)], 0);
        }),
        ("which the schema does not allow", |all, _| {
            let (stage, number) = (all.operator(&STAGE), all.int(3));
            all.call(stage, &[all.argument(0), number, all.argument(1)], 0);
        }),
        ("a constant of another length", |all, _| {
            all.constant(layout(&[2]), Bytes::from(vec![0; 7]));
        }),
        ("a view f32[5] of 20 bytes of a tensor with 16", |all, _| {
            all.view(all.argument(1), layout(&[5]), false);
        }),
    ];
    for (message, answer) in wrong {
        let error = answered(&a, answer).err().unwrap_or_else(|| panic!("{message}"));
        assert!(error.to_string().contains(message), "{error}, not {message}");
        assert!(error.to_string().starts_with("delegates[0] (Answering): "), "{error}");
    }
    let reads_packed = answered(&a, |all, _| {
        let (stage, by, packed) = (all.operator(&STAGE), one(all), all.packed(layout(&[4])));
        all.call(stage, &[packed, by, all.argument(1)], 0);
    });
    let x = [1.0; 4];
    let mut reads_packed = reads_packed.unwrap();
    let error = reads_packed.run(&[TensorView::of::<f32>(&[4], bytes(&x)).unwrap()]).err().unwrap().to_string();
    assert!(error.contains("a tensor of 16 bytes has only 0 bytes of memory"), "{error}");
    // Numbers that operators compute have no place among the values of instructions.
    static COUNT: Kernel = Kernel {
        name: "stages::count",
        schema: "(Tensor x) -> int",
        alias: Alias::Disjoint,
        is_pure: false,
        prepare: |_| Ok(Box::new(|cx: &mut KernelContext<'_>| cx.set_int(1, 4))),
    };
    let error = answered(&a, |all, _| {
        let count = all.operator(&COUNT);
        all.call(count, &[all.argument(0)], 0);
    });
    assert!(error.err().unwrap().to_string().contains("stages::count returns a number of its own"));
    // Lists hold tensors of their own kind, and the arguments are as many as the call has.
    let error = answered(&a, |all, _| {
        let number = all.int(1);
        all.tensors(&[number]);
    });
    assert!(error.err().unwrap().to_string().contains("values of another kind"));
    let error = answered(&a, |all, _| *all = Instructions::new(1));
    assert!(error.err().unwrap().to_string().contains("instructions for 1 arguments, the call has 2"));
}
