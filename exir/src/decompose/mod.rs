//! Composite operators become operators of the core set, and what works in place becomes functional.
//!
//! Each composite has a rule that writes the calls that replace it. These calls are expanded in turn, so a rule may use
//! other composites. The results of a rule are checked against the metadata recorded for the operator, so a rule that
//! does not apply to some form of it is noticed here and not by a wrong result.
//!
//! Invariant: a program that needs nothing decomposed comes out as it went in.

mod arrange;
mod attention;
mod create;
mod einsum;
mod formula;
mod formulas;
mod fourier;
mod index;
mod literal;
pub(crate) mod maker;
mod matrices;
mod movement;
mod normal;
mod padding;
mod pointwise;
mod pooling;
mod products;
mod recurrent;
mod reduce;
mod resample;
mod windows;
mod words;

use std::collections::BTreeMap;

use edgepack_format::limits::Limits;
use edgepack_format::operators::Schema;

use crate::error::Error;
use crate::graph::{Argument, Dialect, ExportedProgram, Graph, Node, Size, ValueId};
use crate::operators::{Operators, arguments};
use crate::passes;
use maker::{Maker, Sizes, Work};

/// Ceiling of the nesting of composites in composites.
const DEPTH: usize = 12;

/// Answer of a rule: the results that replace those of the operator, or `None` if it does not apply.
type Answer = Result<Option<Vec<Argument>>, Error>;

/// Writes the calls that replace an operator.
type Rule = fn(&mut Maker<'_>, &Composite<'_>) -> Answer;

/// A call of an operator, with its arguments by name, defaults filled in.
pub(crate) struct Composite<'c> {
    pub(crate) node: &'c Node,
    arguments: Vec<(String, Argument)>,
}

impl<'c> Composite<'c> {
    pub(crate) fn new(node: &'c Node, schema: &Schema<'_>) -> Self {
        let found = arguments(schema, node).into_iter();
        Composite { node, arguments: found.filter_map(|(known, arg)| Some((known.name.to_owned(), arg?))).collect() }
    }

    pub(crate) fn arg(&self, name: &str) -> Argument {
        let found = self.arguments.iter().find(|(known, _)| known == name);
        found.map_or(Argument::None, |(_, argument)| argument.clone())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.arg(name) != Argument::None
    }

    pub(crate) fn value(&self, name: &str) -> Result<ValueId, Error> {
        self.arg(name).value().ok_or_else(|| self.wrong(name))
    }

    pub(crate) fn int(&self, name: &str) -> Result<i64, Error> {
        self.arg(name).as_int().ok_or_else(|| self.wrong(name))
    }

    pub(crate) fn ints(&self, name: &str) -> Result<Vec<i64>, Error> {
        self.arg(name).as_ints().ok_or_else(|| self.wrong(name))
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.arg(name) == Argument::Bool(true)
    }

    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        match self.arg(name) {
            Argument::Float(number) => Some(number),
            Argument::Int(number) => Some(number as f64),
            _ => None,
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self.arg(name) {
            Argument::Text(text) => Some(text),
            _ => None,
        }
    }

    fn wrong(&self, name: &str) -> Error {
        let message = format!("{} cannot be decomposed with `{name}` being {:?}", self.node.target, self.arg(name));
        Error::unsupported(format!("node `{}`", self.node.name), message)
    }
}

/// Decomposes a program in place. How much that may write is a matter of [`Limits::visits`]: a call costs 64 of them, and
/// one for each of its arguments.
pub fn decompose(program: &mut ExportedProgram<'_>, operators: &Operators, limits: &Limits) -> Result<(), Error> {
    let work = &Work::new(limits);
    program.graph.check()?;
    passes::inline(program)?;
    passes::statistics(&mut program.graph, operators, work)?;
    passes::functionalise(program, operators, work)?;
    graph(&mut program.graph, operators, work)?;
    program.name_outputs();
    if program.dialect == Dialect::Training {
        program.dialect = Dialect::Aten;
    }
    Ok(())
}

/// The operators of a graph that have a rule, by full name: what [`decompose`] would replace.
pub fn composites(graph: &Graph) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for node in &graph.nodes {
        for input in &node.inputs {
            if let Argument::Graph(_, inner) = &input.arg {
                found.extend(composites(inner));
            }
        }
        let Some(op) = node.target.operator() else { continue };
        if rule(&op.to_string()).is_some() {
            found.push(op.to_string());
        }
    }
    found.sort();
    found.dedup();
    found
}

fn graph(graph: &mut Graph, operators: &Operators, work: &Work) -> Result<(), Error> {
    graph.each_subgraph(|inner| self::graph(inner, operators, work))?;
    let mut pass = Pass { operators, replaced: BTreeMap::new(), sizes: Sizes::of_inputs(graph, work) };
    graph.rewrite(|graph, node, made| pass.expand(graph, node, made, 0))?;
    let replaced: BTreeMap<ValueId, Argument> = pass.replaced;
    graph.outputs.iter_mut().for_each(|output| substitute(output, &replaced));
    Ok(())
}

