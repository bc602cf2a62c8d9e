//! Values of a payload: each tensor of the graph in the orders of dimensions that nodes asked for.
//!
//! An order lists the dimensions of the tensor as they follow each other in memory, outermost first. Dimensions of values
//! are in that order. Another order is one transposition, or other dimensions of the same bytes where only dimensions of
//! one element change places; each is made once.

use std::collections::BTreeMap;

use edgepack_builder::content::Data;
use edgepack_builder::xnnpack::{PayloadBuilder, Quant, ValueId as Id, ValueSpec, key_of_digest};
use edgepack_format::scalar::ScalarType;
use edgepack_format::xnnpack::{Datatype, Node1x1, NodeUnion, StaticReshape, StaticTranspose};

use super::super::facts::Facts;
use super::super::op::Params;
use super::super::weights;
use crate::archive::Weight;
use crate::error::Error;
use crate::graph::{ExportedProgram, InputKind, Size, TensorMeta, ValueId};
use crate::lower::ByName;

/// Dimensions in the order of memory.
pub(super) type Order = Vec<usize>;

/// Returns the dimensions in their own order.
pub(super) fn plain(rank: usize) -> Order {
    (0..rank).collect()
}

/// Returns the order of images whose channels are innermost.
pub(super) fn image(rank: usize) -> Order {
    [0].into_iter().chain(2..rank).chain([1]).take(rank).collect()
}

/// A value of the payload.
#[derive(Clone, Debug)]
struct Stored {
    id: Id,
    order: Order,
}

/// A payload under construction.
pub(super) struct Emitter<'e, 'p, 'd> {
    pub(super) facts: &'e Facts<'p, 'd>,
    builder: PayloadBuilder,
    stored: BTreeMap<ValueId, Vec<Stored>>,
    /// Outputs that nothing has made yet.
    open: Vec<(ValueId, Stored)>,
    constants: BTreeMap<(ValueId, Order, usize), Id>,
    /// Floats that are taken back from bytes when they are asked for.
    pub(super) from_bytes: BTreeMap<ValueId, ValueId>,
    params: BTreeMap<ValueId, Params>,
    /// Rows that were quantised, by their order and how many dimensions make one.
    rows: BTreeMap<(ValueId, Order, u32), Id>,
    external: &'e ByName<String>,
    tags: BTreeMap<String, String>,
}

/// A payload that is yet to be finished, and the data files that some of its constants go to, by key.
pub(in super::super) struct Emitted {
    pub(in super::super) builder: PayloadBuilder,
    pub(in super::super) tags: BTreeMap<String, String>,
}

impl<'e, 'p, 'd> Emitter<'e, 'p, 'd> {
    /// A payload with the inputs and outputs of a program.
    pub(super) fn new(
        program: &'p ExportedProgram<'d>,
        facts: &'e Facts<'p, 'd>,
        params: BTreeMap<ValueId, Params>,
        external: &'e ByName<String>,
    ) -> Result<Self, Error> {
        let mut emitter = Emitter {
            facts,
            builder: PayloadBuilder::new(),
            stored: BTreeMap::new(),
            open: Vec::new(),
            constants: BTreeMap::new(),
            from_bytes: BTreeMap::new(),
            params,
            rows: BTreeMap::new(),
            external,
            tags: BTreeMap::new(),
        };
        for spec in program.inputs.iter().filter(|spec| spec.kind == InputKind::User) {
            let Some(value) = spec.arg.value() else { continue };
            let order = emitter.given_order(value);
            let id = emitter.builder.input(emitter.spec(value, &order)?)?;
            emitter.stored.entry(value).or_default().push(Stored { id, order });
        }
        for output in &program.graph.outputs {
            let Some(value) = output.value() else { continue };
            let order = emitter.given_order(value);
            let id = emitter.builder.output(emitter.spec(value, &order)?)?;
            emitter.open.push((value, Stored { id, order }));
        }
        Ok(emitter)
    }

    /// Returns the order in which the caller has a tensor: that of its strides.
    fn given_order(&self, value: ValueId) -> Order {
        let rank = self.facts.rank(value);
        match self.facts.graph.tensor(value).is_some_and(TensorMeta::is_given_channels_last) {
            true => image(rank),
            false => plain(rank),
        }
    }

    /// Returns the element type, dimensions and parameters of a tensor in an order.
    fn spec(&self, value: ValueId, order: &[usize]) -> Result<ValueSpec, Error> {
        Ok(self.spec_of(value, self.dims(value, order)?))
    }

