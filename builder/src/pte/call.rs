//! Calls of operators: arguments checked against the schema, defaults filled in, results made, the convention's repetition
//! appended.

use edgepack_format::notation::ValueName;
use edgepack_format::operators::{Argument, ArgumentKind, List, Literal, MAX_NAME, Schema, Trailing, lookup};
use edgepack_format::pte::KernelTypes;
use edgepack_format::tensor::TensorLayout;

use super::args::{Arg, IntArg, TensorArg, ValueId, kind_name};
use super::method::{MethodBuilder, constant_written};
use super::parts::Step;
use super::spec::{Out, Outs};
use super::values::Value;
use crate::build_error::BuildError;

/// Receiver of a result.
pub(crate) enum Ready {
    /// A value to add.
    New(Value),
    /// A value there is.
    There(usize),
}

impl MethodBuilder<'_, '_> {
    /// Calls an operator, by full name (`aten::add.out`) or by schema.
    ///
    /// `args` are the arguments in the schema's order, without those that only receive results; trailing ones may be left
    /// out where the schema has defaults. `outs` are the results: a [`TensorSpec`](super::TensorSpec) for each to make, a
    /// [`ValueId`] for each that is there already, `()` for an operator that changes its arguments in place. A number that
    /// is a result is an [`Out::Int`], [`Out::Bool`] or [`Out::Double`].
    pub fn call<O: Outs>(
        &mut self,
        operator: &str,
        args: impl IntoIterator<Item = Arg>,
        outs: O,
    ) -> Result<O::Ids, BuildError> {
        let text = self.schema(operator)?;
        let schema = Schema::parse(&text).map_err(|source| BuildError::Schema { text: text.clone(), source })?;
        if schema.full_name().len() > MAX_NAME {
            let name = schema.full_name().to_owned();
            return Err(BuildError::Name { what: "an operator", name, why: "runtimes look up at most 99 bytes" });
        }
        let outs = outs.outs();
        check_outs(&schema, &outs)?;
        let bound = bind(&schema, args.into_iter().collect())?;
        // Nothing is added to the method before all arguments are known to fit.
        for (arg, argument) in &bound {
            self.check_argument(arg, argument, &schema)?;
        }
        let place = format!("result of {}", schema.full_name());
        let ready = outs.into_iter().map(|out| self.ready(out, &place)).collect::<Result<Vec<_>, _>>()?;
        for ready in &ready {
            self.check_result(ready, &schema, &place)?;
        }
        let mut arguments = bound.into_iter();
        let mut outs = ready.into_iter();
        let (mut stack, mut results) = (Vec::new(), Vec::new());
        for argument in schema.args() {
            let place = format!("`{}` of {}", argument.name, schema.full_name());
            let index = match argument.is_out() {
                true if argument.list.is_some() => {
                    let items: Vec<_> = outs.by_ref().map(|out| self.receive(out)).collect();
                    results.extend(&items);
                    self.push(Value::Tensors(items))
                }
                true => {
                    let Some(out) = outs.next() else { continue };
                    let index = self.receive(out);
                    results.push(index);
                    index
                }
                false => {
                    let Some((arg, _)) = arguments.next() else { continue };
                    self.materialise(arg, &place)?
                }
            };
            stack.push(index);
        }
        match schema.trailing() {
            Trailing::Nothing => {}
            Trailing::Again(argument) => {
                let Some(&index) = stack.get(argument) else { return Err(too_few(&schema)) };
                let again = self.method().and_then(|method| match method.values.get(index) {
                    Some(Value::Tensors(items)) => Some(Value::Tensors(items.clone())),
                    _ => None,
                });
                let index = again.map_or(index, |list| self.push(list));
                stack.push(index);
            }
            Trailing::List => {
                let items = match results.is_empty() {
                    false => results.clone(),
                    true => {
                        results = outs.map(|out| self.receive(out)).collect();
                        results.clone()
                    }
                };
                let list = self.push(Value::Tensors(items));
                stack.push(list);
            }
            Trailing::Result => {
                let Some(out) = outs.next() else { return Err(too_few(&schema)) };
                let index = self.receive(out);
                results.push(index);
                stack.push(index);
            }
        }
        let operator = self.intern(schema.name(), schema.overload());
        self.step(Step::Kernel { operator, args: stack });
        let ids = results.into_iter().map(|index| self.id(index)).collect::<Result<Vec<_>, _>>()?;
        O::ids(&ids).ok_or_else(|| too_few(&schema))
    }

