//! Shuffles of channels at load: what views, swapped dimensions and other views make of an image is one instruction, and the
//! answers are the same bit for bit. All sums are of small multiples of a quarter, which are exact in any order.

use edgepack_tests::alike::{Apart, runs_alike};
use edgepack_tests::assemble::{Assembly, Id, float};
use edgepack_tests::placed::Placed;

/// The form of a shuffle.
#[derive(Clone, Copy, Debug)]
struct Form {
    batch: i32,
    groups: i32,
    /// Channels of each group.
    each: i32,
    size: [i32; 2],
    /// Views are instructions, not values at one place.
    copied: bool,
    /// The swap is a transposition, not a permutation.
    transposed: bool,
    /// Shuffled channels are copied before they are viewed.
    cloned: bool,
    dynamic: bool,
    /// Sizes of the parts that the result is split into.
    parts: [i32; 2],
    /// Another reader of a value: nothing, the result, or the image whose dimensions were swapped.
    also: Also,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Also {
    Nothing,
    Result,
    Swapped,
}

const FORM: Form = Form {
    batch: 1,
    groups: 2,
    each: 6,
    size: [5, 7],
    copied: false,
    transposed: false,
    cloned: true,
    dynamic: false,
    parts: [8, 4],
    also: Also::Nothing,
};

/// The channels of the last value `[n, c, h, w]` by turns; what the swap made, and the result.
fn shuffled(a: &mut Placed, from: Id, form: Form) -> [Id; 2] {
    let Form { batch, groups, each, size: [h, w], copied, transposed, cloned, .. } = form;
    let (cut, swapped) = ([batch, groups, each, h, w], [batch, each, groups, h, w]);
    let seen = a.viewed(from, &cut, copied);
    let swap = match transposed {
        true => {
            let (dim0, dim1, out) = (a.a.int(-3), a.a.int(1), a.value(&swapped));
            a.a.call("aten::transpose_copy.int_out", &[seen, dim0, dim1, out, out]);
            out
        }
        false => a.permuted(seen, &[0, 2, 1, 3, 4], &swapped),
    };
    let mut last = swap;
    if cloned {
        let (out, none) = (a.value(&swapped), a.a.null());
        a.a.call("aten::clone.out", &[last, none, out, out]);
        last = out;
    }
    let result = a.viewed(last, &[batch, groups * each, h, w], copied);
    [swap, result]
}

/// Convolutions that are put together and shuffled, and whose parts are convolved.
fn network(form: Form) -> Assembly {
    let Form { batch, groups, each, size: [h, w], dynamic, parts, also, .. } = form;
    let mut a = Placed::new(dynamic);
    let (image, channels) = ([batch, h, w], groups * each);
    let x = a.value(&[batch, 3, h, w]);
    let images: Vec<Id> = (0..groups).map(|_| a.convolved(x, [3, each], image)).collect();
    let (list, dim, all) = (a.a.tensors(&images), a.a.int(1), a.value(&[batch, channels, h, w]));
    a.a.call("aten::cat.out", &[list, dim, all, all]);
    let [swapped, result] = shuffled(&mut a, all, form);
    let [first, second] = a.split(result, parts, [batch, channels, h, w]);
    let mut outputs = vec![a.relu(first, &[batch, parts[0], h, w])];
    outputs.push(a.convolved(second, [parts[1], 2], image));
    match also {
        Also::Nothing => {}
        Also::Result => outputs.push(a.relu(result, &[batch, channels, h, w])),
        Also::Swapped => outputs.push(a.relu(swapped, &[batch, each, groups, h, w])),
    }
    a.a.inputs(&[x]);
    a.a.outputs(&outputs);
    a.a
}

const SHUFFLE: &str = "edgepack::shuffle.out";
/// Gives an output the order in which the caller sees it.
const REORDERED: &str = "edgepack::reordered.out";

/// Names of what runs in a form, but for the convolutions.
fn names(form: Form) -> Vec<String> {
    let sizes = [form.batch, 3, form.size[0], form.size[1]].map(|size| size as usize);
    let names = runs_alike(&network(form), &sizes, Apart::Nothing);
    names.into_iter().filter(|name| !name.contains("convolution")).collect()
}

#[test]
fn shuffles_are_one_instruction_in_all_forms() {
    for batch in [1, 2] {
        for groups in [2, 3, 4] {
            for (size, each) in [([5, 7], 4), ([1, 1], 6), ([3, 2], 10), ([40, 31], 4)] {
                let parts = [groups * (each - 1), groups];
                for bits in 0..8 {
                    let [copied, transposed, cloned] = [0, 1, 2].map(|bit| bits >> bit & 1 == 1);
                    let form = Form { batch, groups, each, size, copied, transposed, cloned, parts, ..FORM };
                    // Single pixels are in either order.
                    let want = [SHUFFLE, "aten::relu.out", REORDERED];
                    assert_eq!(names(form), want[..2 + usize::from(size != [1, 1])], "{form:?}");
                }
            }
        }
    }
}

#[test]
fn parts_that_are_not_whole_turns_are_split_behind_the_shuffle() {
    let form = Form { parts: [5, 7], ..FORM };
    assert_eq!(names(form), [SHUFFLE, "aten::split_with_sizes_copy.out", "aten::relu.out", REORDERED]);
}

#[test]
fn images_that_others_read_are_there() {
    for copied in [false, true] {
        let form = Form { also: Also::Result, copied, ..FORM };
        let relu = ["aten::relu.out", REORDERED];
        let want = [&[SHUFFLE, "aten::split_with_sizes_copy.out"][..], &relu, &relu].concat();
        assert_eq!(names(form), want, "{copied}");
        for cloned in [false, true] {
            let names = names(Form { also: Also::Swapped, copied, cloned, ..FORM });
            assert!(names.iter().all(|name| name != SHUFFLE), "{copied} {cloned}: {names:?}");
        }
    }
}

#[test]
fn sizes_that_may_change_are_left_alone() {
    for copied in [false, true] {
        let names = names(Form { dynamic: true, copied, ..FORM });
        assert!(names.iter().all(|name| name != SHUFFLE), "{names:?}");
    }
}

/// Views that cut or join other dimensions than those that are swapped.
#[test]
fn other_views_are_no_shuffles() {
    for (sizes, cut, swapped, result) in [
        ([1, 6, 4, 5], [1, 2, 3, 4, 5], [1, 3, 2, 4, 5], [1, 3, 8, 5]),
        ([2, 3, 4, 5], [1, 2, 3, 4, 5], [1, 3, 2, 4, 5], [1, 6, 4, 5]),
        ([1, 6, 4, 5], [1, 6, 1, 4, 5], [1, 1, 6, 4, 5], [1, 6, 4, 5]),
    ] {
        for copied in [false, true] {
            let mut a = Placed::new(false);
            let x = a.value(&sizes);
            let image = a.relu(x, &sizes);
            let seen = a.viewed(image, &cut, copied);
            let swap = a.permuted(seen, &[0, 2, 1, 3, 4], &swapped);
            let last = a.viewed(swap, &result, copied);
            let y = a.relu(last, &result);
            a.a.inputs(&[x]);
            a.a.outputs(&[y]);
            let names = runs_alike(&a.a, &sizes.map(|size| size as usize), Apart::Nothing);
            assert!(names.iter().all(|name| name != SHUFFLE), "{sizes:?}: {names:?}");
        }
    }
}

/// Pixels whose channels are innermost under other names, as between delegates.
#[test]
fn permutations_around_shuffles_move_nothing() {
    for (batch, size, groups, each) in [(1, [5, 7], 2, 6), (2, [3, 3], 3, 4), (1, [1, 4], 4, 5)] {
        let form = Form { batch, groups, each, size, copied: true, cloned: false, ..FORM };
        let ([h, w], channels, parts) = (size, groups * each, [groups, groups * (each - 1)]);
        let mut a = Placed::new(false);
        let pixels = [batch, h, w, each];
        let x = a.value(&pixels);
        let images: Vec<Id> = (0..groups)
            .map(|number| {
                let (factor, out) = (a.a.constant(float(&[]), &(number as f32 + 1.0).to_le_bytes()), a.value(&pixels));
                a.a.call("aten::mul.out", &[x, factor, out, out]);
                out
            })
            .collect();
        let (list, dim, all) = (a.a.tensors(&images), a.a.int(-1), a.value(&[batch, h, w, channels]));
        a.a.call("aten::cat.out", &[list, dim, all, all]);
        let image = a.permuted(all, &[0, 3, 1, 2], &[batch, channels, h, w]);
        let [_, result] = shuffled(&mut a, image, form);
        let parts = [0, 1].map(|at| (parts[at], at));
        let split = a.split(result, parts.map(|(channels, _)| channels), [batch, channels, h, w]);
        let last = parts.map(|(channels, at)| a.permuted(split[at], &[0, 2, 3, 1], &[batch, h, w, channels]));
        let outputs = parts.map(|(channels, at)| a.relu(last[at], &[batch, h, w, channels]));
        a.a.inputs(&[x]);
        a.a.outputs(&outputs);
        let names = runs_alike(&a.a, &pixels.map(|size| size as usize), Apart::Nothing);
        let names: Vec<&String> = names.iter().filter(|name| *name != "aten::mul.out").collect();
        assert_eq!(names, [SHUFFLE, "aten::relu.out", "aten::relu.out"], "{form:?}");
    }
}
