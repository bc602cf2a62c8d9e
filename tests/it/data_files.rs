//! Data files as readers see them: keys, layouts, ranges, and generations that are never mistaken for each other.

use std::path::Path;

use edgepack_builder::raw::{self, Options};
use edgepack_format::extent::FileExtent;
use edgepack_format::finding::ErrorCode;
use edgepack_format::limits::Limits;
use edgepack_format::ptd::{
    Accept, BlobEntry, DataRef, DataRoot, DataSegment, FlatData, FlatTensor, Generation, LegacyFlatTensor, NamedData,
    TensorLayout, TensorMetadata, data_len,
};
use edgepack_format::rules::ptd as rule;
use edgepack_format::scalar::ScalarType;
use edgepack_smith::arbitrary::Unstructured;
use edgepack_smith::{Values, row};
use proptest::collection::vec;
use proptest::prelude::*;

const SEGMENTS: [&[u8]; 2] = [&[7; 48], &[9; 12]];

fn segments() -> Vec<DataSegment> {
    raw::segments(&SEGMENTS, &Options::DEFAULT).unwrap()
}

fn parse(bytes: &[u8], accept: Accept) -> DataRef<'_> {
    DataRef::parse_as(bytes, FileExtent::of(bytes), &Limits::DEFAULT, accept).unwrap_or_else(|found| panic!("{found}"))
}

fn layout(sizes: &[i32], dim_order: &[u8]) -> TensorLayout<'static> {
    TensorLayout {
        scalar_type: ScalarType::FLOAT,
        sizes: Some(sizes.to_vec().into()),
        dim_order: Some(dim_order.to_vec().into()),
    }
}

/// Keys out of order, two of them on one segment, one without a layout.
fn current() -> Vec<u8> {
    let entries = [("b", 1, Some(layout(&[3], &[0]))), ("a", 0, Some(layout(&[3, 4], &[1, 0]))), ("ab", 1, None)];
    let entries = entries.map(|(key, segment_index, tensor_layout)| NamedData {
        key: Some(key.into()),
        segment_index,
        tensor_layout,
    });
    let row = FlatTensor { version: 0, segments: Some(segments().into()), named_data: Some(entries.to_vec().into()) };
    raw::flat_tensor(&row, &SEGMENTS, &Options::DEFAULT).unwrap()
}

fn legacy(named: Option<&'static str>) -> Vec<u8> {
    let tensor = |name: &'static str, offset| TensorMetadata {
        fully_qualified_name: Some(name.into()),
        scalar_type: ScalarType::FLOAT,
        sizes: Some(vec![2, 2].into()),
        dim_order: Some(vec![0u8, 1].into()),
        segment_index: 0,
        offset,
    };
    let row = LegacyFlatTensor {
        version: 0,
        tensor_alignment: 16,
        tensors: Some(vec![tensor("y", 32), tensor("x", 16)].into()),
        segments: Some(segments().into()),
        named_data: named.map(|key| vec![BlobEntry { key: Some(key.into()), segment_index: 1 }].into()),
    };
    raw::legacy_flat_tensor(&row, &SEGMENTS, &Options::DEFAULT).unwrap()
}

#[test]
fn keys_layouts_and_ranges() {
    let bytes = current();
    let data = parse(&bytes, Accept::default());
    assert_eq!((data.generation(), data.keys()), (Generation::C, &["b", "a", "ab"][..]));
    let base = data.header().segment_base_offset;

    let a = data.lookup("a").unwrap();
    let layout = a.layout.unwrap();
    assert_eq!((layout.sizes(), layout.dim_order(), layout.byte_len()), (&[3, 4][..], &[1, 0][..], 48));
    assert_eq!(a.range, base..base + 48);
    assert_eq!(bytes[a.range.start as usize..a.range.end as usize], [7; 48]);

    let (b, ab) = (data.lookup("b").unwrap(), data.lookup("ab").unwrap());
    assert_eq!(b.range, ab.range);
    assert!(b.layout.is_some() && ab.layout.is_none());

    // A key is compared whole: neither a prefix nor a longer key finds anything.
    for missing in ["", "aa", "abc", "c", "B"] {
        assert!(data.lookup(missing).is_none(), "{missing:?}");
    }
    assert!(data.entry(3).is_none() && data.segment_range(2).is_none());
}

