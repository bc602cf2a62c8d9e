//! Data files store equal contents once and honour every alignment.

use std::collections::BTreeSet;

use edgepack_builder::NamedDataStore;
use edgepack_builder::ptd::{DataFormat, data_file};
use edgepack_format::limits::Limits;
use edgepack_format::ptd::DataRef;
use edgepack_format::pte::FileExtent;
use proptest::collection::vec;
use proptest::sample::select;
use proptest::test_runner::Config;
use proptest::{prop_assert, prop_assert_eq, proptest};

fn config() -> Config {
    Config { failure_persistence: None, cases: 400, ..Config::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn data_files_share_and_align(entries in vec((0usize..5, 0u8..3, select(vec![1u64, 2, 3, 8, 12, 64, 96, 5]), 0usize..3), 1..20)) {
        let mut store = NamedDataStore::new();
        for (index, (len, byte, align, _)) in entries.iter().enumerate() {
            store.add(&format!("k{index}"), vec![*byte; len * 9], *align, None).unwrap();
        }
        let distinct: BTreeSet<_> = entries.iter().map(|(len, byte, ..)| (*len, if *len == 0 { 0 } else { *byte })).collect();
        for format in [DataFormat::FlatTensor, DataFormat::FlatData] {
            let bytes = data_file(&store, format, 8).unwrap().to_bytes().unwrap();
            let data = DataRef::parse(&bytes, FileExtent::of(&bytes), &Limits::DEFAULT).unwrap();
            prop_assert_eq!(data.segment_range(distinct.len() as u32), None);
            let base = data.header().segment_base_offset;
            for (index, (len, byte, align, _)) in entries.iter().enumerate() {
                let entry = data.lookup(&format!("k{index}")).unwrap();
                let start = entry.range.start - base;
                prop_assert!(start.is_multiple_of(*align) && start.is_multiple_of(8), "{} for {}", start, align);
                prop_assert_eq!(&bytes[entry.range.start as usize..entry.range.end as usize], &vec![*byte; len * 9][..]);
            }
        }
    }
}
