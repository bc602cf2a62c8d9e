//! Images of one column, and windows of a line that are computed together.

use super::*;

/// Images of one column, of which some windows see padding, and whose taps are next to each other or apart.
#[test]
fn columns() {
    let mut random = Random::new(11);
    let (paths, mut count) = (paths(), 0);
    let tall = windows([3, 1], [1, 1], [1, 1], [[1; 2], [0; 2]]);
    let kinds = [
        tall,
        Windows { kernel: [7, 1], padding: [[3; 2], [0; 2]], ..tall },
        Windows { stride: [2, 3], dilation: [5, 2], padding: [[9, 2], [0; 2]], ..tall },
        Windows { dilation: [1, 7], ..tall },
        // Windows that see padding beside the column.
        Windows { padding: [[1; 2], [0, 1]], ..tall },
        windows([1, 1], [2, 1], [1, 1], [[0; 2]; 2]),
    ];
    for kind in kinds {
        for (groups, inputs, outputs) in [(1, 16, 16), (1, 3, 20), (1, 48, 96), (2, 8, 24), (6, 4, 4), (9, 3, 5)] {
            for [n, h] in [[1, 300], [2, 37], [3, 1], [2, 0]] {
                let (inputs, outputs, windows) = (inputs * groups, outputs * groups, Windows { groups, ..kind });
                let case = Case::new(&mut random, windows, [n, h, 1, inputs], outputs, false);
                let zero = i32::from(case.zeros[0]);
                let want: Vec<i8> =
                    (0..case.results()).map(|at| case.quantised(case.convolved(at, zero), at % outputs)).collect();
                for &path in &paths {
                    let packed = case.packed(path, [outputs, windows.taps() * inputs / groups]);
                    let bias = case.bias.as_deref();
                    let made = Convolution::on(path, packed, windows, bias, case.requantise()).unwrap();
                    let name = format!("{path:?}, {windows:?}, {:?} to {outputs}", case.sizes);
                    agree(&want, 99, &name, |out| made.run(&case.images, case.sizes, out));
                    count += 1;
                }
            }
        }
    }
    println!("{count} convolutions");
}

#[test]
fn few_channels() {
    let mut random = Random::new(12);
    let (mut count, mut refused) = (0, 0);
    for _ in 0..300 {
        let side = |random: &mut Random| [random.below(4), random.below(4)];
        let kernel = [1 + random.below(3), 1 + random.below(7)];
        let mut kind =
            windows(kernel, [1 + random.below(2), 1 + random.below(2)], [1 + random.below(2), 1], [[0; 2]; 2]);
        kind.padding = [side(&mut random), side(&mut random)];
        let (mut image, inputs, outputs) =
            ([kernel[0] * 2 + random.below(5), 8 + random.below(40)], 1 + random.below(9), 1 + random.below(9));
        if random.below(3) == 0 {
            (kind, image) = (Windows { padding: [kind.padding[1], [0; 2]], ..kind.turned() }, [image[1], 1]);
            (kind.kernel[1], kind.dilation[0]) = (1, 1);
        }
        let [h, w] = image;
        let n = 1 + random.below(2);
        let case = Case::new(&mut random, kind, [n, h, w, inputs], outputs, false);
        let sizes = [outputs, kind.taps() * inputs];
        let bias = case.bias.as_deref();
        let made = NarrowConvolution::new(&case.weights, sizes, kind, image, bias, case.requantise());
        assert_eq!(made.is_ok(), NarrowConvolution::bytes(sizes, &kind, image).is_some());
        let Ok(made) = made else {
            refused += 1;
            continue;
        };
        let zero = i32::from(case.zeros[0]);
        let want: Vec<i8> =
            (0..case.results()).map(|at| case.quantised(case.convolved(at, zero), at % outputs)).collect();
        agree(&want, 99, &format!("{kind:?}, {:?} to {outputs}", case.sizes), |out| {
            made.run(&case.images, case.sizes, out)
        });
        assert!(made.run(&case.images, [1, h + 1, w, inputs], &mut [0; 8]).is_err());
        count += 1;
    }
    assert!(count > 60 && refused > 60, "{count} convolutions, {refused} refused");
}
