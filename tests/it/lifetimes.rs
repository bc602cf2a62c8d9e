//! Lifetimes of values in the memories of a method, on programs assembled for the purpose.

use edgepack_executor::observer::{Event, Observer, Results};
use edgepack_executor::{Input, Lifetime, MemoryPart, Method, Options};
use edgepack_format::tensor::{TensorBuf, TensorView};
use edgepack_loader::Program;
use edgepack_tests::assemble::{Assembly, float};
use edgepack_tests::operators::registry;

fn load(assembly: &Assembly) -> Method {
    let program = Program::from_bytes(assembly.build()).unwrap();
    Method::load(&program, "forward", &registry(), &Options::default()).unwrap()
}

/// Value, offset, bytes, first and last use.
fn rows(method: &Method) -> Vec<(u32, usize, usize, usize, usize)> {
    let row = |lifetime: &Lifetime| {
        assert_eq!(lifetime.memory, MemoryPart::Planned(1));
        (lifetime.value, lifetime.offset, lifetime.bytes, lifetime.first, lifetime.last)
    };
    method.lifetimes().iter().map(row).collect()
}

#[test]
fn values_live_from_first_to_last_use() {
    let mut a = Assembly::new();
    let x = a.planned_at(float(&[2]), 0);
    let c = a.constant(float(&[2]), bytemuck::cast_slice(&[1.0f32, 2.0]));
    let y = a.planned_at(float(&[2]), 64);
    let z = a.planned_at(float(&[2]), 0);
    let unused = a.planned_at(float(&[2]), 128);
    let out = a.planned_at(float(&[2]), 192);
    a.call("t::add.out", &[x, c, y, y]);
    a.call("t::add.out", &[y, y, z, z]);
    a.call("t::add.out", &[z, c, out, out]);
    a.call("t::neg.out", &[out, out, out]);
    a.inputs(&[x]);
    a.outputs(&[out]);
    // The constant is in no such memory, and nobody uses one value.
    let _ = unused;
    let id = |id| u32::try_from(id).unwrap();
    assert_eq!(
        rows(&load(&a)),
        [(id(x), 0, 8, 0, 0), (id(y), 64, 8, 0, 1), (id(z), 0, 8, 1, 2), (id(out), 192, 8, 2, 3)]
    );
}

#[test]
fn what_is_read_before_it_is_written_lives_all_the_time() {
    let mut a = Assembly::new();
    let (x, state) = (a.planned_at(float(&[2]), 0), a.planned_at(float(&[2]), 64));
    let y = a.planned_at(float(&[2]), 128);
    a.call("t::neg.out", &[x, y, y]);
    a.call("t::add.out", &[y, state, x, x]);
    a.call("t::neg.out", &[x, state, state]);
    a.inputs(&[x]);
    a.outputs(&[x]);
    let of_state = rows(&load(&a))[1];
    assert_eq!((of_state.3, of_state.4), (0, 2));
}

#[test]
fn a_loop_needs_what_was_made_before_it_until_its_end() {
    let mut a = Assembly::new();
    let (x, y, z) = (a.planned_at(float(&[2]), 0), a.planned_at(float(&[2]), 64), a.planned_at(float(&[2]), 128));
    let never = a.bool(false);
    a.call("t::neg.out", &[x, y, y]);
    let head = a.here();
    a.call("t::neg.out", &[y, z, z]);
    a.call("t::neg.out", &[z, x, x]);
    a.jump_false(never, head);
    a.inputs(&[x]);
    a.outputs(&[x]);
    let rows = rows(&load(&a));
    let of_y = rows.iter().find(|row| row.1 == 64).unwrap();
    assert_eq!((of_y.3, of_y.4), (0, 3), "the last use is instruction 1, which runs again");
}

/// Places that events have.
#[derive(Default)]
struct Places(Vec<(usize, usize, usize)>, Vec<usize>);

impl Observer for Places {
    fn before(&mut self, event: &Event<'_>) {
        self.0.push((event.position, event.chain, event.instruction));
    }
    fn after(&mut self, _: &Event<'_>, results: &Results<'_>) {
        self.1.extend(results.lists().iter().map(|list| list.len()));
    }
}

#[test]
fn places_go_on_over_chains() {
    let mut a = Assembly::new();
    let (x, y) = (a.planned(float(&[2])), a.planned(float(&[2])));
    a.call("t::neg.out", &[x, y, y]);
    a.call("t::neg.out", &[y, x, x]);
    a.chain();
    a.call("t::neg.out", &[x, y, y]);
    a.inputs(&[x]);
    a.outputs(&[y]);
    let mut method = load(&a);
    let mut places = Places::default();
    let view = TensorView::of::<f32>(&[2], &[0; 8]).unwrap();
    method.run_observed(&[Input::Tensor(view)], Some(&mut places)).unwrap();
    assert_eq!(places.0, [(0, 0, 0), (1, 0, 1), (2, 1, 0)]);
    assert!(places.1.is_empty(), "{:?}: a tensor is no list", places.1);
}

#[test]
fn lists_that_were_written_are_told() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/corpus/models/transformer_block_portable.pte");
    let program = Program::open(path).unwrap();
    let options = Options { no_optimize: true, ..Options::default() };
    let mut method = Method::load(&program, "forward", &edgepack_kernels::registry(), &options).unwrap();
    let meta = program.method_meta("forward").unwrap();
    let tensors: Vec<TensorBuf> = meta
        .inputs
        .iter()
        .filter_map(|input| input.tensor())
        .map(|input| TensorBuf::from_bytes(input.layout.clone(), vec![0; input.layout.byte_len()]).unwrap())
        .collect();
    let inputs: Vec<Input<'_>> = tensors.iter().map(|tensor| Input::Tensor(tensor.view())).collect();
    let mut places = Places::default();
    method.run_observed(&inputs, Some(&mut places)).unwrap();
    // The queries, keys and values of attention are split off one product.
    assert!(places.1.contains(&3), "{:?}", places.1);
}
