//! Programs made by the checked floor of the builder: every kind of call it has, on arguments it takes, with several
//! methods, state, loops, delegates, named data and data files.
//!
//! Every result verifies, or the builder is wrong. The results of its operators are checked elsewhere, by
//! [`Generator`](super::Generator).

use std::collections::BTreeSet;

use edgepack_builder::plan::Strategy;
use edgepack_builder::pte::{Out, ProgramBuilder, TensorSpec, ValueId};
use edgepack_builder::{args, tensors};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;

use arbitrary::{Arbitrary, Unstructured};

use crate::decisions::Decisions;

/// A program that the builder made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuiltProgram {
    /// Bytes of the file.
    pub file: Vec<u8>,
    /// The data files it came with.
    pub data_files: Vec<Vec<u8>>,
    /// Number of different contents of constants.
    pub constants: usize,
}

impl<'a> Arbitrary<'a> for BuiltProgram {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(built_program(u))
    }
}

const VALID: &str = "what is asked of the builder here is allowed";

const SIZES: [usize; 4] = [0, 1, 7, 33];

/// A program as the builder makes it.
pub fn built_program(u: &mut Unstructured<'_>) -> BuiltProgram {
    let mut program = ProgramBuilder::new();
    program.segment_alignment(u.pick(&[128, 1, 12, 4096])).expect(VALID);
    program.tensor_alignment(u.pick(&[16, 64, 1024])).expect(VALID);
    program.delegate_alignment(u.pick(&[16, 1, 256])).expect(VALID);
    program.memory_alignment(u.pick(&[16, 64])).expect(VALID);
    program.strategy(u.pick(&[Strategy::Smallest, Strategy::Greedy, Strategy::BestFit]));
    program.inline_delegates(u.below(4) == 1).inline_constants(u.below(8) == 1);
    let mut contents = BTreeSet::new();
    let mut constants = Vec::new();
    for index in 0..u.below(6) {
        let count = u.pick(&SIZES);
        let bytes = vec![u.below(3) as u8; count * 4];
        contents.insert(bytes.clone());
        let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[count]).expect(VALID);
        constants.push(program.constant_from(&format!("c{index}"), layout, bytes).expect(VALID));
    }
    for index in 0..u.below(4) {
        let (len, align) = (u.pick(&SIZES), u.pick(&[1, 3, 64, 256]));
        let tag = u.pick(&[None, Some("a"), Some("b")]);
        program.named_data(&format!("k{index}"), vec![u.below(2) as u8; len], align, tag).expect(VALID);
    }
    for name in ["forward", "other"].iter().take(1 + u.below(2)) {
        let mut method = program.method(name);
        method.plan_inputs(u.below(3) != 1).plan_outputs(u.below(3) != 1);
        let spec = |u: &mut Unstructured<'_>| TensorSpec::new(ScalarType::FLOAT, [u.pick(&SIZES)]);
        let mut tensors: Vec<ValueId> = Vec::new();
        for _ in 0..1 + u.below(3) {
            let dynamic = u.below(2) == 1;
            let spec = spec(u);
            tensors.push(method.input(if dynamic { spec.dynamic() } else { spec }).expect(VALID));
        }
        for index in 0..u.below(3) {
            let spec = spec(u);
            tensors.push(method.state(&format!("s{index}"), spec).expect(VALID));
        }
        let flag = method.value(true).expect(VALID);
        let mut labels = Vec::new();
        for _ in 0..40 {
            if u.is_empty() {
                break;
            }
            let x = u.pick(&tensors);
            match u.below(11) {
                0 | 1 => tensors.push(method.call("aten::relu.out", args![x], TensorSpec::like(x)).expect(VALID)),
                2 => {
                    let place = TensorSpec::like(x).in_memory(1 + u.below(3) as u32);
                    tensors.push(method.call("aten::add.out", args![x, u.pick(&tensors)], place).expect(VALID));
                }
                3 => method.call("aten::copy_", args![x, u.pick(&tensors)], ()).expect(VALID),
                4 => {
                    let long = TensorSpec::like(x).scalar_type(ScalarType::LONG);
                    let outs = [TensorSpec::like(x), long];
                    tensors.push(method.call("aten::max.dim_max", args![x, 0i64], outs).expect(VALID)[0]);
                }
                5 => drop(method.call("aten::sym_size.int", args![x, 0i64], Out::Int).expect(VALID)),
                6 => {
                    let label = method.label();
                    method.bind(label).expect(VALID);
                    // A jump to the label must not be the next instruction.
                    method.call("aten::copy_", args![x, x], ()).expect(VALID);
                    labels.push(label);
                }
                7 if !labels.is_empty() => method.jump_if_false(flag, u.pick(&labels)).expect(VALID),
                8 => {
                    let label = method.label();
                    method.jump_if_false(flag, label).expect(VALID);
                    method.assign(x, u.pick(&tensors)).expect(VALID);
                    method.bind(label).expect(VALID);
                }
                9 => {
                    let delegate = method.delegate("B", vec![u.below(2) as u8; u.pick(&SIZES)], &[]).expect(VALID);
                    tensors.push(method.call_delegate(delegate, args![x], TensorSpec::like(x)).expect(VALID));
                }
                _ if !constants.is_empty() => {
                    let list = tensors![x, u.pick(&constants)];
                    tensors.push(method.call("aten::cat.out", args![list], TensorSpec::like(x)).expect(VALID));
                }
                _ => {}
            }
        }
        for _ in 0..u.below(4) {
            method.output(u.pick(&tensors)).expect(VALID);
        }
    }
    let built = program.finish().expect("a valid program");
    let data_files = built.data_files().map(|(_, file)| file.to_bytes().expect(VALID)).collect();
    BuiltProgram { file: built.to_bytes().expect(VALID), data_files, constants: contents.len() }
}
