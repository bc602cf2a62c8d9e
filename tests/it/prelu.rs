//! A comparison, a product and a choice between numbers and the product are one instruction, where that is what they amount to.

use edgepack_format::scalar::ScalarType;
use edgepack_tests::alike::{Apart, numbers, runs_alike};
use edgepack_tests::assemble::{Assembly, Id, Spec, float};

const SIZES: [i32; 4] = [2, 3, 4, 5];

/// A program under construction in which numbers that are not greater than zero become a product.
struct Written<'s> {
    slopes: &'s [i32],
    slopes_first: bool,
    product_first: bool,
    than: i64,
    swapped: bool,
    mask_is_read: bool,
}

const USUAL: Written<'_> = Written {
    slopes: &[1, 3, 1, 1],
    slopes_first: true,
    product_first: false,
    than: 0,
    swapped: false,
    mask_is_read: false,
};

impl Written<'_> {
    /// Adds the instructions behind `x`; returns their result.
    fn add_to(&self, a: &mut Assembly, x: Id, sizes: &[i32]) -> (Id, Id) {
        let count = self.slopes.iter().product::<i32>() as usize;
        let slopes = a.constant(float(self.slopes), &numbers(count));
        let than = a.int(self.than);
        let mask = a.planned(Spec::new(ScalarType::BOOL, sizes));
        let (product, out) = (a.planned(float(sizes)), a.planned(float(sizes)));
        let factors = if self.slopes_first { [slopes, x] } else { [x, slopes] };
        let times = [factors[0], factors[1], product, product];
        if self.product_first {
            a.call("aten::mul.out", &times);
        }
        a.call("aten::gt.Scalar_out", &[x, than, mask, mask]);
        if !self.product_first {
            a.call("aten::mul.out", &times);
        }
        let [yes, no] = if self.swapped { [product, x] } else { [x, product] };
        a.call("aten::where.self_out", &[mask, yes, no, out, out]);
        (out, mask)
    }

    fn names(&self) -> Vec<String> {
        let mut a = Assembly::new();
        let x = a.planned(float(&SIZES));
        let (out, mask) = self.add_to(&mut a, x, &SIZES);
        a.inputs(&[x]);
        if self.mask_is_read {
            let seen = a.planned(float(&SIZES));
            a.call("aten::mul.out", &[out, mask, seen, seen]);
            a.outputs(&[seen]);
        } else {
            a.outputs(&[out]);
        }
        runs_alike(&a, &SIZES.map(|size| size as usize), Apart::Nothing)
    }
}

#[test]
fn products_of_what_is_not_greater_than_zero_are_one_instruction() {
    for slopes in [&[1, 3, 1, 1][..], &[3, 1, 1], &[5], &[1, 5], &[1], &[4, 1], &[2, 1, 1, 1], &[1, 1, 1, 1]] {
        for (slopes_first, product_first) in [(false, false), (false, true), (true, false), (true, true)] {
            let written = Written { slopes, slopes_first, product_first, ..USUAL };
            assert_eq!(written.names(), ["edgepack::prelu.out"], "{slopes:?}");
        }
    }
}

#[test]
fn operations_behind_are_part_of_it() {
    let mut a = Assembly::new();
    let x = a.planned(float(&SIZES));
    let (product, _) = USUAL.add_to(&mut a, x, &SIZES);
    let numbers = [a.double(0.07), a.int(-3), a.int(-127), a.int(127), a.int(1)];
    let out = a.planned(Spec::new(ScalarType::CHAR, &SIZES));
    let args = [&[product][..], &numbers, &[out, out]].concat();
    a.call("quantized_decomposed::quantize_per_tensor.out", &args);
    a.inputs(&[x]);
    a.outputs(&[out]);
    let names = runs_alike(&a, &SIZES.map(|size| size as usize), Apart::Nothing);
    assert_eq!(names, ["edgepack::prelu.epilogue_out"]);
}

#[test]
fn what_is_something_else_stays() {
    let written = [
        Written { slopes: &[3, 4, 1], ..USUAL },
        Written { slopes: &[2, 3, 4, 5], ..USUAL },
        Written { than: 1, ..USUAL },
        Written { swapped: true, ..USUAL },
        Written { mask_is_read: true, ..USUAL },
    ];
    for (at, written) in written.iter().enumerate() {
        let names = written.names();
        assert!(names.len() >= 3 && !names.contains(&"edgepack::prelu.out".into()), "{at}: {names:?}");
    }
}

/// Images `[1, 8, 6, 6]` through a convolution, slopes and a max pooling that gives them back; without slopes, whose numbers are
/// at most 1, of what they amount to.
fn pooled(amounts: bool) -> Assembly {
    let mut a = Assembly::new();
    let image: &[i32] = &[1, 8, 6, 6];
    let weight = match amounts {
        true => numbers(576)
            .chunks_exact(4)
            .flat_map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]).abs().to_le_bytes())
            .collect(),
        false => numbers(576),
    };
    let x = a.planned(float(image));
    let (one, two, zero, none, no) = (a.int(1), a.int(2), a.int(0), a.null(), a.bool(false));
    let [ones, twos, zeros] = [one, two, zero].map(|number| a.ints(&[number, number]));
    let weight = a.constant(float(&[8, 8, 3, 3]), &weight);
    let y = a.planned(float(image));
    a.call("aten::convolution.out", &[x, weight, none, ones, ones, ones, no, zeros, one, y, y]);
    let z = if amounts { y } else { Written { slopes: &[8, 1, 1], ..USUAL }.add_to(&mut a, y, image).0 };
    let (out, places) = (a.planned(float(&[1, 8, 3, 3])), a.planned(Spec::new(ScalarType::LONG, &[1, 8, 3, 3])));
    let results = a.tensors(&[out, places]);
    let pooling = [z, twos, twos, zeros, ones, no, out, places, results];
    a.call("aten::max_pool2d_with_indices.out", &pooling);
    a.inputs(&[x]);
    a.outputs(&[out]);
    a
}

#[test]
fn images_change_their_order_where_they_are_pooled() {
    let apart = Apart::Sums { amounts: &pooled(true), roundings: 74 };
    let names = runs_alike(&pooled(false), &[1, 8, 6, 6], apart);
    assert_eq!(names, ["aten::convolution.out", "edgepack::prelu.out", "edgepack::max_pool2d.out"]);
}