#[test]
fn the_head_is_enough() {
    let bytes = current();
    let extent = FileExtent::of(&bytes);
    let len = data_len(&bytes[..64], extent) as usize;
    assert!(len < bytes.len());
    let data = DataRef::parse(&bytes[..len], extent, &Limits::DEFAULT).unwrap();
    assert_eq!((data.len(), data.bytes().len()), (3, len));
    assert!(DataRef::parse(&bytes[..len - 1], extent, &Limits::DEFAULT).is_err());
}

#[test]
fn real_files_are_clean() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus/models");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "ptd") {
            let bytes = std::fs::read(&path).unwrap();
            let data = parse(&bytes, Accept::default());
            assert!(!data.is_empty(), "{}", path.display());
            assert_eq!(data.entry(0).map(|entry| entry.layout.is_some()), Some(true), "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 4, "{seen} files");
}

#[test]
fn older_generations_are_read_only_when_asked_for() {
    for (bytes, generation) in [(legacy(None), Generation::A), (legacy(Some("blob")), Generation::B)] {
        let refused = DataRef::parse(&bytes, FileExtent::of(&bytes), &Limits::DEFAULT).unwrap_err();
        let error = refused.first_error().unwrap();
        assert_eq!((error.rule, error.rule.code), (&rule::LEGACY_REFUSED, Some(ErrorCode::InvalidExternalData)));

        let data = parse(&bytes, Accept::ALL);
        assert_eq!(data.generation(), generation);
        let base = data.header().segment_base_offset;
        assert_eq!(data.lookup("x").unwrap().range, base + 16..base + 32);
        assert_eq!(data.lookup("y").unwrap().range, base + 32..base + 48);
        let blob = data.lookup("blob");
        assert_eq!(
            blob.map(|entry| (entry.range, entry.layout)),
            match generation {
                Generation::B => Some((base + 128..base + 140, None)),
                _ => None,
            }
        );
    }
}

#[test]
fn named_data_of_an_older_file_come_before_tensors() {
    let bytes = legacy(Some("x"));
    let data = parse(&bytes, Accept::ALL);
    assert_eq!(data.keys(), ["x", "y", "x"]);
    assert!(data.lookup("x").unwrap().layout.is_none());
}

#[test]
fn flat_data_opens_with_and_without_its_identifier() {
    let row = FlatData {
        version: 0,
        named_data: Some(vec![BlobEntry { key: Some("k".into()), segment_index: 1 }].into()),
        segments: Some(segments().into()),
    };
    let mut bytes = raw::flat_data(&row, &SEGMENTS, &Options::DEFAULT).unwrap();
    for identified in [true, false] {
        if !identified {
            bytes[4..8].fill(0);
            assert!(DataRef::parse(&bytes, FileExtent::of(&bytes), &Limits::DEFAULT).is_err());
        }
        let data = parse(&bytes, Accept { bare_flat_data: !identified, ..Accept::default() });
        assert!(matches!(data.root(), DataRoot::FlatData(root) if *root == row));
        assert_eq!(data.lookup("k").unwrap().range.clone().count(), 12);
    }
}

proptest! {
    #[test]
    fn no_current_file_passes_for_an_older_one(input in vec(any::<u8>(), 0..400)) {
        use edgepack_format::row::Table as _;
        use edgepack_format::wire::Table;
        let bytes = row(FlatTensor::DESC, Values::Any, &mut Unstructured::new(&input)).unwrap();
        let mut row = FlatTensor::decode(Table::root(&bytes).unwrap()).unwrap();
        row.segments.get_or_insert_default();
        let bytes = raw::flat_tensor(&row, &[], &Options::DEFAULT).unwrap();
        let root = Table::root(&bytes).unwrap();
        prop_assert_eq!(Generation::of(&root), Generation::C);
    }

    #[test]
    fn no_older_file_passes_for_a_current_one(input in vec(any::<u8>(), 0..400), shift in 0u32..13) {
        use edgepack_format::row::Table as _;
        use edgepack_format::wire::Table;
        let bytes = row(LegacyFlatTensor::DESC, Values::Any, &mut Unstructured::new(&input)).unwrap();
        let mut row = LegacyFlatTensor::decode(Table::root(&bytes).unwrap()).unwrap();
        row.tensor_alignment = 1 << shift;
        row.segments.get_or_insert_default();
        let want = if row.named_data.is_some() { Generation::B } else { Generation::A };
        let bytes = raw::legacy_flat_tensor(&row, &[], &Options::DEFAULT).unwrap();
        prop_assert_eq!(Generation::of(&Table::root(&bytes).unwrap()), want);
    }
}
