//! Operators: their schemas, what is known about them, and which operator of a program takes the place of each.
//!
//! The table of operators has those of the library that occur in archives, functional and in place; programs hold
//! variants that write into tensors they are given. The variant of a functional operator follows from the two schemas:
//! the arguments agree once results are left out. Other operators are added by schema.
//!
//! Invariant: an operator that was added hides the one of that name in the table.

mod out_variant;
mod shape;

pub use shape::{Call, ShapeRule, promote};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use edgepack_format::operators::{self, Argument as Parameter, ArgumentKind, Literal, Schema};

use crate::error::Error;
use crate::graph::{Argument, ListKind, MemoryFormat, Node, OpName, TensorMeta};

/// Properties of an operator besides its schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traits {
    /// True if the operator is one of the core set.
    pub core: bool,
    /// True if the operator is the copying twin of a view.
    pub view_copy: bool,
    /// True if each element of the result comes from the elements at its place.
    pub pointwise: bool,
}

/// The operators that programs may call: those of the library, and those that were added.
#[derive(Clone, Default)]
pub struct Operators {
    own: BTreeMap<String, Own>,
    /// Composites that stay as they are.
    preserved: BTreeSet<String>,
}

#[derive(Clone)]
struct Own {
    schema: String,
    shape: Option<ShapeRule>,
}

impl Operators {
    /// Makes the set of operators of the library.
    pub fn new() -> Self {
        Operators::default()
    }

    /// Adds an operator by schema. For one that programs are to hold, add its out variant too.
    pub fn add(&mut self, schema: &str) -> Result<&mut Self, Error> {
        self.insert(schema, None)
    }

    /// Adds an operator by schema, with the function that says what its results look like.
    pub fn add_with_shape(
        &mut self,
        schema: &str,
        shape: impl Fn(&Call<'_>) -> Option<Vec<TensorMeta>> + Send + Sync + 'static,
    ) -> Result<&mut Self, Error> {
        self.insert(schema, Some(Arc::new(shape)))
    }

    /// Keeps a composite operator as it is, so that the program calls it. Refused if no program can: if the operator is
    /// not known, gives a view, works in place, or has no out variant.
    pub fn preserve(&mut self, full_name: &str) -> Result<&mut Self, Error> {
        let full_name = full_name.strip_suffix(".default").unwrap_or(full_name);
        let refused = |why: &str| Error::unsupported(format!("operator {full_name}"), why);
        let op = OpName::parse(full_name).ok_or_else(|| refused("a full name is `namespace::name.overload`"))?;
        let schema = self.schema(&op).ok_or_else(|| refused("it is not known, so it cannot be preserved"))?;
        if !is_functional(&schema) {
            return Err(refused("it works in place, which programs do by its functional form; it cannot be preserved"));
        }
        if is_view(&schema) {
            return Err(refused("it gives a view, for which programs have copies; it cannot be preserved"));
        }
        if !self.has_out_variant(&schema) {
            return Err(refused("it has no out variant, so no program can hold it; it cannot be preserved"));
        }
        self.preserved.insert(full_name.to_owned());
        Ok(self)
    }

    /// Keeps operators as they are for as long as backends look for them: unlike those that are
    /// [preserved](Operators::preserve) they need no out variant.
    pub(crate) fn keep<'n>(&mut self, full_names: impl IntoIterator<Item = &'n str>) {
        self.preserved.extend(full_names.into_iter().map(str::to_owned));
    }

    /// Returns whether an operator stays as it is, by full name.
    pub fn is_preserved(&self, full_name: &str) -> bool {
        self.preserved.contains(full_name)
    }

    fn insert(&mut self, schema: &str, shape: Option<ShapeRule>) -> Result<&mut Self, Error> {
        let parsed = Schema::parse(schema).map_err(|error| Error::program(schema, error.to_string()))?;
        let name = parsed.full_name().to_owned();
        self.own.insert(name, Own { schema: schema.to_owned(), shape });
        Ok(self)
    }

    /// The schema of an operator by full name, as text.
    pub fn text(&self, full_name: &str) -> Option<&str> {
        if let Some(own) = self.own.get(full_name) {
            return Some(&own.schema);
        }
        operators::find(full_name).map(operators::Operator::schema)
    }

    /// The schema of an operator.
    pub fn schema(&self, op: &OpName) -> Option<Schema<'_>> {
        Schema::parse(self.text(&op.to_string())?).ok()
    }

    /// Returns the properties of an operator.
    pub fn traits(&self, op: &OpName) -> Traits {
        operators::find(&op.to_string()).map_or(Traits::default(), |known| Traits {
            core: known.is_core(),
            view_copy: known.is_view_copy(),
            pointwise: known.is_pointwise(),
        })
    }

    /// The core set.
    pub fn core(&self) -> impl Iterator<Item = OpName> {
        operators::all().filter(|known| known.is_core()).filter_map(|known| OpName::parse(known.full_name()))
    }

    /// The copying twin of a view, which the Edge dialect has in its place.
    pub fn copying_twin(&self, op: &OpName) -> Option<OpName> {
        let name = match op.name.as_str() {
            "_unsafe_view" | "_reshape_alias" | "reshape" => "view_copy".to_owned(),
            name => format!("{name}_copy"),
        };
        let twin = OpName { name, ..op.clone() };
        self.text(&twin.to_string()).map(|_| twin)
    }
}

