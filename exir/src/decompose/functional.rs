//! What works in place becomes functional: a call that changes a tensor becomes one that makes a new one, and everything
//! after it reads that.
//!
//! A change of a view is a change of what it is a view of, so the new elements are put back there; other views of the same
//! tensor are taken again when they are read. Inputs that were changed become outputs that say so.

use std::collections::BTreeMap;

use edgepack_format::operator::Schema;

use super::maker::{Maker, Sizes};
use crate::error::Error;
use crate::graph::{
    Argument, ExportedProgram, Graph, InputKind, Node, OpName, OutputKind, OutputSpec, Target, ValueId,
};
use crate::operators::{self, Operators, arguments};

/// Makes a program functional, with outputs for the inputs it changes.
pub(super) fn program(program: &mut ExportedProgram<'_>, operators: &Operators) -> Result<(), Error> {
    let changed = graph(&mut program.graph, operators)?;
    let mut at = program.outputs.iter().take_while(|spec| spec.kind.is_mutation()).count();
    let inputs = program.inputs.clone();
    for spec in &inputs {
        let Some(new) = spec.arg.value().and_then(|value| changed.get(&value)) else { continue };
        let kind = match &spec.kind {
            InputKind::Buffer { name, .. } => OutputKind::BufferMutation(name.clone()),
            InputKind::Parameter(name) => OutputKind::ParameterMutation(name.clone()),
            InputKind::User => {
                let name = spec.arg.value().map_or(String::new(), |value| program.graph.name(value).to_owned());
                OutputKind::InputMutation(name)
            }
            // A constant that is filled in before it is used is no state.
            _ => continue,
        };
        let arg = Argument::Value(*new);
        program.outputs.insert(at, OutputSpec { kind, arg: arg.clone() });
        program.graph.outputs.insert(at.min(program.graph.outputs.len()), arg);
        at = at.saturating_add(1);
    }
    Ok(())
}

/// Makes a graph functional; answers with the new values of inputs that it changes.
fn graph(graph: &mut Graph, operators: &Operators) -> Result<BTreeMap<ValueId, ValueId>, Error> {
    graph.each_subgraph(|inner| match self::graph(inner, operators)?.is_empty() {
        true => Ok(()),
        false => Err(Error::unsupported("sub-graph", "it changes what it is given")),
    })?;
    let works_in_place = |node: &Node| {
        let schema = node.target.operator().and_then(|op| operators.schema(op));
        schema.is_some_and(|schema| !operators::is_functional(&schema) && schema.outs().next().is_none())
    };
    if !graph.nodes.iter().any(works_in_place) {
        return Ok(BTreeMap::new());
    }
    let mut pass = Pass {
        operators,
        now: BTreeMap::new(),
        same: BTreeMap::new(),
        views: BTreeMap::new(),
        version: BTreeMap::new(),
        sizes: Sizes::of_inputs(graph),
    };
    graph.rewrite(|graph, node, made| pass.node(graph, node, made))?;
    let mut tail = Vec::new();
    let mut outputs = graph.outputs.clone();
    for output in &mut outputs {
        pass.read(graph, output, &mut tail)?;
    }
    graph.outputs = outputs;
    graph.nodes.append(&mut tail);
    let inputs: Vec<ValueId> = graph.inputs.iter().filter_map(Argument::value).collect();
    Ok(inputs.into_iter().filter_map(|input| Some((input, *pass.now.get(&input)?))).collect())
}

/// A view: what it is of, by which call, and which version of that it shows.
#[derive(Clone)]
struct View {
    of: ValueId,
    call: Node,
    seen: usize,
    /// How many views lie below it.
    depth: usize,
}

/// How many views may lie on top of each other where tensors are changed in place.
const MOST_VIEWS: usize = 256;

struct Pass<'o> {
    operators: &'o Operators,
    /// What stands for a tensor after it was changed.
    now: BTreeMap<ValueId, ValueId>,
    /// Results of calls that worked in place: the tensor they changed.
    same: BTreeMap<ValueId, ValueId>,
    views: BTreeMap<ValueId, View>,
    /// How often a tensor was changed.
    version: BTreeMap<ValueId, usize>,
    sizes: Sizes,
}