    /// The schema of an operator given by name or as a schema.
    fn schema(&mut self, operator: &str) -> Result<String, BuildError> {
        if operator.contains('(') {
            self.program.operator(operator)?;
            return Ok(operator.to_owned());
        }
        let own = self.program.schemas.get(operator).map(String::as_str);
        own.or_else(|| lookup(operator))
            .map(str::to_owned)
            .ok_or_else(|| BuildError::UnknownOperator(operator.to_owned()))
    }

    fn intern(&mut self, name: &str, overload: &str) -> usize {
        self.with(|method| {
            let known = method.operators.iter().position(|(known, variant)| known == name && variant == overload);
            known.unwrap_or_else(|| {
                method.operators.push((name.to_owned(), overload.to_owned()));
                method.operators.len().saturating_sub(1)
            })
        })
    }

    /// The value that is to receive a result: a new one, or one there is and that can be written.
    pub(crate) fn ready(&mut self, out: Out, place: &str) -> Result<Ready, BuildError> {
        Ok(Ready::New(match out {
            Out::Tensor(spec) => Value::Tensor(Box::new(self.resolve(spec, place)?)),
            Out::Int => Value::Int(0),
            Out::Bool => Value::Bool(false),
            Out::Double => Value::Double(0.0),
            Out::Value(id) => {
                let index = self.own(id)?;
                if self.method().is_some_and(|method| method.is_constant(index)) {
                    return Err(constant_written(place, index));
                }
                return Ok(Ready::There(index));
            }
        }))
    }

    pub(crate) fn receive(&mut self, ready: Ready) -> usize {
        match ready {
            Ready::New(value) => self.push(value),
            Ready::There(index) => index,
        }
    }

    /// Checks that a value can hold what the operator returns.
    fn check_result(&self, ready: &Ready, schema: &Schema<'_>, place: &str) -> Result<(), BuildError> {
        let kind = match ready {
            Ready::New(value) => value.tag(),
            Ready::There(index) => self.method().map_or(0, |method| method.tag(*index)),
        };
        let fits = match schema.trailing() {
            Trailing::Result => schema.accepts(schema.args().len(), kind),
            _ => kind == KernelTypes::TENSOR,
        };
        if fits {
            return Ok(());
        }
        let want = match schema.returns().first().filter(|_| schema.trailing() == Trailing::Result) {
            Some(result) => describe(result),
            None => kind_name(KernelTypes::TENSOR).to_owned(),
        };
        Err(BuildError::Kind { place: place.to_owned(), want, found: kind_name(kind).to_owned() })
    }

    fn check_argument(&self, arg: &Arg, argument: &Argument<'_>, schema: &Schema<'_>) -> Result<(), BuildError> {
        let place = || format!("`{}` of {}", argument.name, schema.full_name());
        let (kind, what) = match arg {
            Arg::Value(id) => {
                let index = self.own(*id)?;
                let kind = self.method().map_or(0, |method| method.tag(index));
                (kind, format!("{} ({index})", kind_name(kind), index = ValueName(index)))
            }
            other => {
                let kind = kind(other);
                (kind, kind_name(kind).to_owned())
            }
        };
        if !argument.accepts(kind) {
            return Err(BuildError::Kind { place: place(), want: describe(argument), found: what });
        }
        if argument.mutated {
            self.check_writable(arg, &place())?;
        }
        Ok(())
    }