/// Returns whether calls of this schema leave their arguments unchanged and give results that are independent of them.
pub fn is_functional(schema: &Schema<'_>) -> bool {
    schema.args().iter().all(|argument| !argument.mutated)
}

/// Returns whether the result is a view of an argument.
pub fn is_view(schema: &Schema<'_>) -> bool {
    is_functional(schema) && schema.args().iter().any(|argument| !argument.alias.is_empty())
}

/// Returns the arguments of a call in the schema's order, with defaults filled in and receivers of results left out.
/// `None` marks an argument that is missing and has no default.
pub fn arguments<'s>(schema: &'s Schema<'_>, node: &Node) -> Vec<(Parameter<'s>, Option<Argument>)> {
    let parameters = schema.args().iter().filter(|parameter| !parameter.is_out());
    parameters
        .map(|parameter| (*parameter, node.arg(parameter.name).cloned().or_else(|| by_default(parameter))))
        .collect()
}

/// Returns the value of an argument that a call does not give.
pub fn by_default(parameter: &Parameter<'_>) -> Option<Argument> {
    let literal = parameter.default?;
    let repeated = |one: Argument, kind: ListKind, len: Option<u32>| match len {
        Some(len) => Argument::List(kind, vec![one; len.min(64) as usize]),
        None => one,
    };
    let len = parameter.list.and_then(|list| list.len);
    Some(match literal {
        Literal::None => Argument::None,
        Literal::Bool(truth) => repeated(Argument::Bool(truth), ListKind::Bools, len),
        Literal::Int(number) if parameter.kind == ArgumentKind::Float => Argument::Float(number as f64),
        Literal::Int(number) if parameter.kind == ArgumentKind::MemoryFormat && number == 0 => {
            Argument::MemoryFormat(MemoryFormat::Contiguous)
        }
        Literal::Int(number) => repeated(Argument::Int(number), ListKind::Ints, len),
        Literal::Float(number) => Argument::Float(number),
        Literal::Str(text) => Argument::Text(text.to_owned()),
        Literal::Name("contiguous_format") => Argument::MemoryFormat(MemoryFormat::Contiguous),
        Literal::Name("preserve_format") => Argument::MemoryFormat(MemoryFormat::Preserve),
        // Only reductions of losses have names, and the names are codes for numbers.
        Literal::Name("Mean") => Argument::Int(1),
        Literal::Name(_) => return None,
        Literal::List(_) => {
            let item = |item: Literal<'_>| match item {
                Literal::Int(number) => Argument::Int(number),
                Literal::Float(number) => Argument::Float(number),
                Literal::Bool(truth) => Argument::Bool(truth),
                Literal::Str(text) => Argument::Text(text.to_owned()),
                _ => Argument::None,
            };
            let kind = match parameter.kind {
                ArgumentKind::Tensor => ListKind::Tensors,
                ArgumentKind::Float => ListKind::Floats,
                ArgumentKind::Bool => ListKind::Bools,
                ArgumentKind::Str => ListKind::Strings,
                _ => ListKind::Ints,
            };
            Argument::List(kind, literal.items().map(item).collect())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_set_is_whole() {
        let operators = Operators::new();
        assert_eq!(operators.core().count(), 192);
        let core = operators.core().find(|op| op.to_string() == "aten::add.Tensor").unwrap();
        assert_eq!(operators.traits(&core), Traits { core: true, view_copy: false, pointwise: true });
    }

    #[test]
    fn views_and_their_twins() {
        let operators = Operators::new();
        for (view, twin) in [
            ("aten::view", "aten::view_copy"),
            ("aten::slice.Tensor", "aten::slice_copy.Tensor"),
            ("aten::split_with_sizes", "aten::split_with_sizes_copy"),
            ("aten::permute", "aten::permute_copy"),
        ] {
            let op = OpName::parse(view).unwrap();
            assert!(is_view(&operators.schema(&op).unwrap()), "{view}");
            assert_eq!(operators.copying_twin(&op).unwrap().to_string(), twin);
        }
        let relu = operators.schema(&OpName::parse("aten::relu_").unwrap()).unwrap();
        assert!(!is_functional(&relu) && !is_view(&relu));
    }

    #[test]
    fn operators_can_be_added() {
        let mut operators = Operators::new();
        operators.add("my::twice(Tensor self) -> Tensor").unwrap();
        let op = OpName::parse("my::twice").unwrap();
        assert_eq!(operators.schema(&op).unwrap().args().len(), 1);
        assert!(operators.add("nonsense").is_err());
    }
}
