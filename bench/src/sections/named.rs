//! Finding named data by key, for few keys and for many.

use edgepack_format::pte::NamedData;
use edgepack_loader::{NamedDataMap, Program};

use super::BUDGET;
use crate::clock::{Race, timed, timed_many};
use crate::programs;

/// Lookups per turn.
const LOOKUPS: usize = 1_000;

pub fn run() {
    let sizes = [10usize, 1_000, 100_000];
    let programs = sizes.map(|keys| Program::from_bytes(programs::named(keys).bytes).expect("a valid program"));
    let maps = programs.each_ref().map(|program| program.named_data().expect("named data"));

    let mut find = Race::new("whether a key is there");
    let mut data = Race::new("the bytes of a key");
    for (map, keys) in maps.iter().zip(sizes) {
        let wanted: Vec<String> = (0..LOOKUPS).map(|lookup| programs::key_name(lookup * 7919 % keys)).collect();
        let mut next = wanted.clone().into_iter().cycle();
        find.lane(format!("{keys} keys"), LOOKUPS, move || {
            let mut keys = wanted.iter();
            timed_many(LOOKUPS, || keys.next().is_some_and(|key| map.contains(key)))
        });
        data.lane(format!("{keys} keys"), LOOKUPS, move || {
            let keys: Vec<String> = next.by_ref().take(LOOKUPS).collect();
            let mut keys = keys.iter();
            timed_many(LOOKUPS, || keys.next().map(|key| map.data(key)))
        });
    }
    let many = &programs[1];
    find.lane("1000 keys, by scanning the rows", 1, move || {
        let key = programs::key_name(500);
        timed(|| {
            let rows = many.view().ok()?.program().named_data.clone()?;
            rows.iter()
                .flatten()
                .find(|row: &NamedData<'_>| row.key.as_deref() == Some(&key))
                .map(|row| row.segment_index)
        })
    });
    find.print("ns/lookup", BUDGET);
    data.print("ns/lookup", BUDGET);

    let mut open = Race::new("building the index, from an open program");
    for (program, keys) in programs.iter().zip(sizes) {
        open.lane(format!("{keys} keys"), keys, move || timed(|| program.named_data()));
    }
    open.print("ns/key", BUDGET);
}
