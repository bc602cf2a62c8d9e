//! The functional twin of a call that changes what it is given: what it would have written, as a new value.

use edgepack_format::operators::Schema;

use super::storage::Storages;
use super::view::{Places, Step};
use crate::decompose::Composite;
use crate::decompose::maker::Maker;
use crate::error::Error;
use crate::graph::{Argument, Meta, Node, OpName, Size, Target, TensorMeta, ValueId};

/// A call that changes what it is given.
pub(super) struct Change<'c> {
    pub(super) schema: &'c Schema<'c>,
    /// The call as it was: it names the tensors.
    pub(super) original: &'c Node,
    /// The call with the values that have their elements now.
    pub(super) node: &'c Node,
}

impl Change<'_> {
    /// Writes what the call changes.
    pub(super) fn write(&self, make: &mut Maker<'_>, storages: &mut Storages) -> Result<(), Error> {
        match self.schema.outs().next() {
            Some(_) => self.receivers(make, storages),
            None => self.in_place(make, storages),
        }
    }

    /// Writes what a call changes that works in place.
    fn in_place(&self, make: &mut Maker<'_>, storages: &mut Storages) -> Result<(), Error> {
        let Change { schema, original, node } = *self;
        let Some(op) = node.target.operator() else { return Err(make.error("it calls no operator")) };
        let (was, now) = (Composite::new(original, schema), Composite::new(node, schema));
        let changed: Vec<&str> = schema.args().iter().filter(|arg| arg.mutated).map(|arg| arg.name).collect();
        let target = match changed.as_slice() {
            ["self"] => was.arg("self").value(),
            _ => None,
        };
        let Some(target) = target else {
            let message = format!("{op} changes {}, which has no functional form here", changed.join(" and "));
            return Err(make.error(message));
        };
        let current = now.value("self")?;
        let meta = make.meta(current)?;
        let new = functional(make, schema, node, &now, &meta)?;
        if !same_sizes(&make.meta(new)?, &meta) {
            return Err(make.error(format!("{op} gives other sizes than the tensor it changes has")));
        }
        storages.write(make, target, new)?;
        original.results().into_iter().for_each(|result| storages.same(result, target));
        Ok(())
    }

    /// Writes the results of a call into the tensors that it is given for them.
    fn receivers(&self, make: &mut Maker<'_>, storages: &mut Storages) -> Result<(), Error> {
        let Change { schema, original, node } = *self;
        let Some(op) = node.target.operator() else { return Err(make.error("it calls no operator")) };
        let Some(twin) = make.operators.functional(&op.base(), schema) else {
            return Err(make.error(format!("{op} has no form without receivers")));
        };
        let names: Vec<&str> = schema.args().iter().filter(|arg| arg.is_out()).map(|arg| arg.name).collect();
        let targets: Option<Vec<ValueId>> = names.iter().map(|name| original.value_arg(name)).collect();
        let Some(targets) = targets else {
            return Err(make.error(format!("{op} is called without a tensor for each result")));
        };
        let mut call = node.clone();
        call.inputs.retain(|input| !names.contains(&input.name.as_str()));
        call.target = Target::Operator(twin.clone());
        call.outputs.clear();
        // What makes a tensor of nothing takes its element type from the receiver.
        let takes = |schema: &Schema<'_>| schema.args().iter().any(|arg| arg.name == "dtype");
        if let Some(receiver) = targets.first().and_then(|target| storages.meta(*target))
            && !takes(schema)
            && make.operators.schema(&twin).is_some_and(|twin| takes(&twin))
        {
            call.set_arg("dtype", Argument::ScalarType(receiver.scalar_type));
        }
        let Some(metas) = make.operators.infer(make.graph, &call) else {
            return Err(
                make.error(format!("what {twin} gives here is not known, so nor is whether it fits its receiver"))
            );
        };
        let values: Vec<ValueId> = metas.into_iter().map(|meta| make.graph.add_value(&twin.name, meta)).collect();
        call.outputs = values.iter().map(|value| Argument::Value(*value)).collect();
        if let Some(first) = values.first() {
            make.graph.name(*first).clone_into(&mut call.name);
        }
        make.push(call)?;
        for (index, (target, value)) in targets.iter().zip(&values).enumerate() {
            let meta = storages.meta(*target).cloned().ok_or_else(|| make.error("a receiver is not a tensor"))?;
            if !same_sizes(&make.meta(*value)?, &meta) {
                return Err(make.error(format!("{op} would change the sizes of its receiver")));
            }
            let value = make.cast(*value, meta.scalar_type)?;
            storages.write(make, *target, value)?;
            if let Some(result) = original.results().get(index) {
                storages.same(*result, *target);
            }
        }
        Ok(())
    }
}

