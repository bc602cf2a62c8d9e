//! Weights that several delegates and methods name: asked for once in a load, packed once in a program, and with a folder
//! once for all programs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use edgepack_builder::pte::ProgramBuilder;
use edgepack_executor::{Method, Options, PackCache};
use edgepack_format::tensor::{TensorLayout, TensorView};
use edgepack_loader::{Bytes, Error, NamedDataMap, Program};
use edgepack_tests::lowered::{SCALES, Sizes, WEIGHTS, data, lengths, method, ones};

const SIZES: Sizes = [24, 64];
const DELEGATES: usize = 2;

/// A program with methods of two delegates each, which all name one key; with the data inside, or left to the caller.
fn program(weights: Option<Vec<u8>>) -> Program {
    let mut program = ProgramBuilder::new();
    for name in ["prefill", "decode"] {
        method(&mut program.method(name), SIZES, DELEGATES);
    }
    if let Some(weights) = weights {
        data(&mut program, weights, ones(SIZES));
    }
    Program::from_bytes(program.finish().unwrap().to_bytes().unwrap()).unwrap()
}

fn weights(byte: u8) -> Vec<u8> {
    vec![byte; lengths(SIZES)[0]]
}

fn options() -> Options {
    Options { backends: edgepack::backends(), ..Options::default() }
}

fn load(program: &Program, name: &str, options: &Options) -> Method {
    Method::load(program, name, &edgepack_kernels::registry(), options).unwrap()
}

/// The outputs for a row of ones: all channels are alike.
fn run(method: &mut Method) -> Vec<f32> {
    let row = [1.0f32; SIZES[1]];
    let view = TensorView::of::<f32>(&[1, SIZES[1]], bytemuck::cast_slice(&row)).unwrap();
    let outputs = method.run(&[view]).unwrap();
    let outputs: Vec<&[f32]> = outputs.iter().map(|output| output.tensor().unwrap().as_slice().unwrap()).collect();
    assert!(outputs.len() == DELEGATES && outputs.iter().all(|y| y.len() == SIZES[0] && y.iter().all(|x| *x == y[0])));
    outputs.iter().map(|y| y[0]).collect()
}

/// Result of a row of ones with weights whose halves are all `half`, stored plus 8; one per delegate.
fn want(half: i32) -> Vec<f32> {
    vec![(half - 8) as f32 * SIZES[1] as f32; DELEGATES]
}

fn near(have: &[f32], want: &[f32]) -> bool {
    have.iter().zip(want).all(|(have, want)| (have - want).abs() <= 1e-5 * want.abs())
}

#[test]
fn delegates_and_methods_of_a_program_share_one_packed_copy() {
    let (program, options) = (program(Some(weights(0xbb))), options());
    let mut both = ["prefill", "decode"].map(|name| load(&program, name, &options));
    assert_eq!((options.cache.packings(), options.cache.len()), (1, 1));
    assert!(both.iter_mut().all(|method| near(&run(method), &want(11))));
    drop(both);
    assert!(options.cache.is_empty());
    load(&program, "decode", &options);
    assert_eq!(options.cache.packings(), 2);
}

#[test]
fn other_programs_have_weights_of_their_own_under_the_same_key() {
    let options = options();
    let programs = [0x99, 0xaa, 0xbb].map(|byte| program(Some(weights(byte))));
    let mut methods = programs.each_ref().map(|program| load(program, "decode", &options));
    let answers = methods.each_mut().map(run);
    assert!(answers.iter().zip(9..).all(|(have, half)| near(have, &want(half))), "{answers:?}");
    assert_eq!(options.cache.packings(), 3);
}

/// A map whose weights are others every time, and which counts the questions.
#[derive(Default)]
struct Fickle(Mutex<HashMap<String, u8>>);

impl NamedDataMap for Fickle {
    fn data(&self, key: &str) -> Result<Option<Bytes>, Error> {
        let mut asked = self.0.lock().unwrap();
        let count = asked.entry(key.to_owned()).or_default();
        *count += 1;
        Ok(match key {
            WEIGHTS => Some(weights(0x99 + (*count - 1) * 0x11).into()),
            SCALES => Some(ones(SIZES).into()),
            _ => None,
        })
    }
    fn layout(&self, _: &str) -> Result<Option<TensorLayout>, Error> {
        Ok(None)
    }
    fn len(&self) -> usize {
        2
    }
    fn key(&self, index: usize) -> Option<&str> {
        [WEIGHTS, SCALES].get(index).copied()
    }
    fn contains(&self, key: &str) -> bool {
        [WEIGHTS, SCALES].contains(&key)
    }
}

