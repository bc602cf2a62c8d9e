//! Facts about a graph that recognition and emission ask for: makers, readers, constants, bounds.

use std::collections::{BTreeMap, BTreeSet};

use edgepack_format::scalar::ScalarType;

use super::reason::Reason;
use crate::archive::Weight;
use crate::graph::{Argument, ExportedProgram, Graph, Node, Ranges, TensorMeta, ValueId};

/// Most dimensions of a tensor.
pub(super) const MOST_DIMS: usize = 6;

/// A graph with its program around it.
pub(super) struct Facts<'p, 'd> {
    pub(super) graph: &'p Graph,
    pub(super) ranges: &'p Ranges,
    constants: BTreeMap<ValueId, (&'p str, &'p Weight<'d>)>,
    makers: BTreeMap<ValueId, usize>,
    readers: BTreeMap<ValueId, Vec<usize>>,
    outputs: BTreeSet<ValueId>,
}

impl<'p, 'd> Facts<'p, 'd> {
    /// Facts about a program's own graph.
    pub(super) fn of(program: &'p ExportedProgram<'d>) -> Self {
        let changed: BTreeSet<&str> = program.changed().collect();
        let constants = program.inputs.iter().filter_map(|spec| {
            let (name, value) = (spec.kind.tensor()?, spec.arg.value()?);
            let weight = program.weights.find(name).filter(|_| !changed.contains(name))?;
            Some((value, (name, weight)))
        });
        let constants = constants.collect();
        let (graph, ranges) = (&program.graph, &program.ranges);
        let (mut makers, mut readers) = (BTreeMap::new(), BTreeMap::<ValueId, Vec<usize>>::new());
        for (index, node) in graph.nodes.iter().enumerate() {
            node.each_output(&mut |id| {
                makers.insert(id, index);
            });
            node.each_input(&mut |id| {
                let readers = readers.entry(id).or_default();
                if readers.last() != Some(&index) {
                    readers.push(index);
                }
            });
        }
        let mut outputs = BTreeSet::new();
        graph.outputs.iter().for_each(|output| {
            output.each_value(&mut |id| {
                outputs.insert(id);
            });
        });
        Facts { graph, ranges, constants, makers, readers, outputs }
    }

    /// Returns the name and content of a constant; `None` for values that are made or change.
    pub(super) fn constant(&self, value: ValueId) -> Option<(&'p str, &'p Weight<'d>)> {
        self.constants.get(&value).copied()
    }

    /// Returns the place of the node that makes a value.
    pub(super) fn maker(&self, value: ValueId) -> Option<usize> {
        self.makers.get(&value).copied()
    }

    /// Returns the node that makes a value, if it calls an operator.
    pub(super) fn made_by(&self, value: ValueId, name: &str) -> Option<&'p Node> {
        self.graph.nodes.get(self.maker(value)?).filter(|node| node.calls(name))
    }

    /// Returns the places of the nodes that read a value.
    pub(super) fn readers(&self, value: ValueId) -> &[usize] {
        self.readers.get(&value).map_or(&[], Vec::as_slice)
    }

    /// Returns the only reader of a value that is not an output of the graph.
    pub(super) fn only_reader(&self, value: ValueId) -> Option<usize> {
        match self.readers(value) {
            [reader] if !self.outputs.contains(&value) => Some(*reader),
            _ => None,
        }
    }

    /// Returns whether a value is an output of the graph.
    pub(super) fn is_output(&self, value: ValueId) -> bool {
        self.outputs.contains(&value)
    }

    /// Returns whether nothing reads a value.
    pub(super) fn is_unused(&self, value: ValueId) -> bool {
        self.readers(value).is_empty() && !self.outputs.contains(&value)
    }

    /// Returns the metadata of a tensor.
    pub(super) fn tensor(&self, value: ValueId) -> Result<&'p TensorMeta, Reason> {
        self.graph.tensor(value).ok_or_else(|| Reason::NotTensor(self.name(value)))
    }

    /// Returns the name of a value.
    pub(super) fn name(&self, value: ValueId) -> String {
        self.graph.name(value).to_owned()
    }

    /// Returns the number of dimensions of a tensor.
    pub(super) fn rank(&self, value: ValueId) -> usize {
        self.graph.tensor(value).map_or(0, TensorMeta::rank)
    }

    /// Returns the upper bounds of the sizes of a tensor.
    pub(super) fn bounds(&self, value: ValueId) -> Result<Vec<usize>, Reason> {
        let meta = self.tensor(value)?;
        let unbounded = |_| Reason::Dynamic { value: self.name(value), why: "one has no upper bound" };
        crate::lower::bounds(meta, self.ranges, "").map_err(unbounded)
    }

    /// Returns the sizes of a tensor that are numbers.
    pub(super) fn sizes(&self, value: ValueId, why: &'static str) -> Result<Vec<usize>, Reason> {
        self.tensor(value)?.known_sizes().ok_or_else(|| Reason::Dynamic { value: self.name(value), why })
    }

    /// Returns the element type of a tensor of floats that nodes compute with.
    pub(super) fn float(&self, value: ValueId) -> Result<ScalarType, Reason> {
        let meta = self.tensor(value)?;
        match meta.scalar_type {
            ScalarType::FLOAT | ScalarType::HALF => self.shape(value).map(|()| meta.scalar_type),
            found => Err(Reason::Type { value: self.name(value), found, want: "f32 and f16" }),
        }
    }

    /// Checks that a tensor has dimensions that a value of a payload can have.
    pub(super) fn shape(&self, value: ValueId) -> Result<(), Reason> {
        let meta = self.tensor(value)?;
        // A number alone is a constant of one dimension, but no tensor that a caller gives or takes.
        if meta.rank() > MOST_DIMS || meta.rank() == 0 && self.constant(value).is_none() {
            return Err(Reason::Rank { value: self.name(value), found: meta.rank(), want: "1 to 6" });
        }
        match self.bounds(value)?.contains(&0) {
            true => Err(Reason::Empty(self.name(value))),
            false => Ok(()),
        }
    }
}