fn same_sizes(a: &TensorMeta, b: &TensorMeta) -> bool {
    let hints = |meta: &TensorMeta| meta.sizes.iter().map(Size::hint).collect::<Option<Vec<_>>>();
    a.rank() == b.rank() && (a.sizes == b.sizes || hints(a).zip(hints(b)).is_none_or(|(a, b)| a == b))
}

/// Computes what a call that works in place on `self` writes there.
fn functional(
    make: &mut Maker<'_>,
    schema: &Schema<'_>,
    node: &Node,
    call: &Composite<'_>,
    meta: &TensorMeta,
) -> Result<ValueId, Error> {
    let of_type = meta.scalar_type;
    let op = node.target.operator().ok_or_else(|| make.error("it calls no operator"))?;
    match op.name.as_str() {
        "copy_" => {
            let source = make.cast(call.value("src")?, of_type)?;
            make.expand(source, &meta.sizes)
        }
        "fill_" => match call.arg("value") {
            Argument::Value(value) if make.graph.tensor(value).is_some() => {
                let value = make.cast(value, of_type)?;
                make.expand(value, &meta.sizes)
            }
            number => make.full(&meta.sizes, number, of_type),
        },
        "zero_" => make.full(&meta.sizes, Argument::Int(0), of_type),
        "fill_diagonal_" => fill_diagonal(make, call, meta),
        name => {
            let base = twin_name(name).map(|name| format!("{}::{name}", op.namespace));
            let Some(twin) = base.and_then(|base| make.operators.functional(&base, schema)) else {
                return Err(make.error(format!("{op} changes a tensor, and has no functional form here")));
            };
            let value = call_as(make, node, twin, meta)?;
            make.cast(value, of_type)
        }
    }
}

/// The name without what says that it works in place.
fn twin_name(name: &str) -> Option<String> {
    match name.strip_prefix("__i") {
        Some(rest) => Some(format!("__{rest}")),
        None => name.strip_suffix('_').map(str::to_owned),
    }
}

/// The same call of another operator with one result, which looks like what is inferred, or else as said.
fn call_as(make: &mut Maker<'_>, node: &Node, twin: OpName, meta: &TensorMeta) -> Result<ValueId, Error> {
    let mut call = node.clone();
    let value = make.graph.add_value(&twin.name, meta.clone());
    call.target = Target::Operator(twin);
    call.outputs = vec![Argument::Value(value)];
    make.graph.name(value).clone_into(&mut call.name);
    let inferred = make.operators.infer(make.graph, &call).and_then(|metas| metas.into_iter().next());
    if let Some(inferred) = inferred {
        // What was recorded says sizes in the program's own symbols.
        let known = TensorMeta { scalar_type: inferred.scalar_type, ..meta.clone() };
        make.graph.set_meta(value, Meta::Tensor(if same_sizes(&inferred, meta) { known } else { inferred }));
    }
    make.push(call)?;
    Ok(value)
}

/// A matrix with another main diagonal.
fn fill_diagonal(make: &mut Maker<'_>, call: &Composite<'_>, meta: &TensorMeta) -> Result<ValueId, Error> {
    let known: Option<Vec<i64>> = meta.sizes.iter().map(Size::known).collect();
    let (Some([rows, columns]), false) = (known.as_deref(), call.flag("wrap")) else {
        return Err(make.error("fill_diagonal_ of what is not a matrix of known sizes"));
    };
    let len = [(*rows).min(*columns).into()];
    let part = make.full(&len, call.arg("fill_value"), meta.scalar_type)?;
    let places = Places { sizes: vec![(*rows).min(*columns)], strides: vec![columns.saturating_add(1)], offset: 0 };
    Step::Places(places).put(make, call.value("self")?, part)
}
