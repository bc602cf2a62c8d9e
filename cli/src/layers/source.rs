//! Sources of results: a method that runs, watched instruction by instruction.
//!
//! A source is asked twice: first what results there are, then for the elements of those that are wanted, one at a time.
//! Invariant: both times the results come in the same order; a run that goes another way is an error.

use std::collections::{BTreeMap, HashMap};

use edgepack_executor::observer::{Event, Observer, Results};
use edgepack_executor::{Input, Method};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorBuf;

use super::seen::{Affine, Place, Seen, elements};
use crate::spelling::cut;
use crate::status::Failure;
use crate::value::Value;

/// The most results of a run that are compared.
pub const MOST: usize = 1 << 15;

/// A request for the elements of a result: its index, and whether its dimensions are those of an image with channels last.
pub type Wanted = (usize, bool);

/// Taker of elements: the position among the wanted ones, and the elements in index order.
pub type Take<'t> = dyn FnMut(usize, TensorBuf) + Send + 't;

/// Results in order.
pub trait Source: Send {
    /// Lists all results, the first [`MOST`] of them, and says whether there were more.
    ///
    /// # Errors
    ///
    /// The run failed.
    fn describe(&mut self) -> Result<(Vec<Seen>, bool), Failure>;

    /// Gives the elements of wanted results, in order of their indices.
    ///
    /// # Errors
    ///
    /// The run failed.
    fn give(&mut self, wanted: &[Wanted], take: &mut Take<'_>) -> Result<(), Failure>;
}

/// Facts of a file about the instructions of a method.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Names of nodes of the exported program, by chain and instruction.
    pub names: HashMap<(usize, usize), String>,
    /// Lines of the model's source, by chain and instruction.
    pub sources: HashMap<(usize, usize), String>,
    /// Debug handles of nodes of payloads, by delegate and node.
    pub handles: BTreeMap<(usize, u32), u32>,
    /// Meaning of the integers that nodes of payloads make, by delegate and node.
    pub affine: BTreeMap<(usize, u32), Affine>,
}

/// A method that runs on its inputs.
pub struct Running {
    /// Method, loaded.
    pub method: Method,
    /// Inputs of the runs before, which leave state.
    pub before: Vec<Vec<Value>>,
    /// Inputs.
    pub inputs: Vec<Value>,
    /// Facts of the file.
    pub facts: Facts,
}

impl Running {
    fn run(&mut self, observer: &mut (dyn Observer + Send)) -> Result<(), Failure> {
        self.method.reset()?;
        for inputs in &self.before {
            self.method.run(&given(inputs))?;
        }
        self.method.run_observed(&given(&self.inputs), Some(observer))?;
        Ok(())
    }
}

fn given(values: &[Value]) -> Vec<Input<'_>> {
    values.iter().filter_map(Value::input).collect()
}

impl Source for Running {
    fn describe(&mut self) -> Result<(Vec<Seen>, bool), Failure> {
        let mut notes = Notes::default();
        self.run(&mut notes)?;
        let Notes { mut seen, more, .. } = notes;
        for index in 0..seen.len() {
            // Calls before the last of a node make what it takes, not what it gives.
            let next = seen.get(index + 1).map(|next: &Seen| (next.place(), next.visit));
            let one = &mut seen[index];
            one.name = self.facts.names.get(&(one.chain, one.instruction)).cloned();
            one.source = self.facts.sources.get(&(one.chain, one.instruction)).cloned();
            let Some((delegate, node)) = one.delegate.zip(one.node) else { continue };
            one.handle = self.facts.handles.get(&(delegate, node)).copied();
            let is_last = next != Some((one.place(), one.visit));
            if is_last && matches!(one.dtype, ScalarType::CHAR | ScalarType::BYTE) {
                one.affine = self.facts.affine.get(&(delegate, node)).copied();
            }
        }
        Ok((seen, more))
    }

    fn give(&mut self, wanted: &[Wanted], take: &mut Take<'_>) -> Result<(), Failure> {
        let mut copies = Copies { wanted, next: 0, index: 0, take, error: None };
        self.run(&mut copies)?;
        let (given, error) = (copies.next, copies.error);
        match error {
            Some(error) => Err(Failure::cannot_run(error)),
            None if given < wanted.len() => Err(Failure::cannot_run("the second run went another way than the first")),
            None => Ok(()),
        }
    }
}

/// Notes what there is.
#[derive(Default)]
struct Notes {
    seen: Vec<Seen>,
    /// By place, how often it was reached.
    visits: HashMap<Place, usize>,
    last: Option<Place>,
    call: usize,
    more: bool,
}

impl Observer for Notes {
    fn after(&mut self, event: &Event<'_>, results: &Results<'_>) {
        let place = (event.chain, event.instruction, event.node);
        match event.node.is_some() && self.last == Some(place) {
            true => self.call += 1,
            false => {
                *self.visits.entry(place).or_default() += 1;
                (self.last, self.call) = (Some(place), 0);
            }
        }
        let visit = self.visits.get(&place).map_or(0, |count| count - 1);
        for (output, tensor) in results.tensors().iter().enumerate() {
            if self.seen.len() == MOST {
                self.more = true;
                return;
            }
            let mut seen = Seen {
                chain: event.chain,
                instruction: event.instruction,
                delegate: event.delegate,
                node: event.node,
                visit,
                call: self.call,
                output,
                operator: cut(event.name),
                name: None,
                handle: None,
                source: None,
                dtype: tensor.dtype,
                sizes: tensor.sizes.to_vec(),
                affine: None,
                sample: Vec::new(),
                turned: Vec::new(),
            };
            seen.look(tensor.strides, tensor.bytes());
            self.seen.push(seen);
        }
    }
}

/// Copies what is wanted.
struct Copies<'c, 't> {
    wanted: &'c [Wanted],
    next: usize,
    index: usize,
    take: &'c mut Take<'t>,
    error: Option<String>,
}

impl Observer for Copies<'_, '_> {
    fn after(&mut self, _: &Event<'_>, results: &Results<'_>) {
        for tensor in results.tensors() {
            if let Some(&(index, turned)) = self.wanted.get(self.next)
                && index == self.index
            {
                match elements(tensor, turned) {
                    Ok(elements) => (self.take)(self.next, elements),
                    Err(error) => self.error = Some(error.to_string()),
                }
                self.next += 1;
            }
            self.index += 1;
        }
    }
}
