//! Outputs that a rewrite makes copies: which may be, and that callers see the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, Run};
use edgepack_executor::plan::{PlanGraph, Rewrite};
use edgepack_executor::state::Value;
use edgepack_executor::{Method, Options, Output, Registry};
use edgepack_format::tensor::TensorView;
use edgepack_loader::Program;
use edgepack_tests::assemble::Id;
use edgepack_tests::placed::Placed;

static COPY: Kernel = Kernel {
    name: "test::copy.out",
    schema: "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    is_pure: true,
    prepare: |_| {
        Ok(Box::new(|cx: &mut KernelContext<'_>| {
            let views = cx.views();
            views.out(1)?.bytes_mut().copy_from_slice(views.tensor(0)?.bytes());
            Ok(())
        }) as Box<dyn Run>)
    },
};

/// Asks for a copy of every output, and notes how many there are.
struct CopyAll(Arc<AtomicUsize>);

impl Rewrite for CopyAll {
    fn name(&self) -> &'static str {
        "copy all outputs"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        let tensors = graph.outputs().iter().filter_map(|&id| match graph.value(id) {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        });
        let outputs: Vec<u32> = tensors.collect();
        let operator = graph.push_operator(&COPY).unwrap();
        let copied = graph.copy_outputs(&outputs, operator);
        self.0.store(copied, Ordering::Relaxed);
        copied
    }
}

/// Runs a method of six floats twice with every output copied that may be, and as it is; both answer the same. Returns how many were
/// copied.
fn copied(make: impl FnOnce(&mut Placed, Id) -> Vec<Id>) -> usize {
    let mut a = Placed::new(false);
    let x = a.value(&[2, 3]);
    let outputs = make(&mut a, x);
    a.a.inputs(&[x]);
    a.a.outputs(&outputs);
    let program = Program::from_bytes(a.a.build()).unwrap();
    let count = Arc::new(AtomicUsize::new(usize::MAX));
    let [plain, copying] = [None, Some(CopyAll(count.clone()))]
        .map(|rewrite| rewrite.into_iter().fold(edgepack_kernels::registry(), Registry::with_rewrite));
    let load = |registry: &Registry| Method::load(&program, "forward", registry, &Options::default()).unwrap();
    let (mut plain, mut copying) = (load(&plain), load(&copying));
    for round in 0..2 {
        let numbers = [0.5f32, -1.0, 2.0, -3.0, 4.0, round as f32];
        let input = [TensorView::of::<f32>(&[2, 3], bytemuck::cast_slice(&numbers)).unwrap()];
        let [have, want] = [&mut copying, &mut plain].map(|method| {
            let outputs = method.run(&input).unwrap();
            let bytes = (0..outputs.len()).map(|index| match outputs.get(index) {
                Some(Output::Tensor(tensor)) => tensor.bytes().to_vec(),
                other => panic!("no tensor: {other:?}"),
            });
            bytes.collect::<Vec<_>>()
        });
        assert_eq!(have, want, "round {round}");
    }
    count.load(Ordering::Relaxed)
}

#[test]
fn outputs_that_one_instruction_writes_become_copies() {
    assert_eq!(copied(|a, x| vec![a.relu(x, &[2, 3])]), 1);
    // The first is read by what writes the second, and the last is the first once more.
    let chained = |a: &mut Placed, x: Id| {
        let first = a.relu(x, &[2, 3]);
        vec![first, a.relu(first, &[2, 3]), first]
    };
    assert_eq!(copied(chained), 2);
}

#[test]
fn outputs_that_are_more_than_that_stay() {
    // An input.
    assert_eq!(copied(|a, x| vec![x, a.relu(x, &[2, 3])]), 1);
    // One that is written in place, and may be read first.
    let in_place = |a: &mut Placed, x: Id| {
        let (to, no) = (a.value(&[2, 3]), a.a.bool(false));
        a.a.call("aten::copy_", &[to, x, no, to]);
        vec![to]
    };
    assert_eq!(copied(in_place), 0);
    // One that two instructions write.
    let twice = |a: &mut Placed, x: Id| {
        let to = a.relu(x, &[2, 3]);
        a.a.call("aten::neg.out", &[x, to, to]);
        vec![to]
    };
    assert_eq!(copied(twice), 0);
}
