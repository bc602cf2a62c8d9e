//! The engine against plain loops: shapes, dim orders, element types, promotion, errors.

use std::sync::Arc;

use edgepack_compute::epilogue::{Epilogue, Operation};
use edgepack_compute::quantise::Affine;
use edgepack_executor::call::{Arg, OwnedTensor, call};
use edgepack_executor::kernel::{Kernel, KernelError, Operator};
use edgepack_executor::with_element;
use edgepack_format::scalar::{Bool, ScalarType};

use edgepack_compute::layout::broadcast;
use edgepack_compute::number::{Cast, Number};

use crate::fused::Fused;

const TYPES: [ScalarType; 10] = [
    ScalarType::BYTE,
    ScalarType::CHAR,
    ScalarType::SHORT,
    ScalarType::INT,
    ScalarType::LONG,
    ScalarType::HALF,
    ScalarType::FLOAT,
    ScalarType::DOUBLE,
    ScalarType::BOOL,
    ScalarType::BFLOAT16,
];

fn kernel(name: &str) -> &'static Kernel {
    super::TABLES.iter().flat_map(|table| table.iter()).find(|kernel| kernel.name == name).expect("a registered kernel")
}

/// A tensor of small whole numbers, the same values for every element type that holds them.
fn tensor(dtype: ScalarType, sizes: &[usize], order: &[u8], seed: usize) -> (OwnedTensor, Vec<f64>) {
    let count: usize = sizes.iter().product();
    let values: Vec<i64> = (0..count).map(|i| ((i * 7 + seed * 3) % 11) as i64 + 1).collect();
    let tensor = with_element!(dtype, T => {
        let typed: Vec<T> = values.iter().map(|&value| Cast::<T>::cast(value)).collect();
        OwnedTensor::new(sizes, &typed)
    }, else => unreachable!());
    let logical = doubles(&tensor.clone().with_dim_order(order));
    (tensor.with_dim_order(order), logical)
}

/// The elements in index order, as doubles.
fn doubles(tensor: &OwnedTensor) -> Vec<f64> {
    let layout = tensor.layout();
    let memory: Vec<f64> = with_element!(layout.scalar_type(), T => {
        tensor.as_slice::<T>().unwrap().into_iter().map(Cast::<f64>::cast).collect()
    }, else => unreachable!());
    let strides = layout.strides();
    (0..memory.len())
        .map(|mut flat| {
            let mut offset = 0;
            for dim in (0..strides.len()).rev() {
                offset += flat % layout.sizes()[dim] * strides[dim];
                flat /= layout.sizes()[dim];
            }
            memory[offset]
        })
        .collect()
}

fn stretch(values: &[f64], sizes: &[usize], target: &[usize]) -> Vec<f64> {
    let count: usize = target.iter().product();
    (0..count)
        .map(|mut flat| {
            let (mut offset, mut stride) = (0, 1);
            for dim in (0..target.len()).rev() {
                let index = flat % target[dim];
                flat /= target[dim];
                if let Some(own) = (dim + sizes.len()).checked_sub(target.len()) {
                    offset += if sizes[own] == 1 { 0 } else { index * stride };
                    stride *= sizes[own];
                }
            }
            values[offset]
        })
        .collect()
}

fn orders(rank: usize) -> Vec<Vec<u8>> {
    let identity: Vec<u8> = (0..rank as u8).collect();
    if rank == 4 { vec![identity, vec![0, 2, 3, 1]] } else { vec![identity] }
}

