//! The operators of the stock runtime, library by library: each is there and runs.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_format::operators::lookup;
use edgepack_kernels::registry;
use edgepack_tests::catalogue::{by_name, types};
use edgepack_tests::examples::{all, schema_text};

/// Number of operators of each library that programs can call; of `optimized` those no other has. The second of
/// `portable_custom`, `allclose.Tensor`, answers with a new tensor, which no runtime can.
const LIBRARIES: [(&str, usize); 6] =
    [("portable", 209), ("portable_custom", 1), ("optimized", 3), ("quantized", 19), ("prim", 28), ("llm", 11)];

#[test]
fn every_operator_of_the_stock_libraries_is_there() {
    let (registry, examples) = (registry(), all());
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for example in &examples {
        names.entry(&example.library).or_default().insert(&example.name);
    }
    for (library, count) in LIBRARIES {
        let listed = names.get(library).map_or(0, BTreeSet::len);
        assert_eq!(listed, count, "{library} has {count} operators, {listed} are listed");
    }
    let missing: Vec<_> = examples.iter().filter(|example| registry.find(&example.name).is_none()).collect();
    assert!(missing.is_empty(), "not in the library: {missing:?}");
}

#[test]
fn every_operator_has_an_example_that_runs() {
    let (registry, examples) = (registry(), all());
    let named = by_name(&examples);
    let idle = |name: &&str| {
        let operator = registry.find(name).unwrap();
        named.get(name).is_none_or(|examples| types(operator, examples).is_empty())
    };
    let idle: Vec<_> = registry.names().into_iter().filter(idle).collect();
    assert!(idle.is_empty(), "no example of these runs: {idle:?}");
}

#[test]
fn schemas_are_those_exporters_know() {
    let registry = registry();
    for name in registry.names() {
        let have = schema_text(registry.find(name).unwrap());
        assert_eq!(lookup(name), Some(have.as_str()), "{name}");
    }
}
