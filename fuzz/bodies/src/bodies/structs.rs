//! Structs read from named data and compile specs that anybody may have written: a value or errors, and the value is
//! written and read the same.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

use edgepack_format::named::{Found, Lookup, MemoryData, NamedData};
use edgepack_format::row::Blob;
use edgepack_format::scalar::ScalarType;
use edgepack_format::spec::CompileSpecs;
use edgepack_format::tensor::{TensorLayout, TensorView};

use edgepack_smith::Decisions;
use edgepack_smith::arbitrary::Unstructured;

#[derive(NamedData, Debug)]
struct Layer<'a> {
    weight: TensorView<'a>,
    #[named(shape = [_])]
    bias: Option<&'a [f32]>,
    steps: [i64; 2],
}

#[derive(NamedData, Debug)]
struct Weights<'a> {
    scale: f32,
    table: Vec<u16>,
    blob: Blob<'a>,
    layers: Vec<Layer<'a>>,
    #[named(prefix = "")]
    last: Option<Layer<'a>>,
}

const KEYS: [&str; 12] = [
    "scale",
    "table",
    "blob",
    "layers.0.weight",
    "layers.0.bias",
    "layers.0.steps",
    "layers.1.weight",
    "layers.1.steps",
    "layers.7.weight",
    "weight",
    "steps",
    "bias",
];

/// Claims of the input, by key.
struct Claims(BTreeMap<&'static str, Claim>);

/// Bytes at an address of any alignment, and what they are said to be.
struct Claim {
    words: Vec<u64>,
    range: Range<usize>,
    layout: Option<TensorLayout>,
}

impl Claims {
    fn read(u: &mut Unstructured<'_>) -> Self {
        let mut claims = BTreeMap::new();
        while !u.is_empty() {
            let (key, first) = (u.pick(&KEYS), u.below(9));
            let dtype = ScalarType(u.pick(&[6, 6, 4, 4, 11, 0, 1, 5, 7, 15, 28, 99, -1]));
            let sizes: Vec<usize> = (0..u.below(4)).map(|_| u.below(5)).collect();
            let layout = TensorLayout::contiguous(dtype, &sizes).ok().filter(|_| !u.one_in(5));
            let fits = layout.as_ref().map_or_else(|| u.below(20), TensorLayout::byte_len);
            // Most often as long as it says.
            let len = if u.one_in(6) { u.below(33) } else { fits };
            let words = (0..(first + len).div_ceil(8)).map(|_| u.word()).collect();
            claims.insert(key, Claim { words, range: first..first + len, layout });
        }
        Claims(claims)
    }
}

impl Lookup for Claims {
    fn find(&self, key: &str) -> Result<Option<Found<'_>>, String> {
        let Some(claim) = self.0.get(key) else { return Ok(None) };
        if claim.words.first() == Some(&u64::MAX) {
            return Err("it cannot be read".to_owned());
        }
        let bytes: &[u8] = bytemuck::cast_slice(&claim.words);
        Ok(Some(Found { data: &bytes[claim.range.clone()], layout: claim.layout.as_ref() }))
    }

    fn key_from(&self, from: &str) -> Option<&str> {
        self.0.range::<str, _>((Bound::Included(from), Bound::Unbounded)).next().map(|(key, _)| *key)
    }
}

/// See [`BODIES`](super::BODIES).
pub fn named_data(data: &[u8]) {
    let claims = Claims::read(&mut Unstructured::new(data));
    let loaded = match Weights::load(&claims) {
        Ok(loaded) => loaded,
        Err(errors) => return assert!(!errors.is_empty() && !errors.to_string().is_empty()),
    };
    let mut store = MemoryData::new();
    loaded.store(&mut store).expect("no key stands twice in a struct");
    let again = Weights::load(&store).expect("what was stored is there");
    let said = |weights: &Weights<'_>| format!("{weights:?}");
    assert_eq!(said(&again), said(&loaded));
}

#[derive(CompileSpecs, Clone, Copy, PartialEq, Debug)]
#[spec(rename_all = "snake_case")]
enum Precision {
    Full,
    HalfFloat,
}

#[derive(CompileSpecs, PartialEq, Debug)]
struct Options {
    max: u32,
    scale: f64,
    #[spec(default = "true")]
    fused: bool,
    #[spec(default = Precision::Full)]
    precision: Precision,
    name: Option<String>,
    levels: [i16; 2],
    table: Vec<f32>,
    bytes: Vec<u8>,
}

#[derive(CompileSpecs, PartialEq, Debug)]
#[spec(allow_unknown)]
struct Lenient {
    max: Option<u32>,
}

const OPTIONS: [&str; 10] =
    ["max", "scale", "fused", "precision", "name", "levels", "table", "bytes", "unknown", "half_float"];

/// See [`BODIES`](super::BODIES).
pub fn compile_specs(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let mut specs = Vec::new();
    while !u.is_empty() {
        let key = u.pick(&OPTIONS);
        let len = u.pick(&[4, 8, 1, 0, 2, 3, 16]);
        let value = match u.one_in(4) {
            true => u.pick(&["full", "half_float", "\u{1}"]).as_bytes().to_vec(),
            false => (0..len).map(|_| u.byte()).collect(),
        };
        specs.push((key, value));
    }
    // Errors, too, are bounded by what was given.
    match Options::from_specs(&specs) {
        Ok(options) => {
            let written = options.to_specs();
            let again = Options::from_specs(&written).expect("what was written is read");
            assert_eq!(again.to_specs(), written);
        }
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
    if let Ok(lenient) = Lenient::from_specs(&specs) {
        assert_eq!(Lenient::from_specs(&lenient.to_specs()), Ok(lenient));
    }
}

/// Inputs that come to something: every key once, in this order.
pub fn named_data_seeds() -> Vec<Vec<u8>> {
    // Key, place of the first byte, element type, rank, sizes, a layout, as long as it says; then the data.
    let scale = [vec![0, 0, 0, 0, 0, 0], vec![0; 8]].concat();
    let table = [vec![1, 0, 10, 1, 2, 0, 0], vec![1; 8]].concat();
    let blob = [vec![2, 0, 11, 0, 4, 0], vec![7; 8]].concat();
    let layer = [vec![3, 0, 0, 2, 1, 2, 0, 0], vec![3; 8], vec![5, 0, 2, 1, 2, 0, 0], vec![4; 16]].concat();
    vec![[&scale[..], &table, &blob].concat(), [scale, table, blob, layer].concat()]
}

/// Options that are complete.
pub fn compile_spec_seeds() -> Vec<Vec<u8>> {
    let option = |key: u8, len: u8, bytes: &[u8]| [&[key, len, 0], bytes].concat();
    let all = [
        option(0, 0, &[1; 4]),
        option(1, 1, &[2; 8]),
        option(5, 0, &[3; 4]),
        option(6, 1, &[4; 8]),
        option(7, 3, &[]),
        option(2, 2, &[1]),
    ];
    vec![all.concat()]
}