#[test]
fn sums_agree_with_plain_loops_for_all_shapes_and_types() {
    let shapes: [(&[usize], &[usize]); 17] = [
        // Stored alike, and with as many elements but stored in another order.
        (&[2, 3, 4, 5], &[1, 1, 1, 1]),
        (&[1, 1, 6], &[1, 6]),
        (&[1, 6, 1], &[6, 1]),
        (&[2, 3, 4, 5], &[2, 3, 4, 5]),
        (&[2, 3, 4, 5], &[3, 1, 1]),
        (&[1, 3, 1, 5], &[2, 1, 4, 1]),
        (&[2, 3, 40, 9], &[9]),
        (&[], &[3]),
        (&[], &[]),
        (&[0, 3], &[1, 3]),
        (&[1], &[1, 1]),
        (&[700], &[2, 1]),
        // Runs of one element, of neighbours, and of both.
        (&[2, 3, 300], &[3, 1]),
        (&[2, 600], &[600]),
        (&[3, 1], &[200]),
        // One operand comes again in every block, the other does not.
        (&[20, 1, 4, 1], &[1, 3, 1, 5]),
        (&[1, 3, 1, 5], &[20, 1, 4, 1]),
    ];
    let mut runs = 0;
    for (a_sizes, b_sizes) in shapes {
        let sizes = broadcast(a_sizes, b_sizes).unwrap();
        for (number, &a_type) in TYPES.iter().enumerate() {
            let b_type = TYPES[(number * 3 + a_sizes.len()) % TYPES.len()];
            let common = crate::promote::promote(a_type, b_type).unwrap();
            if common == ScalarType::BOOL {
                continue;
            }
            for a_order in orders(a_sizes.len()) {
                for out_order in orders(sizes.len()) {
                    for out_type in [common, ScalarType::DOUBLE] {
                        let (a, a_values) = tensor(a_type, a_sizes, &a_order, 1);
                        let b_order: Vec<u8> = (0..b_sizes.len() as u8).collect();
                        let (b, b_values) = tensor(b_type, b_sizes, &b_order, 5);
                        let out = OwnedTensor::zeros(out_type, &sizes).with_dim_order(&out_order);
                        let args = [Arg::Tensor(a), Arg::Tensor(b), Arg::int(2), Arg::Tensor(out)];
                        let outs = call(kernel("aten::add.out"), &args).unwrap();
                        let want: Vec<f64> = stretch(&a_values, a_sizes, &sizes)
                            .iter()
                            .zip(stretch(&b_values, b_sizes, &sizes))
                            .map(|(a, b)| a + 2.0 * b)
                            .collect();
                        assert_eq!(doubles(&outs[0]), want, "{a_type}{a_sizes:?} + {b_type}{b_sizes:?}");
                        runs += 1;
                    }
                }
            }
        }
    }
    assert!(runs > 150);
}

fn one<A: Number, B: Number, R: Number>(name: &str, a: &[A], b: &[B], extra: &[Arg]) -> Result<Vec<R>, KernelError> {
    let mut args = vec![Arg::tensor(&[a.len()], a), Arg::tensor(&[b.len()], b)];
    args.extend(extra.iter().cloned());
    args.push(Arg::out(R::SCALAR_TYPE, &[a.len().max(b.len())]));
    call(kernel(name), &args).map(|outs| outs[0].as_slice::<R>().unwrap())
}

fn unary<A: Number, R: Number>(name: &str, a: &[A], extra: &[Arg]) -> Result<Vec<R>, KernelError> {
    let mut args = vec![Arg::tensor(&[a.len()], a)];
    args.extend(extra.iter().cloned());
    args.push(Arg::out(R::SCALAR_TYPE, &[a.len()]));
    call(kernel(name), &args).map(|outs| outs[0].as_slice::<R>().unwrap())
}

#[test]
fn integers_wrap_in_the_common_type() {
    let sum: Vec<i32> = one("aten::add.out", &[100i8, -100], &[100i8, -100], &[Arg::int(1)]).unwrap();
    assert_eq!(sum, [-56, 56]);
    let product: Vec<i16> = one("aten::mul.out", &[200u8], &[-2i8], &[]).unwrap();
    assert_eq!(product, [-400]);
}

