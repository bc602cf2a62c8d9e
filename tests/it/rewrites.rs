//! Rewrites at load change nothing that a caller can observe but the order of sums: methods whose memory is shared in
//! every form that programs use run with and without rewrites. Where nothing is summed answers are the same bit for
//! bit; sums are as far apart as roundings in another order can be, and no further.

use edgepack_executor::{LoadError, Method, Options};
use edgepack_format::scalar::ScalarType;
use edgepack_fuzz::apart::{SUMS, first_difference};
use edgepack_loader::Program;
use edgepack_tests::alike::{Apart, numbers, runs_alike};
use edgepack_tests::assemble::{Assembly, Id, Spec, float};
use edgepack_tests::programs::{PlainInputs, models};

/// `x * transposed(c)`, where the product reads the transposed constant through `seen`. If `pinned`, an addition reads
/// the memory of `seen` before.
fn turned_constant(view: bool, pinned: bool) -> Assembly {
    let mut a = Assembly::new();
    let x = a.planned_at(float(&[2, 3]), 0);
    let c = a.constant(float(&[3, 2]), &numbers(6));
    let turned = a.planned_at(float(&[2, 3]), 64);
    let seen = if view { a.planned_at(float(&[2, 3]), 64) } else { turned };
    let y = a.planned_at(float(&[2, 3]), 128);
    let order = [a.int(1), a.int(0)];
    let order = a.ints(&order);
    let one = a.int(1);
    if pinned {
        // What was there before the run counts: the memory is state.
        let z = a.planned_at(float(&[2, 3]), 192);
        a.call("aten::add.out", &[seen, x, one, z, z]);
        a.outputs(&[y, z]);
    } else {
        a.outputs(&[y]);
    }
    a.call("aten::permute_copy.out", &[c, order, turned, turned]);
    a.call("aten::mul.out", &[x, seen, y, y]);
    a.inputs(&[x]);
    a
}

#[test]
fn constants_fold_and_their_views_follow() {
    for view in [false, true] {
        assert_eq!(
            runs_alike(&turned_constant(view, false), &[2, 3], Apart::Nothing),
            ["aten::mul.out"],
            "view: {view}"
        );
    }
}

#[test]
fn what_outlives_a_run_stays() {
    for view in [false, true] {
        let names = runs_alike(&turned_constant(view, true), &[2, 3], Apart::Nothing);
        assert_eq!(names, ["aten::add.out", "aten::permute_copy.out", "aten::mul.out"], "view: {view}");
    }
}

#[test]
fn memory_used_again_is_no_obstacle() {
    let mut a = Assembly::new();
    let x = a.planned_at(float(&[2, 3]), 0);
    let c = a.constant(float(&[3, 2]), &numbers(6));
    let one = a.int(1);
    let order = [a.int(1), a.int(0)];
    let order = a.ints(&order);
    // All three live at one place, one after the other.
    let (first, turned, last) =
        (a.planned_at(float(&[2, 3]), 64), a.planned_at(float(&[2, 3]), 64), a.planned_at(float(&[2, 3]), 64));
    let kept = a.planned_at(float(&[2, 3]), 128);
    a.call("aten::add.out", &[x, x, one, first, first]);
    a.call("aten::mul.out", &[first, first, kept, kept]);
    a.call("aten::permute_copy.out", &[c, order, turned, turned]);
    a.call("aten::add.out", &[turned, kept, one, last, last]);
    a.inputs(&[x]);
    a.outputs(&[last]);
    assert_eq!(runs_alike(&a, &[2, 3], Apart::Nothing), ["aten::add.out", "aten::mul.out", "aten::add.out"]);
}

