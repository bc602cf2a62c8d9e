//! Products of matrices, of sizes on both sides of every block the fast paths work in.

use edgepack_executor::call::{Arg, OwnedTensor};
use edgepack_format::scalar::ScalarType;
use proptest::prelude::*;
use proptest::sample::select;

use super::binary::number;
use super::number::{FLOATS, INTS, Num, UNSIGNED, is_float, loss};
use super::tensor::{Draw, Kind, Tensor, indices};
use super::{Expected, Want, arg, check, config, out};

/// Sizes around the blocks of the fast paths, mostly small.
fn side() -> impl Strategy<Value = usize> {
    prop_oneof![
        12 => 1usize..10,
        6 => select(vec![15usize, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65]),
        2 => select(vec![127usize, 128, 129, 200, 255, 256, 257, 300]),
        1 => Just(0usize),
    ]
}

/// Rows, columns and what is summed over, of work that takes no time.
fn sides() -> impl Strategy<Value = [usize; 3]> {
    let free = [side(), side(), side()].prop_filter("little work", |[m, n, k]| m * n * k <= 150_000);
    // One product in a few is long enough to be split along what it sums over.
    let long = (1usize..9, 1usize..20, select(vec![255usize, 256, 257, 511, 513, 1000]));
    prop_oneof![8 => free, 1 => long.prop_map(|(m, n, k)| [m, n, k])]
}

/// `f32` half of the time.
fn dtypes() -> impl Strategy<Value = ScalarType> {
    prop_oneof![
        6 => Just(ScalarType::FLOAT),
        4 => select(&FLOATS[..]),
        3 => select(&INTS[..]),
        1 => select(&UNSIGNED[..]),
    ]
}

/// Sum of the products of pairs of elements.
fn dot(pairs: impl Iterator<Item = (Num, Num)>, dtype: ScalarType) -> Want {
    let (mut whole, mut real, mut terms) = (0i128, 0.0, 0.0);
    for (a, b) in pairs {
        if is_float(dtype) {
            let term = a.real() * b.real();
            real += term;
            terms += if term.is_finite() { term.abs() } else { 0.0 };
        } else {
            // Products of two unsigned 64-bit numbers may leave the range, of which the lower half counts. Sums of a few
            // hundred of those halves stay far inside of it.
            whole += super::number::wrap(a.whole().wrapping_mul(b.whole()), dtype);
        }
    }
    if is_float(dtype) { Want { num: Num::Real(real), scale: terms } } else { Num::Whole(whole).into() }
}

/// `alpha * product + beta * added`; where `beta` is 0 what is added does not matter.
fn with_terms(product: Want, added: Option<Num>, alpha: Num, beta: Num) -> Want {
    let added = added.filter(|_| beta.truth());
    match (product.num, added.unwrap_or(Num::Whole(0))) {
        (Num::Whole(product), added) => {
            let [product, added] =
                [(alpha, product), (beta, added.whole())].map(|(factor, x)| factor.whole().wrapping_mul(x));
            Num::Whole(product.wrapping_add(added)).into()
        }
        (Num::Real(product_num), added) => {
            let extra = if added.truth() { beta.real() * added.real() } else { 0.0 };
            let scale = product.scale * alpha.real().abs() + if extra.is_finite() { extra.abs() } else { 0.0 };
            Want { num: Num::Real(alpha.real() * product_num + extra), scale }
        }
    }
}

/// A right operand, at times as a constant, which is packed before the call.
fn operand(tensor: &Tensor, turned: bool, constant: bool) -> Arg {
    let owned: OwnedTensor = tensor.owned(turned);
    Arg::Tensor(if constant { owned.constant() } else { owned })
}