    fn check_writable(&self, arg: &Arg, place: &str) -> Result<(), BuildError> {
        let tensor = |tensor: &TensorArg| match tensor {
            TensorArg::Constant(id) => {
                Err(BuildError::ConstantWritten { place: place.to_owned(), value: format!("constant {}", id.index) })
            }
            TensorArg::Value(id) => {
                let index = self.own(*id)?;
                match self.method().is_some_and(|method| method.is_constant(index)) {
                    true => Err(constant_written(place, index)),
                    false => Ok(()),
                }
            }
        };
        match arg {
            Arg::Constant(id) => tensor(&TensorArg::Constant(*id)),
            Arg::Value(id) => tensor(&TensorArg::Value(*id)),
            Arg::Tensors(items) => items.iter().try_for_each(tensor),
            Arg::OptionalTensors(items) => items.iter().flatten().try_for_each(tensor),
            _ => Ok(()),
        }
    }

    /// The layout of a tensor of this method.
    pub fn layout(&self, id: ValueId) -> Result<&TensorLayout, BuildError> {
        let index = self.own(id)?;
        match self.method().and_then(|method| method.values.get(index)) {
            Some(Value::Tensor(tensor)) => Ok(&tensor.layout),
            other => Err(BuildError::Kind {
                place: ValueName(index).to_string(),
                want: kind_name(KernelTypes::TENSOR).to_owned(),
                found: kind_name(other.map_or(0, Value::tag)).to_owned(),
            }),
        }
    }
}

/// Results are counted before anything else, so this is what is left to say.
fn too_few(schema: &Schema<'_>) -> BuildError {
    let want = format!("as {} has", schema.full_name());
    BuildError::Count { place: schema.full_name().to_owned(), what: "results", have: 0, want }
}

/// Each argument that is not an out, given or by default, as the kind its place takes.
fn bind<'s>(schema: &Schema<'s>, args: Vec<Arg>) -> Result<Vec<(Arg, Argument<'s>)>, BuildError> {
    let wanted: Vec<_> = schema.args().iter().filter(|argument| !argument.is_out()).copied().collect();
    let required =
        wanted.iter().rposition(|argument| argument.default.is_none()).map_or(0, |last| last.saturating_add(1));
    let have = args.len();
    if !(required..=wanted.len()).contains(&have) {
        let want = match required == wanted.len() {
            true => required.to_string(),
            false => format!("{required} to {}", wanted.len()),
        };
        return Err(BuildError::Count { place: schema.full_name().to_owned(), what: "arguments", have, want });
    }
    let mut given = args.into_iter();
    let mut bound = Vec::with_capacity(wanted.len());
    for argument in wanted {
        let arg = match given.next() {
            Some(arg) => arg,
            None => by_default(&argument).ok_or_else(|| BuildError::Kind {
                place: format!("`{}` of {}", argument.name, schema.full_name()),
                want: "an argument".to_owned(),
                found: format!("the default {:?}, which has no meaning here", argument.default),
            })?,
        };
        bound.push((coerce(arg, &argument), argument));
    }
    Ok(bound)
}

/// A default as an argument. Memory formats are stored as integers.
fn by_default(argument: &Argument<'_>) -> Option<Arg> {
    let literal = argument.default?;
    Some(match literal {
        Literal::None => Arg::None,
        Literal::Bool(truth) => Arg::Bool(truth),
        Literal::Int(number) => Arg::Int(number),
        Literal::Float(number) => Arg::Double(number),
        Literal::Str(text) => Arg::Text(text.to_owned()),
        Literal::Name("contiguous_format") => Arg::Int(0),
        Literal::Name("preserve_format") => Arg::Int(1),
        Literal::Name(_) => return None,
        Literal::List(_) => {
            let items: Vec<Literal<'_>> = literal.items().collect();
            match argument.kind {
                ArgumentKind::Bool => Arg::Bools(items.iter().filter_map(truth).collect()),
                ArgumentKind::Float => Arg::Doubles(items.iter().filter_map(number).collect()),
                ArgumentKind::Tensor => Arg::Tensors(Vec::new()),
                _ => Arg::Ints(items.iter().filter_map(integer).map(IntArg::Literal).collect()),
            }
        }
    })
}

