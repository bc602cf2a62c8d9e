//! Running a method with and without rewrites.

use edgepack_executor::observer::{Event, Observer};
use edgepack_executor::{Method, Options, Output};
use edgepack_format::tensor::TensorView;
use edgepack_loader::Program;

use crate::assemble::Assembly;

/// The names of what runs.
#[derive(Default)]
struct Names(Vec<String>);

impl Observer for Names {
    fn before(&mut self, event: &Event<'_>) {
        self.0.push(event.name.to_owned());
    }
}

fn load(assembly: &Assembly, no_optimize: bool) -> Method {
    let program = Program::from_bytes(assembly.build()).unwrap_or_else(|error| panic!("{error}"));
    let options = Options { no_optimize, ..Options::default() };
    Method::load(&program, "forward", &edgepack_kernels::registry(), &options).unwrap_or_else(|error| panic!("{error}"))
}

/// How far the two may be apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Apart {
    /// Not at all.
    Nothing,
    /// As far as sums of floats in another order.
    Sums,
}

/// Outputs as bytes, with the numbers of those that are floats.
type Outputs = Vec<(Vec<u8>, Option<Vec<f32>>)>;

fn outputs(outputs: &edgepack_executor::Outputs<'_>) -> Outputs {
    let each = (0..outputs.len()).map(|index| match outputs.get(index) {
        Some(Output::Tensor(tensor)) => (tensor.bytes().to_vec(), tensor.as_slice::<f32>().ok().map(<[f32]>::to_vec)),
        other => panic!("no tensor: {other:?}"),
    });
    each.collect()
}

/// Runs a method of one float input three times, with and without rewrites; both must answer the same. Returns the names
/// of what ran with rewrites.
pub fn runs_alike(assembly: &Assembly, sizes: &[usize], apart: Apart) -> Vec<String> {
    let (mut optimized, mut plain) = (load(assembly, false), load(assembly, true));
    let count: usize = sizes.iter().product();
    let mut names = Names::default();
    for round in 0..3 {
        let values: Vec<f32> = (0..count).map(|i| ((i * 7 + round * 3) % 11) as f32 - 5.0).collect();
        let input = || [TensorView::of::<f32>(sizes, bytemuck::cast_slice(&values)).unwrap()];
        let want = outputs(&plain.run(&input()).unwrap());
        names.0.clear();
        let have = outputs(&optimized.run_observed(&input(), Some(&mut names)).unwrap());
        assert_eq!(have.len(), want.len());
        for ((have, have_floats), (want, want_floats)) in have.iter().zip(&want) {
            match (apart, have_floats, want_floats) {
                (Apart::Sums, Some(have), Some(want)) => {
                    assert_eq!(have.len(), want.len());
                    for (have, want) in have.iter().zip(want) {
                        assert!((have - want).abs() <= 1e-4 + 1e-4 * want.abs(), "round {round}: {have} for {want}");
                    }
                }
                _ => assert!(have == want, "round {round}: {have_floats:?} for {want_floats:?}"),
            }
        }
    }
    names.0
}

/// Bytes of so many floats of both signs.
pub fn numbers(count: usize) -> Vec<u8> {
    let numbers: Vec<f32> = (0..count).map(|i| ((i * 5) % 9) as f32 * 0.25 - 1.0).collect();
    bytemuck::cast_slice(&numbers).to_vec()
}
