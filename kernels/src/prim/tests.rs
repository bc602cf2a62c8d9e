//! Every prim operator.

use edgepack_executor::call::{Arg, OwnedTensor, call, call_scalar};
use edgepack_executor::kernel::{Kernel, KernelError};
use edgepack_executor::tensor::Scalar;
use edgepack_format::scalar::{Bool, ScalarType};

fn kernel(name: &str) -> &'static Kernel {
    let matches = |kernel: &&&'static Kernel| kernel.name.split("::").nth(1) == Some(name);
    super::TABLES.iter().flat_map(|table| table.iter()).find(matches).expect("a registered kernel")
}

const INT: Scalar = Scalar::Int(0);
const DOUBLE: Scalar = Scalar::Double(0.0);
const BOOL: Scalar = Scalar::Bool(false);

fn on(name: &str, args: &[Scalar], result: Scalar) -> Result<Scalar, KernelError> {
    let args: Vec<Arg> = args.iter().map(|&arg| Arg::Scalar(arg)).collect();
    call_scalar(kernel(name), &args, result)
}

#[test]
fn arithmetic_mixes_integers_and_doubles() {
    use Scalar::{Bool, Double, Int};
    for (name, args, want) in [
        ("add.Scalar", [Int(2), Int(3)], Int(5)),
        ("add.Scalar", [Int(2), Double(0.5)], Double(2.5)),
        ("sub.Scalar", [Double(2.0), Int(3)], Double(-1.0)),
        ("mul.Scalar", [Int(-2), Int(3)], Int(-6)),
        ("floordiv.Scalar", [Int(-7), Int(2)], Int(-4)),
        ("floordiv.Scalar", [Double(-7.0), Int(2)], Double(-4.0)),
        ("floordiv.Scalar", [Double(-7.0), Int(0)], Double(f64::NEG_INFINITY)),
        ("truediv.Scalar", [Int(1), Int(4)], Double(0.25)),
        ("floordiv.int", [Int(-7), Int(2)], Int(-3)),
        ("mod.int", [Int(-7), Int(2)], Int(-1)),
        ("mod.Scalar", [Int(7), Int(-2)], Int(1)),
        ("sym_max.Scalar", [Int(7), Int(-2)], Int(7)),
        ("sym_min.Scalar", [Int(7), Int(-2)], Int(-2)),
        ("eq.Scalar", [Bool(true), Bool(true)], Bool(true)),
        ("gt.Scalar", [Int(2), Double(1.5)], Bool(true)),
        ("lt.Scalar", [Int(2), Int(2)], Bool(false)),
        ("ge.Scalar", [Int(2), Int(2)], Bool(true)),
        ("le.Scalar", [Double(f64::NAN), Int(2)], Bool(false)),
    ] {
        assert_eq!(on(name, &args, want), Ok(want), "{name} of {args:?}");
    }
}

#[test]
fn division_of_integers_never_crashes() {
    for name in ["floordiv.Scalar", "floordiv.int", "mod.int", "mod.Scalar"] {
        assert!(on(name, &[Scalar::Int(1), Scalar::Int(0)], INT).is_err(), "{name}");
        assert!(on(name, &[Scalar::Int(i64::MIN), Scalar::Int(-1)], INT).is_err(), "{name}");
    }
}

#[test]
fn single_numbers_convert() {
    use Scalar::{Bool, Double, Int};
    for (name, arg, want) in [
        ("neg.Scalar", Int(4), Int(-4)),
        ("sym_not.Scalar", Bool(true), Bool(false)),
        ("sym_float.Scalar", Bool(true), Double(1.0)),
        ("sym_int.Scalar", Double(-2.7), Int(-2)),
        ("ceil.Scalar", Double(1.2), Int(2)),
        ("round.Scalar", Double(2.5), Int(2)),
        ("trunc.Scalar", Double(-1.9), Int(-1)),
    ] {
        assert_eq!(on(name, &[arg], want), Ok(want), "{name} of {arg:?}");
    }
    assert_eq!(on("sym_ite.Scalar", &[Bool(false), Int(1), Int(2)], INT), Ok(Int(2)));
    assert!(on("sym_not.Scalar", &[Int(1)], BOOL).is_err());
    assert!(on("sym_max.Scalar", &[Double(1.0), Int(1)], INT).is_err());
    assert_eq!(on("add.Scalar", &[Int(1), Int(1)], DOUBLE), Ok(Int(2)));
    assert!(on("add.Scalar", &[Int(1)], INT).is_err());
    assert!(call_scalar(kernel("neg.Scalar"), &[Arg::tensor(&[1], &[1i32])], DOUBLE).is_err());
}

#[test]
fn tensors_tell_sizes_and_items() {
    let x = Arg::tensor(&[2, 3], &[1.5f32; 6]);
    assert_eq!(call_scalar(kernel("sym_size.int"), &[x.clone(), Arg::int(-1)], INT), Ok(Scalar::Int(3)));
    assert!(call_scalar(kernel("sym_size.int"), &[x.clone(), Arg::int(2)], INT).is_err());
    assert_eq!(call_scalar(kernel("sym_numel"), std::slice::from_ref(&x), INT), Ok(Scalar::Int(6)));
    assert_eq!(call_scalar(kernel("_local_scalar_dense"), &[x], DOUBLE), Ok(Scalar::Double(1.5)));
    assert_eq!(call_scalar(kernel("_local_scalar_dense"), &[Arg::tensor(&[], &[7u8])], INT), Ok(Scalar::Int(7)));
    assert_eq!(
        call_scalar(kernel("_local_scalar_dense"), &[Arg::tensor(&[1], &[Bool(2)])], BOOL),
        Ok(Scalar::Bool(true))
    );
    assert!(call_scalar(kernel("_local_scalar_dense"), &[Arg::tensor::<f32>(&[0], &[])], DOUBLE).is_err());
}

#[test]
fn rows_are_appended_within_bounds() {
    let grow = |index, row: &[i32]| {
        let to = OwnedTensor::new(&[3, 2], &[0i32; 6]).dynamic();
        call(kernel("et_copy_index.tensor"), &[Arg::Tensor(to), Arg::tensor(&[row.len()], row), Arg::int(index)])
    };
    let out = &grow(1, &[5, 6]).unwrap()[0];
    assert_eq!((out.layout().sizes(), out.as_slice::<i32>().unwrap()), (&[2, 2][..], vec![0, 0, 5, 6]));
    assert!(grow(3, &[5, 6]).is_err() && grow(-1, &[5, 6]).is_err() && grow(i64::MAX, &[5, 6]).is_err());
    assert!(grow(0, &[5]).is_err());
}

#[test]
fn views_keep_the_elements() {
    let view = |sizes: &[i64], out: &[usize]| {
        let args =
            [Arg::tensor(&[2, 3], &[1i32, 2, 3, 4, 5, 6]), Arg::Ints(sizes.to_vec()), Arg::out(ScalarType::INT, out)];
        call(kernel("et_view.default"), &args).map(|outs| outs[0].as_slice::<i32>().unwrap())
    };
    assert_eq!(view(&[3, -1], &[3, 2]).unwrap(), [1, 2, 3, 4, 5, 6]);
    assert!(view(&[4], &[4]).is_err() && view(&[-1, -1], &[6, 1]).is_err());
}