#[test]
fn a_map_that_answers_differently_the_second_time_is_asked_once_in_a_load() {
    let program = program(None);
    let map = Arc::new(Fickle::default());
    let options = Options { data: vec![map.clone()], ..options() };
    let mut method = load(&program, "prefill", &options);
    let asked: Vec<u8> = map.0.lock().unwrap().values().copied().collect();
    assert_eq!(asked, [1, 1]);
    assert!(near(&run(&mut method), &want(9)));

    // Another map is other data, whatever its keys.
    let other = Options { data: vec![Arc::new(Fickle::default())], ..options.clone() };
    load(&program, "prefill", &other);
    assert_eq!(options.cache.packings(), 2);
}

#[test]
fn with_a_folder_the_second_load_packs_nothing() {
    let outer = tempfile::tempdir().unwrap();
    // Each load as in a process of its own: nothing in memory is shared.
    let options = || Options { cache: PackCache::new(), ..options() }.pack_cache(outer.path().join("packed")).unwrap();
    for (half, packings) in [(9, 1), (9, 0), (11, 1), (9, 0)] {
        let (program, options) = (program(Some(weights(half * 0x11))), options());
        let mut both = ["prefill", "decode"].map(|name| load(&program, name, &options));
        assert_eq!(options.cache.packings(), packings);
        assert!(both.iter_mut().all(|method| near(&run(method), &want(half.into()))));
    }
    // A damaged entry is packed again.
    for entry in std::fs::read_dir(outer.path().join("packed")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let options = options();
    assert!(near(&run(&mut load(&program(Some(weights(0x99))), "decode", &options)), &want(9)));
    assert_eq!(options.cache.packings(), 1);
}

/// Programs of the corpus with weights of eight bits: convolutions, depthwise ones and products, static and dynamic, by rows
/// and by columns.
const EIGHT_BITS: [&str; 6] = [
    "mobile_xnnpack_int8",
    "cnn_xnnpack_int8",
    "mlp_xnnpack_int8",
    "conv_dynamic_xnnpack_int8",
    "dw2_xnnpack_int8",
    "linear_turned_xnnpack_int8",
];

#[test]
fn weights_of_eight_bits_are_packed_once_and_stored() {
    let models = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus/models");
    let folder = tempfile::tempdir().unwrap();
    let mut all = 0;
    for name in EIGHT_BITS {
        let program = Program::open(models.join(name).with_extension("pte")).unwrap();
        let shared = options();
        let loaded = [0, 1].map(|_| load(&program, "forward", &shared));
        let packings = shared.cache.packings();
        assert!(packings > 0 && shared.cache.len() as u64 == packings, "{name}: {packings} packings");
        // Each of the two methods accounts for all that it uses.
        let bytes = loaded.each_ref().map(|method| method.memory_bytes().packed);
        assert!(bytes[0] > 0 && bytes[0] == bytes[1], "{name}: {bytes:?}");
        let stored = || Options { cache: PackCache::new(), ..options() }.pack_cache(folder.path().join("p")).unwrap();
        for want in [packings, 0] {
            let options = stored();
            let program = Program::open(models.join(name).with_extension("pte")).unwrap();
            load(&program, "forward", &options);
            let have = options.cache.packings();
            assert!(have <= want && (want == 0 || have > 0), "{name}: {have} packings, at most {want}");
            all += have;
        }
    }
    assert!(all > 0);
}

/// Programs of the corpus whose weights are floats: convolutions and products, one of which a rewrite brings into another order.
const FLOATS: [&str; 4] = ["cnn_xnnpack", "encoder_xnnpack_dynamic", "dynseq_portable", "channels_last_plain_portable"];

#[test]
fn weights_of_floats_are_packed_once_for_all_methods_that_hold_them() {
    let models = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus/models");
    for name in FLOATS {
        let program = Program::open(models.join(name).with_extension("pte")).unwrap();
        let shared = options();
        let first = load(&program, "forward", &shared);
        let packings = shared.cache.packings();
        let (held, bytes) = (shared.cache.len() as u64, first.memory_bytes().packed);
        assert!(held > 0 && held <= packings && bytes > 0, "{name}: {held} of {packings} packings are held");
        // The second method packs what a rewrite changed for it alone, and accounts for all that it uses.
        let second = load(&program, "forward", &shared);
        assert_eq!((shared.cache.packings() - packings, shared.cache.len() as u64), (packings - held, held), "{name}");
        assert_eq!(second.memory_bytes().packed, bytes, "{name}");
        drop((first, second));
        assert!(shared.cache.is_empty(), "{name}");
    }
}

#[test]
fn packed_weights_are_within_the_limits_of_each_method() {
    let (program, mut options) = (program(Some(weights(0xbb))), options());
    let mut limits = *program.limits();
    limits.method_bytes = 300;
    options.limits = Some(limits);
    let error = Method::load(&program, "decode", &edgepack_kernels::registry(), &options).err().unwrap().to_string();
    assert!(error.contains("bytes of packed weights and tables, the limits leave"), "{error}");
    assert_eq!(options.cache.packings(), 0);
}