    /// Returns the element type and parameters of a tensor with other dimensions.
    pub(super) fn spec_of(&self, value: ValueId, dims: Vec<u32>) -> ValueSpec {
        let quant = |params: &Params| Quant::PerTensor { scale: params.scale as f32, zero_point: params.zero_point };
        match self.facts.graph.tensor(value).map(|meta| meta.scalar_type) {
            Some(ScalarType::HALF) => ValueSpec::new(Datatype::FP16, dims),
            Some(ScalarType::CHAR) => {
                let quant = self.params.get(&value).map_or(Quant::None, quant);
                ValueSpec::new(Datatype::QINT8, dims).quantized(quant)
            }
            _ => ValueSpec::new(Datatype::FP32, dims),
        }
    }

    /// Returns the parameters of bytes.
    pub(super) fn params(&self, value: ValueId) -> Option<Params> {
        self.params.get(&value).copied()
    }

    /// Returns the upper bounds of the dimensions of a tensor in an order. A number alone has one dimension.
    pub(super) fn dims(&self, value: ValueId, order: &[usize]) -> Result<Vec<u32>, Error> {
        let bounds = self.facts.bounds(value).map_err(|reason| self.failure(value, &reason.to_string()))?;
        let dims = order.iter().map(|dim| bounds.get(*dim).copied().unwrap_or(1));
        let dims: Vec<u32> = dims.map(|dim| u32::try_from(dim).unwrap_or(u32::MAX)).collect();
        Ok(if dims.is_empty() { vec![1] } else { dims })
    }

    /// Makes the error of a value that cannot be written although the partitioner took it.
    pub(super) fn failure(&self, value: ValueId, message: &str) -> Error {
        Error::program(format!("value `{}`", self.facts.name(value)), message)
    }

    /// Appends a node.
    pub(super) fn node(&mut self, kind: NodeUnion<'static>, bounds: Option<(f32, f32)>) {
        self.builder.node_with(kind, bounds, 0);
    }

    /// Makes a value without a tensor of its own.
    pub(super) fn hidden(&mut self, spec: ValueSpec) -> Result<Id, Error> {
        Ok(self.builder.value(spec)?)
    }

    /// Makes the value of a tensor that a node gives in an order: the output itself if it is one in that order.
    pub(super) fn make(&mut self, value: ValueId, order: &[usize]) -> Result<u32, Error> {
        let fits = |(open, stored): &(ValueId, Stored)| *open == value && stored.order == order;
        let stored = match self.open.iter().position(fits) {
            Some(place) => self.open.remove(place).1,
            None => Stored { id: self.builder.value(self.spec(value, order)?)?, order: order.to_vec() },
        };
        let id = stored.id.id();
        self.stored.entry(value).or_default().push(stored);
        Ok(id)
    }

    /// Lets a tensor be the values of another, each in the order that `change` makes of that of the other.
    pub(super) fn alias(
        &mut self,
        value: ValueId,
        of: ValueId,
        change: impl Fn(&[usize]) -> Order,
    ) -> Result<(), Error> {
        self.ready(of)?;
        let all = self.stored.get(&of).cloned().unwrap_or_default();
        let renamed = all.into_iter().map(|stored| Stored { order: change(&stored.order), ..stored });
        self.stored.entry(value).or_default().extend(renamed);
        Ok(())
    }

    /// Returns the order in which a tensor is at hand.
    pub(super) fn order(&self, value: ValueId) -> Order {
        let source = self.from_bytes.get(&value).unwrap_or(&value);
        let first = self.stored.get(&value).or_else(|| self.stored.get(source)).and_then(|all| all.first());
        first.map_or_else(|| plain(self.facts.rank(value)), |stored| stored.order.clone())
    }

    /// Returns whether a tensor is at hand in an order.
    pub(super) fn has(&self, value: ValueId, order: &[usize]) -> bool {
        self.stored.get(&value).is_some_and(|all| all.iter().any(|stored| stored.order == order))
    }

    /// Takes floats back from bytes if that was put off.
    fn ready(&mut self, value: ValueId) -> Result<(), Error> {
        if self.stored.contains_key(&value) {
            return Ok(());
        }
        let Some(bytes) = self.from_bytes.get(&value).copied() else {
            return Err(self.failure(value, "it is read before it is made"));
        };
        let order = self.order(bytes);
        let (input_id, output_id) = (self.get(bytes, &order)?, self.make(value, &order)?);
        self.node(NodeUnion::Convert(Node1x1 { input_id, output_id, flags: 0 }), None);
        Ok(())
    }