fn factor(draw: &mut Draw, dtype: ScalarType) -> Num {
    match draw.below(4) {
        0 => Num::Whole(0),
        1 => Num::Whole(1),
        2 if is_float(dtype) => Num::Real(-0.5),
        _ => Num::Whole(3),
    }
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn matrices(
        [m, n, k] in sides(),
        dtype in dtypes(),
        wild in prop::bool::weighted(0.2),
        constant in any::<bool>(),
        seed in any::<u64>(),
        turns in any::<[bool; 3]>(),
        added in prop::option::of(0usize..5),
    ) {
        let mut draw = Draw::new(seed);
        let kind = if wild { Kind::Wild } else { Kind::Tame };
        let (lhs, rhs) = (draw.tensor(dtype, &[m, k], kind), draw.tensor(dtype, &[k, n], kind));
        let sizes = [m, n];
        let product = |index: &[usize]| {
            dot((0..k).map(|i| (lhs.at(&[index[0], i]), rhs.at(&[i, index[1]]))), dtype)
        };
        let operands = [arg(&lhs, turns[0]), operand(&rhs, turns[1], constant)];
        let Some(shape) = added else {
            let wants = indices(&sizes).into_iter().map(|index| product(&index));
            let mut args = operands.to_vec();
            args.push(out(dtype, &sizes, turns[2]));
            return check("aten::mm.out", &args, &[Expected::new(&sizes, wants)], loss(dtype, 2e-6));
        };
        let shapes: [&[usize]; 5] = [&[m, n], &[n], &[1, n], &[m, 1], &[]];
        let addend = draw.tensor(dtype, shapes[shape], kind);
        let (beta, alpha) = (factor(&mut draw, dtype), factor(&mut draw, dtype));
        let wants = indices(&sizes).into_iter().map(|index| with_terms(product(&index), Some(addend.at(&index)), alpha, beta));
        let mut args = vec![arg(&addend, false)];
        args.extend(operands);
        args.extend([number(beta), number(alpha), out(dtype, &sizes, turns[2])]);
        check("aten::addmm.out", &args, &[Expected::new(&sizes, wants)], loss(dtype, 2e-6))?;
    }

    #[test]
    fn stacks(
        batch in 0usize..4,
        [m, n, k] in sides(),
        dtype in dtypes(),
        wild in prop::bool::weighted(0.2),
        seed in any::<u64>(),
        added in prop::option::of(0usize..5),
    ) {
        let mut draw = Draw::new(seed);
        let kind = if wild { Kind::Wild } else { Kind::Tame };
        let (lhs, rhs) = (draw.tensor(dtype, &[batch, m, k], kind), draw.tensor(dtype, &[batch, k, n], kind));
        let sizes = [batch, m, n];
        let product = |index: &[usize]| {
            dot((0..k).map(|i| (lhs.at(&[index[0], index[1], i]), rhs.at(&[index[0], i, index[2]]))), dtype)
        };
        // A stack may lie with its rows and columns swapped.
        let mut swap = |tensor: &Tensor| {
            let owned = tensor.owned(false);
            let order: &[u8] = if draw.flip() { &[0, 2, 1] } else { &[0, 1, 2] };
            Arg::Tensor(edgepack_tests::examples::ordered(&owned, order))
        };
        let operands = [swap(&lhs), swap(&rhs)];
        let Some(shape) = added else {
            let wants = indices(&sizes).into_iter().map(|index| product(&index));
            let mut args = operands.to_vec();
            args.push(out(dtype, &sizes, false));
            return check("aten::bmm.out", &args, &[Expected::new(&sizes, wants)], loss(dtype, 2e-6));
        };
        let shapes: [&[usize]; 5] = [&[batch, m, n], &[m, n], &[batch, 1, n], &[n], &[]];
        let addend = draw.tensor(dtype, shapes[shape], kind);
        let (beta, alpha) = (factor(&mut draw, dtype), factor(&mut draw, dtype));
        let wants = indices(&sizes).into_iter().map(|index| with_terms(product(&index), Some(addend.at(&index)), alpha, beta));
        let mut args = vec![arg(&addend, false)];
        args.extend(operands);
        args.extend([number(beta), number(alpha), out(dtype, &sizes, false)]);
        check("aten::baddbmm.out", &args, &[Expected::new(&sizes, wants)], loss(dtype, 2e-6))?;
    }

    #[test]
    fn rows(
        outer in prop::collection::vec(1usize..4, 0..=2),
        [m, n, k] in sides(),
        dtype in dtypes(),
        wild in prop::bool::weighted(0.2),
        constant in any::<bool>(),
        bias in any::<bool>(),
        seed in any::<u64>(),
        turns in any::<[bool; 2]>(),
    ) {
        prop_assume!(outer.iter().product::<usize>() * m * n * k <= 200_000);
        let mut draw = Draw::new(seed);
        let kind = if wild { Kind::Wild } else { Kind::Tame };
        let mut sizes = outer;
        sizes.extend([m, k]);
        let (input, weight) = (draw.tensor(dtype, &sizes, kind), draw.tensor(dtype, &[n, k], kind));
        let addend = bias.then(|| draw.tensor(dtype, &[n], kind));
        *sizes.last_mut().expect("two sizes at least") = n;
        let wants = indices(&sizes).into_iter().map(|index| {
            let mut from = index.clone();
            let column = from.pop().expect("two sizes at least");
            let pairs = (0..k).map(|i| {
                let mut at = from.clone();
                at.push(i);
                (input.at(&at), weight.at(&[column, i]))
            });
            with_terms(dot(pairs, dtype), addend.as_ref().map(|bias| bias.at(&index)), Num::Whole(1), Num::Whole(1))
        });
        let args = [
            // Rows of a higher rank have to be contiguous.
            arg(&input, turns[0] && sizes.len() == 2),
            operand(&weight, turns[1], constant),
            addend.as_ref().map_or(Arg::None, |bias| arg(bias, false)),
            out(dtype, &sizes, false),
        ];
        check("aten::linear.out", &args, &[Expected::new(&sizes, wants)], loss(dtype, 2e-6))?;
    }
}
