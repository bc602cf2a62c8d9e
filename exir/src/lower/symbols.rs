//! Arithmetic on sizes: Python's functions become operators of the runtime's own.

use edgepack_builder::pte::{Arg, Out};

use super::emit::{Emitter, Held, Scope};
use crate::error::Error;
use crate::graph::{Argument, Meta, Node};

/// Functions that have an operator of the same meaning, by the last part of their names.
const SAME: [(&str, &str); 22] = [
    ("add", "add"),
    ("sub", "sub"),
    ("mul", "mul"),
    ("floordiv", "floordiv"),
    ("truediv", "truediv"),
    ("mod", "mod"),
    ("neg", "neg"),
    ("eq", "eq"),
    ("gt", "gt"),
    ("lt", "lt"),
    ("ge", "ge"),
    ("le", "le"),
    ("round", "round"),
    ("ceil", "ceil"),
    ("trunc", "trunc"),
    ("sym_float", "sym_float"),
    ("sym_int", "sym_int"),
    ("sym_max", "sym_max"),
    ("sym_min", "sym_min"),
    ("sym_not", "sym_not"),
    ("not_", "sym_not"),
    ("sym_ite", "sym_ite"),
];

impl Emitter<'_, '_, '_, '_> {
    /// Emits arithmetic on numbers that are computed.
    pub(super) fn symbolic(&mut self, scope: &mut Scope<'_>, node: &Node, name: &str) -> Result<(), Error> {
        let Some(Argument::Value(result)) = node.outputs.first() else {
            return Err(Error::program(format!("node `{}`", node.name), format!("{name} without a result")));
        };
        let (known, out) = match scope.graph.value(*result).map(|value| &value.meta) {
            Some(Meta::Int(size)) => (size.known(), Out::Int),
            Some(Meta::Bool(_)) => (None, Out::Bool),
            _ => (None, Out::Double),
        };
        if let Some(known) = known {
            scope.held.insert(*result, Held::Literal(Argument::Int(known)));
            return Ok(());
        }
        let mut args = Vec::new();
        for input in &node.inputs {
            let items = match &input.arg {
                Argument::List(_, items) => items.as_slice(),
                one => std::slice::from_ref(one),
            };
            for item in items {
                let unsupported = || Error::unsupported(format!("node `{}`", node.name), format!("{name} of {item:?}"));
                args.push(self.arg(scope, item).ok_or_else(unsupported)??);
            }
        }
        let function = name.rsplit_once('.').map_or(name, |(_, last)| last);
        let same = SAME.iter().find(|(known, _)| *known == function).map(|(_, operator)| *operator);
        let id = match (same, function, args.as_slice()) {
            (Some(operator), ..) => self.prim(operator, args, out)?,
            (None, "ne", _) => {
                let equal = self.prim("eq", args, Out::Bool)?;
                self.prim("sym_not", vec![Arg::Value(equal)], out)?
            }
            (None, "and_", [a, b]) => self.prim("sym_ite", vec![a.clone(), b.clone(), Arg::Bool(false)], out)?,
            (None, "or_", [a, b]) => self.prim("sym_ite", vec![a.clone(), Arg::Bool(true), b.clone()], out)?,
            (None, "pow", [base, Arg::Int(power)]) if (1..=8).contains(power) => {
                let mut product = base.clone();
                for _ in 1..*power {
                    product = Arg::Value(self.prim("mul", vec![product, base.clone()], out.clone())?);
                }
                self.method.value(product)?
            }
            (None, "sym_sum", [first, rest @ ..]) => {
                let mut sum = first.clone();
                for item in rest {
                    sum = Arg::Value(self.prim("add", vec![sum, item.clone()], out.clone())?);
                }
                self.method.value(sum)?
            }
            _ => {
                self.missing.insert(name.to_owned());
                self.method.value(0i64)?
            }
        };
        scope.held.insert(*result, Held::Number(id));
        Ok(())
    }

    /// Calls one of the runtime's own operators on numbers.
    pub(super) fn prim(
        &mut self,
        name: &str,
        args: Vec<Arg>,
        out: Out,
    ) -> Result<edgepack_builder::pte::ValueId, Error> {
        Ok(self.method.call(&format!("executorch_prim::{name}.Scalar"), args, out)?)
    }
}
