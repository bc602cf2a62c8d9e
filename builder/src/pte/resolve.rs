//! Descriptions of tensors become tensors: shapes are resolved, places in memory compared with each other.

use edgepack_format::pte::{DeviceType, KernelTypes, TensorShapeDynamism};
use edgepack_format::tensor::TensorLayout;

use super::args::TensorArg;
use super::method::MethodBuilder;
use super::spec::{Shape, TensorSpec};
use super::values::{Place, Role, Tensor, Value, check_sizes};
use crate::build_error::BuildError;

/// The most planned memories of a method.
const MOST_MEMORIES: u32 = 1 << 12;

impl MethodBuilder<'_, '_> {
    /// The tensor that a description asks for.
    pub(crate) fn resolve(&mut self, spec: TensorSpec, place: &str) -> Result<Tensor, BuildError> {
        let TensorSpec { shape, scalar_type, dim_order, place: where_ } = spec;
        let (layout, dynamism) = match shape {
            Shape::Sizes(sizes) => {
                let scalar_type = scalar_type.unwrap_or_default();
                let layout = match dim_order {
                    Some(order) => TensorLayout::new(scalar_type, &sizes, &order),
                    None => TensorLayout::contiguous(scalar_type, &sizes),
                };
                (layout.map_err(BuildError::layout(place))?, TensorShapeDynamism::STATIC)
            }
            Shape::Like(other) => {
                let other = match other {
                    TensorArg::Value(id) => {
                        let index = self.own(id)?;
                        self.expect(index, KernelTypes::TENSOR, place)?;
                        self.method().and_then(|method| method.values.get(index)).and_then(|value| match value {
                            Value::Tensor(tensor) => Some((tensor.layout.clone(), tensor.dynamism)),
                            _ => None,
                        })
                    }
                    TensorArg::Constant(id) if id.owner == self.program.owner => {
                        let constant = self.program.constants.get(id.index);
                        constant.map(|constant| (constant.layout.clone(), TensorShapeDynamism::STATIC))
                    }
                    TensorArg::Constant(_) => None,
                };
                let (layout, dynamism) = other.ok_or_else(|| self.foreign("a tensor", None))?;
                let order = dim_order.as_deref().unwrap_or(layout.dim_order());
                let scalar_type = scalar_type.unwrap_or(layout.scalar_type());
                let layout =
                    TensorLayout::new(scalar_type, layout.sizes(), order).map_err(BuildError::layout(place))?;
                (layout, dynamism)
            }
        };
        check_sizes(place, &layout)?;
        self.check_place(&layout, &where_, place)?;
        let dynamism = where_.dynamism.unwrap_or(dynamism);
        Ok(Tensor { layout, dynamism, place: where_, role: Role::Plain })
    }

    /// Checks a place in memory against itself and against other tensors of its memory.
    fn check_place(&mut self, layout: &TensorLayout, where_: &Place, place: &str) -> Result<(), BuildError> {
        let refuse = |message: String| Err(BuildError::Memory { place: place.to_owned(), message });
        if where_.memory == Some(0) {
            return refuse("memory 0 is reserved, memories are counted from 1".to_owned());
        }
        if where_.planned == Some(false) && (where_.memory.is_some() || where_.offset.is_some()) {
            return refuse("it is to have no planned memory, and a place in it".to_owned());
        }
        if where_.dynamism.is_some_and(|dynamism| dynamism.name().is_none()) {
            return refuse(format!("a dynamism of {:?}", where_.dynamism));
        }
        if where_.device.0.name().is_none() {
            return refuse(format!("it is on {}, which no schema names", where_.device.0));
        }
        if let Some(memory) = where_.memory.filter(|memory| *memory > MOST_MEMORIES) {
            return refuse(format!("memory {memory}, at most {MOST_MEMORIES} are possible"));
        }
        if let Some(offset) = where_.offset {
            let element = layout.scalar_type().size().unwrap_or(1) as u64;
            if !offset.is_multiple_of(element) {
                return refuse(format!("offset {offset:#x} for elements of {element} bytes"));
            }
            let end = offset.checked_add(layout.byte_len() as u64);
            if end.is_none_or(|end| end > i64::MAX as u64 / 2) {
                return refuse(format!("{} bytes from {offset:#x} on", layout.byte_len()));
            }
            if where_.memory.is_none() {
                return refuse(format!("offset {offset:#x}, but of which memory?"));
            }
        }
        if let Some(memory) = where_.memory {
            let device = self.with(|method| Some(*method.memories.entry(memory).or_insert(where_.device)));
            if let Some(device) = device.filter(|device| *device != where_.device) {
                let (want, have) = (show(where_.device), show(device));
                return refuse(format!("it is on {want}, memory {memory} on {have}"));
            }
        }
        Ok(())
    }
}

/// A device as messages show it.
pub(crate) fn show(device: (DeviceType, i8)) -> String {
    format!("{}:{}", device.0, device.1)
}