    /// Returns a tensor in an order, rearranged if it is not at hand in it.
    pub(super) fn get(&mut self, value: ValueId, order: &[usize]) -> Result<u32, Error> {
        if self.facts.constant(value).is_some() {
            return self.constant(value, order);
        }
        self.ready(value)?;
        let all = self.stored.get(&value).map(Vec::as_slice).unwrap_or_default();
        if let Some(stored) = all.iter().find(|stored| stored.order == order) {
            return Ok(stored.id.id());
        }
        let same = all.iter().find(|stored| self.is_same_memory(value, &stored.order, order));
        let Some(from) = same.or(all.first()).cloned() else {
            return Err(self.failure(value, "it is read before it is made"));
        };
        let output = self.make(value, order)?;
        self.rearrange(value, &from, order, output)?;
        Ok(output)
    }

    /// Returns a tensor whose elements are in the order of its dimensions, with whatever dimensions of one element in
    /// between: for nodes that give it other dimensions.
    pub(super) fn get_in_order(&mut self, value: ValueId) -> Result<u32, Error> {
        let order = plain(self.facts.rank(value));
        if self.facts.constant(value).is_none() {
            self.ready(value)?;
            let all = self.stored.get(&value).map(Vec::as_slice).unwrap_or_default();
            if let Some(stored) = all.iter().find(|stored| self.is_same_memory(value, &stored.order, &order)) {
                return Ok(stored.id.id());
            }
        }
        self.get(value, &order)
    }

    /// Returns whether two orders of a tensor are the same bytes: they differ in dimensions of one element alone.
    fn is_same_memory(&self, value: ValueId, a: &[usize], b: &[usize]) -> bool {
        let sizes = self.facts.graph.tensor(value).map(|meta| meta.sizes.as_slice()).unwrap_or_default();
        let long = |dim: &&usize| sizes.get(**dim).and_then(Size::known) != Some(1);
        a.len() == b.len() && a.iter().filter(long).eq(b.iter().filter(long))
    }

    fn rearrange(&mut self, value: ValueId, from: &Stored, order: &[usize], output_id: u32) -> Result<(), Error> {
        let input_id = from.id.id();
        let sizes = self.facts.graph.tensor(value).map(|meta| meta.sizes.clone()).unwrap_or_default();
        let formulas = sizes.iter().filter(|size| size.known().is_none()).count();
        let kind = if from.order == order {
            NodeUnion::Copy(Node1x1 { input_id, output_id, flags: 0 })
        } else if formulas <= 1 && self.is_same_memory(value, &from.order, order) {
            let sizes: Vec<Size> = order.iter().filter_map(|dim| sizes.get(*dim).cloned()).collect();
            reshape(&sizes, input_id, output_id)
        } else {
            let place = |dim: &usize| from.order.iter().position(|have| have == dim).map(|place| place as u32);
            let perm = order.iter().map(place).collect::<Option<Vec<u32>>>();
            let perm = perm.ok_or_else(|| self.failure(value, "its orders have other dimensions"))?;
            let num_dims = perm.len() as u32;
            NodeUnion::StaticTranspose(StaticTranspose {
                num_dims,
                perm: Some(perm.into()),
                input_id,
                output_id,
                flags: 0,
            })
        };
        self.node(kind, None);
        Ok(())
    }

    /// Appends a node that gives a value these sizes.
    pub(super) fn reshaped(&mut self, sizes: &[Size], input_id: u32, output_id: u32) {
        self.node(reshape(sizes, input_id, output_id), None);
    }

    /// Returns a constant in an order, which may have more dimensions than it: those in front are of one element.
    pub(super) fn constant(&mut self, value: ValueId, order: &[usize]) -> Result<u32, Error> {
        let Some((name, weight)) = self.facts.constant(value) else {
            return Err(self.failure(value, "it is not a constant"));
        };
        let rank = weight.sizes().len();
        let more = order.len().saturating_sub(rank);
        let is_plain = order.iter().enumerate().all(|(place, dim)| place == *dim);
        let key = (value, if is_plain { Vec::new() } else { order.to_vec() }, if is_plain { 0 } else { order.len() });
        if let Some(id) = self.constants.get(&key) {
            return Ok(id.id());
        }
        let (weight, order) = match more > 0 && !is_plain {
            true => {
                (raised(weight, more).ok_or_else(|| self.failure(value, "it cannot be broadcast"))?, order.to_vec())
            }
            false if is_plain => (weight.clone(), plain(rank)),
            false => (weight.clone(), order.to_vec()),
        };
        let data = weights::data(&weight, &order)?;
        let dims = order.iter().map(|dim| weight.sizes().get(*dim).map_or(1, |size| *size as u32));
        let dims: Vec<u32> = if order.is_empty() { vec![1] } else { dims.collect() };
        let spec = self.spec_of(value, dims);
        let id = self.constant_of(name, spec, data)?;
        self.constants.insert(key, id);
        Ok(id.id())
    }

