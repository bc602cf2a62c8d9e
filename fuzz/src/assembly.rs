//! Programs from any bytes, made by the upper floor of the builder: every kind of call it has, on arguments it takes.
//!
//! What comes out has to verify. What operators say of it is another question, which [`smith`](crate::smith) asks.

use std::collections::BTreeSet;

use edgepack_builder::plan::Strategy;
use edgepack_builder::pte::{Out, ProgramBuilder, TensorSpec, ValueId};
use edgepack_builder::{args, tensors};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;

use crate::tape::Tape;

/// A built program.
pub struct Built {
    /// Its file.
    pub file: Vec<u8>,
    /// The data files it came with.
    pub data_files: Vec<Vec<u8>>,
    /// How many different contents its constants have.
    pub constants: usize,
}

const VALID: &str = "what is asked of the builder here is allowed";

const SIZES: [usize; 4] = [0, 1, 7, 33];

/// The program that the bytes decide.
pub fn program(bytes: &[u8]) -> Built {
    let tape = &mut Tape::new(bytes);
    let mut program = ProgramBuilder::new();
    program.segment_alignment(tape.pick(&[128, 1, 12, 4096])).expect(VALID);
    program.tensor_alignment(tape.pick(&[16, 64, 1024])).expect(VALID);
    program.delegate_alignment(tape.pick(&[16, 1, 256])).expect(VALID);
    program.memory_alignment(tape.pick(&[16, 64])).expect(VALID);
    program.strategy(tape.pick(&[Strategy::Smallest, Strategy::Greedy, Strategy::BestFit]));
    program.inline_delegates(tape.below(4) == 1).inline_constants(tape.below(8) == 1);
    let mut contents = BTreeSet::new();
    let mut constants = Vec::new();
    for index in 0..tape.below(6) {
        let count = tape.pick(&SIZES);
        let bytes = vec![tape.below(3) as u8; count * 4];
        contents.insert(bytes.clone());
        let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[count]).expect(VALID);
        constants.push(program.constant_from(&format!("c{index}"), layout, bytes).expect(VALID));
    }
    for index in 0..tape.below(4) {
        let (len, align) = (tape.pick(&SIZES), tape.pick(&[1, 3, 64, 256]));
        let tag = tape.pick(&[None, Some("a"), Some("b")]);
        program.named_data(&format!("k{index}"), vec![tape.below(2) as u8; len], align, tag).expect(VALID);
    }
    for name in ["forward", "other"].iter().take(1 + tape.below(2)) {
        let mut method = program.method(name);
        method.plan_inputs(tape.below(3) != 1).plan_outputs(tape.below(3) != 1);
        let spec = |tape: &mut Tape<'_>| TensorSpec::new(ScalarType::FLOAT, [tape.pick(&SIZES)]);
        let mut tensors: Vec<ValueId> = Vec::new();
        for _ in 0..1 + tape.below(3) {
            let dynamic = tape.below(2) == 1;
            let spec = spec(tape);
            tensors.push(method.input(if dynamic { spec.dynamic() } else { spec }).expect(VALID));
        }
        for index in 0..tape.below(3) {
            let spec = spec(tape);
            tensors.push(method.state(&format!("s{index}"), spec).expect(VALID));
        }
        let flag = method.value(true).expect(VALID);
        let mut labels = Vec::new();
        for _ in 0..40 {
            if tape.is_over() {
                break;
            }
            let x = tape.pick(&tensors);
            match tape.below(11) {
                0 | 1 => tensors.push(method.call("aten::relu.out", args![x], TensorSpec::like(x)).expect(VALID)),
                2 => {
                    let place = TensorSpec::like(x).in_memory(1 + tape.below(3) as u32);
                    tensors.push(method.call("aten::add.out", args![x, tape.pick(&tensors)], place).expect(VALID));
                }
                3 => method.call("aten::copy_", args![x, tape.pick(&tensors)], ()).expect(VALID),
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
                7 if !labels.is_empty() => method.jump_if_false(flag, tape.pick(&labels)).expect(VALID),
                8 => {
                    let label = method.label();
                    method.jump_if_false(flag, label).expect(VALID);
                    method.assign(x, tape.pick(&tensors)).expect(VALID);
                    method.bind(label).expect(VALID);
                }
                9 => {
                    let delegate =
                        method.delegate("B", vec![tape.below(2) as u8; tape.pick(&SIZES)], &[]).expect(VALID);
                    tensors.push(method.call_delegate(delegate, args![x], TensorSpec::like(x)).expect(VALID));
                }
                _ if !constants.is_empty() => {
                    let list = tensors![x, tape.pick(&constants)];
                    tensors.push(method.call("aten::cat.out", args![list], TensorSpec::like(x)).expect(VALID));
                }
                _ => {}
            }
        }
        for _ in 0..tape.below(4) {
            method.output(tape.pick(&tensors)).expect(VALID);
        }
    }
    let built = program.finish().expect("a valid program");
    let data_files = built.data_files().map(|(_, file)| file.to_bytes().expect(VALID)).collect();
    Built { file: built.to_bytes().expect(VALID), data_files, constants: contents.len() }
}
