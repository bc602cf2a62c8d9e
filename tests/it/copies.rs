//! Copies of memory at load: permutations, views and clones after which every byte is where it was are no instructions, and the
//! answers are the same bit for bit.

use edgepack_executor::{Method, Options};
use edgepack_format::tensor::TensorView;
use edgepack_loader::Program;
use edgepack_tests::alike::{Apart, runs_alike};
use edgepack_tests::assemble::{Id, float};
use edgepack_tests::placed::Placed;

/// Images between permutations, as between delegates that have channels innermost under other names.
#[derive(Clone, Copy, Debug)]
struct Form {
    batch: i32,
    channels: i32,
    size: [i32; 2],
    /// The image is seen without its last dimension, which is 1.
    line: bool,
    /// Views are instructions, not values at one place.
    copied: bool,
    dynamic: bool,
    /// The image is an output too.
    shown: bool,
}

const FORM: Form =
    Form { batch: 1, channels: 6, size: [5, 7], line: false, copied: false, dynamic: false, shown: false };

fn names(form: Form) -> Vec<String> {
    let Form { batch, channels, size: [h, w], line, copied, dynamic, shown } = form;
    let (pixels, planes) = ([batch, h, w, channels], [batch, channels, h, w]);
    let sizes = if line { &planes[..3] } else { &planes[..] };
    let mut a = Placed::new(dynamic);
    let x = a.value(&pixels);
    let first = a.relu(x, &pixels);
    let image = a.permuted(first, &[0, 3, 1, 2], &planes);
    let image = if line { a.viewed(image, sizes, copied) } else { image };
    let slope = a.a.constant(float(&[]), &0.5f32.to_le_bytes());
    let halves = a.value(sizes);
    a.a.call("aten::mul.out", &[image, slope, halves, halves]);
    let (one, sum) = (a.a.int(1), a.value(sizes));
    a.a.call("aten::add.out", &[image, halves, one, sum, sum]);
    let mut outputs = Vec::new();
    if shown {
        outputs.push(sum);
    }
    let last = if line { a.viewed(sum, &planes, copied) } else { sum };
    let last = a.permuted(last, &[0, 2, 3, 1], &pixels);
    outputs.push(a.relu(last, &pixels));
    a.a.inputs(&[x]);
    a.a.outputs(&outputs);
    runs_alike(&a.a, &pixels.map(|size| size as usize), Apart::Nothing)
}

fn is_copy(name: &str) -> bool {
    name.contains("_copy") || name.contains("clone")
}

#[test]
fn images_between_permutations_are_not_moved() {
    for batch in [1, 2] {
        for size in [[5, 7], [1, 1], [9, 1], [1, 9], [64, 65]] {
            for copied in [false, true] {
                for line in [false, true] {
                    let line = line && size[1] == 1;
                    let form = Form { batch, size, line, copied, ..FORM };
                    let names = names(form);
                    assert!(!names.iter().any(|name| is_copy(name)), "{form:?}: {names:?}");
                }
            }
        }
    }
}

#[test]
fn images_that_a_caller_sees_keep_their_order() {
    for copied in [false, true] {
        for (line, size) in [(false, [5, 7]), (true, [9, 1])] {
            let form = Form { shown: true, copied, line, size, ..FORM };
            let names = names(form);
            // Only what the caller sees is copied, once.
            let copies: Vec<&String> =
                names.iter().filter(|name| is_copy(name) || name.contains("reordered")).collect();
            assert_eq!(copies, ["edgepack::reordered.out"], "{form:?}: {names:?}");
        }
    }
}

#[test]
fn sizes_that_may_change_are_left_alone() {
    let names = names(Form { dynamic: true, copied: true, line: true, size: [9, 1], ..FORM });
    assert_eq!(names.iter().filter(|name| is_copy(name)).count(), 4, "{names:?}");
}

/// Names of what runs where an image of a convolution is `seen` in another way, and its pixels come first then.
fn seen(see: impl FnOnce(&mut Placed, Id) -> (Id, Vec<i32>)) -> Vec<String> {
    let mut a = Placed::new(false);
    let x = a.value(&[1, 3, 5, 7]);
    let image = a.convolved(x, [3, 8], [1, 5, 7]);
    let (image, sizes) = see(&mut a, image);
    let rank = sizes.len() as i32;
    let dims: Vec<i32> = [0].into_iter().chain(2..rank).chain([1]).collect();
    let sizes: Vec<i32> = dims.iter().map(|&dim| sizes[dim as usize]).collect();
    let pixels = a.permuted(image, &dims, &sizes);
    let last = a.relu(pixels, &sizes);
    a.a.inputs(&[x]);
    a.a.outputs(&[last]);
    runs_alike(&a.a, &[1, 3, 5, 7], Apart::Nothing)
}

#[test]
fn images_are_seen_as_lines_of_pixels_without_moving() {
    for copied in [false, true] {
        let names = seen(|a, image| (a.viewed(image, &[1, 8, 35], copied), vec![1, 8, 35]));
        assert_eq!(names, ["aten::convolution.out", "aten::relu.out"], "{copied}");
    }
}