/// A chain whose values take turns at two places, as planned by an exporter: `-((x + x) * x)` where the negation lies on
/// what the product reads, and a product of itself behind it.
#[test]
fn results_on_what_is_read_are_no_obstacle() {
    let mut a = Assembly::new();
    let x = a.planned_at(float(&[2, 3]), 0);
    let one = a.int(1);
    let (sum, product) = (a.planned_at(float(&[2, 3]), 64), a.planned_at(float(&[2, 3]), 128));
    let (minus, last) = (a.planned_at(float(&[2, 3]), 64), a.planned_at(float(&[2, 3]), 192));
    a.call("aten::add.out", &[x, x, one, sum, sum]);
    a.call("aten::mul.out", &[sum, sum, product, product]);
    a.call("aten::neg.out", &[product, minus, minus]);
    a.call("aten::mul.out", &[minus, minus, last, last]);
    a.inputs(&[x]);
    a.outputs(&[last]);
    let names = runs_alike(&a, &[2, 3], Apart::Nothing);
    assert_eq!(names, ["aten::add.out", "edgepack::mul.epilogue_out", "aten::mul.out"]);
    let program = Program::from_bytes(a.build()).unwrap();
    let method = Method::load(&program, "forward", &edgepack_kernels::registry(), &Options::default()).unwrap();
    assert_eq!(method.memory_bytes().private, 0, "what moved is in the planned memory");
}

/// A view of what is given back lies where it lay, whatever moves.
#[test]
fn values_that_work_in_place_stay_together() {
    let mut a = Assembly::new();
    let x = a.planned_at(float(&[2, 3]), 0);
    let one = a.int(1);
    let (sum, minus) = (a.planned_at(float(&[2, 3]), 64), a.planned_at(float(&[2, 3]), 64));
    let seen = a.planned_at(float(&[6]), 64);
    let last = a.planned_at(float(&[6]), 128);
    a.call("aten::add.out", &[x, x, one, sum, sum]);
    a.call("aten::sin.out", &[sum, minus, minus]);
    a.call("aten::mul.out", &[seen, seen, last, last]);
    a.inputs(&[x]);
    a.outputs(&[last]);
    assert_eq!(runs_alike(&a, &[2, 3], Apart::Nothing), ["aten::add.out", "aten::sin.out", "aten::mul.out"]);
}

/// Images `[1, 8, 6, 6]` through convolution, batch norm, activation, a depthwise convolution, a sum, and a mean. What they
/// amount to if asked for: every constant positive, the mean that is subtracted negative, and what was positive stays.
fn images(activation: &str, read_twice: bool, amounts: bool) -> Assembly {
    let activation = if amounts { "aten::relu.out" } else { activation };
    let numbers = |count: usize| match amounts {
        true => positive(numbers(count), 1.0),
        false => numbers(count),
    };
    let mut a = Assembly::new();
    let image: &[i32] = &[1, 8, 6, 6];
    let bytes = 4 * 8 * 36;
    let mut next = 0;
    let mut place = |a: &mut Assembly, sizes: &[i32]| -> Id {
        next += bytes;
        a.planned_at(float(sizes), next - bytes)
    };
    let x = place(&mut a, image);
    let (one, zero, none, no) = (a.int(1), a.int(0), a.null(), a.bool(false));
    let ones = a.ints(&[one, one]);
    let zeros = a.ints(&[zero, zero]);
    let groups = a.int(8);
    let (dense, deep) =
        (a.constant(float(&[8, 8, 3, 3]), &numbers(576)), a.constant(float(&[8, 1, 3, 3]), &numbers(72)));
    let bias = a.constant(float(&[8]), &numbers(8));
    let (y, z, w) = (place(&mut a, image), place(&mut a, image), place(&mut a, image));
    a.call("aten::convolution.out", &[x, dense, bias, ones, ones, ones, no, zeros, one, y, y]);
    norm(&mut a, y, bias, z, amounts);
    match activation {
        "aten::relu.out" => a.call(activation, &[z, w, w]),
        _ => {
            let (least, greatest) = (a.double(-0.5), a.int(3));
            a.call(activation, &[z, least, greatest, w, w]);
        }
    }
    let (v, sum) = (place(&mut a, image), place(&mut a, image));
    a.call("aten::convolution.out", &[w, deep, none, ones, ones, ones, no, zeros, groups, v, v]);
    a.call("aten::add.out", &[w, v, one, sum, sum]);
    let (two, three) = (a.int(2), a.int(3));
    let dims = a.ints(&[two, three]);
    let mean = place(&mut a, &[1, 8]);
    a.call("aten::mean.out", &[sum, dims, no, none, mean, mean]);
    a.inputs(&[x]);
    if read_twice {
        a.outputs(&[mean, y])
    } else {
        a.outputs(&[mean])
    }
    a
}