    /// Adds a constant made of the weight of this name.
    pub(super) fn constant_of(
        &mut self,
        name: &str,
        spec: ValueSpec,
        data: impl Into<Data<'static>>,
    ) -> Result<Id, Error> {
        let data = data.into();
        self.tag(name, &data, false)?;
        let constant = self.builder.constant(data)?;
        Ok(self.builder.constant_value(spec, constant)?)
    }

    /// Adds scales made of the weight of this name.
    pub(super) fn scales_of(
        &mut self,
        name: &str,
        bytes: Vec<u8>,
        count: usize,
    ) -> Result<edgepack_builder::xnnpack::Scales, Error> {
        self.tag(name, &bytes.clone().into(), true)?;
        let constant = self.builder.scales(bytes)?;
        Ok(edgepack_builder::xnnpack::Scales::Constant(constant, u32::try_from(count).unwrap_or(u32::MAX)))
    }

    fn tag(&mut self, name: &str, data: &Data<'_>, is_scales: bool) -> Result<(), Error> {
        // What was made of a weight has its name and a word behind it.
        let of_weight = || name.rsplit_once('.').and_then(|(weight, _)| self.external.of(weight));
        if let Some(tag) = self.external.of(name).or_else(of_weight) {
            self.tags.insert(key_of_digest(&data.digest()?, is_scales), tag);
        }
        Ok(())
    }

    /// Returns floats quantised row by row, a row being so many dimensions.
    pub(super) fn rows(&mut self, value: ValueId, order: &[usize], num_nonbatch_dims: u32) -> Result<u32, Error> {
        let key = (value, order.to_vec(), num_nonbatch_dims);
        if let Some(id) = self.rows.get(&key) {
            return Ok(id.id());
        }
        let input_id = self.get(value, order)?;
        let spec = ValueSpec::new(Datatype::QDINT8, self.dims(value, order)?);
        let id = self.builder.value(spec.quantized(Quant::PerToken { num_nonbatch_dims: num_nonbatch_dims as i32 }))?;
        self.node(NodeUnion::Convert(Node1x1 { input_id, output_id: id.id(), flags: 0 }), None);
        self.rows.insert(key, id);
        Ok(id.id())
    }

    /// Finishes the payload: outputs that are at hand in another order, or as another value, are made now.
    pub(super) fn finish(mut self) -> Result<Emitted, Error> {
        while let Some((value, slot)) = self.open.first().cloned() {
            self.ready(value)?;
            // Taking floats back may have made it.
            if self.open.first().is_none_or(|(open, _)| *open != value) {
                continue;
            }
            self.open.remove(0);
            let all = self.stored.get(&value).map(Vec::as_slice).unwrap_or_default();
            let exact = all.iter().find(|stored| stored.order == slot.order);
            let same = || all.iter().find(|stored| self.is_same_memory(value, &stored.order, &slot.order));
            let Some(from) = exact.or_else(same).or(all.first()).cloned() else {
                return Err(self.failure(value, "nothing makes it"));
            };
            self.rearrange(value, &from, &slot.order, slot.id.id())?;
        }
        Ok(Emitted { builder: self.builder, tags: self.tags })
    }
}

/// Returns the node that gives a value other dimensions. One may be a formula, which the node finds.
fn reshape(sizes: &[Size], input_id: u32, output_id: u32) -> NodeUnion<'static> {
    let size = |size: &Size| size.known().and_then(|size| u32::try_from(size).ok()).unwrap_or(0);
    let sizes: Vec<u32> = if sizes.is_empty() { vec![1] } else { sizes.iter().map(size).collect() };
    let num_dims = sizes.len() as u32;
    NodeUnion::StaticReshape(StaticReshape { num_dims, new_shape: Some(sizes.into()), input_id, output_id, flags: 0 })
}

/// Returns a weight with dimensions of one element in front.
fn raised<'w>(weight: &Weight<'w>, more: usize) -> Option<Weight<'w>> {
    weight.reviewed(|sizes, strides, _| {
        sizes.splice(0..0, vec![1; more]);
        strides.splice(0..0, vec![0; more]);
        Some(())
    })
}
