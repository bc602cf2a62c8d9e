//! Quantised operators against the formula, element by element.

use edgepack_executor::call::{Arg, call};
use edgepack_executor::kernel::Kernel;
use edgepack_format::scalar::ScalarType;

fn kernel(name: &str) -> &'static Kernel {
    let matches = |kernel: &&&'static Kernel| kernel.name.split("::").nth(1) == Some(name);
    super::TABLES.iter().flat_map(|table| table.iter()).find(matches).expect("a registered kernel")
}

fn range(least: i64, greatest: i64, dtype: ScalarType) -> [Arg; 3] {
    [Arg::int(least), Arg::int(greatest), Arg::int(dtype.0.into())]
}

#[test]
fn quantising_rounds_to_even_and_clamps() {
    let x: Vec<f32> = (-300..300).map(|i| i as f32 * 0.25).chain([f32::NAN, f32::INFINITY, -1e30]).collect();
    let mut args = vec![Arg::tensor(&[x.len()], &x), Arg::double(0.5), Arg::int(3)];
    args.extend(range(-100, 90, ScalarType::CHAR));
    args.push(Arg::out(ScalarType::CHAR, &[x.len()]));
    let quantized = call(kernel("quantize_per_tensor.out"), &args).unwrap()[0].as_slice::<i8>().unwrap();
    for (x, q) in x.iter().zip(&quantized) {
        let value = (x * 2.0).round_ties_even();
        let want = if value.is_nan() { -100 } else { ((value as i64).saturating_add(3)).clamp(-100, 90) };
        assert_eq!(i64::from(*q), want, "{x}");
    }
    let mut args = vec![Arg::tensor(&[quantized.len()], &quantized), Arg::double(0.5), Arg::int(3)];
    args.extend(range(-100, 90, ScalarType::CHAR));
    args.extend([Arg::None, Arg::out(ScalarType::FLOAT, &[quantized.len()])]);
    let back = call(kernel("dequantize_per_tensor.out"), &args).unwrap()[0].as_slice::<f32>().unwrap();
    assert!(back.iter().zip(&quantized).all(|(&x, &q)| x == (f32::from(q) - 3.0) * 0.5));
}

#[test]
fn wide_integers_do_not_lose_their_range() {
    let x = [0.5f32, 1.5, 1e12, -1e12];
    let mut args = vec![Arg::tensor(&[4], &x), Arg::double(1.0), Arg::int(0)];
    args.extend(range(i32::MIN.into(), i32::MAX.into(), ScalarType::INT));
    args.push(Arg::out(ScalarType::INT, &[4]));
    let out = call(kernel("quantize_per_tensor.out"), &args).unwrap()[0].as_slice::<i32>().unwrap();
    assert_eq!(out, [0, 2, i32::MAX, i32::MIN]);
}

#[test]
fn ranges_outside_of_the_type_are_refused() {
    let mut args = vec![Arg::tensor(&[1], &[1f32]), Arg::double(1.0), Arg::int(0)];
    args.extend(range(-1, 255, ScalarType::BYTE));
    args.push(Arg::out(ScalarType::BYTE, &[1]));
    assert!(call(kernel("quantize_per_tensor.out"), &args).is_err());
}

#[test]
fn channels_and_tokens_have_their_own_scale() {
    let q: Vec<i8> = (0..12).collect();
    let mut args = vec![Arg::tensor(&[2, 3, 2], &q), Arg::tensor(&[3], &[1f64, 2.0, 3.0]), Arg::None, Arg::int(-2)];
    args.extend(range(-128, 127, ScalarType::CHAR));
    args.extend([Arg::None, Arg::out(ScalarType::FLOAT, &[2, 3, 2])]);
    let out = call(kernel("dequantize_per_channel.out"), &args).unwrap()[0].as_slice::<f32>().unwrap();
    let want: Vec<f32> = (0..12).map(|i| i as f32 * ((i / 2 % 3) + 1) as f32).collect();
    assert_eq!(out, want);

    let x = [1f32, 2.0, 30.0, 40.0];
    let scales = Arg::tensor(&[2, 1], &[1f32, 10.0]);
    let zeros = Arg::tensor(&[2, 1], &[0i64, 1]);
    let mut args = vec![Arg::tensor(&[2, 2], &x), scales.clone(), zeros.clone()];
    args.extend(range(-128, 127, ScalarType::CHAR));
    args.push(Arg::out(ScalarType::CHAR, &[2, 2]));
    let out = call(kernel("quantize_per_token.out"), &args).unwrap()[0].as_slice::<i8>().unwrap();
    assert_eq!(out, [1, 2, 4, 5]);
    let mut args = vec![Arg::tensor(&[2, 2], &out), scales, zeros];
    args.extend(range(-128, 127, ScalarType::CHAR));
    args.extend([Arg::int(6), Arg::out(ScalarType::FLOAT, &[2, 2])]);
    assert_eq!(call(kernel("dequantize_per_token.out"), &args).unwrap()[0].as_slice::<f32>().unwrap(), x);

    let few = Arg::tensor(&[1], &[1f32]);
    let mut args = vec![Arg::tensor(&[2, 2], &x), few.clone(), few];
    args.extend(range(-128, 127, ScalarType::CHAR));
    args.push(Arg::out(ScalarType::CHAR, &[2, 2]));
    assert!(call(kernel("quantize_per_token.out"), &args).is_err());
}

