//! Values and nodes as text.

use edgepack_format::limits::Limits;
use edgepack_format::row::Union as _;
use edgepack_format::wire;
use edgepack_format::xnnpack::{Fields, Node, NodeUnion, Payload};

use crate::corpus;

#[test]
fn every_kind_of_node_says_its_name() {
    let mut count = 0;
    for tag in 1..=u8::MAX {
        let kind = NodeUnion::decode(tag, wire::Table::empty()).unwrap();
        let node = Node { xnode_union: Some(kind.clone()), debug_handle: 0, output_min_max: None };
        match kind.name() {
            None => {
                assert_eq!((kind.tag(), kind.fields()), (tag, Fields::Unknown(tag)));
                assert_eq!(node.to_string(), format!("node({tag})()"));
            }
            Some(name) => {
                assert!(node.to_string().starts_with("%0"), "{node}");
                assert!(node.to_string().contains(&format!(" = {name}(")), "{node}");
                assert!(kind.inputs().count() > 0 && kind.outputs().count() > 0);
                count += 1;
            }
        }
    }
    assert_eq!(count, 47);
    assert_eq!(Node::default().to_string(), "nothing");
}

/// All lines of a program of the repository.
fn lines(program: &str) -> String {
    let found = corpus::payloads().into_iter().find(|found| found.folder == "repository" && found.name == program);
    let found = found.unwrap_or_else(|| panic!("no {program}"));
    let payload = Payload::parse(&found.bytes, &Limits::DEFAULT).unwrap();
    let values = payload.values().iter().map(|value| payload.line(value).to_string());
    let nodes = payload.nodes().iter().map(ToString::to_string);
    values.chain(nodes).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn payloads_as_text() {
    for program in ["mlp_xnnpack_int8", "cache_xnnpack_dynamic"] {
        let path = format!("{}/tests/xnnpack/{program}.txt", env!("CARGO_MANIFEST_DIR"));
        let lines = lines(&format!("{program}:forward.0"));
        if std::env::var_os("EDGEPACK_BLESS").is_some() {
            std::fs::write(&path, &lines).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), lines, ".ci/generate writes {path}");
    }
}
