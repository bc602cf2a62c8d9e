//! Patterns in graphs, and what to put in their place: for those who write passes.
//!
//! A [`Pattern`] is a small graph of calls whose arguments are wildcards, literals or calls of the pattern; the last call
//! is its root. [`Pattern::rewrite`] finds every place where it fits, gives what the wildcards stand for to a function, and
//! lets what read the root read what the function answers.
//!
//! - Arguments that the pattern does not name must be left at their defaults, unless the call is [open](Pattern::open).
//! - A wildcard that occurs twice matches one argument both times.
//! - A call inside the pattern whose result is read elsewhere too, or is an output, does not fit: it could not go.
//! - Places do not overlap: what was matched is gone for later ones. What was written can be part of a later match, but is
//!   not the root of one, so every node is tried once and the time is that of the graph times the pattern.
//! - New nodes take over the metadata of the root and its dialect. Graphs within the graph are looked at too.
//!
//! The graph must be functional, as those of the ATen and Edge dialects are: reads move to the place of the root.
//!
//! ```
//! use edgepack_exir::Error;
//! use edgepack_exir::graph::{ExportedProgram, Graph, TensorMeta};
//! use edgepack_exir::lower::Pass;
//! use edgepack_exir::pattern::Pattern;
//!
//! /// `x * sigmoid(x)` becomes one call.
//! struct FuseSilu;
//!
//! impl Pass for FuseSilu {
//!     fn name(&self) -> &str {
//!         "fuse silu"
//!     }
//!
//!     fn run(&self, program: &mut ExportedProgram<'_>) -> Result<(), Error> {
//!         let mut pattern = Pattern::new();
//!         let x = pattern.any("x");
//!         let gate = pattern.call("aten::sigmoid", [("self", x)]);
//!         pattern.call("aten::mul.Tensor", [("self", x), ("other", gate)]);
//!         pattern.rewrite(program, |writer, found| {
//!             let Some(meta) = found.value("x").and_then(|x| writer.graph().tensor(x).cloned()) else {
//!                 return Ok(None);
//!             };
//!             let silu = writer.call("my::silu", [("self", found.arg("x"))], meta);
//!             Ok(Some(vec![silu.into()]))
//!         })?;
//!         Ok(())
//!     }
//! }
//!
//! # use edgepack_exir::graph::Dialect;
//! # use edgepack_format::scalar::ScalarType;
//! # let meta = || TensorMeta::contiguous(ScalarType::FLOAT, &[2i64.into()]);
//! let mut graph = Graph::default();
//! let x = graph.add_input("x", meta());
//! let gate = graph.call("aten::sigmoid", [("self", x.into())], meta());
//! let y = graph.call("aten::mul.Tensor", [("self", x.into()), ("other", gate.into())], meta());
//! graph.outputs.push(y.into());
//! let mut program = ExportedProgram::from_graph(graph, Dialect::Aten);
//! FuseSilu.run(&mut program)?;
//! assert_eq!(program.graph.nodes.len(), 1);
//! assert!(program.graph.nodes[0].calls("my::silu"));
//! # Ok::<(), Error>(())
//! ```

mod places;

use std::collections::BTreeMap;

use crate::error::Error;
use crate::graph::{Argument, ExportedProgram, Graph, Node, OpName, TensorMeta, ValueId};
use places::Places;

/// A small graph to look for.
#[derive(Clone, Debug, Default)]
pub struct Pattern {
    terms: Vec<Term>,
    root: Option<Part>,
}

/// A part of one pattern: something that may be the argument of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Part(usize);

#[derive(Clone, Debug)]
enum Term {
    Any(String),
    Exactly(Argument),
    List(Vec<Part>),
    Call { op: Option<OpName>, args: Vec<(String, Part)>, open: bool },
    Result { call: Part, index: usize },
}

/// A place where a pattern fits.
#[derive(Clone, Debug)]
pub struct Match {
    bound: BTreeMap<String, Argument>,
    nodes: Vec<Node>,
}