/// A batch norm of eight channels, whose factors and offsets are one constant.
fn norm(a: &mut Assembly, from: Id, factors: Id, to: Id, amounts: bool) {
    let mean = if amounts { positive(numbers(8), -1.0) } else { numbers(8) };
    let middle = a.constant(float(&[8]), &mean);
    let variance: Vec<f32> = (1..9).map(|i| i as f32 * 0.5).collect();
    let variance = a.constant(float(&[8]), bytemuck::cast_slice(&variance));
    let (momentum, epsilon) = (a.double(0.1), a.double(1e-5));
    let empty = [0; 2].map(|_| a.planned_at(Spec::new(ScalarType::FLOAT, &[0]), 0));
    let results = a.tensors(&[to, empty[0], empty[1]]);
    let args = [from, factors, factors, middle, variance, momentum, epsilon, to, empty[0], empty[1], results];
    a.call("aten::_native_batch_norm_legit_no_training.out", &args);
}

/// A line `[1, 8, 40]` through a convolution, whose weight is read as it is stored, and a batch norm.
fn line(amounts: bool) -> Assembly {
    let numbers = |count: usize| if amounts { positive(numbers(count), 1.0) } else { numbers(count) };
    let mut a = Assembly::new();
    let sizes: &[i32] = &[1, 8, 40];
    let [x, y, z] = [0, 1, 2].map(|at| a.planned_at(float(sizes), at * 4 * 8 * 40));
    let (one, zero, no) = (a.int(1), a.int(0), a.bool(false));
    let (ones, zeros) = (a.ints(&[one]), a.ints(&[zero]));
    let (weight, bias) = (a.constant(float(&[8, 8, 3]), &numbers(192)), a.constant(float(&[8]), &numbers(8)));
    a.call("aten::convolution.out", &[x, weight, bias, ones, ones, ones, no, zeros, one, y, y]);
    norm(&mut a, y, bias, z, amounts);
    a.inputs(&[x]);
    a.outputs(&[z]);
    a
}

#[test]
fn weights_that_are_not_packed_take_the_factors_of_norms() {
    let amounts = line(true);
    let apart = Apart::Sums { amounts: &amounts, roundings: 24 + 2 + 8 };
    assert_eq!(runs_alike(&line(false), &[1, 8, 40], apart), ["edgepack::convolution.scaled_out"]);
}

/// Number of roundings of a sum of 72 products and a bias, of a batch norm, folded or not, of a sum of nine products,
/// of an addition and of a mean of 36.
const ROUNDINGS: usize = 74 + 8 + 10 + 1 + 37;

/// Absolute values of the numbers, times `sign`.
fn positive(bytes: Vec<u8>, sign: f32) -> Vec<u8> {
    let numbers = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]).abs() * sign);
    numbers.flat_map(f32::to_le_bytes).collect()
}

#[test]
fn convolutions_absorb_what_follows() {
    for activation in ["aten::relu.out", "aten::hardtanh.out", "aten::clamp.out"] {
        let amounts = images(activation, false, true);
        let apart = Apart::Sums { amounts: &amounts, roundings: ROUNDINGS };
        let names = runs_alike(&images(activation, false, false), &[1, 8, 6, 6], apart);
        let clamped = "edgepack::convolution.scaled_epilogue_out";
        assert_eq!(names, [clamped, "edgepack::convolution.added_out", "aten::mean.out"], "{activation}");
    }
}