fn truth(literal: &Literal<'_>) -> Option<bool> {
    match literal {
        Literal::Bool(truth) => Some(*truth),
        _ => None,
    }
}

fn number(literal: &Literal<'_>) -> Option<f64> {
    match literal {
        Literal::Float(number) => Some(*number),
        Literal::Int(number) => Some(*number as f64),
        _ => None,
    }
}

fn integer(literal: &Literal<'_>) -> Option<i64> {
    match literal {
        Literal::Int(number) => Some(*number),
        _ => None,
    }
}

/// The argument in the kind that its place asks for, where only one conversion is possible.
fn coerce(arg: Arg, argument: &Argument<'_>) -> Arg {
    let literal = |item: &IntArg| match item {
        IntArg::Literal(number) => Some(*number as f64),
        IntArg::Value(_) => None,
    };
    match (arg, argument.kind, argument.list) {
        (Arg::Int(number), ArgumentKind::Float, None) => Arg::Double(number as f64),
        // One number stands for all items of a list of fixed length.
        (Arg::Int(number), ArgumentKind::Int | ArgumentKind::SymInt, Some(List { len: Some(len), .. })) => {
            Arg::Ints(vec![IntArg::Literal(number); len.min(64) as usize])
        }
        (Arg::Bool(truth), ArgumentKind::Bool, Some(List { len: Some(len), .. })) => {
            Arg::Bools(vec![truth; len.min(64) as usize])
        }
        (Arg::Ints(items), ArgumentKind::Float, Some(_)) => match items.iter().map(literal).collect() {
            Some(numbers) => Arg::Doubles(numbers),
            None => Arg::Ints(items),
        },
        (Arg::OptionalTensors(items), ArgumentKind::Tensor, Some(List { optional_items: false, .. })) => {
            match items.iter().copied().collect() {
                Some(all) => Arg::Tensors(all),
                None => Arg::OptionalTensors(items),
            }
        }
        (arg, ..) => arg,
    }
}

fn kind(arg: &Arg) -> u8 {
    match arg {
        Arg::None => KernelTypes::NULL,
        Arg::Int(_) => KernelTypes::INT,
        Arg::Bool(_) => KernelTypes::BOOL,
        Arg::Double(_) => KernelTypes::DOUBLE,
        Arg::Text(_) => KernelTypes::STRING,
        Arg::Ints(_) => KernelTypes::INT_LIST,
        Arg::Bools(_) => KernelTypes::BOOL_LIST,
        Arg::Doubles(_) => KernelTypes::DOUBLE_LIST,
        Arg::Tensors(_) => KernelTypes::TENSOR_LIST,
        Arg::OptionalTensors(_) => KernelTypes::OPTIONAL_TENSOR_LIST,
        Arg::Constant(_) => KernelTypes::TENSOR,
        // Asked of the method.
        Arg::Value(_) => 0,
    }
}

fn describe(argument: &Argument<'_>) -> String {
    let takes: Vec<_> = (KernelTypes::NULL..=KernelTypes::OPTIONAL_TENSOR_LIST)
        .filter(|kind| argument.accepts(*kind))
        .map(kind_name)
        .collect();
    match takes.is_empty() {
        true => format!("{:?}, which no program can hold,", argument.kind),
        false => takes.join(" or "),
    }
}

/// As many results as the schema has.
fn check_outs(schema: &Schema<'_>, outs: &[Out]) -> Result<(), BuildError> {
    let receivers: Vec<_> = schema.args().iter().filter(|argument| argument.is_out()).collect();
    let list = receivers.iter().any(|argument| argument.list.is_some());
    let want = match (receivers.len(), schema.trailing()) {
        (0, Trailing::Nothing | Trailing::Again(_)) => 0,
        (0, Trailing::Result) => 1,
        (0, Trailing::List) => schema.returns().len(),
        (count, _) => count,
    };
    let place = schema.full_name().to_owned();
    if outs.len() != want && !list {
        return Err(BuildError::Count { place, what: "results", have: outs.len(), want: want.to_string() });
    }
    Ok(())
}