#[test]
fn parts_of_lines_have_the_order_of_their_image() {
    let names = seen(|a, image| {
        let [dim, start, end, step] = [2, 1, 4, 1].map(|number| a.a.int(number));
        let part = a.value(&[1, 8, 3, 7]);
        a.a.call("aten::slice_copy.Tensor_out", &[image, dim, start, end, step, part, part]);
        (part, vec![1, 8, 3, 7])
    });
    assert_eq!(names, ["aten::convolution.out", "aten::slice_copy.Tensor_out", "aten::relu.out"]);
}

/// A copy of a value between two others, of which `make` makes the middle one, and its sizes.
fn between(sizes: &[i32], make: impl FnOnce(&mut Placed, Id) -> (Id, Vec<i32>)) -> Vec<String> {
    let mut a = Placed::new(false);
    let x = a.value(sizes);
    let first = a.relu(x, sizes);
    let (copy, result) = make(&mut a, first);
    let last = a.relu(copy, &result);
    a.a.inputs(&[x]);
    a.a.outputs(&[last]);
    let sizes: Vec<usize> = sizes.iter().map(|&size| size as usize).collect();
    runs_alike(&a.a, &sizes, Apart::Nothing).into_iter().filter(|name| is_copy(name)).collect()
}

#[test]
fn what_repeats_or_moves_elements_is_computed() {
    let expanded = |sizes: &'static [i32]| {
        between(&[2, 1, 3], |a, from| {
            let (list, no, out) = (a.list(sizes), a.a.bool(false), a.value(sizes));
            a.a.call("aten::expand_copy.out", &[from, list, no, out, out]);
            (out, sizes.to_vec())
        })
    };
    assert!(expanded(&[2, 1, 3]).is_empty());
    assert_eq!(expanded(&[2, 4, 3]), ["aten::expand_copy.out"]);
    let permuted = |sizes: [i32; 3], dims: [usize; 3]| {
        between(&sizes, |a, from| {
            let result = dims.map(|dim| sizes[dim]);
            (a.permuted(from, &dims.map(|dim| dim as i32), &result), result.to_vec())
        })
    };
    assert!(permuted([2, 1, 3], [1, 0, 2]).is_empty());
    assert_eq!(permuted([2, 1, 3], [2, 0, 1]), ["aten::permute_copy.out"]);
    // Sizes alone do not tell.
    assert_eq!(permuted([3, 3, 3], [0, 2, 1]), ["aten::permute_copy.out"]);
}

/// A value that is copied before its memory is used again.
#[test]
fn a_copy_outlives_what_it_was_made_of() {
    let mut a = Placed::new(false);
    let sizes = [4, 5];
    let x = a.value(&sizes);
    let first = a.relu(x, &sizes);
    let again = a.view(&sizes);
    let (copy, none) = (a.value(&sizes), a.a.null());
    a.a.call("aten::clone.out", &[first, none, copy, copy]);
    a.a.call("aten::neg.out", &[x, again, again]);
    let (one, sum) = (a.a.int(1), a.value(&sizes));
    a.a.call("aten::add.out", &[copy, again, one, sum, sum]);
    a.a.inputs(&[x]);
    a.a.outputs(&[sum]);
    runs_alike(&a.a, &[4, 5], Apart::Nothing);
}

/// Outputs of other sizes than an operator gives them: whoever runs the program is told so, with rewrites and without.
#[test]
fn what_an_operator_refuses_is_refused() {
    for (name, list, result) in [
        ("aten::expand_copy.out", &[3, 2][..], [3, 2]),
        ("aten::view_copy.out", &[2, 3], [3, 2]),
        ("aten::clone.out", &[], [3, 2]),
    ] {
        let mut a = Placed::new(false);
        let x = a.value(&[2, 3]);
        let first = a.relu(x, &[2, 3]);
        let (list, no, none) = (a.list(list), a.a.bool(false), a.a.null());
        let copy = a.value(&result);
        match name {
            "aten::expand_copy.out" => a.a.call(name, &[first, list, no, copy, copy]),
            "aten::view_copy.out" => a.a.call(name, &[first, list, copy, copy]),
            _ => a.a.call(name, &[first, none, copy, copy]),
        };
        let last = a.relu(copy, &result);
        a.a.inputs(&[x]);
        a.a.outputs(&[last]);
        let program = Program::from_bytes(a.a.build()).unwrap();
        for no_optimize in [false, true] {
            let options = Options { no_optimize, ..Options::default() };
            let input = [TensorView::of::<f32>(&[2, 3], &[0; 24]).unwrap()];
            let loaded = Method::load(&program, "forward", &edgepack_kernels::registry(), &options);
            let is_refused = loaded.is_ok_and(|mut method| method.run(&input).is_err());
            assert!(is_refused, "{name} {no_optimize}");
        }
    }
}
