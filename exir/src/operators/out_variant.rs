//! Choice of the operator of a program that replaces a functional one.
//!
//! The two have the same name and, results apart, the same arguments. Names of overloads and of results follow no
//! pattern, so nothing is concluded from them unless arguments leave a choice.

use edgepack_format::operators::{self, Argument as Parameter, Schema};

use super::Operators;
use crate::graph::{Node, OpName};

/// The four arguments that say how a new tensor is to be; a receiver says it by itself.
const TENSOR_OPTIONS: [&str; 4] = ["dtype", "layout", "device", "pin_memory"];

impl Operators {
    /// The schema of the operator that a program holds in place of this call.
    ///
    /// For an operator whose own schema is not known, the call's arguments decide.
    pub fn out_variant(&self, op: &OpName, node: &Node) -> Option<&str> {
        let base = op.base();
        let candidates: Vec<&str> = self
            .overloads(&base)
            .into_iter()
            .filter(|text| Schema::parse(text).is_ok_and(|schema| schema.outs().next().is_some()))
            .collect();
        let functional = self.schema(op);
        let fits = |text: &&&str| {
            let Ok(schema) = Schema::parse(text) else { return false };
            match &functional {
                Some(functional) => same_arguments(functional, &schema),
                None => takes(&schema, node),
            }
        };
        let fitting: Vec<&str> = candidates.iter().filter(fits).copied().collect();
        match fitting.as_slice() {
            [] => None,
            [one] => Some(one),
            several => {
                let wanted = if op.overload.is_empty() { "out".to_owned() } else { format!("{}_out", op.overload) };
                let named =
                    several.iter().find(|text| Schema::parse(text).is_ok_and(|schema| schema.overload() == wanted));
                named.or(several.first()).copied()
            }
        }
    }

    /// Returns whether a functional operator has a variant that writes its results into tensors it is given.
    pub(super) fn has_out_variant(&self, functional: &Schema<'_>) -> bool {
        let fits = |text: &&str| {
            Schema::parse(text).is_ok_and(|out| out.outs().next().is_some() && same_arguments(functional, &out))
        };
        let base = functional.full_name().split('.').next().unwrap_or_default();
        self.overloads(base).iter().any(fits)
    }

    /// The functional operator that computes what this one writes into what it changes, by its name without overload.
    pub(crate) fn functional(&self, base: &str, changing: &Schema<'_>) -> Option<OpName> {
        let fits = |text: &&str| {
            let functional = Schema::parse(text).ok()?;
            let same = super::is_functional(&functional) && same_arguments(&functional, changing);
            same.then(|| OpName::parse(functional.full_name()))?
        };
        let found: Vec<OpName> = self.overloads(base).iter().filter_map(fits).collect();
        let wanted = changing.overload().trim_end_matches("out").trim_end_matches('_');
        found.iter().find(|op| op.overload == wanted).or(found.first()).cloned()
    }

    /// Returns the full name of the operator that a program holds in place of this call, once views are copies and
    /// copies state their order of dimensions. Operators that give numbers are not replaced.
    pub fn emitted(&self, op: &OpName, node: &Node) -> Option<String> {
        let dim_order = match op.to_string().as_str() {
            "aten::_to_copy" => Some("dim_order_ops::_to_dim_order_copy.out"),
            "aten::clone" => Some("dim_order_ops::_clone_dim_order.out"),
            "aten::empty.memory_format" => Some("dim_order_ops::_empty_dim_order.out"),
            _ => None,
        };
        if let Some(name) = dim_order {
            return Some(name.to_owned());
        }
        let schema = self.schema(op);
        let view = schema.as_ref().is_some_and(super::is_view);
        let twin = if view { self.copying_twin(op) } else { None };
        if !self.gives_tensors(op) && schema.is_some() {
            return Some(op.to_string());
        }
        let text = self.out_variant(twin.as_ref().unwrap_or(op), node)?;
        Some(text.split_once('(').map_or(text, |(name, _)| name).to_owned())
    }