impl Match {
    /// Returns the argument that a wildcard matches; `None` as an argument if the pattern does not have the wildcard.
    pub fn arg(&self, name: &str) -> Argument {
        self.bound.get(name).cloned().unwrap_or(Argument::None)
    }

    /// Returns the value that a wildcard matches, if it is one.
    pub fn value(&self, name: &str) -> Option<ValueId> {
        self.bound.get(name).and_then(Argument::value)
    }

    /// Returns the nodes that the calls of the pattern match, in the order of the graph; the root is the last.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
}

/// Writes what takes the place of a match.
pub struct Writer<'g> {
    graph: &'g mut Graph,
    made: Vec<Node>,
}

impl Writer<'_> {
    /// The graph, without its nodes: what is known about values.
    pub fn graph(&self) -> &Graph {
        self.graph
    }

    /// A call of an operator with one result.
    pub fn call<const N: usize>(&mut self, operator: &str, args: [(&str, Argument); N], meta: TensorMeta) -> ValueId {
        let node = self.graph.make(operator, args, meta);
        // A call is made with its result.
        let result = node.result().unwrap_or(ValueId(u32::MAX));
        self.made.push(node);
        result
    }

    /// Any node; its results are values that [`add_value`](Writer::add_value) made.
    pub fn push(&mut self, node: Node) {
        self.made.push(node);
    }

    /// A value for the results of [`push`](Writer::push).
    pub fn add_value(&mut self, name: &str, meta: TensorMeta) -> ValueId {
        self.graph.add_value(name, meta)
    }
}

/// Answers a match: an argument for each result of the root, or `None` to leave everything as it is.
type Write<'w> = dyn FnMut(&mut Writer<'_>, &Match) -> Result<Option<Vec<Argument>>, Error> + 'w;

impl Pattern {
    /// Nothing to look for yet.
    pub fn new() -> Self {
        Pattern::default()
    }

    fn add(&mut self, term: Term) -> Part {
        self.terms.push(term);
        Part(self.terms.len().saturating_sub(1))
    }

    /// Matches any argument: a value, a literal, a list. One name always matches equal arguments.
    pub fn any(&mut self, name: &str) -> Part {
        self.add(Term::Any(name.to_owned()))
    }

    /// This literal.
    pub fn literal(&mut self, argument: impl Into<Argument>) -> Part {
        self.add(Term::Exactly(argument.into()))
    }

    /// A list of as many items.
    pub fn list(&mut self, items: impl IntoIterator<Item = Part>) -> Part {
        let items = items.into_iter().collect();
        self.add(Term::List(items))
    }

    /// The first result of a call, by the full name of the operator; the call made last is the root.
    pub fn call<const N: usize>(&mut self, operator: &str, args: [(&str, Part); N]) -> Part {
        let args = args.into_iter().map(|(name, part)| (name.to_owned(), part)).collect();
        let call = self.add(Term::Call { op: OpName::parse(operator), args, open: false });
        self.root = Some(call);
        call
    }

    /// Another result of a call, counted from 0.
    pub fn result(&mut self, call: Part, index: usize) -> Part {
        self.add(Term::Result { call, index })
    }

    /// Lets a call have any other arguments than those the pattern names.
    pub fn open(&mut self, call: Part) {
        if let Some(Term::Call { open, .. }) = self.terms.get_mut(call.0) {
            *open = true;
        }
    }

