use super::*;

/// A picture of known noise, as the figures below were computed from.
fn noise(height: usize, width: usize) -> Picture {
    let pixel = |v: u64| [v * v * 7 + 13 * v, v * v * 3 + 5 * v, v * v * 11 + v].map(|level| (level % 256) as u8);
    Picture { width, height, pixels: (0..(height * width) as u64).flat_map(pixel).collect() }
}

fn layout(element: ScalarType, sizes: &[usize]) -> TensorLayout {
    TensorLayout::contiguous(element, sizes).unwrap()
}

fn prepared(settings: &str, picture: &Picture, wanted: &TensorLayout) -> Result<TensorBuf, String> {
    settings.parse::<Preparation>()?.tensor(picture, wanted)
}

fn floats(tensor: &TensorBuf) -> Vec<f32> {
    tensor.data().chunks_exact(4).map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).collect()
}

#[test]
fn resizing_is_that_of_pillow_to_a_level() {
    // Of Pillow 13.0: height, width, the first twelve levels, their sum.
    let figures: [(usize, usize, [i64; 12], i64); 3] = [
        (7, 9, [121, 110, 114, 136, 93, 115, 142, 131, 137, 129, 147, 127], 24062),
        (19, 11, [18, 7, 13, 88, 36, 87, 174, 92, 102, 123, 174, 101], 79595),
        (40, 30, [0, 0, 0, 13, 5, 8, 34, 14, 26, 63, 26, 56], 456875),
    ];
    for (height, width, first, sum) in figures {
        let wanted = layout(ScalarType::BYTE, &[1, height, width, 3]);
        let tensor = prepared("bytes", &noise(19, 23), &wanted).unwrap();
        for (have, want) in tensor.data().iter().zip(first) {
            assert!((i64::from(*have) - want).abs() <= 1, "{height}x{width}: {have}, want {want}");
        }
        let total: i64 = tensor.data().iter().map(|&level| i64::from(level)).sum();
        // Roundings cancel out: the mean is right to a tenth of a level.
        assert!((total - sum).abs() * 10 <= tensor.data().len() as i64, "{height}x{width}: {total}, want {sum}");
    }
}

#[test]
fn layouts_orders_and_channels() {
    let picture = Picture { width: 2, height: 1, pixels: vec![255, 0, 51, 0, 102, 255] };
    let nchw = prepared("unit", &picture, &layout(ScalarType::FLOAT, &[1, 3, 1, 2])).unwrap();
    assert_eq!(floats(&nchw), [1.0, 0.0, 0.0, 0.4, 0.2, 1.0]);
    let nhwc = prepared("unit", &picture, &layout(ScalarType::FLOAT, &[1, 2, 3])).unwrap();
    assert_eq!(floats(&nhwc), [1.0, 0.0, 0.2, 0.0, 0.4, 1.0]);
    let bgr = prepared("unit,order=bgr", &picture, &layout(ScalarType::FLOAT, &[1, 2, 3])).unwrap();
    assert_eq!(floats(&bgr), [0.2, 0.0, 1.0, 1.0, 0.4, 0.0]);
    // Brightness: 0.299 red, 0.587 green, 0.114 blue.
    let grey = prepared("bytes", &picture, &layout(ScalarType::BYTE, &[1, 1, 1, 2])).unwrap();
    assert_eq!(grey.data(), [82, 89]);
    let forced = prepared("unit,layout=nhwc", &noise(3, 3), &layout(ScalarType::FLOAT, &[1, 3, 3, 3])).unwrap();
    assert_eq!(floats(&forced)[..3], [0.0, 0.0, 0.0]);
    assert_eq!(floats(&forced)[3], 20.0 / 255.0);
}

#[test]
fn numbers_have_mean_and_deviation_of_their_channel() {
    let picture = Picture { width: 1, height: 1, pixels: vec![255, 0, 51] };
    let wanted = layout(ScalarType::FLOAT, &[3, 1, 1]);
    let values = floats(&prepared("mean=0.5,0.25,0,std=0.5,1,2", &picture, &wanted).unwrap());
    assert_eq!(values, [1.0, -0.25, 0.1]);
    assert_eq!(floats(&prepared("signed", &picture, &wanted).unwrap()), [1.0, -1.0, -0.6]);
    assert_eq!(floats(&prepared("bytes", &picture, &wanted).unwrap()), [255.0, 0.0, 51.0]);
    let imagenet = floats(&prepared("imagenet,resize=1", &picture, &wanted).unwrap());
    assert!((imagenet[0] - (1.0 - 0.485) / 0.229).abs() < 1e-6, "{imagenet:?}");
}

#[test]
fn the_middle_is_cut_out() {
    let picture = Picture { width: 5, height: 2, pixels: (0..30).collect() };
    let wanted = layout(ScalarType::BYTE, &[1, 2, 2, 3]);
    // One pixel and a half in front: two, the even number.
    let cut = prepared("bytes,resize=2", &picture, &wanted).unwrap();
    assert_eq!(cut.data()[..6], [6, 7, 8, 9, 10, 11]);
    assert_eq!(prepared("bytes", &picture, &wanted).unwrap().data().len(), 12);
    let small = prepared("max=255,resize=1", &picture, &wanted).unwrap_err();
    assert!(small.contains("1x2") && small.contains("resize=2x2"), "{small}");
}

#[test]
fn inputs_that_are_not_for_pictures_are_refused() {
    let picture = noise(4, 4);
    for sizes in [&[4][..], &[1, 2, 4, 4], &[2, 3, 4, 4], &[1, 3, 0, 4], &[4, 4]] {
        assert!(prepared("unit", &picture, &layout(ScalarType::FLOAT, sizes)).is_err(), "{sizes:?}");
    }
    assert!(prepared("unit", &picture, &layout(ScalarType::LONG, &[1, 3, 4, 4])).is_err());
    assert!(
        prepared("unit", &picture, &layout(ScalarType::BYTE, &[1, 3, 4, 4])).unwrap_err().contains("--image bytes")
    );
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for bad in [
        "",
        "imagnet",
        "resize",
        "resize=0",
        "resize=4x",
        "resize=99999",
        "mean=1,2",
        "std=0",
        "max=x",
        "order=rbg",
        "size=3",
        "224",
    ] {
        assert!(bad.parse::<Preparation>().is_err(), "{bad}");
    }
    let both: Preparation = "imagenet,resize=256x300,max=2".parse().unwrap();
    assert_eq!((both.resize, both.max, both.std[0]), (Resize::To([256, 300]), 2.0, 0.229));
}
