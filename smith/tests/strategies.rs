//! Guarantees of the strategies: every value is a file that opens, or a row that reads back equal to what was written.

use edgepack_format::extent::FileExtent;
use edgepack_format::limits::Limits;
use edgepack_format::ptd::DataRef;
use edgepack_format::pte::{Program, ProgramRef};
use edgepack_format::row::Table;
use edgepack_smith::strategy::{built_programs, data_files, programs, programs_of, rows};
use edgepack_smith::{Generator, ProgramFile};
use proptest::prelude::*;

fn opens(bytes: &[u8]) -> bool {
    ProgramRef::parse(bytes, FileExtent::of(bytes), &Limits::hostile()).is_ok()
}

fn calls(program: &ProgramFile, name: &str) -> bool {
    program.operators.iter().all(|operator| operator == name)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn programs_open(program in programs(), built in built_programs()) {
        prop_assert!(opens(&program.bytes) && !program.operators.is_empty());
        prop_assert!(opens(&built.file));
        for file in &built.data_files {
            prop_assert!(DataRef::parse(file, FileExtent::of(file), &Limits::DEFAULT).is_ok());
        }
    }

    #[test]
    fn programs_call_the_operators_of_their_generator(program in programs_of(
        Generator::new().operators(["my::scale.out(Tensor self, float by, *, Tensor(a!) out) -> Tensor(a!)"]).unwrap()
    )) {
        prop_assert!(opens(&program.bytes) && calls(&program, "my::scale.out"));
    }

    #[test]
    fn data_files_have_their_entries(file in data_files()) {
        let data = DataRef::parse(&file.bytes, FileExtent::of(&file.bytes), &Limits::DEFAULT);
        let data = data.unwrap();
        prop_assert!(data.len() == file.entries.len() && file.entries.iter().all(|(key, _)| data.lookup(key).is_some()));
    }

    #[test]
    fn rows_survive_json(row in rows::<Program<'static>>()) {
        let read = Program::decode(row.table().unwrap()).unwrap();
        let text = serde_json::to_string(&read).unwrap();
        prop_assert_eq!(serde_json::from_str::<Program<'static>>(&text).unwrap(), read);
    }
}
