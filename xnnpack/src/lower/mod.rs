//! Lowering of a payload to instructions: values become temporaries, nodes become calls of operators.
//!
//! Dimensions of a payload are physical, so every value is a contiguous tensor here. An argument of the call in another
//! dim order is looked at through a view of the same bytes. Sizes are bounds: those of the arguments, and what nodes make
//! of them; at run time every operator sets the sizes of its results.
//!
//! Invariant: a node whose meaning is not certain is refused by name, never approximated.

mod batch;
mod convert;
mod elements;
mod float;
mod held;
mod image;
mod quantized;
mod shape;
mod values;

use edgepack_executor::delegate::Instructions;
use edgepack_executor::kernel::{KernelError, Prepare};
use edgepack_format::finding::ErrorCode;
use edgepack_format::limits::Limits;
use edgepack_format::xnnpack::{Fields, Node, NodeUnion, Payload, Shape};

use crate::constants::Weights;
use held::Held;
use values::{Lowered, Values};

/// Makes the instructions for one call.
pub(crate) fn lower(
    payload: &Payload<'_>,
    weights: &Weights,
    call: &Prepare<'_>,
    limits: &Limits,
) -> Result<Instructions, KernelError> {
    let mut lowering = Lowering::new(payload, weights, call, limits)?;
    for &index in payload.order() {
        let Some(node) = payload.nodes().get(index as usize) else { continue };
        lowering.node = index;
        lowering.node(node).map_err(|error| {
            let kind = node.xnode_union.as_ref().and_then(|node| node.name()).unwrap_or("of an unknown kind");
            KernelError::new(error.code, format!("node {index}, {kind}: {}", error.message))
        })?;
    }
    lowering.values.finish()
}

/// Lists the nodes of a call that are refused. What one of them makes is taken to be as the payload declares it.
pub(crate) fn refusals(
    payload: &Payload<'_>,
    weights: &Weights,
    call: &Prepare<'_>,
    limits: &Limits,
) -> Result<Vec<(u32, KernelError)>, KernelError> {
    let mut lowering = Lowering::new(payload, weights, call, limits)?;
    let mut refused = Vec::new();
    for &index in payload.order() {
        let Some(node) = payload.nodes().get(index as usize) else { continue };
        lowering.node = index;
        if let Err(error) = lowering.node(node) {
            refused.push((index, error));
            let held = lowering.held_by().into_iter().flat_map(Node::outputs);
            let results: Vec<u32> = node.outputs().chain(held).map(|output| output.id).collect();
            results.into_iter().try_for_each(|id| lowering.values.declared(id))?;
        }
    }
    Ok(refused)
}

/// Returns the error that a node is refused with.
fn refused(why: impl Into<String>) -> KernelError {
    KernelError::new(ErrorCode::NotSupported, why.into())
}

/// A graph that is being lowered.
struct Lowering<'l> {
    values: Values<'l>,
    /// The node that is being lowered.
    node: u32,
    held: Held,
    /// Bytes that places under the windows of one node could take, at most.
    most: u64,
}

impl<'l> Lowering<'l> {
    fn new(
        payload: &'l Payload<'l>,
        weights: &'l Weights,
        call: &'l Prepare<'l>,
        limits: &Limits,
    ) -> Result<Self, KernelError> {
        let values = Values::new(payload, weights, call)?;
        let held = Held::of(payload, &values)?;
        Ok(Lowering { values, node: 0, held, most: limits.arena_bytes })
    }

    fn node(&mut self, node: &Node<'_>) -> Result<(), KernelError> {
        if self.held.is_part(self.node) {
            return Ok(());
        }
        let Some(union) = &node.xnode_union else { return Err(refused("it says nothing")) };
        let packs = matches!(union.fields(), Fields::FullyConnected(_) | Fields::Convolution(_));
        let inputs = union.inputs().filter(|input| input.is_present()).enumerate().map(|(place, input)| match place {
            1 if packs => self.values.packable(input.id),
            _ => self.values.get(input.id),
        });
        let inputs: Vec<Lowered> = inputs.collect::<Result<_, _>>()?;
        let shapes: Vec<Shape> = inputs.iter().map(|input| input.shape).collect();
        let shape = union.result_shape(&shapes).map_err(|error| refused(error.to_string()))?;
        let places = union.window_entries(&shape).and_then(|cells| cells.checked_mul(size_of::<u64>() as u64));
        if places.is_none_or(|bytes| bytes > self.most) {
            return Err(refused("its windows look at more places than the limits allow"));
        }
        let last = self.held_by().and_then(|clamp| clamp.outputs().next()).or_else(|| union.outputs().next());
        let id = last.ok_or_else(|| refused("it has no result"))?.id;
        let dynamic = inputs.iter().any(|input| input.dynamic);
        let made = Made { id, shape, dynamic };
        match union.fields() {
            Fields::Unary(_) => self.unary(node, union, &inputs, made),
            Fields::Binary(fields) => match union {
                NodeUnion::BatchMatrixMultiply(_) => self.batch_product(node, fields, &inputs, made),
                _ => self.binary(node, union, &inputs, made),
            },
            Fields::FullyConnected(fields) => self.product(node, fields, &inputs, made),
            Fields::Convolution(fields) => self.convolution(node, union, fields, &inputs, made),
            Fields::Pooling(fields) => self.pooling(node, union, fields, &inputs, made),
            Fields::Concatenate(fields, _) => self.concatenate(fields, &inputs, made),
            Fields::Transpose(fields) => self.transpose(fields, &inputs, made),
            Fields::Reshape(fields) => self.reshape(fields, &inputs, made),
            Fields::Slice(fields) => self.slice(fields, &inputs, made),
            Fields::Pad(fields) => self.pad(fields, &inputs, made),
            Fields::Resize(fields) => self.resize(fields, &inputs, made),
            Fields::LeakyReLU(fields) => self.leaky_relu(node, union, fields, &inputs, made),
            Fields::ELU(fields) => self.elu(node, union, fields, &inputs, made),
            Fields::ArgMaxPooling(fields) => self.greatest(fields, &inputs, made),
            Fields::Attention(_) => self.attention(&inputs, made),
            _ => Err(refused("its kind is not known")),
        }
    }

    /// The clamp that is part of the node that is being lowered.
    fn held_by(&self) -> Option<&'l Node<'l>> {
        self.values.payload.nodes().get(self.held.by(self.node)? as usize)
    }
}

/// A result that a node is about to make.
#[derive(Clone, Copy)]
struct Made {
    id: u32,
    shape: Shape,
    dynamic: bool,
}
