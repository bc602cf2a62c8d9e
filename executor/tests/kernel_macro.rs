//! Functions that `#[kernel]` made kernels: called alone, loaded in programs, refused where they must be.

use edgepack_executor::Registry;
use edgepack_executor::call::{Arg, OwnedTensor, call, call_scalar};
use edgepack_executor::kernel::{Ints, Kernel, KernelContext, KernelError, Operator};
use edgepack_executor::tensor::{Scalar, TensorRef};
use edgepack_executor::typed::{Tensor, TensorList, TensorMut, kernel};
use edgepack_format::scalar::{Bool, ScalarType};

/// The sum of two tensors of the same sizes.
#[kernel(
    "t::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    dtypes(f32, i64, u8)
)]
fn add<T>(a: &Tensor<'_, T>, b: Tensor<'_, T>, alpha: Scalar, out: &mut TensorMut<'_, T>) -> Result<(), KernelError>
where
    T: std::ops::Add<Output = T> + Copy,
{
    if alpha != Scalar::Int(1) {
        return Err(KernelError::unsupported("alpha is not 1"));
    }
    for (out, (a, b)) in out.as_mut_slice().iter_mut().zip(a.as_slice().iter().zip(b.as_slice())) {
        *out = *a + *b;
    }
    Ok(())
}

/// Takes one argument of each kind and writes what it got.
#[kernel(
    "t::all.out(Tensor a, Tensor? b, int c, SymInt? d, float e, bool f, str g, ScalarType? h, int[2] i, float[]? j, \
     bool[] k, Tensor[] l, MemoryFormat? m, *, Tensor(a!) out) -> Tensor(a!)",
    resize = one_element
)]
#[allow(clippy::too_many_arguments)]
fn all<'a>(
    a: TensorRef<'a>,
    b: Option<Tensor<'_, f32>>,
    c: i64,
    d: Option<i64>,
    e: f64,
    f: bool,
    g: &str,
    h: Option<ScalarType>,
    i: Ints<'_>,
    j: Option<&'a [f64]>,
    k: &[bool],
    l: TensorList<'_, u8>,
    m: Option<i64>,
    mut out: TensorMut<'_, f64>,
) -> Result<(), KernelError> {
    let items: Result<Vec<_>, _> = (0..l.len()).map(|item| l.item(item)).collect();
    let lengths: usize = items?.iter().flatten().map(|tensor| tensor.as_slice().len()).sum();
    let parts = [
        a.bytes().len() as f64,
        b.map_or(0.0, |b| f64::from(b.as_slice()[0])),
        c as f64,
        d.unwrap_or(0) as f64,
        e,
        f64::from(u8::from(f)),
        g.len() as f64,
        h.map_or(0.0, |dtype| f64::from(dtype.0)),
        i.iter().sum::<i64>() as f64,
        j.map_or(0.0, |j| j.iter().sum()),
        k.iter().filter(|k| **k).count() as f64,
        lengths as f64,
        m.unwrap_or(0) as f64,
    ];
    out.as_mut_slice()[0] = parts.iter().sum();
    Ok(())
}

fn one_element(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    cx.resize(cx.len() - 2, &[1])
}

#[kernel("t::twice_(Tensor(a!) self) -> Tensor(a!)", name = TWICE)]
fn r#mut(x: &mut TensorMut<'_, i32>) {
    x.as_mut_slice().iter_mut().for_each(|x| *x *= 2);
}

#[kernel("t::sum(int a, float b) -> float")]
fn sum(a: i64, b: f64) -> f64 {
    a as f64 + b
}

#[kernel("t::is_zero(Scalar a) -> bool")]
fn is_zero(a: Scalar) -> Result<bool, KernelError> {
    if a.is_floating() { Err(KernelError::kind("not for floats")) } else { Ok(!a.to_bool()) }
}

#[kernel("t::copy.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", like = "self", dtypes(Bool, i8))]
fn copy<T: Copy>(x: &Tensor<'_, T>, out: &mut TensorMut<'_, T>) {
    out.as_mut_slice().copy_from_slice(x.as_slice());
}

#[kernel("t::split.two(Tensor self, *, Tensor(a!) low, Tensor(b!) high) -> (Tensor(a!), Tensor(b!))", like = "self")]
fn split(x: &Tensor<'_, u16>, low: &mut TensorMut<'_, u8>, high: &mut TensorMut<'_, u8>) {
    for (index, x) in x.as_slice().iter().enumerate() {
        let [a, b] = x.to_le_bytes();
        (low.as_mut_slice()[index], high.as_mut_slice()[index]) = (a, b);
    }
}

fn message(result: Result<Vec<OwnedTensor>, KernelError>) -> String {
    result.unwrap_err().message.into_owned()
}

