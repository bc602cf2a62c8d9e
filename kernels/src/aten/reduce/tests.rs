//! Every reduction against loops over indices, in every dim order; and the rules of empty and wrong calls.

use edgepack_executor::call::{Arg, OwnedTensor, call};
use edgepack_executor::kernel::{Kernel, KernelError};
use edgepack_format::scalar::{Bool, ScalarType};
use edgepack_format::tensor::write_strides;

use super::*;
use edgepack_compute::random::Random;

fn kernel(name: &str) -> &'static Kernel {
    KERNELS.iter().find(|kernel| kernel.name == name).unwrap()
}

/// Calls an operator whose arguments are input, dims, keepdim, further ones, out.
fn reduce(name: &str, input: Arg, dims: Arg, rest: &[Arg], out: OwnedTensor) -> Result<OwnedTensor, KernelError> {
    let mut args = vec![input, dims];
    args.extend_from_slice(rest);
    args.push(Arg::Tensor(out));
    Ok(call(kernel(name), &args)?.remove(0))
}

fn f32s(tensor: &OwnedTensor) -> Vec<f32> {
    tensor.as_slice().unwrap()
}

/// For every element of the result, the elements folded into it, in index order. Works on places in memory.
fn groups(sizes: &[usize], order: &[u8], folded: &[usize]) -> Vec<Vec<usize>> {
    let mut strides = vec![0; sizes.len()];
    write_strides(sizes, order, &mut strides);
    let kept: Vec<usize> = (0..sizes.len()).filter(|dim| !folded.contains(dim)).collect();
    let count: usize = kept.iter().map(|&dim| sizes[dim]).product();
    let mut result = vec![Vec::new(); count];
    for at in 0..sizes.iter().product() {
        let (mut rest, mut place) = (at, vec![0; sizes.len()]);
        for dim in (0..sizes.len()).rev() {
            place[dim] = rest % sizes[dim];
            rest /= sizes[dim];
        }
        let to = kept.iter().fold(0, |to, &dim| to * sizes[dim] + place[dim]);
        result[to].push(place.iter().zip(&strides).map(|(i, s)| i * s).sum());
    }
    result
}

#[test]
fn every_dim_order_agrees_with_loops() {
    let mut random = Random::new(21);
    for round in 0..80 {
        let sizes: Vec<usize> = (0..4).map(|_| random.below(5) + 1).collect();
        let order: &[u8] = [&[0, 1, 2, 3], &[0, 2, 3, 1], &[3, 0, 2, 1]][round % 3];
        let mut folded: Vec<usize> = (0..4).filter(|_| random.below(2) == 0).collect();
        if folded.is_empty() {
            folded = vec![round % 4];
        }
        let values = random.floats(sizes.iter().product());
        let input = Arg::Tensor(OwnedTensor::new(&sizes, &values).with_dim_order(order));
        let dims = Arg::Ints(folded.iter().map(|&dim| dim as i64 - 4).collect());
        let keep = round % 2 == 0;
        let out_sizes = (0..4).filter(|dim| keep || !folded.contains(dim));
        let out_sizes: Vec<usize> = out_sizes.map(|dim| if folded.contains(&dim) { 1 } else { sizes[dim] }).collect();
        let out = OwnedTensor::zeros(ScalarType::FLOAT, &out_sizes);
        let groups = groups(&sizes, order, &folded);
        let of = |f: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
            groups.iter().map(|group| f(&group.iter().map(|&at| values[at].into()).collect::<Vec<f64>>())).collect()
        };
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        let dtype = [Arg::bool(keep), Arg::None];
        let variance = [Arg::Scalar(Scalar::Int(0)), Arg::bool(keep)];
        for (name, rest, want) in [
            ("aten::sum.IntList_out", &dtype[..], of(&|x| x.iter().sum())),
            ("aten::mean.out", &dtype, of(&mean)),
            ("aten::amax.out", &dtype[..1], of(&|x| x.iter().copied().fold(f64::MIN, f64::max))),
            ("aten::amin.out", &dtype[..1], of(&|x| x.iter().copied().fold(f64::MAX, f64::min))),
            (
                "aten::var.correction_out",
                &variance,
                of(&|x| mean(&x.iter().map(|y| (y - mean(x)).powi(2)).collect::<Vec<_>>())),
            ),
        ] {
            let have = f32s(&reduce(name, input.clone(), dims.clone(), rest, out.clone()).unwrap());
            for (have, want) in have.iter().zip(&want) {
                assert!((f64::from(*have) - want).abs() < 1e-5, "{name} {sizes:?} {folded:?}: {have} is not {want}");
            }
        }
    }
}

#[test]
fn places_are_first_in_index_order() {
    let mut random = Random::new(22);
    for round in 0..40 {
        let sizes: Vec<usize> = (0..3).map(|_| random.below(4) + 1).collect();
        let order: &[u8] = [&[0, 1, 2], &[2, 0, 1]][round % 2];
        let values: Vec<i32> = random.values(sizes.iter().product());
        let input = Arg::Tensor(OwnedTensor::new(&sizes, &values).with_dim_order(order));
        let dim = (round % 4 < 3).then_some(round % 4);
        let folded = dim.map_or(vec![0, 1, 2], |dim| vec![dim]);
        let groups = groups(&sizes, order, &folded);
        let out_sizes: Vec<usize> = (0..3).filter(|dim| !folded.contains(dim)).map(|dim| sizes[dim]).collect();
        let out = OwnedTensor::zeros(ScalarType::LONG, &out_sizes);
        let arg = dim.map_or(Arg::None, |dim| Arg::int(dim as i64));
        for (name, sign) in [("aten::argmax.out", 1), ("aten::argmin.out", -1)] {
            let have = reduce(name, input.clone(), arg.clone(), &[Arg::bool(false)], out.clone()).unwrap();
            let want = groups.iter().map(|group| {
                let best = group.iter().map(|&at| sign * values[at]).max().unwrap();
                group.iter().position(|&at| sign * values[at] == best).unwrap() as i64
            });
            assert_eq!(have.as_slice::<i64>().unwrap(), want.collect::<Vec<_>>(), "{name} {sizes:?} {dim:?}");
        }
    }
}