#[test]
fn division_by_zero_is_an_error_for_integers_only() {
    let mode = |mode: &str| [Arg::Text(mode.into())];
    let floor: Vec<i32> = one("aten::div.out_mode", &[-7i32, 7], &[2i32, -2], &mode("floor")).unwrap();
    assert_eq!(floor, [-4, -4]);
    let trunc: Vec<f32> = one("aten::div.out_mode", &[-7f32, 7.0], &[2f32, 0.0], &mode("trunc")).unwrap();
    assert_eq!(trunc, [-3.0, f32::INFINITY]);
    let error = one::<i32, i32, i32>("aten::div.out_mode", &[1, 2], &[1, 0], &mode("floor")).unwrap_err();
    assert_eq!(error.message, "`other` holds a 0, integers cannot be divided by it");
    let rest: Vec<f32> = one("aten::remainder.Tensor_out", &[-7f32, 7.0], &[2f32, -2.0], &[]).unwrap();
    assert_eq!(rest, [1.0, -1.0]);
    let rest: Vec<i32> = one("aten::remainder.Tensor_out", &[-7i32, 7], &[2i32, -2], &[]).unwrap();
    assert_eq!(rest, [1, -1]);
    assert!(one::<u8, u8, u8>("aten::remainder.Tensor_out", &[1], &[0], &[]).is_err());
    let true_quotient: Vec<f32> = one("aten::div.out", &[1i32, 0], &[0i32, 0], &[]).unwrap();
    assert!(true_quotient[0].is_infinite() && true_quotient[1].is_nan());
    assert!(one::<i32, i32, i32>("aten::div.out_mode", &[1], &[1], &mode("up")).is_err());
}

#[test]
fn results_are_refused_by_outputs_of_a_lesser_kind() {
    assert!(one::<f32, f32, i32>("aten::add.out", &[1.0], &[1.0], &[Arg::int(1)]).is_err());
    assert!(one::<i32, i32, i32>("aten::div.out", &[1], &[1], &[]).is_err());
    assert!(one::<i32, i32, i32>("aten::add.out", &[1], &[1], &[Arg::double(1.5)]).is_err());
    assert!(one::<f32, f32, f32>("aten::bitwise_and.Tensor_out", &[1.0], &[1.0], &[]).is_err());
    let flags: Vec<u8> = one("aten::gt.Tensor_out", &[1f32, 3.0], &[2i64, 2], &[]).unwrap();
    assert_eq!(flags, [0, 1]);
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let args = [Arg::tensor(&[2], &[1f32; 2]), Arg::tensor(&[3], &[1f32; 3]), Arg::out(ScalarType::FLOAT, &[3])];
    let error = call(kernel("aten::mul.out"), &args).unwrap_err();
    assert_eq!(error.message, "`other` has sizes [3], which do not broadcast with [2]");
}

#[test]
fn numbers_lift_integers_to_floats() {
    let args = [Arg::tensor(&[2], &[1i64, 2]), Arg::double(0.5), Arg::out(ScalarType::FLOAT, &[2])];
    assert_eq!(call(kernel("aten::mul.Scalar_out"), &args).unwrap()[0].as_slice::<f32>().unwrap(), [0.5, 1.0]);
    let args = [Arg::tensor(&[2], &[Bool(3), Bool(0)]), Arg::int(7), Arg::int(1), Arg::out(ScalarType::LONG, &[2])];
    assert_eq!(call(kernel("aten::add.Scalar_out"), &args).unwrap()[0].as_slice::<i64>().unwrap(), [8, 7]);
}

#[test]
fn clamps_keep_nan_and_missing_bounds() {
    let some =
        |low: Arg, high: Arg| unary::<f32, f32>("aten::clamp.out", &[f32::NAN, -5.0, 5.0], &[low, high]).unwrap();
    let low = some(Arg::double(-1.0), Arg::None);
    assert!(low[0].is_nan() && low[1..] == [-1.0, 5.0]);
    assert_eq!(some(Arg::None, Arg::int(1))[1..], [-5.0, 1.0]);
    assert_eq!(unary::<i32, i32>("aten::clamp.out", &[-5, 5], &[Arg::None, Arg::int(1)]).unwrap(), [-5, 1]);
    // Bounds are converted to the type like any number: -2 of BYTE is 254.
    assert_eq!(unary::<u8, u8>("aten::clamp.out", &[5], &[Arg::int(-2), Arg::int(3)]).unwrap(), [3]);
    let tensors = [Arg::tensor(&[1], &[0i32]), Arg::None];
    assert_eq!(unary::<i32, i32>("aten::clamp.Tensor_out", &[-5, 5], &tensors).unwrap(), [0, 5]);
    let limits = [Arg::double(0.0), Arg::double(6.0)];
    assert_eq!(unary::<f32, f32>("aten::hardtanh.out", &[-1.0, 3.0, 9.0], &limits).unwrap(), [0.0, 3.0, 6.0]);
}