#[test]
fn a_kernel_is_a_value_with_the_names_of_its_schema() {
    let kernels: [&'static Kernel; 7] = [&ADD, &ALL, &TWICE, &SUM, &IS_ZERO, &COPY, &SPLIT];
    let registry = Registry::new().with_kernels(&kernels);
    assert_eq!(
        registry.names(),
        ["t::add.out", "t::all.out", "t::copy.out", "t::is_zero", "t::split.two", "t::sum", "t::twice_"]
    );
    assert_eq!(ADD.schema(), "(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)");
    // The function is still one.
    assert_eq!(sum(1, 2.5), 3.5);
}

#[test]
fn the_element_type_of_the_call_picks_the_instance() {
    fn sum<T: edgepack_executor::tensor::PodElement>(values: [T; 2], dtype: ScalarType) -> Vec<T> {
        let args = [Arg::tensor(&[2], &values), Arg::tensor(&[2], &values), Arg::int(1), Arg::out(dtype, &[2])];
        call(&ADD, &args).unwrap()[0].as_slice().unwrap()
    }
    assert_eq!(sum([1.5f32, 2.0], ScalarType::FLOAT), [3.0, 4.0]);
    assert_eq!(sum([1i64, -2], ScalarType::LONG), [2, -4]);
    assert_eq!(sum([1u8, 100], ScalarType::BYTE), [2, 200]);
}

#[test]
fn what_does_not_fit_is_refused_when_it_is_prepared() {
    let (floats, ints) = (Arg::tensor(&[1], &[1.0f32]), Arg::tensor(&[1], &[1i32]));
    let out = || Arg::out(ScalarType::FLOAT, &[1]);
    let refused = |args: &[Arg]| message(call(&ADD, args));
    assert_eq!(
        refused(&[ints.clone(), floats.clone(), Arg::int(1), out()]),
        "`self` is a tensor of i32, the kernel takes f32, i64, u8"
    );
    assert_eq!(
        refused(&[floats.clone(), ints, Arg::int(1), out()]),
        "`other` is a tensor of i32, the kernel takes f32"
    );
    assert_eq!(refused(&[floats.clone(), floats.clone(), out()]), "the call has 3 arguments, the operator takes 5");
    let dynamic = Arg::Tensor(OwnedTensor::zeros(ScalarType::FLOAT, &[1]).dynamic());
    assert_eq!(
        refused(&[floats.clone(), floats.clone(), Arg::int(1), dynamic]),
        "`out` has sizes that change, and the kernel does not say to what"
    );
    assert_eq!(refused(&[floats.clone(), floats, Arg::int(2), out()]), "alpha is not 1");
}

#[test]
fn every_kind_of_argument_is_unpacked() {
    let bytes = |len: usize| Some(OwnedTensor::new(&[len], &vec![7u8; len]));
    let some = [
        Arg::tensor(&[2], &[0i16; 2]),
        Arg::tensor(&[1], &[10.0f32]),
        Arg::int(100),
        Arg::int(1000),
        Arg::double(0.5),
        Arg::bool(true),
        Arg::Text("four".into()),
        Arg::int(7),
        Arg::Ints(vec![10_000, 20_000]),
        Arg::Doubles(vec![0.125, 0.125]),
        Arg::Bools(vec![true, false, true]),
        Arg::Tensors(vec![bytes(2), bytes(3)]),
        Arg::int(0),
        Arg::Tensor(OwnedTensor::zeros(ScalarType::DOUBLE, &[4]).dynamic()),
    ];
    let outs = call(&ALL, &some).unwrap();
    assert_eq!(
        outs[0].as_slice::<f64>().unwrap(),
        [4.0 + 10.0 + 1100.0 + 0.5 + 1.0 + 4.0 + 7.0 + 30_000.0 + 0.25 + 2.0 + 5.0]
    );

    let mut none = some.clone();
    for absent in [1, 3, 7, 9, 12] {
        none[absent] = Arg::None;
    }
    assert_eq!(
        call(&ALL, &none).unwrap()[0].as_slice::<f64>().unwrap(),
        [4.0 + 100.0 + 0.5 + 1.0 + 4.0 + 30_000.0 + 2.0 + 5.0]
    );

    let refused = |place: usize, arg: Arg| {
        let mut args = some.clone();
        args[place] = arg;
        message(call(&ALL, &args))
    };
    assert_eq!(refused(1, Arg::tensor(&[1], &[1u8])), "`b` is a tensor of u8, the kernel takes f32");
    let mixed = vec![bytes(1), Some(OwnedTensor::new(&[1], &[1i8]))];
    assert_eq!(refused(11, Arg::Tensors(mixed)), "`l[1]` is a tensor of i8, the kernel takes u8");
    assert_eq!(refused(7, Arg::int(99)), "argument 7: 99 is not an element type");
    assert_eq!(refused(7, Arg::int(300)), "argument 7: 300 is not an element type");
}

#[test]
fn outs_are_resized_and_written() {
    let out = OwnedTensor::zeros(ScalarType::CHAR, &[4, 3]).dynamic();
    let outs = call(&COPY, &[Arg::tensor(&[2, 3], &[1i8; 6]), Arg::Tensor(out)]).unwrap();
    assert_eq!(outs[0].layout().sizes(), [2, 3]);
    assert_eq!(outs[0].as_slice::<i8>().unwrap(), [1; 6]);

    let args = [Arg::tensor(&[1], &[0x1234u16]), Arg::out(ScalarType::BYTE, &[1]), Arg::out(ScalarType::BYTE, &[1])];
    let outs = call(&SPLIT, &args).unwrap();
    assert_eq!((outs[0].bytes(), outs[1].bytes()), (&[0x34][..], &[0x12][..]));

    let outs = call(&TWICE, &[Arg::tensor(&[2], &[3i32, -4])]).unwrap();
    assert_eq!(outs[0].as_slice::<i32>().unwrap(), [6, -8]);
}

#[test]
fn numbers_are_returned() {
    assert_eq!(call_scalar(&SUM, &[Arg::int(1), Arg::double(0.5)], Scalar::Int(0)), Ok(Scalar::Double(1.5)));
    assert_eq!(call_scalar(&IS_ZERO, &[Arg::int(0)], Scalar::Int(0)), Ok(Scalar::Bool(true)));
    let error = call_scalar(&IS_ZERO, &[Arg::double(0.0)], Scalar::Int(0)).unwrap_err();
    assert_eq!(error.message, "not for floats");
}