/// A sum behind a convolution.
#[derive(Clone, Copy)]
struct Residual {
    /// There is a batch norm between them.
    norm: bool,
    /// Windows of 3 by 3 pixels, not of one.
    wide: bool,
    /// Factor of the second operand.
    alpha: i64,
    /// The other operand is one pixel, for all of them.
    pixel: bool,
    /// The results of the convolution are given back, too.
    given_back: bool,
}

/// An image of 8 channels through a convolution, its results through another and added to what that gives, an activation and
/// a mean.
fn residual(of: Residual, amounts: bool) -> Assembly {
    let numbers = |count: usize| if amounts { positive(numbers(count), 1.0) } else { numbers(count) };
    let mut a = Assembly::new();
    let image: &[i32] = &[1, 8, 12, 12];
    let mut next = 0;
    let mut place = |a: &mut Assembly, sizes: &[i32]| -> Id {
        next += 4 * 8 * 144;
        a.planned_at(float(sizes), next - 4 * 8 * 144)
    };
    let [image, x, y, z, sum, w] = [image; 6].map(|sizes| place(&mut a, sizes));
    let (one, zero, none, no, alpha) = (a.int(1), a.int(0), a.null(), a.bool(false), a.int(of.alpha));
    let (ones, zeros) = (a.ints(&[one, one]), a.ints(&[zero, zero]));
    let bias = a.constant(float(&[8]), &numbers(8));
    let side = if of.wide { 3 } else { 1 };
    let weight = a.constant(float(&[8, 8, side, side]), &numbers(64 * (side * side) as usize));
    let padding = if of.wide { ones } else { zeros };
    let stem = a.constant(float(&[8, 8, 3, 3]), &numbers(576));
    a.call("aten::convolution.out", &[image, stem, none, ones, ones, ones, no, zeros, one, x, x]);
    a.call("aten::convolution.out", &[x, weight, bias, ones, padding, ones, no, zeros, one, y, y]);
    if of.norm {
        norm(&mut a, y, bias, z, amounts);
    }
    let pixel = a.constant(float(&[1, 8, 1, 1]), &numbers(8));
    let (results, other) = (if of.norm { z } else { y }, if of.pixel { pixel } else { x });
    a.call("aten::add.out", &[other, results, alpha, sum, sum]);
    a.call("aten::relu.out", &[sum, w, w]);
    let (two, three) = (a.int(2), a.int(3));
    let dims = a.ints(&[two, three]);
    let mean = place(&mut a, &[1, 8]);
    a.call("aten::mean.out", &[w, dims, no, none, mean, mean]);
    a.inputs(&[image]);
    let outputs = [mean, y];
    a.outputs(&outputs[..1 + usize::from(of.given_back)]);
    a
}

#[test]
fn convolutions_add_to_their_results() {
    let plain = Residual { norm: false, wide: false, alpha: 1, pixel: false, given_back: false };
    let (added, scaled) = ("edgepack::convolution.added_out", "edgepack::convolution.scaled_added_out");
    for (of, first) in [
        (plain, added),
        (Residual { wide: true, ..plain }, added),
        (Residual { norm: true, ..plain }, scaled),
        (Residual { norm: true, wide: true, ..plain }, scaled),
        (Residual { alpha: 2, ..plain }, "aten::convolution.out"),
        (Residual { pixel: true, ..plain }, "aten::convolution.out"),
        (Residual { given_back: true, ..plain }, "aten::convolution.out"),
    ] {
        let amounts = residual(of, true);
        // Sums of 72 products, as Winograd's too, twice, of a batch norm, of the other operand, and of all pixels.
        let apart = Apart::Sums { amounts: &amounts, roundings: 8 * 74 + 8 + 1 + 145 };
        let names = runs_alike(&residual(of, false), &[1, 8, 12, 12], apart);
        let rest: &[&str] = match first {
            "aten::convolution.out" if of.given_back => {
                &["edgepack::reordered.out", "edgepack::add.epilogue_out", "aten::mean.out"]
            }
            "aten::convolution.out" => &["edgepack::add.epilogue_out", "aten::mean.out"],
            _ => &["aten::mean.out"],
        };
        assert_eq!(names, [&["aten::convolution.out", first], rest].concat());
    }
}