#[test]
fn extremes_come_with_their_places() {
    let input = Arg::tensor(&[2, 3], &[1.0f32, f32::NAN, 3.0, 4.0, 6.0, 6.0]);
    let mut args = vec![input, Arg::int(1), Arg::bool(true)];
    args.extend([Arg::out(ScalarType::FLOAT, &[2, 1]), Arg::out(ScalarType::LONG, &[2, 1])]);
    let outs = call(kernel("aten::max.dim_max"), &args).unwrap();
    assert!(f32s(&outs[0])[0].is_nan());
    assert_eq!(f32s(&outs[0])[1], 6.0);
    assert_eq!(outs[1].as_slice::<i64>().unwrap(), [1, 1]);
}

#[test]
fn nothing_folds_to_the_neutral_element() {
    let empty = || Arg::Tensor(OwnedTensor::zeros(ScalarType::FLOAT, &[2, 0]));
    let out = || OwnedTensor::zeros(ScalarType::FLOAT, &[2]);
    let rest = [Arg::bool(false), Arg::None];
    let dims = || Arg::Ints(vec![1]);
    assert_eq!(f32s(&reduce("aten::sum.IntList_out", empty(), dims(), &rest, out()).unwrap()), [0.0, 0.0]);
    assert!(f32s(&reduce("aten::mean.out", empty(), dims(), &rest, out()).unwrap()).iter().all(|x| x.is_nan()));
    assert_eq!(f32s(&reduce("aten::prod.int_out", empty(), Arg::int(1), &rest, out()).unwrap()), [1.0, 1.0]);
    let error = reduce("aten::amax.out", empty(), dims(), &rest[..1], out()).unwrap_err();
    assert_eq!(error.message, "`self` is 2x0: no elements to choose from");
    let places = OwnedTensor::zeros(ScalarType::LONG, &[2]);
    assert!(reduce("aten::argmax.out", empty(), Arg::int(1), &rest[..1], places).is_err());
}

#[test]
fn results_have_the_type_of_the_output() {
    let bytes = || Arg::tensor(&[3], &[200u8, 100, 7]);
    let rest = [Arg::bool(false), Arg::None];
    let sum = |dtype| {
        reduce("aten::sum.IntList_out", bytes(), Arg::Ints(vec![]), &rest, OwnedTensor::zeros(dtype, &[])).unwrap()
    };
    assert_eq!(sum(ScalarType::LONG).as_slice::<i64>().unwrap(), [307]);
    assert_eq!(sum(ScalarType::BYTE).as_slice::<u8>().unwrap(), [51]);
    assert_eq!(sum(ScalarType::DOUBLE).as_slice::<f64>().unwrap(), [307.0]);
    assert_eq!(sum(ScalarType::BOOL).as_slice::<Bool>().unwrap(), [Bool(1)]);
    let whole = OwnedTensor::zeros(ScalarType::LONG, &[]);
    let error = reduce("aten::mean.out", bytes(), Arg::None, &rest, whole).unwrap_err();
    assert_eq!(error.message, "`out` is i64, the operator wants a floating point type");
}

#[test]
fn truth_over_an_empty_list_is_per_element() {
    let input = || Arg::tensor(&[2, 2], &[0.0f32, 0.5, f32::NAN, 0.0]);
    let any = |dims: Arg, sizes: &[usize]| {
        let out = OwnedTensor::zeros(ScalarType::BOOL, sizes);
        reduce("aten::any.dims_out", input(), dims, &[Arg::bool(false)], out).unwrap().bytes().to_vec()
    };
    assert_eq!(any(Arg::Ints(vec![]), &[2, 2]), [0, 1, 1, 0]);
    assert_eq!(any(Arg::None, &[]), [1]);
    assert_eq!(any(Arg::Ints(vec![0]), &[2]), [1, 1]);
}

#[test]
fn variances_and_means_come_together() {
    let args = [
        Arg::tensor(&[2, 2], &[1.0f64, 3.0, 5.0, 5.0]),
        Arg::Ints(vec![1]),
        Arg::None,
        Arg::bool(false),
        Arg::out(ScalarType::DOUBLE, &[2]),
        Arg::out(ScalarType::DOUBLE, &[2]),
    ];
    let outs = call(kernel("aten::var_mean.correction_out"), &args).unwrap();
    assert_eq!(outs[0].as_slice::<f64>().unwrap(), [2.0, 0.0]);
    assert_eq!(outs[1].as_slice::<f64>().unwrap(), [2.0, 5.0]);
}

#[test]
fn a_wrong_dimension_is_named() {
    let out = OwnedTensor::zeros(ScalarType::FLOAT, &[]);
    let input = || Arg::tensor(&[1], &[1.0f32]);
    let rest = [Arg::bool(false), Arg::None];
    let error = reduce("aten::sum.IntList_out", input(), Arg::Ints(vec![1]), &rest, out.clone()).unwrap_err();
    assert_eq!(error.message, "`dim` is 1, `self` has 1 dimensions");
    let error = reduce("aten::sum.IntList_out", input(), Arg::Ints(vec![0, -1]), &rest, out).unwrap_err();
    assert_eq!(error.message, "`dim` names dimension 0 twice");
}
