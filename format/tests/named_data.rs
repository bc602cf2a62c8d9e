//! Structs as named data and back: every kind of field, every attribute, every error, by whole round trips.

use edgepack_format::named::{Entry, MemoryData, NamedData, Problem, Sink, StoreError};
use edgepack_format::row::Blob;
use edgepack_format::scalar::{Bool, ScalarType};
use edgepack_format::tensor::{LayoutError, TensorBuf, TensorLayout, TensorView};
use proptest::prelude::*;

fn stored<'a>(value: &impl NamedData<'a>) -> MemoryData {
    let mut store = MemoryData::new();
    value.store(&mut store).unwrap();
    store
}

fn layouts(store: &MemoryData) -> Vec<(String, String)> {
    let shown = |entry: &Entry<'_>| entry.layout.as_ref().map_or_else(|| "blob".to_owned(), TensorLayout::to_string);
    store.entries().map(|entry| (entry.key.to_string(), shown(&entry))).collect()
}

fn put(store: &mut MemoryData, key: &'static str, data: &[u8], layout: Option<TensorLayout>) {
    store.add(Entry { key: key.into(), data: data.to_vec().into(), layout, alignment: 1, external: None }).unwrap();
}

fn messages<'a, T: NamedData<'a>>(store: &'a MemoryData) -> Vec<String> {
    let errors = T::load(store).err().expect("something is wrong");
    errors.as_slice().iter().map(|error| error.to_string()).collect()
}

fn layout(scalar_type: ScalarType, sizes: &[usize]) -> Option<TensorLayout> {
    Some(TensorLayout::contiguous(scalar_type, sizes).unwrap())
}

#[derive(NamedData, Clone, PartialEq, Debug)]
struct Inner {
    weight: Vec<f32>,
    scale: Option<f64>,
}

#[derive(NamedData, Clone, PartialEq, Debug)]
struct Everything {
    number: i64,
    flag: Bool,
    array: [u16; 3],
    matrix: [[i8; 2]; 3],
    list: Vec<half::f16>,
    rows: Vec<[u32; 2]>,
    tensor: TensorBuf<half::bf16>,
    tensors: Vec<TensorBuf<u8>>,
    inner: Inner,
    maybe: Option<Inner>,
    layers: Vec<Inner>,
    pair: [Inner; 2],
    #[named(skip)]
    calls: u64,
    // Names that generated code might be tempted to use for itself.
    place: u8,
    lookup: u8,
    errors: u8,
    sink: u8,
    r#type: u8,
}

fn inner() -> impl Strategy<Value = Inner> {
    // A list item that stores nothing at all would be lost at the end of its list: an empty list is stored.
    (prop::collection::vec(-1e3f32..1e3, 0..4), prop::option::of(-1e3f64..1e3))
        .prop_map(|(weight, scale)| Inner { weight, scale })
}

prop_compose! {
    fn everything()(
        number: i64, flag: bool, array: [u16; 3], matrix: [[i8; 2]; 3],
        list in prop::collection::vec(any::<u16>().prop_map(|bits| half::f16::from_bits(bits & 0x3fff)), 0..5),
        rows in prop::collection::vec(any::<[u32; 2]>(), 0..4),
        tensors in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5), 0..3),
        (a, b) in (0usize..4, 0usize..4),
        (first, maybe, layers) in (inner(), prop::option::of(inner()), prop::collection::vec(inner(), 0..12)),
        pair in (inner(), inner()),
        bytes: [u8; 5],
    ) -> Everything {
        let elements = (0..a * b).map(|i| half::bf16::from_f32(i as f32)).collect();
        let layout = TensorLayout::new(ScalarType::BFLOAT16, &[a, b], &[1, 0]).unwrap();
        Everything {
            number, flag: flag.into(), array, matrix, list, rows,
            tensor: TensorBuf::with_layout(layout, elements).unwrap(),
            tensors: tensors.into_iter().map(|bytes| TensorBuf::new(&[bytes.len()], bytes).unwrap()).collect(), inner: first, maybe, layers, pair: [pair.0, pair.1], calls: 0,
            place: bytes[0], lookup: bytes[1], errors: bytes[2], sink: bytes[3], r#type: bytes[4],
        }
    }
}

