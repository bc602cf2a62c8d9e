//! Examples as programs that any runtime can run: every tensor is an input, every result an output.

use edgepack_builder::BuildError;
use edgepack_builder::pte::{Arg, Out, ProgramBuilder, TensorArg, TensorSpec, ValueId};
use edgepack_executor::call::OwnedTensor;
use edgepack_executor::tensor::Scalar;
use edgepack_format::operators::{Argument, ArgumentKind, Schema, lookup};
use edgepack_format::scalar::ScalarType;

use super::{Example, Pattern, Token, Values, parse, tensors};

/// A made program or part of one; `None` if an example has no call in its type.
type Made<T> = Result<Option<T>, BuildError>;

/// A program with one method, `forward`, that makes these calls one after the other, each in a type of its own; and
/// inputs for a run.
pub fn program(calls: &[(&Example, ScalarType)]) -> Made<(Vec<u8>, Vec<OwnedTensor>)> {
    let mut builder = ProgramBuilder::new();
    let mut inputs = Vec::new();
    for (example, dtype) in calls {
        if add(&mut builder, &mut inputs, example, *dtype)?.is_none() {
            return Ok(None);
        }
    }
    Ok(Some((builder.finish()?.to_bytes()?, inputs)))
}

fn add(
    builder: &mut ProgramBuilder<'_>,
    inputs: &mut Vec<OwnedTensor>,
    example: &Example,
    dtype: ScalarType,
) -> Made<()> {
    let Some(schema) = lookup(&example.name).and_then(|text| Schema::parse(text).ok()) else { return Ok(None) };
    let mut method = builder.method("forward");
    let mut input = |pattern: &Pattern, seed: usize| -> Made<ValueId> {
        let Some(tensor) = wild(pattern, dtype, seed) else { return Ok(None) };
        let spec = TensorSpec::of(tensor.layout());
        inputs.push(tensor);
        method.input(spec).map(Some)
    };
    let mut args = Vec::new();
    for (index, token) in example.arguments.iter().enumerate() {
        args.push(match token {
            Token::None => Arg::None,
            Token::Int(value) => Arg::Int(*value),
            Token::Double(value) => Arg::Double(*value),
            Token::Bool(value) => Arg::Bool(*value),
            Token::Text(text) => Arg::from(text.as_str()),
            Token::Type => Arg::from(dtype),
            Token::List(items) => list(items, schema.args().get(index).map(|argument| argument.kind)),
            Token::Tensor(pattern) => match input(pattern, index)? {
                Some(id) => Arg::Value(id),
                None => return Ok(None),
            },
            Token::Tensors(patterns) => {
                let mut items = Vec::new();
                for (item, pattern) in patterns.iter().enumerate() {
                    items.push(match pattern {
                        Some(pattern) => input(pattern, index + item)?.map(TensorArg::Value),
                        None => None,
                    });
                }
                match items.iter().copied().collect() {
                    Some(all) => Arg::Tensors(all),
                    None => Arg::OptionalTensors(items),
                }
            }
            Token::Number(_) => return Ok(None),
        });
    }
    let Some(outs) = outs(&example.outs, dtype) else { return Ok(None) };
    let changed: Vec<ValueId> = args.iter().zip(schema.args()).filter_map(changed).collect();
    for result in method.call(&example.name, args, outs)?.into_iter().chain(changed) {
        method.output(result)?;
    }
    Ok(Some(()))
}

/// An argument that the call changes and does not answer with.
fn changed((arg, argument): (&Arg, &Argument<'_>)) -> Option<ValueId> {
    match arg {
        Arg::Value(id) if argument.mutated && !argument.is_out() => Some(*id),
        _ => None,
    }
}

fn outs(tokens: &[Token], dtype: ScalarType) -> Option<Vec<Out>> {
    let mut outs = Vec::new();
    for token in tokens {
        match token {
            Token::Tensor(pattern) => outs.push(out(pattern, dtype)?),
            Token::Tensors(patterns) => {
                for pattern in patterns.iter().flatten() {
                    outs.push(out(pattern, dtype)?);
                }
            }
            Token::Number(Scalar::Int(_)) => outs.push(Out::Int),
            Token::Number(Scalar::Double(_)) => outs.push(Out::Double),
            Token::Number(Scalar::Bool(_)) => outs.push(Out::Bool),
            _ => return None,
        }
    }
    Some(outs)
}

fn out(pattern: &Pattern, dtype: ScalarType) -> Option<Out> {
    Some(Out::Tensor(TensorSpec::new(pattern.open.resolve(dtype)?, pattern.sizes.clone())))
}

fn list(items: &[String], kind: Option<ArgumentKind<'_>>) -> Arg {
    match kind {
        Some(ArgumentKind::Float) => Arg::Doubles(items.iter().map(|item| parse::number(item)).collect()),
        Some(ArgumentKind::Bool) => Arg::Bools(items.iter().map(|item| item == "true").collect()),
        _ => Arg::from(items.iter().map(|item| parse::number(item) as i64).collect::<Vec<i64>>()),
    }
}

/// A tensor with less friendly numbers than the example's, where it leaves them open: negative ones, fractions,
/// infinities and NaN.
fn wild(pattern: &Pattern, dtype: ScalarType, seed: usize) -> Option<OwnedTensor> {
    let resolved = pattern.open.resolve(dtype)?;
    let count: usize = pattern.sizes.iter().product();
    let least = match pattern.values {
        Values::These(_) => return pattern.tensor(dtype, seed),
        Values::Small => 0,
        Values::NotZero => 1,
    };
    let signed = !matches!(
        resolved,
        ScalarType::BYTE | ScalarType::UINT16 | ScalarType::UINT32 | ScalarType::UINT64 | ScalarType::BOOL
    );
    let mut values = tensors::small(count, seed, least);
    for (at, value) in values.iter_mut().enumerate() {
        let fraction = if resolved.is_floating() { 0.25 * (at % 4) as f64 } else { 0.0 };
        *value = if signed && (at + seed) % 3 == 1 { -*value - fraction } else { *value + fraction };
    }
    if resolved.is_floating() && count > 4 && least == 0 {
        let last = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0];
        values[count - 1] = last[seed % 4];
    }
    Some(tensors::tensor(resolved, &pattern.sizes, &values))
}
