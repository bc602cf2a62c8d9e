//! Whatever is built verifies, twice the same, and equal contents are stored once.

use std::collections::BTreeSet;

use edgepack_builder::plan::Strategy;
use edgepack_builder::ptd::{DataFormat, data_file};
use edgepack_builder::pte::{Out, ProgramBuilder, TensorSpec, ValueId};
use edgepack_builder::{NamedDataStore, args, tensors};
use edgepack_format::limits::Limits;
use edgepack_format::ptd::DataRef;
use edgepack_format::pte::verify::verify_all;
use edgepack_format::pte::{ExecutionPlan, FileExtent, KernelTypes, ProgramRef};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;
use proptest::collection::vec;
use proptest::sample::select;
use proptest::test_runner::Config;
use proptest::{prop_assert, prop_assert_eq, proptest};

/// A byte string as a sequence of decisions; zeros when it is used up.
struct Tape<'t>(std::slice::Iter<'t, u8>);

impl Tape<'_> {
    fn take(&mut self, below: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % below.max(1)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.take(from.len())]
    }

    fn is_done(&self) -> bool {
        self.0.len() == 0
    }
}

const SIZES: [usize; 4] = [0, 1, 7, 33];

/// A program that the bytes decide.
fn build(tape: &mut Tape<'_>) -> (Vec<u8>, usize) {
    let mut program = ProgramBuilder::new();
    program.segment_alignment(tape.pick(&[128, 1, 12, 4096])).unwrap();
    program.tensor_alignment(tape.pick(&[16, 64, 1024])).unwrap();
    program.delegate_alignment(tape.pick(&[16, 1, 256])).unwrap();
    program.memory_alignment(tape.pick(&[16, 64])).unwrap();
    program.strategy(tape.pick(&[Strategy::Smallest, Strategy::Greedy, Strategy::BestFit]));
    program.inline_delegates(tape.take(4) == 1).inline_constants(tape.take(8) == 1);
    let mut contents = BTreeSet::new();
    let mut constants = Vec::new();
    for index in 0..tape.take(6) {
        let count = tape.pick(&SIZES);
        let bytes = vec![tape.take(3) as u8; count * 4];
        contents.insert(bytes.clone());
        let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[count]).unwrap();
        constants.push(program.constant_from(&format!("c{index}"), layout, bytes).unwrap());
    }
    for index in 0..tape.take(4) {
        let (len, align) = (tape.pick(&SIZES), tape.pick(&[1, 3, 64, 256]));
        let tag = tape.pick(&[None, Some("a"), Some("b")]);
        program.named_data(&format!("k{index}"), vec![tape.take(2) as u8; len], align, tag).unwrap();
    }
    for name in ["forward", "other"].iter().take(1 + tape.take(2)) {
        let mut method = program.method(name);
        method.plan_inputs(tape.take(3) != 1).plan_outputs(tape.take(3) != 1);
        let spec = |tape: &mut Tape<'_>| TensorSpec::new(ScalarType::FLOAT, [tape.pick(&SIZES)]);
        let mut tensors: Vec<ValueId> = Vec::new();
        for _ in 0..1 + tape.take(3) {
            let dynamic = tape.take(2) == 1;
            let spec = spec(tape);
            tensors.push(method.input(if dynamic { spec.dynamic() } else { spec }).unwrap());
        }
        for index in 0..tape.take(3) {
            let spec = spec(tape);
            tensors.push(method.state(&format!("s{index}"), spec).unwrap());
        }
        let flag = method.value(true).unwrap();
        let mut labels = Vec::new();
        for _ in 0..40 {
            if tape.is_done() {
                break;
            }
            let x = tape.pick(&tensors);
            match tape.take(11) {
                0 | 1 => tensors.push(method.call("aten::relu.out", args![x], TensorSpec::like(x)).unwrap()),
                2 => {
                    let place = TensorSpec::like(x).in_memory(1 + tape.take(3) as u32);
                    tensors.push(method.call("aten::add.out", args![x, tape.pick(&tensors)], place).unwrap());
                }
                3 => method.call("aten::copy_", args![x, tape.pick(&tensors)], ()).unwrap(),
                4 => {
                    let long = TensorSpec::like(x).scalar_type(ScalarType::LONG);
                    let outs = [TensorSpec::like(x), long];
                    tensors.push(method.call("aten::max.dim_max", args![x, 0i64], outs).unwrap()[0]);
                }
                5 => drop(method.call("aten::sym_size.int", args![x, 0i64], Out::Int).unwrap()),
                6 => {
                    let label = method.label();
                    method.bind(label).unwrap();
                    // A jump to the label must not be the next instruction.
                    method.call("aten::copy_", args![x, x], ()).unwrap();
                    labels.push(label);
                }
                7 if !labels.is_empty() => method.jump_if_false(flag, tape.pick(&labels)).unwrap(),
                8 => {
                    let label = method.label();
                    method.jump_if_false(flag, label).unwrap();
                    method.assign(x, tape.pick(&tensors)).unwrap();
                    method.bind(label).unwrap();
                }
                9 => {
                    let delegate = method.delegate("B", vec![tape.take(2) as u8; tape.pick(&SIZES)], &[]).unwrap();
                    tensors.push(method.call_delegate(delegate, args![x], TensorSpec::like(x)).unwrap());
                }
                _ if !constants.is_empty() => {
                    let list = tensors![x, tape.pick(&constants)];
                    tensors.push(method.call("aten::cat.out", args![list], TensorSpec::like(x)).unwrap());
                }
                _ => {}
            }
        }
        for _ in 0..tape.take(4) {
            method.output(tape.pick(&tensors)).unwrap();
        }
    }
    let built = program.finish().unwrap_or_else(|error| panic!("{error}"));
    for (_, file) in built.data_files() {
        let bytes = file.to_bytes().unwrap();
        assert!(DataRef::parse(&bytes, FileExtent::of(&bytes), &Limits::DEFAULT).is_ok());
    }
    (built.to_bytes().unwrap(), contents.len())
}

