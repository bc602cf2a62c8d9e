//! Programs: the verifier, and what holding a verified program means.

use edgepack_format::extent::FileExtent;
use edgepack_format::limits::Limits;
use edgepack_format::pte::{ProgramRef, program_len, verify};

use super::small_limits;

/// See [`BODIES`](super::BODIES).
pub fn program(data: &[u8]) {
    let (extent, limits) = (FileExtent::of(data), Limits::hostile());
    let verdict = verify::verify(data, extent, &limits);
    let said: usize = verdict.findings.iter().map(|finding| finding.to_string().len()).sum();
    assert!(said > 0 || verdict.findings.is_empty());
    let parsed = verdict.program.filter(|_| !verdict.findings.has_errors());

    // A loader reads the head only, and must come to the same answer.
    let len = usize::try_from(program_len(data, extent)).expect("at most the file");
    let head = ProgramRef::parse(&data[..len], extent, &limits);
    assert_eq!(head.is_ok(), parsed.is_some(), "the head of {len} bytes and the file differ");

    let Some(program) = parsed else { return };
    for index in 0..program.program().segments.as_ref().map_or(0, |segments| segments.len()) {
        let range = program.segment_range(index as u32).expect("a verified segment");
        assert!(range.end <= extent.len || range.is_empty(), "segment {index} at {range:?} of {}", extent.len);
    }
    for plan in program.plans().iter() {
        let plan = plan.expect("a verified plan");
        let name = plan.name.as_deref().expect("a verified name");
        assert_eq!(program.plan(name).as_ref(), Some(&plan), "{name}");
    }
    assert!(ProgramRef::reopen(&data[..len]).is_ok());
    if ProgramRef::parse(data, extent, &small_limits(data)).is_ok() {
        serde_json::to_string(program.program()).expect("a verified program is readable");
    }
}