    /// Replaces the pattern wherever it fits in a program, and answers how often it did. The signature follows.
    pub fn rewrite(
        &self,
        program: &mut ExportedProgram<'_>,
        write: impl FnMut(&mut Writer<'_>, &Match) -> Result<Option<Vec<Argument>>, Error>,
    ) -> Result<usize, Error> {
        let count = self.rewrite_graph(&mut program.graph, write)?;
        program.name_outputs();
        Ok(count)
    }

    /// The same in a graph. What the function answers must look like the results it replaces.
    pub fn rewrite_graph(
        &self,
        graph: &mut Graph,
        mut write: impl FnMut(&mut Writer<'_>, &Match) -> Result<Option<Vec<Argument>>, Error>,
    ) -> Result<usize, Error> {
        // If anything goes wrong, the graph stays as it was.
        let mut changed = graph.clone();
        let count = self.in_graph(&mut changed, &mut write)?;
        changed.check()?;
        *graph = changed;
        Ok(count)
    }

    fn in_graph(&self, graph: &mut Graph, write: &mut Write<'_>) -> Result<usize, Error> {
        let mut count = 0usize;
        graph.each_subgraph(|inner| {
            count = count.saturating_add(self.in_graph(inner, write)?);
            Ok::<(), Error>(())
        })?;
        let mut places = Places::new(graph);
        for mut node in std::mem::take(&mut graph.nodes) {
            places.substitute(&mut node);
            let Some(found) = self.find(&places, &node) else {
                places.push(node);
                continue;
            };
            let mut nodes: Vec<Node> = found.places.iter().filter_map(|place| places.node(*place)).cloned().collect();
            nodes.push(node);
            let mut writer = Writer { graph: &mut *graph, made: Vec::new() };
            let found_here = Match { bound: found.bound, nodes };
            let answer = write(&mut writer, &found_here)?;
            let (made, Some(root)) = (writer.made, found_here.nodes.last()) else { continue };
            match answer {
                Some(results) => {
                    places.replace(graph, &found.places, root, made, results)?;
                    count = count.saturating_add(1);
                }
                None => places.push(root.clone()),
            }
        }
        places.finish(graph);
        Ok(count)
    }

    /// Matches the pattern with this node as its root.
    fn find(&self, places: &Places, node: &Node) -> Option<Found> {
        let mut found = Found::default();
        let Some(Term::Call { op, args, open }) = self.root.and_then(|root| self.terms.get(root.0)) else {
            return None;
        };
        let fits = self.calls(places, op.as_ref(), args, *open, node, &mut found);
        found.places = found.calls.values().copied().collect();
        found.places.sort_unstable();
        found.places.dedup();
        (fits && places.alone(&found.places, node)).then_some(found)
    }

    fn calls(
        &self,
        places: &Places,
        op: Option<&OpName>,
        args: &[(String, Part)],
        open: bool,
        node: &Node,
        found: &mut Found,
    ) -> bool {
        op.is_some()
            && node.target.operator() == op
            && (open || node.inputs.iter().all(|input| args.iter().any(|(name, _)| *name == input.name)))
            && args.iter().all(|(name, part)| node.arg(name).is_some_and(|arg| self.fits(places, *part, arg, found)))
    }

    fn fits(&self, places: &Places, part: Part, arg: &Argument, found: &mut Found) -> bool {
        match self.terms.get(part.0) {
            Some(Term::Any(name)) => match found.bound.get(name) {
                Some(known) => known == arg,
                None => {
                    found.bound.insert(name.clone(), arg.clone());
                    true
                }
            },
            Some(Term::Exactly(literal)) => literal == arg,
            Some(Term::List(parts)) => match arg {
                Argument::List(_, items) if items.len() == parts.len() => {
                    parts.iter().zip(items).all(|(part, item)| self.fits(places, *part, item, found))
                }
                _ => false,
            },
            Some(Term::Call { .. }) => self.result_of(places, part, 0, arg, found),
            Some(Term::Result { call, index }) => self.result_of(places, *call, *index, arg, found),
            None => false,
        }
    }

    fn result_of(&self, places: &Places, call: Part, index: usize, arg: &Argument, found: &mut Found) -> bool {
        let Some((place, made)) = arg.value().and_then(|value| places.maker(value)) else { return false };
        if made != index {
            return false;
        }
        if let Some(known) = found.calls.get(&call) {
            return *known == place;
        }
        let (Some(Term::Call { op, args, open }), Some(node)) = (self.terms.get(call.0), places.node(place)) else {
            return false;
        };
        found.calls.insert(call, place);
        self.calls(places, op.as_ref(), args, *open, node, found)
    }
}

/// Match of a pattern at one place.
#[derive(Default)]
struct Found {
    bound: BTreeMap<String, Argument>,
    /// Index of the node of each call of the pattern but the root.
    calls: BTreeMap<Part, usize>,
    /// The same places in order.
    places: Vec<usize>,
}