/// Tensors of one memory that overlap although an instruction uses both of them.
fn clashes(plan: &ExecutionPlan<'_>) -> Vec<(usize, usize)> {
    let values: Vec<_> = plan.values.as_ref().unwrap().iter().map(|row| row.unwrap().val.unwrap()).collect();
    let range = |index: i32| match &values[index as usize] {
        KernelTypes::Tensor(tensor) => {
            let at = tensor.allocation_info?;
            let count: i64 = tensor.sizes.as_ref().unwrap().iter().map(i64::from).product();
            let bytes = count as u64 * tensor.scalar_type.size().unwrap() as u64;
            Some((at.memory_id, at.memory_offset(), at.memory_offset() + bytes))
        }
        _ => None,
    };
    let mut found = Vec::new();
    for chain in plan.chains.as_ref().unwrap().iter() {
        for step in chain.unwrap().instructions.unwrap().iter() {
            let args: Vec<i32> = match step.unwrap().instr_args.unwrap() {
                edgepack_format::pte::InstructionArguments::KernelCall(call) => call.args.unwrap().iter().collect(),
                edgepack_format::pte::InstructionArguments::DelegateCall(call) => call.args.unwrap().iter().collect(),
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

fn config() -> Config {
    Config { failure_persistence: None, cases: 400, ..Config::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_built_verifies_and_is_the_same_twice(bytes in vec(0u8..=255, 0..160)) {
        let (file, distinct) = build(&mut Tape(bytes.iter()));
        prop_assert_eq!(&file, &build(&mut Tape(bytes.iter())).0);
        let verdict = verify_all(&file, FileExtent::of(&file), &Limits::DEFAULT);
        prop_assert!(!verdict.findings.has_errors(), "{}", verdict.findings);
        let program = ProgramRef::reopen(&file).unwrap();
        let row = program.program();
        let stored = match &row.constant_segment {
            Some(segment) => segment.offsets.as_ref().unwrap().len() - 1,
            None => row.constant_buffer.as_ref().unwrap().len() - 1,
        };
        prop_assert_eq!(stored, distinct);
        for plan in program.plans().iter() {
            prop_assert_eq!(clashes(&plan.unwrap()), []);
        }
    }

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