fn substitute(argument: &mut Argument, replaced: &BTreeMap<ValueId, Argument>) {
    argument.map_values(&mut |id| replaced.get(&id).cloned().unwrap_or(Argument::Value(id)));
}

struct Pass<'o> {
    operators: &'o Operators,
    /// Replacements of results of composites that are gone.
    replaced: BTreeMap<ValueId, Argument>,
    sizes: Sizes,
}

impl Pass<'_> {
    /// Appends the nodes that replace `node` to the list.
    fn expand(&mut self, graph: &mut Graph, mut node: Node, made: &mut Vec<Node>, depth: usize) -> Result<(), Error> {
        node.inputs.iter_mut().for_each(|input| substitute(&mut input.arg, &self.replaced));
        let name = node.target.operator().map(ToString::to_string).filter(|name| !self.operators.is_preserved(name));
        let rule = name.as_ref().and_then(|name| rule(name)).filter(|_| depth < DEPTH);
        let schema = name.and_then(|name| self.operators.text(&name).map(str::to_owned));
        let (Some(rule), Some(schema)) = (rule, schema) else {
            self.sizes.note(graph, &node);
            made.push(node);
            return Ok(());
        };
        let schema = Schema::parse(&schema).map_err(|error| Error::program(&schema, error.to_string()))?;
        let composite = Composite::new(&node, &schema);
        let mut inner = Vec::new();
        let mut maker = Maker {
            graph,
            operators: self.operators,
            made: &mut inner,
            sizes: &mut self.sizes,
            place: node.name.clone(),
        };
        let Some(results) = rule(&mut maker, &composite)? else {
            self.sizes.note(graph, &node);
            made.push(node);
            return Ok(());
        };
        let before = self.results(graph, &node, &results)?;
        for mut node in inner {
            node.metadata.clone_from(&composite.node.metadata);
            self.expand(graph, node, made, depth.saturating_add(1))?;
        }
        for (old, mut new) in before {
            substitute(&mut new, &self.replaced);
            self.replaced.insert(old, new);
        }
        Ok(())
    }

    /// Pairs of an operator's result and what takes its place, which looks the same.
    fn results(&self, graph: &mut Graph, node: &Node, results: &[Argument]) -> Result<Vec<(ValueId, Argument)>, Error> {
        let old = node.results();
        if old.len() > results.len() {
            let message = format!("{} was decomposed to {} results of {}", node.target, results.len(), old.len());
            return Err(Error::program(format!("node `{}`", node.name), message));
        }
        let mut pairs = Vec::with_capacity(old.len());
        for (old, new) in old.into_iter().zip(results) {
            let (Some(recorded), Some(value)) = (graph.tensor(old).cloned(), new.value()) else {
                pairs.push((old, new.clone()));
                continue;
            };
            let Some(found) = graph.tensor(value) else {
                return Err(Error::program(
                    format!("node `{}`", node.name),
                    "a tensor was decomposed to something else",
                ));
            };
            let hints = |sizes: &[Size]| sizes.iter().map(Size::hint).collect::<Option<Vec<_>>>();
            let (want, have) = (hints(&recorded.sizes), hints(&found.sizes));
            let known = want.is_some() && have.is_some();
            if recorded.scalar_type != found.scalar_type || known && want != have || recorded.rank() != found.rank() {
                let message = format!(
                    "{} was recorded as {} {want:?} and decomposed to {} {have:?}",
                    node.target, recorded.scalar_type, found.scalar_type
                );
                return Err(Error::program(format!("node `{}`", node.name), message));
            }
            // What was recorded says sizes in the program's own symbols.
            if node.each_input_is_not(value) {
                graph.set_meta(value, recorded.into());
            }
            pairs.push((old, new.clone()));
        }
        Ok(pairs)
    }
}

impl Node {
    /// Returns whether the node does not read a value.
    fn each_input_is_not(&self, value: ValueId) -> bool {
        let mut read = false;
        self.each_input(&mut |id| read |= id == value);
        !read
    }
}

/// The rule of an operator, if it is a composite.
fn rule(full_name: &str) -> Option<Rule> {
    let name = full_name.strip_prefix("aten::")?;
    let families: [fn(&str) -> Option<Rule>; 17] = [
        products::find,
        attention::find,
        recurrent::find,
        normal::find,
        pooling::find,
        movement::find,
        padding::find,
        pointwise::find,
        reduce::find,
        create::find,
        resample::find,
        index::find,
        arrange::find,
        windows::find,
        fourier::find,
        matrices::find,
        formulas::find,
    ];
    families.iter().find_map(|find| find(name))
}

/// One result.
fn one(value: ValueId) -> Answer {
    Ok(Some(vec![Argument::Value(value)]))
}
