//! Numbers where a tensor is asked for become tensors: literals as constants, computed ones by a call.

use std::collections::BTreeMap;

use edgepack_format::operators::ArgumentKind;
use edgepack_format::scalar::ScalarType;
use half::{bf16, f16};

use super::{Options, casts};
use crate::archive::{Storage, Weight};
use crate::error::Error;
use crate::graph::{Argument, ExportedProgram, Graph, InputKind, InputSpec, Meta, Node, OpName, TensorMeta, ValueId};
use crate::operators::Operators;

/// Lifts the scalars of a program. Literals of sub-graphs stay where they are: only a program has constants.
pub(super) fn lift(program: &mut ExportedProgram<'_>, options: &Options) -> Result<(), Error> {
    let mut lifted: Vec<(ValueId, String, Weight<'static>)> = Vec::new();
    let mut known: BTreeMap<(ScalarType, Vec<u8>), ValueId> = BTreeMap::new();
    let mut number = program.inputs.iter().filter(|spec| matches!(spec.kind, InputKind::Buffer { .. })).count();
    let taken: Vec<String> = program.weights.iter().map(|(name, _)| name.to_owned()).collect();
    rewrite(&mut program.graph, options, &mut |graph, literal, common| {
        let scalar_type = common.filter(|_| !options.like_reference).unwrap_or_else(|| natural_type(literal));
        let Some(bytes) = encode(literal, scalar_type) else { return Ok(None) };
        if let Some(known) = known.get(&(scalar_type, bytes.clone())).filter(|_| !options.like_reference) {
            return Ok(Some(*known));
        }
        while taken.contains(&constant_name(number)) {
            number = number.saturating_add(1);
        }
        let name = constant_name(number);
        number = number.saturating_add(1);
        let value = graph.add_value(&format!("b_{name}"), TensorMeta::contiguous(scalar_type, &[]));
        known.insert((scalar_type, bytes.clone()), value);
        let storage = Storage::owned(&name, bytes);
        lifted.push((value, name, Weight::contiguous(storage, scalar_type, &[])?));
        Ok(Some(value))
    })?;
    let mut at = program.inputs.iter().position(|spec| spec.kind.tensor().is_none()).unwrap_or(program.inputs.len());
    for (value, name, weight) in lifted {
        let spec =
            InputSpec { kind: InputKind::Buffer { name: name.clone(), persistent: true }, arg: Argument::Value(value) };
        program.inputs.insert(at, spec);
        program.graph.inputs.insert(at.min(program.graph.inputs.len()), Argument::Value(value));
        program.weights.state.insert(name, weight);
        at = at.saturating_add(1);
    }
    program.graph.each_subgraph(|graph| lift_computed(graph, options))
}

fn constant_name(number: usize) -> String {
    format!("_lifted_tensor_constant{number}")
}

fn lift_computed(graph: &mut Graph, options: &Options) -> Result<(), Error> {
    rewrite(graph, options, &mut |_, _, _| Ok(None))?;
    graph.each_subgraph(|inner| lift_computed(inner, options))
}

/// Visits every number in the place of a tensor: literals by the function given, computed ones become calls.
fn rewrite(
    graph: &mut Graph,
    options: &Options,
    literal: &mut impl FnMut(&mut Graph, &Argument, Option<ScalarType>) -> Result<Option<ValueId>, Error>,
) -> Result<(), Error> {
    graph.rewrite(|graph, mut node, rewritten| {
        let Some(op) = node.target.operator().cloned() else {
            rewritten.push(node);
            return Ok(());
        };
        let common = casts::common_type(graph, &node);
        for index in 0..node.inputs.len() {
            let Some(input) = node.inputs.get(index) else { continue };
            if !is_tensor_place(&options.operators, &op, &input.name) {
                continue;
            }
            let replacement = match &input.arg {
                Argument::Int(_) | Argument::Float(_) | Argument::Bool(_) => {
                    literal(graph, &input.arg.clone(), common)?
                }
                Argument::Value(value) => match graph.value(*value).map(|value| &value.meta) {
                    Some(Meta::Int(_)) => Some((*value, ScalarType::INT)),
                    Some(Meta::Float(_)) => Some((*value, ScalarType::FLOAT)),
                    Some(Meta::Bool(_)) => Some((*value, ScalarType::BOOL)),
                    _ => None,
                }
                .and_then(|(value, natural)| {
                    let wanted = common.filter(|_| !options.like_reference).unwrap_or(natural);
                    computed(graph, value, wanted, rewritten)
                }),
                _ => None,
            };
            if let (Some(replacement), Some(input)) = (replacement, node.inputs.get_mut(index)) {
                input.arg = Argument::Value(replacement);
            }
        }
        rewritten.push(node);
        Ok(())
    })
}

fn computed(graph: &mut Graph, value: ValueId, wanted: ScalarType, rewritten: &mut Vec<Node>) -> Option<ValueId> {
    let args = [("s", Argument::Value(value)), ("dtype", Argument::ScalarType(wanted))];
    let node = graph.make("aten::scalar_tensor", args, TensorMeta::contiguous(wanted, &[]));
    let result = node.result();
    rewritten.push(node);
    result
}

fn is_tensor_place(operators: &Operators, op: &OpName, name: &str) -> bool {
    operators.schema(op).is_some_and(|schema| {
        let mut args = schema.args().iter();
        args.any(|arg| arg.name == name && arg.kind == ArgumentKind::Tensor && arg.list.is_none())
    })
}

/// The element type that a literal has by itself.
pub(super) fn natural_type(literal: &Argument) -> ScalarType {
    match literal {
        Argument::Float(_) => ScalarType::FLOAT,
        Argument::Bool(_) => ScalarType::BOOL,
        _ => ScalarType::LONG,
    }
}

/// A literal as an element of this type.
pub(super) fn encode(literal: &Argument, scalar_type: ScalarType) -> Option<Vec<u8>> {
    let (integer, real) = match literal {
        Argument::Int(number) => (*number, *number as f64),
        Argument::Float(number) => (*number as i64, *number),
        Argument::Bool(truth) => (i64::from(*truth), f64::from(u8::from(*truth))),
        _ => return None,
    };
    Some(match scalar_type {
        ScalarType::BOOL => vec![u8::from(real != 0.0)],
        ScalarType::BYTE | ScalarType::CHAR => vec![integer as u8],
        ScalarType::SHORT | ScalarType::UINT16 => (integer as u16).to_le_bytes().to_vec(),
        ScalarType::INT | ScalarType::UINT32 => (integer as u32).to_le_bytes().to_vec(),
        ScalarType::LONG | ScalarType::UINT64 => integer.to_le_bytes().to_vec(),
        ScalarType::FLOAT => (real as f32).to_le_bytes().to_vec(),
        ScalarType::DOUBLE => real.to_le_bytes().to_vec(),
        ScalarType::HALF => f16::from_f32(real as f32).to_le_bytes().to_vec(),
        ScalarType::BFLOAT16 => bf16::from_f32(real as f32).to_le_bytes().to_vec(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_encoded() {
        assert_eq!(encode(&Argument::Int(-1), ScalarType::LONG), Some(vec![255; 8]));
        assert_eq!(encode(&Argument::Int(2), ScalarType::FLOAT), Some(2f32.to_le_bytes().to_vec()));
        assert_eq!(encode(&Argument::Float(0.5), ScalarType::BOOL), Some(vec![1]));
        assert_eq!(encode(&Argument::None, ScalarType::LONG), None);
    }

    #[test]
    fn small_floats_round_to_even() {
        let encoded = |real: f32, scalar_type| {
            let bytes = encode(&Argument::Float(real.into()), scalar_type).unwrap();
            u16::from_le_bytes(bytes.try_into().unwrap())
        };
        for (real, bits) in [
            (1.0, 0x3c00),
            (-2.5, 0xc100),
            (65504.0, 0x7bff),
            (65520.0, 0x7c00),
            (0.0, 0),
            (5.960_464_5e-8, 1),
            (1.000_488_3, 0x3c00),
            (1.001_464_8, 0x3c02),
            (f32::INFINITY, 0x7c00),
        ] {
            assert_eq!(encoded(real, ScalarType::HALF), bits, "{real}");
        }
        for (real, bits) in [(1.0f32, 0x3f80), (-1.0, 0xbf80), (3.140_625, 0x4049), (f32::INFINITY, 0x7f80)] {
            assert_eq!(encoded(real, ScalarType::BFLOAT16), bits, "{real}");
        }
        assert_eq!(encoded(f32::NAN, ScalarType::HALF) & 0x7fff, 0x7e00);
    }
}
