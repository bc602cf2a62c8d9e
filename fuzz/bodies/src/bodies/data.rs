//! Data files, bundles and traces: what holding a verified one means.

use std::sync::Arc;

use edgepack_format::bundle::{self, BundleRef};
use edgepack_format::extent::FileExtent;
use edgepack_format::limits::Limits;
use edgepack_format::ptd::{Accept, DataRef, FLAT_DATA_IDENTIFIER, data_len};
use edgepack_format::trace::{self, TraceRef};
use edgepack_loader::{DataFile, MemorySource, NamedDataMap as _};

use super::small_limits;

/// See [`BODIES`](super::BODIES).
pub fn data(data: &[u8]) {
    for accept in [Accept::default(), Accept::ALL] {
        data_file(data, accept);
    }
}

/// See [`BODIES`](super::BODIES).
pub fn flat_data(data: &[u8]) {
    let mut bytes = data.to_vec();
    if let Some(identifier) = bytes.get_mut(4..8) {
        identifier.copy_from_slice(&FLAT_DATA_IDENTIFIER);
    }
    data_file(&bytes, Accept { legacy: false, bare_flat_data: true });
}

fn data_file(data: &[u8], accept: Accept) {
    let (extent, limits) = (FileExtent::of(data), Limits::hostile());
    let parsed = DataRef::parse_as(data, extent, &limits, accept);
    let len = usize::try_from(data_len(data, extent)).expect("at most the file");
    let head = DataRef::parse_as(&data[..len], extent, &limits, accept);
    assert_eq!(head.is_ok(), parsed.is_ok(), "the head of {len} bytes and the file differ");
    let opened = DataFile::from_source(Arc::new(MemorySource::new(data)), limits, accept);
    assert_eq!(opened.is_ok(), parsed.is_ok(), "the loader and the verifier differ");
    let (parsed, opened) = match (parsed, opened) {
        (Ok(parsed), Ok(opened)) => (parsed, opened),
        (Err(findings), _) => {
            assert!(findings.has_errors() && !findings.to_string().is_empty());
            return;
        }
        _ => return,
    };
    assert_eq!(parsed.len(), opened.len());
    for (index, key) in parsed.keys().iter().enumerate() {
        let entry = parsed.entry(index).expect("a verified entry");
        assert!(entry.range.start <= entry.range.end && entry.range.end <= extent.len, "{entry:?}");
        let found = parsed.lookup(key).expect("the key is there");
        assert_eq!(found.key, *key);
        let bytes = opened.data(key).expect("inside the file").expect("the key is there");
        assert_eq!(bytes.len() as u64, found.range.end - found.range.start, "{found:?}");
        if let Some(layout) = &found.layout {
            assert!(layout.byte_len() <= bytes.len(), "{found:?}");
        }
    }
    let absent = "\u{0}no such key";
    assert_eq!(parsed.lookup(absent).is_some(), parsed.keys().contains(&absent));
}

/// See [`BODIES`](super::BODIES).
pub fn bundle(data: &[u8]) {
    let verdict = bundle::verify::verify(data, &Limits::hostile());
    let said: usize = verdict.findings.iter().map(|finding| finding.to_string().len()).sum();
    assert!(said > 0 || verdict.findings.is_empty());
    let Ok(bundle) = BundleRef::parse(data, &Limits::hostile()) else { return };
    let program = bundle.program().expect("a verified program");
    assert!(bundle.program_range().end <= data.len() as u64);
    for suite in bundle.suites().iter() {
        let suite = suite.expect("a verified suite");
        let name = suite.method_name.as_deref().expect("a verified name");
        assert!(program.plan(name).is_some(), "no method {name}");
        let cases = bundle.cases(name).expect("the suite is there");
        assert!(cases.iter().all(|case| case.is_ok()));
    }
    if BundleRef::parse(data, &small_limits(data)).is_ok() {
        serde_json::to_string(bundle.root()).expect("a verified bundle is readable");
    }
}

/// See [`BODIES`](super::BODIES).
pub fn trace(data: &[u8]) {
    let verdict = trace::verify::verify(data, &Limits::hostile());
    let said: usize = verdict.findings.iter().map(|finding| finding.to_string().len()).sum();
    assert!(said > 0 || verdict.findings.is_empty());
    let Ok(trace) = TraceRef::parse(data, &Limits::hostile()) else { return };
    assert!(trace.bytes().len() <= data.len());
    assert!(trace.blocks().iter().all(|block| block.is_ok()));
    if TraceRef::parse(data, &small_limits(data)).is_ok() {
        serde_json::to_string(trace.root()).expect("a verified trace is readable");
    }
}
