//! Calls that compute element by element, in payloads.

use edgepack_format::scalar::ScalarType;
use edgepack_format::xnnpack::{ELU, LeakyReLU, Node1x1, Node2x1, NodeUnion, StaticTranspose};

use super::super::op::{Binary, Unary};
use super::super::weights;
use super::products::Target;
use super::values::{Emitter, Order, image, plain};
use crate::error::Error;
use crate::graph::{Size, ValueId};

impl Emitter<'_, '_, '_> {
    pub(super) fn unary(&mut self, unary: Unary, x: ValueId, result: ValueId) -> Result<(), Error> {
        let order = self.order(x);
        let (input_id, output_id) = (self.get(x, &order)?, self.make(result, &order)?);
        let node = Node1x1 { input_id, output_id, flags: 0 };
        let kind = match unary {
            Unary::Abs => NodeUnion::Abs(node),
            Unary::Ceiling => NodeUnion::Ceiling(node),
            Unary::Cos => NodeUnion::Cos(node),
            Unary::Elu(alpha) => NodeUnion::ELU(ELU { alpha, input_id, output_id, flags: 0 }),
            Unary::Exp => NodeUnion::Exp(node),
            Unary::Floor => NodeUnion::Floor(node),
            Unary::Gelu => NodeUnion::Gelu(node),
            Unary::Hardswish => NodeUnion::Hardswish(node),
            Unary::Leaky(negative_slope) => {
                NodeUnion::LeakyReLU(LeakyReLU { negative_slope, input_id, output_id, flags: 0 })
            }
            Unary::Log => NodeUnion::Log(node),
            Unary::Negate => NodeUnion::Negate(node),
            Unary::ReciprocalSquareRoot => NodeUnion::ReciprocalSquareRoot(node),
            Unary::Sigmoid => NodeUnion::Sigmoid(node),
            Unary::Sin => NodeUnion::Sin(node),
            Unary::Square => NodeUnion::Square(node),
            Unary::SquareRoot => NodeUnion::SquareRoot(node),
            Unary::Tanh => NodeUnion::Tanh(node),
        };
        self.node(kind, None);
        Ok(())
    }

    pub(super) fn clamp(&mut self, x: ValueId, bounds: (f32, f32), result: ValueId) -> Result<(), Error> {
        let order = self.order(x);
        let (input_id, output_id) = (self.get(x, &order)?, self.make(result, &order)?);
        self.node(NodeUnion::Clamp(Node1x1 { input_id, output_id, flags: 0 }), Some(bounds));
        Ok(())
    }

    pub(super) fn convert(&mut self, x: ValueId, result: ValueId) -> Result<(), Error> {
        let order = self.order(x);
        let (input_id, output_id) = (self.get(x, &order)?, self.make(result, &order)?);
        self.node(NodeUnion::Convert(Node1x1 { input_id, output_id, flags: 0 }), None);
        Ok(())
    }

    pub(super) fn binary(&mut self, binary: Binary, a: ValueId, b: ValueId, target: Target) -> Result<(), Error> {
        let order = self.common_order(a, b, self.facts.rank(target.result));
        let (input1_id, input2_id) = (self.operand(a, &order)?, self.operand(b, &order)?);
        let output_id = self.make(target.result, &order)?;
        let node = Node2x1 { input1_id, input2_id, output_id, flags: 0 };
        let kind = match binary {
            Binary::Add => NodeUnion::Add(node),
            Binary::Divide => NodeUnion::Div(node),
            Binary::Maximum => NodeUnion::Maximum(node),
            Binary::Minimum => NodeUnion::Minimum(node),
            Binary::Multiply => NodeUnion::Multiply(node),
            Binary::Subtract => NodeUnion::Subtract(node),
        };
        self.node(kind, target.bounds);
        Ok(())
    }

    /// Returns an order that needs the fewest elements rearranged: one that both operands have, or that of the larger.
    fn common_order(&self, a: ValueId, b: ValueId, rank: usize) -> Order {
        let whole = |value: &ValueId| self.facts.constant(*value).is_none() && self.facts.rank(*value) == rank;
        let size = |value: ValueId| {
            let bounds = self.facts.bounds(value).unwrap_or_default();
            bounds.into_iter().fold(1usize, usize::saturating_mul)
        };
        match (Some(a).filter(whole), Some(b).filter(whole)) {
            (Some(a), Some(b)) => {
                let (of_a, of_b) = (self.order(a), self.order(b));
                let turned = of_a == plain(rank) && size(a) == size(b);
                match () {
                    () if self.has(a, &of_b) => of_b,
                    () if self.has(b, &of_a) => of_a,
                    () if size(b) > size(a) || turned => of_b,
                    () => of_a,
                }
            }
            (Some(one), None) | (None, Some(one)) => self.order(one),
            (None, None) => plain(rank),
        }
    }

    /// Returns an operand in an order of as many dimensions as the result has; those it lacks are in front.
    fn operand(&mut self, value: ValueId, order: &[usize]) -> Result<u32, Error> {
        let rank = self.facts.rank(value);
        if self.facts.constant(value).is_some() {
            return self.constant(value, order);
        }
        let more = order.len().saturating_sub(rank);
        if more == 0 {
            return self.get(value, order);
        }
        let input_id = self.get(value, &plain(rank))?;
        if order == plain(order.len()) {
            return Ok(input_id);
        }
        let mut sizes = vec![Size::Known(1); more];
        sizes.extend(self.facts.graph.tensor(value).map(|meta| meta.sizes.clone()).unwrap_or_default());
        let mut dims = vec![1; more];
        dims.extend(self.dims(value, &plain(rank))?);
        dims.truncate(order.len());
        let turned: Vec<u32> = order.iter().map(|dim| dims.get(*dim).copied().unwrap_or(1)).collect();
        let raised = self.hidden(self.spec_of(value, dims))?;
        self.reshaped(&sizes, input_id, raised.id());
        let output = self.hidden(self.spec_of(value, turned))?;
        let perm: Vec<u32> = order.iter().map(|dim| *dim as u32).collect();
        let (num_dims, perm) = (perm.len() as u32, Some(perm.into()));
        let node = StaticTranspose { num_dims, perm, input_id: raised.id(), output_id: output.id(), flags: 0 };
        self.node(NodeUnion::StaticTranspose(node), None);
        Ok(output.id())
    }

    pub(super) fn slopes(&mut self, x: ValueId, slope: ValueId, result: ValueId) -> Result<(), Error> {
        let order = image(self.facts.rank(x));
        let input1_id = self.get(x, &order)?;
        let Some((name, weight)) = self.facts.constant(slope) else {
            return Err(self.failure(slope, "it is not a constant"));
        };
        let bytes = weights::bytes(weight, &plain(weight.sizes().len()))?;
        let count = weight.sizes().iter().product::<usize>() as u32;
        let input2_id = self.constant_of(name, self.spec_of(slope, vec![count]), bytes)?.id();
        let output_id = self.make(result, &order)?;
        self.node(NodeUnion::PReLU(Node2x1 { input1_id, input2_id, output_id, flags: 0 }), None);
        Ok(())
    }

    /// A batch norm with fixed moments: times a factor, plus a number, for each channel.
    pub(super) fn norm(
        &mut self,
        x: ValueId,
        constants: &[(Option<ValueId>, f32)],
        epsilon: f64,
        result: ValueId,
    ) -> Result<(), Error> {
        let order = self.order(x);
        let channels = self.dims(x, &plain(self.facts.rank(x)))?.get(1).copied().unwrap_or(1);
        let mut lists = Vec::with_capacity(constants.len());
        let mut name = "";
        for (value, otherwise) in constants {
            lists.push(match value.and_then(|value| self.facts.constant(value)) {
                Some((found, weight)) => {
                    name = found;
                    weights::floats(weight)?
                }
                None => vec![*otherwise; channels as usize],
            });
        }
        let [weight, bias, mean, variance] = lists.as_slice() else {
            return Err(self.failure(x, "a batch norm has four constants"));
        };
        let factors: Vec<f32> =
            weight.iter().zip(variance).map(|(weight, variance)| weight / (variance + epsilon as f32).sqrt()).collect();
        let shifts: Vec<f32> =
            bias.iter().zip(mean.iter().zip(&factors)).map(|(bias, (mean, factor))| bias - mean * factor).collect();
        let dims: Vec<u32> = order.iter().map(|dim| if *dim == 1 { channels } else { 1 }).collect();
        let kind = self.facts.graph.tensor(x).map_or(ScalarType::FLOAT, |meta| meta.scalar_type);
        let spec = self.spec_of(x, dims);
        let input1_id = self.get(x, &order)?;
        let input2_id = self.constant_of(name, spec.clone(), weights::of_type(&factors, kind))?.id();
        let scaled = self.hidden(self.spec_of(x, self.dims(x, &order)?))?.id();
        self.node(NodeUnion::Multiply(Node2x1 { input1_id, input2_id, output_id: scaled, flags: 0 }), None);
        let input2_id = self.constant_of(name, spec, weights::of_type(&shifts, kind))?.id();
        let output_id = self.make(result, &order)?;
        self.node(NodeUnion::Add(Node2x1 { input1_id: scaled, input2_id, output_id, flags: 0 }), None);
        Ok(())
    }
}
