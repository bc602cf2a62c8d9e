//! The builder: what it makes verifies, is the same twice, and comes back from every form it can take.

use edgepack_format::extent::FileExtent;
use edgepack_format::limits::Limits;
use edgepack_format::ptd::DataRef;
use edgepack_format::pte::verify::verify_all;
use edgepack_format::pte::{ExecutionPlan, InstructionArguments, KernelTypes, ProgramRef};

use edgepack_smith::arbitrary::Unstructured;
use edgepack_smith::{Rng, built_program};

const VERIFIED: &str = "a verified program";

/// See [`BODIES`](super::BODIES).
pub fn build(data: &[u8]) {
    let built = built_program(&mut Unstructured::new(data));
    let file = &built.file;
    assert!(*file == built_program(&mut Unstructured::new(data)).file, "built twice, it differs");
    let verdict = verify_all(file, FileExtent::of(file), &Limits::DEFAULT);
    assert!(!verdict.findings.has_errors(), "{}", verdict.findings);
    for data in &built.data_files {
        DataRef::parse(data, FileExtent::of(data), &Limits::DEFAULT).expect("what is built verifies");
    }
    let program = ProgramRef::reopen(file).expect(VERIFIED);
    let row = program.program();
    // Entry 0 of either list is reserved.
    let stored = match &row.constant_segment {
        Some(segment) => segment.offsets.as_ref().map_or(0, |offsets| offsets.len()),
        None => row.constant_buffer.as_ref().map_or(0, |buffers| buffers.len()),
    };
    assert_eq!(stored.saturating_sub(1), built.constants, "equal constants are stored once");
    for plan in program.plans().iter() {
        assert_eq!(clashes(&plan.expect(VERIFIED)), []);
    }
    super::edit::edit(file);
}

/// Inputs of several lengths.
pub fn build_seeds() -> Vec<Vec<u8>> {
    let input = |seed: usize| {
        let mut rng = Rng::new(seed as u64);
        (0..seed * 3).map(|_| rng.word() as u8).collect()
    };
    (0..40).map(input).collect()
}

/// Tensors of one memory that overlap although an instruction uses both of them.
fn clashes(plan: &ExecutionPlan<'_>) -> Vec<(usize, usize)> {
    let values: Vec<_> =
        plan.values.as_ref().expect(VERIFIED).iter().map(|row| row.expect(VERIFIED).val.expect(VERIFIED)).collect();
    let range = |index: i32| match &values[index as usize] {
        KernelTypes::Tensor(tensor) => {
            let at = tensor.allocation_info?;
            let count: i64 = tensor.sizes.as_ref().expect(VERIFIED).iter().map(i64::from).product();
            let bytes = count as u64 * tensor.scalar_type.size().expect(VERIFIED) as u64;
            Some((at.memory_id, at.memory_offset(), at.memory_offset() + bytes))
        }
        _ => None,
    };
    let mut found = Vec::new();
    for chain in plan.chains.as_ref().expect(VERIFIED).iter() {
        for step in chain.expect(VERIFIED).instructions.expect(VERIFIED).iter() {
            let args: Vec<i32> = match step.expect(VERIFIED).instr_args.expect(VERIFIED) {
                InstructionArguments::KernelCall(call) => call.args.expect(VERIFIED).iter().collect(),
                InstructionArguments::DelegateCall(call) => call.args.expect(VERIFIED).iter().collect(),
                _ => continue,
            };
            for (place, &a) in args.iter().enumerate() {
                for &b in args.iter().take(place).filter(|b| **b != a) {
                    if let (Some((memory, from, to)), Some((other, start, end))) = (range(a), range(b))
                        && memory == other
                        && from < end
                        && start < to
                    {
                        found.push((a as usize, b as usize));
                    }
                }
            }
        }
    }
    found
}