/// Convolutions of large images, one behind the other.
#[derive(Clone, Copy)]
struct Wide {
    /// Pixels from one window of the first to the next.
    stride: i32,
    /// Results of each channel of the second.
    multiplier: i32,
    /// Another operator reads what is between them.
    read_twice: bool,
}

/// Images of 8 channels through two convolutions of single pixels, the second into `[1, 64, 64, 64]`, an activation, a depthwise
/// convolution and a mean.
fn widened(wide: Wide, amounts: bool) -> Assembly {
    let numbers = |count: usize| if amounts { positive(numbers(count), 1.0) } else { numbers(count) };
    let mut a = Assembly::new();
    let mut next = 0;
    let mut place = |a: &mut Assembly, sizes: &[i32]| -> Id {
        let at = next;
        next += 4 * sizes.iter().map(|size| *size as u64).product::<u64>();
        a.planned_at(float(sizes), at)
    };
    let Wide { stride, multiplier, read_twice } = wide;
    let image = &[1, 8, 64 * stride, 64 * stride];
    let (x, mixed) = (place(&mut a, image), place(&mut a, image));
    let (one, zero, four, none, no) = (a.int(1), a.int(0), a.int(4), a.null(), a.bool(false));
    let (ones, zeros, fours) = (a.ints(&[one, one]), a.ints(&[zero, zero]), a.ints(&[four, four]));
    let step = a.int(stride.into());
    let (steps, groups) = (a.ints(&[step, step]), a.int(64));
    let mix = a.constant(float(&[8, 8, 1, 1]), &numbers(64));
    let (points, bias) = (a.constant(float(&[64, 8, 1, 1]), &numbers(512)), a.constant(float(&[64]), &numbers(64)));
    let channels = 64 * multiplier;
    let taps = a.constant(float(&[channels, 1, 3, 3]), &numbers(9 * channels as usize));
    let between: &[i32] = &[1, 64, 64, 64];
    let (y, z, w) = (place(&mut a, between), place(&mut a, between), place(&mut a, &[1, channels, 16, 16]));
    a.call("aten::convolution.out", &[x, mix, none, ones, zeros, ones, no, zeros, one, mixed, mixed]);
    a.call("aten::convolution.out", &[mixed, points, bias, steps, zeros, ones, no, zeros, one, y, y]);
    a.call("aten::relu.out", &[y, z, z]);
    a.call("aten::convolution.out", &[z, taps, none, fours, ones, ones, no, zeros, groups, w, w]);
    let (two, three) = (a.int(2), a.int(3));
    let dims = a.ints(&[two, three]);
    let mut outputs = vec![place(&mut a, &[1, channels])];
    a.call("aten::mean.out", &[w, dims, no, none, outputs[0], outputs[0]]);
    if read_twice {
        outputs.push(place(&mut a, &[1, 64]));
        a.call("aten::mean.out", &[z, dims, no, none, outputs[1], outputs[1]]);
    }
    a.inputs(&[x]);
    a.outputs(&outputs);
    a
}

#[test]
fn convolutions_of_large_images_are_computed_together() {
    let (plain, fused, mean) = ("aten::convolution.out", "edgepack::convolution.epilogue_out", "aten::mean.out");
    let wide = Wide { stride: 1, multiplier: 1, read_twice: false };
    for (wide, want) in [
        (wide, vec![plain, "edgepack::convolution.pair_out", mean]),
        (Wide { read_twice: true, ..wide }, vec![plain, fused, plain, mean, mean]),
        (Wide { stride: 2, ..wide }, vec![plain, fused, plain, mean]),
        (Wide { multiplier: 2, ..wide }, vec![plain, fused, plain, mean]),
    ] {
        let amounts = widened(wide, true);
        // Sums of eight products, twice, of nine, and of all pixels.
        let apart = Apart::Sums { amounts: &amounts, roundings: 9 + 10 + 10 + 64 * 64 };
        let size = 64 * wide.stride as usize;
        assert_eq!(runs_alike(&widened(wide, false), &[1, 8, size, size], apart), want);
    }
}