#[test]
fn chosen_ranges_hold_zero_and_the_extremes() {
    let args = [
        Arg::tensor(&[3], &[-1f32, 0.5, 3.0]),
        Arg::int(-128),
        Arg::int(127),
        Arg::double(1e-5),
        Arg::int(1),
        Arg::out(ScalarType::DOUBLE, &[1]),
        Arg::out(ScalarType::LONG, &[1]),
    ];
    let outs = call(kernel("choose_qparams.Tensor_out"), &args).unwrap();
    let (scale, zero) = (outs[0].as_slice::<f64>().unwrap()[0], outs[1].as_slice::<i64>().unwrap()[0]);
    assert!((scale - 4.0 / 255.0).abs() < 1e-12);
    assert_eq!(zero, -64);
    let rows = [
        Arg::tensor(&[2, 2], &[0f32, 0.0, 0.0, 255.0]),
        Arg::int(1),
        Arg::out(ScalarType::DOUBLE, &[2, 1]),
        Arg::out(ScalarType::LONG, &[2, 1]),
    ];
    let outs = call(kernel("choose_qparams_per_token_asymmetric.out"), &rows).unwrap();
    assert_eq!(outs[0].as_slice::<f64>().unwrap(), [0.1, 1.0]);
    assert_eq!(outs[1].as_slice::<i64>().unwrap()[1], -128);
}

#[test]
fn embeddings_unpack_their_weights() {
    let rows = |name: &str, weight: Arg, scales: Arg, width: usize| {
        let indices = Arg::tensor(&[1], &[1i64]);
        let args =
            [weight, scales, Arg::None, Arg::int(-8), Arg::int(7), indices, Arg::out(ScalarType::FLOAT, &[1, width])];
        call(kernel(name), &args).map(|outs| outs[0].as_slice::<f32>().unwrap())
    };
    let scales = Arg::tensor(&[2, 2], &[9f32, 9.0, 1.0, 10.0]);
    let bytes = Arg::tensor(&[2, 2], &[0i8, 0, -3, 4]);
    assert_eq!(rows("embedding_byte.out", bytes, scales.clone(), 2).unwrap(), [-3.0, 40.0]);
    let nibbles = Arg::tensor(&[2, 1], &[0u8, 0x7f]);
    assert_eq!(rows("embedding_4bit.out", nibbles, scales.clone(), 2).unwrap(), [-1.0, 70.0]);
    let pairs = Arg::tensor(&[2, 1], &[0u8, 0b11_10_01_00]);
    assert_eq!(rows("embedding_2bit.out", pairs.clone(), scales, 4).unwrap(), [-2.0, -1.0, 0.0, 10.0]);
    assert!(rows("embedding_2bit.out", pairs, Arg::tensor(&[3], &[1f32; 3]), 4).is_err());
}

#[test]
fn sums_are_quantised_again() {
    let mut args = vec![Arg::tensor(&[3], &[10u8, 20, 255]), Arg::double(0.5), Arg::int(0), Arg::int(0), Arg::int(255)];
    args.extend([Arg::tensor(&[3], &[1u8, 2, 255]), Arg::double(1.0), Arg::int(1), Arg::int(0), Arg::int(255)]);
    args.extend([Arg::double(1.0), Arg::int(2), Arg::int(0), Arg::int(255), Arg::out(ScalarType::BYTE, &[3])]);
    assert_eq!(call(kernel("add.out"), &args).unwrap()[0].as_slice::<u8>().unwrap(), [7, 13, 255]);
}