    /// The schemas of all operators of this name.
    fn overloads(&self, base: &str) -> Vec<&str> {
        let of_base =
            |full_name: &str| full_name.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let own = self.own.range(base.to_owned()..).map(|(name, own)| (name.as_str(), own.schema.as_str()));
        let own =
            own.take_while(|(name, _)| name.starts_with(base)).filter(|(name, _)| of_base(name)).map(|(_, text)| text);
        own.chain(operators::overloads(base).map(|known| known.schema())).collect()
    }
}

/// Returns whether two schemas take equal arguments, apart from results.
fn same_arguments(functional: &Schema<'_>, out: &Schema<'_>) -> bool {
    let all: Vec<&Parameter<'_>> = functional.args().iter().collect();
    let options = TENSOR_OPTIONS.iter().all(|name| all.iter().any(|parameter| parameter.name == *name));
    let wanted: Vec<_> =
        all.into_iter().filter(|parameter| !(options && TENSOR_OPTIONS.contains(&parameter.name))).collect();
    let taken: Vec<_> = out.args().iter().filter(|parameter| !parameter.is_out()).collect();
    let same = |(a, b): (&&Parameter<'_>, &&Parameter<'_>)| {
        let lists = a.list.map(|list| list.optional_items) == b.list.map(|list| list.optional_items);
        a.name == b.name && a.kind == b.kind && a.optional == b.optional && lists
    };
    wanted.len() == taken.len() && wanted.iter().zip(&taken).all(same)
}

/// Returns whether a schema takes the arguments that a call gives.
fn takes(schema: &Schema<'_>, node: &Node) -> bool {
    let inputs: Vec<_> = schema.args().iter().filter(|parameter| !parameter.is_out()).collect();
    let known = node.inputs.iter().all(|input| {
        inputs.iter().any(|parameter| parameter.name == input.name) || TENSOR_OPTIONS.contains(&input.name.as_str())
    });
    let complete = inputs.iter().all(|parameter| parameter.default.is_some() || node.arg(parameter.name).is_some());
    known && complete
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Graph, TensorMeta};
    use edgepack_format::scalar::ScalarType;

    fn variant(operators: &Operators, name: &str) -> String {
        let node = Graph::default().make(name, [], TensorMeta::contiguous(ScalarType::FLOAT, &[]));
        let text = operators.out_variant(&OpName::parse(name).unwrap(), &node);
        text.map_or(String::new(), |text| text.split_once('(').unwrap().0.to_owned())
    }

    #[test]
    fn variants_follow_from_schemas() {
        let operators = Operators::new();
        for (functional, out) in [
            ("aten::add.Tensor", "aten::add.out"),
            ("aten::mean", "aten::mean.dtype_out"),
            ("aten::mean.dim", "aten::mean.out"),
            ("aten::any", "aten::any.all_out"),
            ("aten::arange.start_step", "aten::arange.start_out"),
            ("aten::max.dim", "aten::max.dim_max"),
            ("aten::var.correction", "aten::var.correction_out"),
            ("aten::div.Tensor_mode", "aten::div.out_mode"),
            ("aten::full", "aten::full.out"),
            ("aten::full_like", "aten::full_like.out"),
            ("aten::split_with_sizes_copy", "aten::split_with_sizes_copy.out"),
            ("aten::upsample_nearest2d.vec", "aten::upsample_nearest2d.vec_out"),
            ("aten::sort", "aten::sort.values"),
            ("aten::scatter_reduce.two", "aten::scatter_reduce.two_out"),
            ("aten::linear", "aten::linear.out"),
            ("aten::batch_norm", ""),
            ("aten::no_such", ""),
        ] {
            assert_eq!(variant(&operators, functional), out, "{functional}");
        }
    }

    #[test]
    fn operators_of_others_have_variants_too() {
        let mut operators = Operators::new();
        operators.add("my::twice.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)").unwrap();
        let mut graph = Graph::default();
        let x = graph.add_input("x", TensorMeta::contiguous(ScalarType::FLOAT, &[]));
        let node = graph.make("my::twice", [("self", x.into())], TensorMeta::contiguous(ScalarType::FLOAT, &[]));
        assert!(operators.out_variant(node.target.operator().unwrap(), &node).is_some());
        operators.add("my::twice(Tensor self) -> Tensor").unwrap();
        assert!(operators.out_variant(node.target.operator().unwrap(), &node).is_some());
    }
}