proptest! {
    #[test]
    fn what_is_stored_is_loaded(value in everything()) {
        let store = stored(&value);
        prop_assert_eq!(&Everything::load(&store).unwrap(), &value);
        prop_assert_eq!(stored(&Everything::load(&store).unwrap()), store);
    }

    #[test]
    fn below_a_key_it_is_the_same(value in inner()) {
        let mut store = MemoryData::new();
        value.store_at("a", &mut store).unwrap();
        value.store_at("a.b", &mut store).unwrap();
        prop_assert_eq!(&Inner::load_at("a", &store).unwrap(), &value);
        prop_assert_eq!(&Inner::load_at("a.b", &store).unwrap(), &value);
        prop_assert!(Inner::load(&store).is_err());
    }

    #[test]
    fn any_data_give_a_value_or_errors(
        keys in prop::collection::btree_map("(number|array|list|rows|tensors\\.[0-9]|layers\\.[0-9]\\.weight|pair\\.1)",
            (prop::collection::vec(any::<u8>(), 0..20), -1i8..31, prop::collection::vec(0usize..4, 0..3)), 0..6)
    ) {
        let mut store = MemoryData::new();
        for (key, (data, scalar_type, sizes)) in keys {
            let layout = TensorLayout::contiguous(ScalarType(scalar_type), &sizes).ok();
            store.add(Entry { key: key.into(), data: data.into(), layout, alignment: 1, external: None }).unwrap();
        }
        // Half of the fields are never there.
        prop_assert!(Everything::load(&store).unwrap_err().as_slice().len() > 5);
    }
}

#[test]
fn keys_and_layouts_follow_the_fields() {
    let one = Inner { weight: vec![1.0], scale: None };
    let value = Everything {
        number: 1,
        flag: true.into(),
        array: [1, 2, 3],
        matrix: [[1, 2]; 3],
        list: vec![],
        rows: vec![[1, 2]; 4],
        tensor: TensorBuf::new(&[1, 1], vec![half::bf16::ONE]).unwrap(),
        tensors: vec![TensorBuf::new(&[2], vec![1, 2]).unwrap(); 2],
        inner: one.clone(),
        maybe: None,
        layers: vec![one.clone()],
        pair: [one.clone(), Inner { scale: Some(2.0), ..one }],
        calls: 7,
        place: 1,
        lookup: 2,
        errors: 3,
        sink: 4,
        r#type: 5,
    };
    let layouts = layouts(&stored(&value));
    let shown: Vec<String> = layouts.iter().map(|(key, layout)| format!("{key} {layout}")).collect();
    let want = [
        "array u16[3]",
        "errors u8[]",
        "flag bool[]",
        "inner.weight f32[1]",
        "layers.0.weight f32[1]",
        "list f16[0]",
        "lookup u8[]",
        "matrix i8[3, 2]",
        "number i64[]",
        "pair.0.weight f32[1]",
        "pair.1.scale f64[]",
        "pair.1.weight f32[1]",
        "place u8[]",
        "rows u32[4, 2]",
        "sink u8[]",
        "tensor bf16[1, 1]",
        "tensors.0 u8[2]",
        "tensors.1 u8[2]",
        "type u8[]",
    ];
    assert_eq!(shown, want);
    assert_eq!(Everything::load(&stored(&value)).unwrap(), Everything { calls: 0, ..value });
}

#[derive(NamedData)]
struct Views<'a> {
    typed: TensorView<'a, i32>,
    any: TensorView<'a>,
    slice: &'a [u64],
    blob: Blob<'a>,
    list: Vec<&'a [u8]>,
}

#[test]
fn borrowed_fields_point_into_what_is_lent() {
    let (ints, longs) = ([1i32, 2, 3, 4], [5u64, 6]);
    let any = TensorView::from_slice(&[4], &ints).unwrap().untyped();
    let typed = TensorView::from_slice(&[2, 2], &ints).unwrap();
    let bytes = Blob((&[9u8][..]).into());
    let views = Views { typed, any, slice: &longs, blob: bytes, list: vec![&[1], &[2, 3]] };
    let store = stored(&views);
    let loaded = Views::load(&store).unwrap();
    let within = |data: &[u8]| {
        let here = data.as_ptr_range();
        store.entries().any(|entry| {
            let there = entry.data.as_ptr_range();
            matches!(entry.data, std::borrow::Cow::Borrowed(_)) && there.start == here.start && there.end == here.end
        })
    };
    assert!(within(loaded.typed.data()) && within(loaded.any.data()) && within(loaded.blob.as_slice()));
    assert!(loaded.list.iter().all(|bytes| within(bytes)));
    assert_eq!((loaded.typed.as_slice(), loaded.slice), (&ints[..], &longs[..]));
    assert_eq!(loaded.any.layout().scalar_type(), ScalarType::INT);
}