/// A call that is looked at.
#[derive(Clone, Copy)]
pub(super) struct Call<'f, 'p, 'd> {
    pub(super) facts: &'f Facts<'p, 'd>,
    pub(super) node: &'p Node,
}

impl Call<'_, '_, '_> {
    /// Returns a tensor operand.
    pub(super) fn value(&self, name: &'static str) -> Result<ValueId, Reason> {
        let missing = Reason::Argument { argument: name, why: "it is not a tensor" };
        self.node.value_arg(name).ok_or(missing)
    }

    /// Returns a tensor operand of floats.
    pub(super) fn float(&self, name: &'static str) -> Result<ValueId, Reason> {
        let value = self.value(name)?;
        self.facts.float(value).map(|_| value)
    }

    /// Returns an operand that may be missing.
    pub(super) fn optional(&self, name: &'static str) -> Result<Option<ValueId>, Reason> {
        match self.node.arg(name) {
            None | Some(Argument::None) => Ok(None),
            Some(_) => self.value(name).map(Some),
        }
    }

    /// Returns the first result, which is a tensor.
    pub(super) fn result(&self) -> Result<ValueId, Reason> {
        self.node.result().ok_or(Reason::NotOperator)
    }

    /// Returns a whole number, or what stands for it.
    pub(super) fn int(&self, name: &'static str, otherwise: i64) -> Result<i64, Reason> {
        match self.node.arg(name) {
            None | Some(Argument::None) => Ok(otherwise),
            Some(arg) => arg.as_int().ok_or(Reason::Argument { argument: name, why: "it is not a number" }),
        }
    }

    /// Returns a truth value, or what stands for it.
    pub(super) fn flag(&self, name: &'static str, otherwise: bool) -> Result<bool, Reason> {
        match self.node.arg(name) {
            None | Some(Argument::None) => Ok(otherwise),
            Some(Argument::Bool(truth)) => Ok(*truth),
            Some(_) => Err(Reason::Argument { argument: name, why: "it is not a truth value" }),
        }
    }

    /// Returns a literal number, if there is one.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<f64>, Reason> {
        match self.node.arg(name) {
            None | Some(Argument::None) => Ok(None),
            Some(Argument::Float(number)) => Ok(Some(*number)),
            Some(Argument::Int(number)) => Ok(Some(*number as f64)),
            Some(Argument::Bool(truth)) => Ok(Some(f64::from(u8::from(*truth)))),
            Some(_) => Err(Reason::Argument { argument: name, why: "it is not a number" }),
        }
    }

    /// Returns a list of whole numbers; none if it is missing.
    pub(super) fn ints(&self, name: &'static str) -> Result<Vec<i64>, Reason> {
        match self.node.arg(name) {
            None | Some(Argument::None) => Ok(Vec::new()),
            Some(arg) => arg.as_ints().ok_or(Reason::Argument { argument: name, why: "it is not a list of numbers" }),
        }
    }

    /// Returns two numbers of a list that has both, one for both, or none.
    pub(super) fn pair(&self, name: &'static str, otherwise: u32) -> Result<[u32; 2], Reason> {
        let wrong = || Reason::Argument { argument: name, why: "it is not two numbers from 0 on" };
        let number = |number: &i64| u32::try_from(*number).map_err(|_| wrong());
        match self.ints(name)?.as_slice() {
            [] => Ok([otherwise; 2]),
            [both] => Ok([number(both)?; 2]),
            [a, b] => Ok([number(a)?, number(b)?]),
            _ => Err(wrong()),
        }
    }

    /// Returns a dimension of a tensor, counted from the front.
    pub(super) fn dim(&self, number: i64, rank: usize, name: &'static str) -> Result<usize, Reason> {
        dim(number, rank).ok_or(Reason::Argument { argument: name, why: "there is no such dimension" })
    }
}

/// Returns a dimension counted from the front, of one that may be counted from the end.
pub(super) fn dim(number: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?;
    let from_front = if number < 0 { number.checked_add(rank)? } else { number };
    usize::try_from(from_front).ok().filter(|_| from_front < rank)
}