#[test]
fn choices_read_masks_as_bools() {
    let args = [
        Arg::tensor(&[2, 1], &[2u8, 0]),
        Arg::tensor(&[3], &[1i32, 2, 3]),
        Arg::tensor(&[], &[0.5f32]),
        Arg::out(ScalarType::FLOAT, &[2, 3]),
    ];
    let outs = call(kernel("aten::where.self_out"), &args).unwrap();
    assert_eq!(outs[0].as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0, 0.5, 0.5, 0.5]);
    let filled: Vec<i32> =
        one("aten::masked_fill.Scalar_out", &[1i32, 2], &[Bool(1), Bool(0)], &[Arg::int(9)]).unwrap();
    assert_eq!(filled, [9, 2]);
}

#[test]
fn functions_of_one_number() {
    assert_eq!(unary::<f32, f32>("aten::round.out", &[0.5, 1.5, -2.5], &[]).unwrap(), [0.0, 2.0, -2.0]);
    assert_eq!(unary::<i8, i8>("aten::neg.out", &[i8::MIN, 3], &[]).unwrap(), [i8::MIN, -3]);
    assert_eq!(unary::<i32, f32>("aten::rsqrt.out", &[4], &[]).unwrap(), [0.5]);
    assert_eq!(unary::<i32, f64>("aten::sqrt.out", &[9], &[]).unwrap(), [3.0]);
    assert_eq!(unary::<Bool, Bool>("aten::bitwise_not.out", &[Bool(5), Bool(0)], &[]).unwrap(), [Bool(0), Bool(1)]);
    assert_eq!(unary::<u8, u8>("aten::bitwise_not.out", &[5], &[]).unwrap(), [250]);
    assert_eq!(unary::<f32, u8>("aten::logical_not.out", &[0.5, 0.0], &[]).unwrap(), [0, 1]);
    assert_eq!(unary::<f32, f32>("aten::round.decimals_out", &[1.256, 12.5], &[Arg::int(1)]).unwrap(), [1.3, 12.5]);
    assert_eq!(unary::<f32, f32>("aten::round.decimals_out", &[12.5, 15.1], &[Arg::int(-1)]).unwrap(), [10.0, 20.0]);
    let gelu = |mode: &str| unary::<f32, f32>("aten::gelu.out", &[1.0, -1.0], &[Arg::Text(mode.into())]);
    assert!(gelu("none").unwrap().iter().zip([0.841_344_7, -0.158_655_3]).all(|(a, b)| (a - b).abs() < 1e-6));
    assert!(gelu("tanh").unwrap().iter().zip([0.841_192, -0.158_808]).all(|(a, b)| (a - b).abs() < 1e-6));
    assert!(gelu("fast").is_err());
}

#[test]
fn powers_by_whole_numbers_are_products() {
    let pow = |exponent| unary::<f32, f32>("aten::pow.Tensor_Scalar_out", &[3.0, -0.5], &[exponent]).unwrap();
    assert_eq!(pow(Arg::int(2)), [9.0, 0.25]);
    assert_eq!(pow(Arg::double(3.0)), [27.0, -0.125]);
    assert!(pow(Arg::double(0.5))[1].is_nan());
    assert_eq!(unary::<i32, i32>("aten::pow.Tensor_Scalar_out", &[3], &[Arg::int(4)]).unwrap(), [81]);
    assert_eq!(unary::<u8, u8>("aten::pow.Tensor_Scalar_out", &[3, 1, 0], &[Arg::int(-1)]).unwrap(), [0, 1, 0]);
}