#[derive(NamedData)]
#[named(prefix = "model/", align = 64, external = "weights")]
struct Attributes<'a> {
    #[named(rename = "w.0", shape = [2, _])]
    weight: Vec<f32>,
    #[named(align = 2, external = "small")]
    bias: &'a [f32],
    #[named(prefix = "")]
    flat: Inner,
    #[named(prefix = "n_", align = 32)]
    norm: Option<Inner>,
}

#[test]
fn attributes_say_where_and_how() {
    let inner = Inner { weight: vec![1.0], scale: Some(2.0) };
    let value = Attributes { weight: vec![0.0; 6], bias: &[1.0], flat: inner.clone(), norm: Some(inner.clone()) };
    let store = stored(&value);
    let shown: Vec<_> =
        store.entries().map(|e| format!("{} {} {:?}", e.key, e.alignment, e.external.as_deref())).collect();
    let want = [
        "model/bias 4 Some(\"small\")",
        "model/n_scale 32 Some(\"weights\")",
        "model/n_weight 32 Some(\"weights\")",
        "model/scale 64 Some(\"weights\")",
        "model/w.0 64 Some(\"weights\")",
        "model/weight 64 Some(\"weights\")",
    ];
    assert_eq!(shown, want);
    assert_eq!(layouts(&store)[4].1, "f32[2, 3]");
    let loaded = Attributes::load(&store).unwrap();
    assert_eq!((loaded.weight.len(), loaded.flat, loaded.norm), (6, inner.clone(), Some(inner.clone())));

    let odd = Attributes { weight: vec![0.0; 5], bias: &[], flat: inner, norm: None };
    let error = odd.store(&mut MemoryData::new()).unwrap_err();
    assert_eq!(error.to_string(), "model/w.0: 5 elements, its shape is [2, _]");
}

#[test]
fn a_store_that_refuses_says_which_key() {
    #[derive(NamedData)]
    struct Twice {
        #[named(prefix = "")]
        first: Inner,
        weight: u8,
    }
    let value = Twice { first: Inner { weight: vec![], scale: None }, weight: 1 };
    let error = value.store(&mut MemoryData::new()).unwrap_err();
    assert!(matches!(&error, StoreError::Sink { key, .. } if key == "weight"));
    assert_eq!(error.to_string(), "weight: the key is taken");
}

#[derive(NamedData, Debug)]
struct Strict<'a> {
    missing: [f32; 2],
    dtype: TensorView<'a, f32>,
    #[named(shape = [2, 3])]
    shape: TensorView<'a, f32>,
    rank: Vec<f32>,
    order: &'a [f32],
    short: Vec<u8>,
    opaque: TensorView<'a>,
    ragged: Vec<u32>,
    list: Vec<Inner>,
    pair: [u16; 2],
    fine: u8,
}

#[test]
fn every_problem_is_reported_at_once() {
    let mut store = MemoryData::new();
    put(&mut store, "dtype", &[0; 8], layout(ScalarType::DOUBLE, &[1]));
    put(&mut store, "shape", &[0; 24], layout(ScalarType::FLOAT, &[3, 2]));
    put(&mut store, "rank", &[0; 24], layout(ScalarType::FLOAT, &[3, 2]));
    put(&mut store, "order", &[0; 8], Some(TensorLayout::new(ScalarType::FLOAT, &[2, 1], &[1, 0]).unwrap()));
    put(&mut store, "short", &[0; 3], layout(ScalarType::BYTE, &[4]));
    put(&mut store, "opaque", &[0; 3], None);
    put(&mut store, "ragged", &[0; 6], None);
    put(&mut store, "list.0.weight", &[], None);
    put(&mut store, "list.3.weight", &[], None);
    put(&mut store, "pair", &[0; 6], None);
    put(&mut store, "fine", &[7], None);
    assert_eq!(
        messages::<Strict<'_>>(&store),
        [
            "missing: there is no such key, a tensor of f32 of sizes [2] is expected",
            "dtype: elements of type f64, the field's are f32",
            "shape: sizes [3, 2], the field's are [2, 3]",
            "rank: sizes [3, 2], the field's are [_]",
            "order: sizes [2, 1], the field's are [_]",
            "short: 3 bytes of data for a tensor of 4",
            "opaque: nothing says what its 3 bytes look like",
            "ragged: 6 bytes are not a tensor of u32 of sizes [_]",
            "list: the list has no item 1, but later ones",
            "pair: 6 bytes are not a tensor of u16 of sizes [2]",
        ]
    );
}

