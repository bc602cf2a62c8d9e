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

/// Distance that the two may be apart.
#[derive(Clone, Copy)]
pub enum Apart<'a> {
    /// Not at all.
    Nothing,
    /// As far as sums of floats in another order.
    Sums {
        /// The method with every constant positive and nothing subtracted: run on positive inputs, it answers what the
        /// terms of each sum amount to. An operator that is not a sum must not move a number further from 0.
        amounts: &'a Assembly,
        /// Number of roundings on the longest path from an input to an output.
        roundings: usize,
    },
}

/// Distance that sums of `f32` may be from the exact ones after so many roundings, as a part of what their terms amount
/// to.
fn rounding(count: usize) -> f64 {
    let all = count as f64 * f64::from(f32::EPSILON) / 2.0;
    all / (1.0 - all)
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
pub fn runs_alike(assembly: &Assembly, sizes: &[usize], apart: Apart<'_>) -> Vec<String> {
    let (mut optimized, mut plain) = (load(assembly, false), load(assembly, true));
    let mut amounts = match apart {
        Apart::Nothing => None,
        Apart::Sums { amounts, roundings } => Some((load(amounts, true), rounding(roundings))),
    };
    let count: usize = sizes.iter().product();
    let mut names = Names::default();
    for round in 0..3 {
        let values: Vec<f32> = (0..count).map(|i| ((i * 7 + round * 3) % 11) as f32 - 5.0).collect();
        let input = || [TensorView::of::<f32>(sizes, bytemuck::cast_slice(&values)).unwrap()];
        let positive: Vec<f32> = values.iter().map(|value| value.abs()).collect();
        let most: Option<Vec<Vec<f64>>> = amounts.as_mut().map(|(amounts, rounding)| {
            let positive = [TensorView::of::<f32>(sizes, bytemuck::cast_slice(&positive)).unwrap()];
            // Both forms are that far from the exact answer, and so are the amounts.
            let part = 2.0 * *rounding / (1.0 - *rounding);
            let amounts = outputs(&amounts.run(&positive).unwrap());
            let most = |amounts: &Vec<f32>| amounts.iter().map(|x| f64::from(*x) * part).collect();
            amounts.iter().map(|(_, amounts)| most(amounts.as_ref().unwrap())).collect()
        });
        let want = outputs(&plain.run(&input()).unwrap());
        names.0.clear();
        let have = outputs(&optimized.run_observed(&input(), Some(&mut names)).unwrap());
        assert_eq!(have.len(), want.len());
        for (index, ((have, have_floats), (want, want_floats))) in have.iter().zip(&want).enumerate() {
            match (&most, have_floats, want_floats) {
                (Some(most), Some(have), Some(want)) => {
                    assert_eq!((have.len(), most[index].len()), (want.len(), want.len()));
                    for ((have, want), most) in have.iter().zip(want).zip(&most[index]) {
                        let apart = (f64::from(*have) - f64::from(*want)).abs();
                        assert!(apart <= *most, "round {round}: {have} for {want}, {most} apart at most");
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