#[test]
fn fills_check_the_range() {
    let full = |value: Arg, dtype| call(kernel("aten::full.out"), &[Arg::Ints(vec![2]), value, Arg::out(dtype, &[2])]);
    assert_eq!(full(Arg::double(1.5), ScalarType::HALF).unwrap()[0].bytes(), [0, 0x3e, 0, 0x3e]);
    assert!(full(Arg::int(300), ScalarType::BYTE).is_err());
    assert!(full(Arg::int(-1), ScalarType::BYTE).is_err());
    let args = [Arg::int(1), Arg::int(8), Arg::int(3), Arg::out(ScalarType::LONG, &[3])];
    assert_eq!(call(kernel("aten::arange.start_out"), &args).unwrap()[0].as_slice::<i64>().unwrap(), [1, 4, 7]);
    let args = [Arg::double(1.5), Arg::out(ScalarType::FLOAT, &[2])];
    assert_eq!(call(kernel("aten::arange.out"), &args).unwrap()[0].as_slice::<f32>().unwrap(), [0.0, 1.0]);
}

#[test]
fn dynamic_outputs_take_the_common_sizes() {
    let out = OwnedTensor::zeros(ScalarType::FLOAT, &[8, 8]).dynamic();
    let args = [Arg::tensor(&[2, 1], &[1f32, 2.0]), Arg::tensor(&[3], &[1f32, 2.0, 3.0]), Arg::Tensor(out)];
    let outs = call(kernel("aten::mul.out"), &args).unwrap();
    assert_eq!(outs[0].layout().sizes(), [2, 3]);
    assert_eq!(outs[0].as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0, 2.0, 4.0, 6.0]);
}

#[test]
fn gated_halves_multiply() {
    let args = [Arg::tensor(&[2, 2], &[2f32, 4.0, 0.0, 0.0]), Arg::int(0), Arg::out(ScalarType::FLOAT, &[1, 2])];
    assert_eq!(call(kernel("aten::glu.out"), &args).unwrap()[0].as_slice::<f32>().unwrap(), [1.0, 2.0]);
    let odd = [Arg::tensor(&[3], &[0f32; 3]), Arg::int(0), Arg::out(ScalarType::FLOAT, &[1])];
    assert!(call(kernel("aten::glu.out"), &odd).is_err());
}

#[test]
fn calls_with_all_known_at_load_give_what_the_engine_gives() {
    let clamp = Operation::Clamp { least: -2.0, greatest: 9.0 };
    let affine = Affine { scale: 0.25, zero: 3, least: -128, greatest: 127 };
    let operations = [
        (ScalarType::FLOAT, vec![Operation::Relu]),
        (ScalarType::FLOAT, vec![clamp, Operation::Neg]),
        (ScalarType::CHAR, vec![Operation::Quantize { to: ScalarType::CHAR, affine }]),
    ];
    let fused = operations.map(|(to, operations)| {
        let epilogue = Arc::new(Epilogue::new(ScalarType::FLOAT, &operations).unwrap());
        (Box::new(Fused::new(&super::arithmetic::FUSED_ADD, epilogue)) as Box<dyn Operator>, vec![Arg::int(1)], to)
    });
    let plain = [("aten::add.out", vec![Arg::double(0.5)]), ("aten::mul.out", vec![]), ("aten::maximum.out", vec![])];
    let plain = plain.map(|(name, numbers)| (Box::new(*kernel(name)) as Box<dyn Operator>, numbers, ScalarType::FLOAT));
    // Fewer elements than a block, and more than two.
    for sizes in [[1, 2, 3, 4], [2, 3, 4, 50]] {
        for order in orders(4) {
            for (operator, numbers, to) in fused.iter().chain(&plain) {
                let [a, b] = [1, 5].map(|seed| Arg::Tensor(tensor(ScalarType::FLOAT, &sizes, &order, seed).0));
                let run = |out: OwnedTensor| {
                    let args = [vec![a.clone(), b.clone()], numbers.clone(), vec![Arg::Tensor(out)]].concat();
                    call(&**operator, &args).unwrap().remove(0).bytes().to_vec()
                };
                let out = OwnedTensor::zeros(*to, &sizes).with_dim_order(&order);
                assert_eq!(run(out.clone()), run(out.dynamic()), "{} {sizes:?} {order:?}", operator.name());
            }
        }
    }
}