#[test]
fn data_that_nobody_described_are_seen_as_the_field_says() {
    #[derive(NamedData)]
    struct Bare<'a> {
        #[named(shape = [2, _])]
        matrix: TensorView<'a, u16>,
        flat: TensorView<'a, u16>,
        #[named(shape = [3, 1])]
        column: [u16; 3],
    }
    let mut store = MemoryData::new();
    put(&mut store, "matrix", &[0; 12], None);
    put(&mut store, "flat", &[0; 12], None);
    put(&mut store, "column", &[0; 6], None);
    let bare = Bare::load(&store).unwrap();
    assert_eq!((bare.matrix.layout().sizes(), bare.flat.layout().sizes()), (&[2, 3][..], &[6][..]));
    assert_eq!(layouts(&stored(&bare))[0].1, "u16[3, 1]");
}

#[test]
fn lists_have_the_length_their_type_says() {
    #[derive(NamedData, Debug)]
    struct Two {
        pair: [Inner; 2],
    }
    let mut store = MemoryData::new();
    put(&mut store, "pair.1.weight", &[], None);
    let missing = "pair.0.weight: there is no such key, a tensor of f32 of sizes [_] is expected";
    assert_eq!(messages::<Two>(&store), [missing]);
    put(&mut store, "pair.0.weight", &[], None);
    put(&mut store, "pair.2.weight", &[], None);
    let errors = Two::load(&store).unwrap_err();
    assert_eq!(errors.as_slice()[0].problem, Problem::Items { have: 3, want: 2 });
}

#[test]
fn a_borrowed_field_needs_an_address_its_elements_can_have() {
    struct Odd([u64; 2]);
    impl edgepack_format::named::Lookup for Odd {
        fn find(&self, _: &str) -> Result<Option<edgepack_format::named::Found<'_>>, String> {
            let data = &bytemuck::cast_slice(&self.0)[1..9];
            Ok(Some(edgepack_format::named::Found { data, layout: None }))
        }
        fn key_from(&self, _: &str) -> Option<&str> {
            None
        }
    }
    #[derive(NamedData, Debug)]
    struct Borrowed<'a> {
        x: &'a [u32],
    }
    let errors = Borrowed::load(&Odd([0; 2])).map(|_| ()).unwrap_err();
    assert_eq!(errors.as_slice()[0].problem, Problem::Layout(LayoutError::Misaligned(4)));
    #[derive(NamedData, Debug)]
    struct Owned {
        x: Vec<u32>,
    }
    assert_eq!(Owned::load(&Odd([0; 2])).unwrap().x, [0, 0]);
}

#[test]
fn an_unreadable_key_is_there_and_wrong() {
    struct Broken;
    impl edgepack_format::named::Lookup for Broken {
        fn find(&self, key: &str) -> Result<Option<edgepack_format::named::Found<'_>>, String> {
            Err(format!("the disk with {key} is gone"))
        }
        fn key_from(&self, _: &str) -> Option<&str> {
            None
        }
    }
    #[derive(NamedData, Debug)]
    struct Maybe {
        x: Option<f32>,
    }
    assert_eq!(Maybe::load(&Broken).unwrap_err().to_string(), "x: it cannot be read: the disk with x is gone");
}

#[test]
fn a_struct_may_be_generic_in_its_elements() {
    #[derive(NamedData)]
    struct Generic<'a, T, const N: usize> {
        view: TensorView<'a, T>,
        array: [T; N],
    }
    let values = [1.0f64, 2.0];
    let value = Generic { view: TensorView::from_slice(&[1, 2], &values).unwrap(), array: [3.0f64; 3] };
    let store = stored(&value);
    let loaded = Generic::<f64, 3>::load(&store).unwrap();
    assert_eq!((loaded.view, loaded.array), (value.view, value.array));
}