impl Pass<'_> {
    /// The tensor that a name stands for.
    fn origin(&self, mut id: ValueId) -> ValueId {
        while let Some(same) = self.same.get(&id) {
            id = *same;
        }
        id
    }

    fn version(&self, id: ValueId) -> usize {
        self.version.get(&id).copied().unwrap_or(0)
    }

    /// The value to read for a tensor, taking a view again if what it is of has changed.
    fn current(&mut self, graph: &mut Graph, id: ValueId, made: &mut Vec<Node>) -> Result<ValueId, Error> {
        let id = self.origin(id);
        if let Some(view) = self.views.get(&id).cloned() {
            let base = self.current(graph, view.of, made)?;
            let version = self.version(self.origin(view.of));
            if version != view.seen {
                let meta = graph.value(id).map(|value| (value.name.clone(), value.meta.clone()));
                let Some((name, meta)) = meta else { return Ok(id) };
                let again = graph.add_value(&name, meta);
                let mut call = view.call.clone();
                call.name = graph.name(again).to_owned();
                call.set_arg("self", base);
                call.outputs = vec![Argument::Value(again)];
                made.push(call);
                self.now.insert(id, again);
                if let Some(view) = self.views.get_mut(&id) {
                    view.seen = version;
                }
                let changes = self.version(id).saturating_add(1);
                self.version.insert(id, changes);
            }
        }
        Ok(self.now.get(&id).copied().unwrap_or(id))
    }

    fn read(&mut self, graph: &mut Graph, argument: &mut Argument, made: &mut Vec<Node>) -> Result<(), Error> {
        let mut found = Vec::new();
        argument.each_value(&mut |id| found.push(id));
        let mut now = BTreeMap::new();
        for id in found {
            now.insert(id, self.current(graph, id, made)?);
        }
        argument.map_values(&mut |id| Argument::Value(now.get(&id).copied().unwrap_or(id)));
        Ok(())
    }

    fn node(&mut self, graph: &mut Graph, mut node: Node, made: &mut Vec<Node>) -> Result<(), Error> {
        let original = node.value_arg("self").map(|id| self.origin(id));
        for index in 0..node.inputs.len() {
            let Some(mut argument) = node.inputs.get(index).map(|input| input.arg.clone()) else { continue };
            self.read(graph, &mut argument, made)?;
            if let Some(input) = node.inputs.get_mut(index) {
                input.arg = argument;
            }
        }
        let op = node.target.operator().cloned();
        let text = op.as_ref().and_then(|op| self.operators.text(&op.to_string())).map(str::to_owned);
        let schema = text.as_deref().and_then(|text| Schema::parse(text).ok());
        let (Some(op), Some(schema)) = (op, schema) else {
            self.sizes.note(graph, &node);
            made.push(node);
            return Ok(());
        };
        if operators::is_functional(&schema) || schema.outs().next().is_some() {
            self.note_view(graph, &schema, &node, original)?;
            self.sizes.note(graph, &node);
            made.push(node);
            return Ok(());
        }
        let Some(changed) = original else {
            return Err(Error::unsupported(format!("node `{}`", node.name), format!("{op} changes more than `self`")));
        };
        let results = node.results();
        let new = self.functional(graph, node, &op, &schema, made)?;
        for result in results {
            self.same.insert(result, changed);
        }
        self.change(graph, changed, new, made)
    }

    /// Remembers a view, so that changes reach what it is of.
    fn note_view(
        &mut self,
        graph: &Graph,
        schema: &Schema<'_>,
        node: &Node,
        original: Option<ValueId>,
    ) -> Result<(), Error> {
        let may_be_same = ["aten::reshape", "aten::contiguous", "aten::to.dtype", "aten::flatten.using_ints"];
        let view = operators::is_view(schema) && !may_be_same.iter().any(|name| node.calls(name));
        if let (true, Some(of), [result]) = (view, original, node.results().as_slice())
            && graph.tensor(of).is_some()
        {
            let depth = self.views.get(&of).map_or(0, |view| view.depth.saturating_add(1));
            if depth > MOST_VIEWS {
                let message = format!("more than {MOST_VIEWS} views of views where tensors change in place");
                return Err(Error::unsupported(format!("node `{}`", node.name), message));
            }
            self.views.insert(*result, View { of, call: node.clone(), seen: self.version(of), depth });
        }
        Ok(())
    }

    /// The functional twin of a call that works in place.
    fn functional(
        &mut self,
        graph: &mut Graph,
        mut node: Node,
        op: &OpName,
        schema: &Schema<'_>,
        made: &mut Vec<Node>,
    ) -> Result<ValueId, Error> {
        let place = format!("node `{}`", node.name);
        let target = node.value_arg("self").ok_or_else(|| Error::program(&place, "nothing is changed"))?;
        let meta = graph.tensor(target).cloned().ok_or_else(|| Error::program(&place, "no tensor is changed"))?;
        let found = arguments(schema, &node);
        let arg = |name: &str| found.iter().find(|(known, _)| known.name == name).and_then(|(_, arg)| arg.clone());
        let name = node.name.clone();
        let mut make = Maker { graph, operators: self.operators, made, sizes: &mut self.sizes, place: name };
        let value = match op.name.as_str() {
            "copy_" => {
                let source = arg("src").and_then(|arg| arg.value());
                let source = source.ok_or_else(|| Error::program(&place, "nothing is copied"))?;
                let source = make.cast(source, meta.scalar_type)?;
                let sizes = meta.sizes.clone();
                let value = make.expand(source, &sizes)?;
                // A value of its own: the source may be changed, too.
                if value == source { make.unary("clone", value)? } else { value }
            }
            "fill_" => match arg("value") {
                Some(Argument::Value(value)) if make.graph.tensor(value).is_some() => {
                    let value = make.cast(value, meta.scalar_type)?;
                    make.expand(value, &meta.sizes)?
                }
                Some(number) => make.full(&meta.sizes, number, meta.scalar_type)?,
                None => return Err(Error::program(&place, "it is filled with nothing")),
            },
            "zero_" => make.full(&meta.sizes, Argument::Int(0), meta.scalar_type)?,
            _ => {
                let Some(base) = op.name.strip_suffix('_').or_else(|| match op.name.strip_prefix("__i") {
                    Some(_) => Some(op.name.as_str()),
                    None => None,
                }) else {
                    return Err(Error::unsupported(&place, format!("{op} changes a tensor in a way that has no twin")));
                };
                let base = match base.strip_prefix("__i") {
                    Some(rest) => format!("__{rest}"),
                    None => base.to_owned(),
                };
                let twin = OpName { name: base, ..op.clone() };
                if self.operators.text(&twin.to_string()).is_none() {
                    return Err(Error::unsupported(&place, format!("{op} has no functional twin {twin}")));
                }
                let value = make.graph.add_value(&twin.name, meta.clone());
                node.target = Target::Operator(twin);
                node.outputs = vec![Argument::Value(value)];
                node.name = make.graph.name(value).to_owned();
                // What works in place keeps its element type, whatever its arguments have.
                let inferred = make.operators.infer(make.graph, &node);
                let wider = inferred
                    .and_then(|metas| metas.into_iter().next())
                    .filter(|found| found.scalar_type != meta.scalar_type);
                if let Some(wider) = &wider {
                    make.graph.set_meta(value, wider.clone().into());
                }
                make.made.push(node);
                if wider.is_some() { make.cast(value, meta.scalar_type)? } else { value }
            }
        };
        Ok(value)
    }

    /// Makes a value stand for a tensor from here on, and puts it into what the tensor is a view of.
    fn change(&mut self, graph: &mut Graph, tensor: ValueId, new: ValueId, made: &mut Vec<Node>) -> Result<(), Error> {
        self.now.insert(tensor, new);
        let changes = self.version(tensor).saturating_add(1);
        self.version.insert(tensor, changes);
        let Some(view) = self.views.get(&tensor).cloned() else { return Ok(()) };
        let base = self.origin(view.of);
        let whole = self.current(graph, base, made)?;
        let put = self.put_back(graph, &view.call, whole, new, made)?;
        self.change(graph, base, put, made)?;
        let seen = self.version(base);
        if let Some(view) = self.views.get_mut(&tensor) {
            view.seen = seen;
        }
        Ok(())
    }

    /// A tensor in which the elements of a view are others.
    fn put_back(
        &mut self,
        graph: &mut Graph,
        call: &Node,
        whole: ValueId,
        part: ValueId,
        made: &mut Vec<Node>,
    ) -> Result<ValueId, Error> {
        let place = format!("node `{}`", call.name);
        let op = call.target.operator().cloned().ok_or_else(|| Error::program(&place, "no operator"))?;
        let text = self.operators.text(&op.to_string()).unwrap_or_default().to_owned();
        let schema = Schema::parse(&text).map_err(|error| Error::program(&place, error.to_string()))?;
        let found = arguments(&schema, call);
        let arg = |name: &str| {
            found
                .iter()
                .find(|(known, _)| known.name == name)
                .and_then(|(_, arg)| arg.clone())
                .unwrap_or(Argument::None)
        };
        let mut make =
            Maker { graph, operators: self.operators, made, sizes: &mut self.sizes, place: call.name.clone() };
        let sizes = make.sizes(whole)?;
        match op.name.as_str() {
            "select" => {
                let args = [("self", whole.into()), ("src", part.into()), ("dim", arg("dim")), ("index", arg("index"))];
                make.call("select_scatter", args)
            }
            "slice" => {
                let bounds = ["dim", "start", "end", "step"].map(|name| (name, arg(name)));
                let [dim, start, end, step] = bounds;
                make.call("slice_scatter", [("self", whole.into()), ("src", part.into()), dim, start, end, step])
            }
            "view" | "_unsafe_view" | "unsqueeze" | "squeeze" | "unflatten" => make.view(part, &sizes),
            "alias" | "detach" | "lift_fresh" | "view_as" => Ok(part),
            "transpose" => {
                let (Some(a), Some(b)) = (arg("dim0").as_int(), arg("dim1").as_int()) else {
                    return Err(Error::program(&place, "dimensions that are no numbers"));
                };
                make.transpose(part, a, b)
            }
            "t" => make.transpose(part, -1, -2),
            "permute" => {
                let dims = arg("dims").as_ints().unwrap_or_default();
                let mut back = vec![0i64; dims.len()];
                for (at, dim) in (0i64..).zip(dims) {
                    let dim = make.dim(dim, back.len())?;
                    if let Some(place) = back.get_mut(dim) {
                        *place = at;
                    }
                }
                make.permute(part, &back)
            }
            _ => Err(Error::unsupported(&place, format!("a change of what {op} shows"))),
        }
    }
}
