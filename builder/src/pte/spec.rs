//! Specifications of a method's tensors: shape, element type, and memory of the bytes.

use edgepack_format::pte::{DeviceType, TensorShapeDynamism};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;

use super::args::{TensorArg, ValueId};
use super::values::Place;

/// A description of a tensor that does not exist yet.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorSpec {
    pub(crate) shape: Shape,
    pub(crate) scalar_type: Option<ScalarType>,
    pub(crate) dim_order: Option<Vec<u8>>,
    pub(crate) place: Place,
}

/// Sizes, or a tensor that has them.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Shape {
    Sizes(Vec<usize>),
    Like(TensorArg),
}

impl TensorSpec {
    /// A contiguous tensor of fixed sizes.
    pub fn new(scalar_type: ScalarType, sizes: impl Into<Vec<usize>>) -> Self {
        let shape = Shape::Sizes(sizes.into());
        TensorSpec { shape, scalar_type: Some(scalar_type), dim_order: None, place: Place::default() }
    }

    /// A tensor of the sizes, dim order, element type and dynamism of another.
    pub fn like(tensor: impl Into<TensorArg>) -> Self {
        TensorSpec { shape: Shape::Like(tensor.into()), scalar_type: None, dim_order: None, place: Place::default() }
    }

    /// A tensor of this layout.
    pub fn of(layout: &TensorLayout) -> Self {
        TensorSpec::new(layout.scalar_type(), layout.sizes()).dim_order(layout.dim_order())
    }

    /// The same with another element type.
    pub fn scalar_type(self, scalar_type: ScalarType) -> Self {
        TensorSpec { scalar_type: Some(scalar_type), ..self }
    }

    /// The same with its dimensions in this order in memory, outermost first.
    pub fn dim_order(self, dim_order: impl Into<Vec<u8>>) -> Self {
        TensorSpec { dim_order: Some(dim_order.into()), ..self }
    }

    /// The same with sizes that are upper bounds.
    pub fn dynamic(self) -> Self {
        self.dynamism(TensorShapeDynamism::DYNAMIC_BOUND)
    }

    /// The same with sizes that are bounds or not, also where the tensor it is like says otherwise.
    pub fn dynamism(mut self, dynamism: TensorShapeDynamism) -> Self {
        self.place.dynamism = Some(dynamism);
        self
    }

    /// The same without planned memory: its bytes are the caller's.
    pub fn unplanned(mut self) -> Self {
        self.place.planned = Some(false);
        self
    }

    /// The same in planned memory, also where the method leaves its inputs or outputs to the caller.
    pub fn planned(mut self) -> Self {
        self.place.planned = Some(true);
        self
    }

    /// The same in the planned memory of this id, counted from 1.
    pub fn in_memory(mut self, id: u32) -> Self {
        self.place.memory = Some(id);
        self
    }

    /// The same at this offset of its memory, whatever else is there.
    pub fn at(mut self, offset: u64) -> Self {
        self.place.offset = Some(offset);
        self
    }

    /// The same on a device.
    pub fn on(mut self, device: DeviceType, index: i8) -> Self {
        self.place.device = (device, index);
        self
    }

    /// The same, marked as wanting a gradient. Runtimes do not look.
    pub fn requires_grad(mut self) -> Self {
        self.place.row.requires_grad = true;
        self
    }

    /// The same with this number as its `layout`. Runtimes do not look.
    pub fn layout_number(mut self, layout: i8) -> Self {
        self.place.row.layout = layout;
        self
    }
}

/// Receiver of a result of a call.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Out {
    /// A new tensor.
    Tensor(TensorSpec),
    /// A value that is there already.
    Value(ValueId),
    /// A new integer.
    Int,
    /// A new bool.
    Bool,
    /// A new double.
    Double,
}

/// The results of a call: nothing, one [`Out`] or several, as tensors to make ([`TensorSpec`]) or values there are
/// ([`ValueId`]). The call answers with as many ids.
pub trait Outs {
    /// Type of the ids that the call returns.
    type Ids;

    /// The results to make.
    fn outs(self) -> Vec<Out>;

    /// The answer from the ids, one per result.
    fn ids(ids: &[ValueId]) -> Option<Self::Ids>;
}

impl Outs for () {
    type Ids = ();

    fn outs(self) -> Vec<Out> {
        Vec::new()
    }

    fn ids(_: &[ValueId]) -> Option<()> {
        Some(())
    }
}

impl From<TensorSpec> for Out {
    fn from(spec: TensorSpec) -> Self {
        Out::Tensor(spec)
    }
}

impl From<ValueId> for Out {
    fn from(id: ValueId) -> Self {
        Out::Value(id)
    }
}

macro_rules! outs {
    ($($one:ty),*) => {
        $(impl Outs for $one {
            type Ids = ValueId;

            fn outs(self) -> Vec<Out> {
                vec![self.into()]
            }

            fn ids(ids: &[ValueId]) -> Option<ValueId> {
                ids.first().copied()
            }
        })*
    };
}

outs!(TensorSpec, ValueId, Out);

impl<T: Into<Out>, const N: usize> Outs for [T; N] {
    type Ids = [ValueId; N];

    fn outs(self) -> Vec<Out> {
        self.into_iter().map(Into::into).collect()
    }

    fn ids(ids: &[ValueId]) -> Option<[ValueId; N]> {
        ids.try_into().ok()
    }
}

impl<T: Into<Out>> Outs for Vec<T> {
    type Ids = Vec<ValueId>;

    fn outs(self) -> Vec<Out> {
        self.into_iter().map(Into::into).collect()
    }

    fn ids(ids: &[ValueId]) -> Option<Vec<ValueId>> {
        Some(ids.to_vec())
    }
}
