//! Operations against their formulas, first, behind others, and as tables.

use super::*;

const QUANTIZE: Operation =
    Operation::Quantize { to: ScalarType::CHAR, affine: Affine { scale: 0.5, zero: 3, least: -128, greatest: 127 } };
const DEQUANTIZE: Operation = Operation::Dequantize { from: ScalarType::CHAR, scale: 0.5, zero: 3 };

#[test]
fn operations_change_types_in_the_middle_and_at_the_end() {
    let epilogue = Epilogue::new(ScalarType::FLOAT, &[QUANTIZE]).unwrap();
    assert_eq!(epilogue.output(), ScalarType::CHAR);
    // More than a block, so that blocks are put together again.
    let x: Vec<f32> = (0..1300).map(|i| i as f32 * 0.25 - 100.0).collect();
    let mut quantized = vec![0i8; x.len()];
    epilogue.run(bytemuck::cast_slice(&x), bytemuck::cast_slice_mut(&mut quantized));
    let want = |x: f32| ((x / 0.5).round_ties_even() + 3.0).clamp(-128.0, 127.0);
    assert!(x.iter().zip(&quantized).all(|(&x, &q)| want(x) == f32::from(q)));

    let first = Epilogue::new(ScalarType::FLOAT, &[Operation::Clamp { least: -2.0, greatest: 40.0 }, QUANTIZE]);
    let then = Epilogue::new(ScalarType::CHAR, &[DEQUANTIZE, Operation::Abs]).unwrap();
    let all = first.unwrap().followed_by(&then).unwrap();
    let (mut in_place, mut apart) = (x.clone(), vec![0f32; x.len()]);
    all.in_place(&mut in_place);
    all.run(bytemuck::cast_slice(&x), bytemuck::cast_slice_mut(&mut apart));
    let want = |x: f32| ((want(x.clamp(-2.0, 40.0)) - 3.0) * 0.5).abs();
    assert!(x.iter().zip(&in_place).all(|(&x, &y)| want(x) == y));
    assert_eq!(in_place, apart);
    assert_eq!(all.to_string(), "clamp -2 40; quantize i8 0.5 3 -128 127; dequantize i8 0.5 3; abs");
    assert!(then.followed_by(&then).is_err());
}

#[test]
fn bytes_that_become_bytes_have_a_table() {
    let silu = [DEQUANTIZE, Operation::Silu, QUANTIZE];
    let table = Epilogue::new(ScalarType::CHAR, &silu).unwrap().table().unwrap();
    for (byte, result) in (i8::MIN..=i8::MAX).zip(table) {
        let x = (f32::from(byte) - 3.0) * 0.5;
        let want = (x / (1.0 + (-x).exp()) / 0.5).round_ties_even() + 3.0;
        assert!((want.clamp(-128.0, 127.0) - f32::from(result)).abs() <= 1.0, "{byte}: {result}, not {want}");
        let mut alone = [0i8];
        let epilogue = Epilogue::new(ScalarType::CHAR, &silu).unwrap();
        epilogue.run(bytemuck::bytes_of(&byte), bytemuck::bytes_of_mut(&mut alone));
        assert_eq!(alone, [result]);
    }
    let unsigned = Operation::Dequantize { from: ScalarType::BYTE, scale: 1.0, zero: 0 };
    let to =
        Operation::Quantize { to: ScalarType::BYTE, affine: Affine { scale: 2.0, zero: 0, least: 0, greatest: 255 } };
    let halved = Epilogue::new(ScalarType::BYTE, &[unsigned, to]).unwrap().table().unwrap();
    // The first entry is that of 128.
    assert_eq!((halved[0], halved[128], halved[138]), (64, 0, 5));
    assert!(Epilogue::new(ScalarType::CHAR, &[DEQUANTIZE]).unwrap().table().is_none());
}

#[test]
fn operations_first_and_later_give_the_same() {
    let x = [-3.0f32, -0.0, 0.5, 7.0, f32::NAN, f32::INFINITY];
    let nan = Operation::Clamp { least: f32::NAN, greatest: 1.0 };
    for operation in [Operation::Relu, Operation::Clamp { least: -1.0, greatest: 6.0 }, Operation::HardSwish, nan] {
        let run = |operations: &[Operation]| {
            let mut y = [0f32; 6];
            let epilogue = Epilogue::new(ScalarType::FLOAT, operations).unwrap();
            epilogue.run(bytemuck::cast_slice(&x), bytemuck::cast_slice_mut(&mut y));
            y.map(f32::to_bits)
        };
        assert_eq!(run(&[operation]), run(&[Operation::Neg, Operation::Neg, operation]), "{operation}");
    }
}

#[test]
fn operations_that_do_not_fit_are_named() {
    let quantize =
        |to, zero, least| Operation::Quantize { to, affine: Affine { scale: 0.5, zero, least, greatest: 127 } };
    let beyond = Operation::Dequantize { from: ScalarType::CHAR, scale: 0.5, zero: 4_000_000_000 };
    for (operations, from) in [
        (&[Operation::Relu][..], ScalarType::CHAR),
        (&[Operation::Relu, DEQUANTIZE], ScalarType::FLOAT),
        (&[quantize(ScalarType::CHAR, 0, -129)], ScalarType::FLOAT),
        (&[quantize(ScalarType::CHAR, 1 << 40, -128)], ScalarType::FLOAT),
        (&[quantize(ScalarType::FLOAT, 0, 0)], ScalarType::FLOAT),
        (&[quantize(ScalarType(99), 0, 0)], ScalarType::FLOAT),
        (&[DEQUANTIZE], ScalarType::BYTE),
        (&[beyond], ScalarType::CHAR),
    ] {
        let error = Epilogue::new(from, operations).unwrap_err();
        let last = operations.last().unwrap().to_string();
        assert!(error.message.starts_with(&format!("`{last}` does not take")), "{error}");
    }
    assert!(Epilogue::new(ScalarType::FLOAT, &[QUANTIZE]).unwrap().expect_floats().is_err());
}