/// A stack of `count` times 3 rows through a linear layer as exporters write it for tensors that are not contiguous: `w` is
/// transposed, repeated for every matrix of the stack, and multiplied with. If `given_back`, so is the repeated matrix.
fn repeated(count: i32, given_back: bool, amounts: bool) -> Assembly {
    let mut a = Assembly::new();
    let x = a.planned_at(float(&[count, 3, 4]), 0);
    let weight = if amounts { positive(numbers(20), 1.0) } else { numbers(20) };
    let w = a.constant(float(&[5, 4]), &weight);
    let turned = a.planned_at(float(&[4, 5]), 1024);
    let stack = a.planned_at(float(&[count, 4, 5]), 2048);
    let seen = a.planned_at(float(&[count, 4, 5]), 2048);
    let (y, z) = (a.planned_at(float(&[count, 3, 5]), 3072), a.planned_at(float(&[count, 3, 5]), 4096));
    let order = [a.int(1), a.int(0)];
    let order = a.ints(&order);
    let sizes = [count, 4, 5].map(|size| a.int(size.into()));
    let sizes = a.ints(&sizes);
    let implicit = a.bool(false);
    a.call("aten::permute_copy.out", &[w, order, turned, turned]);
    a.call("aten::expand_copy.out", &[turned, sizes, implicit, stack, stack]);
    a.call("aten::bmm.out", &[x, seen, y, y]);
    a.call("aten::relu.out", &[y, z, z]);
    a.inputs(&[x]);
    let outputs: &[Id] = if given_back { &[z, stack] } else { &[z] };
    a.outputs(outputs);
    a
}

#[test]
fn a_repeated_matrix_is_multiplied_with_once() {
    for (count, given_back) in [(1, false), (3, false), (3, true)] {
        let amounts = repeated(count, given_back, true);
        let apart = Apart::Sums { amounts: &amounts, roundings: ROUNDINGS };
        let names = runs_alike(&repeated(count, given_back, false), &[count as usize, 3, 4], apart);
        match given_back {
            false => assert_eq!(names, ["edgepack::bmm.repeated_epilogue_out"], "{count}"),
            true => assert!(!names.iter().any(|name| name.contains("repeated")), "{names:?}"),
        }
    }
}

#[test]
fn what_is_read_twice_is_computed() {
    let amounts = images("aten::relu.out", true, true);
    let apart = Apart::Sums { amounts: &amounts, roundings: ROUNDINGS };
    let names = runs_alike(&images("aten::relu.out", true, false), &[1, 8, 6, 6], apart);
    assert_eq!(names.len(), 6, "{names:?}");
    assert_eq!(names[0], "aten::convolution.out");
}

/// The first instruction whose results differ from those of the program as it is written is one that sums.
#[test]
fn programs_come_apart_only_where_they_sum() {
    let (mut same, mut apart) = (0, 0);
    for (path, data) in models() {
        let program = Program::open(&path).unwrap();
        for method in program.method_names().unwrap() {
            let load = |no_optimize| {
                let options = Options { data: data.clone(), no_optimize, ..Options::default() };
                match Method::load(&program, &method, &edgepack_kernels::registry(), &options) {
                    Ok(method) => Some(method),
                    Err(LoadError::Missing(_)) => None,
                    Err(error) => panic!("{} {method}: {error}", path.display()),
                }
            };
            let (Some(mut plain), Some(mut optimized)) = (load(true), load(false)) else { continue };
            let inputs = PlainInputs::varied(&program, &method);
            match first_difference(&mut plain, &mut optimized, &inputs.views()) {
                None => same += 1,
                Some(name) => {
                    assert!(SUMS.contains(&&*name), "{} {method}: {name} answers otherwise", path.display());
                    apart += 1;
                }
            }
        }
    }
    println!("{same} methods answer the same with and without rewrites, {apart} come apart where they sum");
    assert!(same > 40 && apart > 3, "{same} {apart}");
}
