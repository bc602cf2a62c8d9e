//! Inputs and outputs of a method, without loading it.

use edgepack_format::pte::{ExecutionPlan, KernelTypes, Tensor, TensorShapeDynamism};
use edgepack_format::room;
use edgepack_format::row::Scalars;
use edgepack_format::tensor::TensorLayout;

use crate::error::Error;

/// A method's signature and needs.
#[derive(Clone, Debug)]
pub struct MethodMeta {
    /// Name of the method, unique in its program.
    pub name: String,
    /// Inputs of the method.
    pub inputs: Vec<ValueMeta>,
    /// Outputs of the method.
    pub outputs: Vec<ValueMeta>,
    /// Tensors with a name that are state: mutable buffers and external constants, in value order.
    pub attributes: Vec<TensorSignature>,
    /// Bytes of each planned memory; memory id 1 comes first.
    pub planned_memory: Vec<u64>,
    /// Names of the backends it needs, one per delegate.
    pub backends: Vec<String>,
    /// Instructions in all chains.
    pub instructions: usize,
}

/// An input or output.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ValueMeta {
    /// `None`.
    Null,
    /// An integer, with the value it was traced with.
    Int(i64),
    /// A bool, with the value it was traced with.
    Bool(bool),
    /// A double, with the value it was traced with.
    Double(f64),
    /// Text, with the value it was traced with.
    Text(String),
    /// Tensor; its sizes are upper bounds where it is dynamic.
    Tensor(TensorSignature),
    /// Anything else: lists.
    Other(&'static str),
}

/// A tensor of a method: its layout, its name, and where it lives.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorSignature {
    /// Shape and element type; sizes are upper bounds if it is dynamic.
    pub layout: TensorLayout,
    /// True if its sizes may be smaller.
    pub dynamic: bool,
    /// True if it lives in planned memory.
    pub planned: bool,
    /// Its fully qualified name.
    pub name: Option<String>,
}

impl MethodMeta {
    /// Returns whether it only returns values that are in the file: it takes nothing and runs nothing.
    pub fn is_constant(&self) -> bool {
        self.inputs.is_empty() && self.instructions == 0 && !self.outputs.is_empty()
    }

    pub(crate) fn of(plan: &ExecutionPlan<'_>) -> Result<Self, Error> {
        let name = plan.name.clone().unwrap_or_default().into_owned();
        let mut attributes = Vec::new();
        let values = plan.values.clone().unwrap_or_default();
        for (index, value) in values.iter().enumerate() {
            if let Some(KernelTypes::Tensor(tensor)) = value?.val
                && tensor.extra_tensor_info.as_ref().is_some_and(|info| info.fully_qualified_name.is_some())
            {
                room::push(&mut attributes, TensorSignature::of(&tensor, &format!("value {index}"))?)?;
            }
        }
        let list = |ids: &Option<Scalars<'_, i32>>| -> Result<Vec<ValueMeta>, Error> {
            let mut metas = room::with_room(ids.as_ref().map_or(0, |ids| ids.len()))?;
            for id in ids.iter().flat_map(|ids| ids.iter()) {
                // A negative index is not an index; verification has refused it.
                let value = values.get(usize::try_from(id).unwrap_or(usize::MAX))?;
                metas.push(ValueMeta::of(value.val, &format!("value {id}"))?);
            }
            Ok(metas)
        };
        let (inputs, outputs) = (list(&plan.inputs)?, list(&plan.outputs)?);
        let sizes = plan.non_const_buffer_sizes.clone().unwrap_or_else(|| Vec::new().into());
        let planned_memory = room::collect(sizes.iter().skip(1).map(|size| u64::try_from(size).unwrap_or(0)))?;
        let mut backends = Vec::new();
        for delegate in plan.delegates.clone().unwrap_or_default().iter() {
            room::push(&mut backends, delegate?.id.unwrap_or_default().into_owned())?;
        }
        let mut instructions = 0usize;
        for chain in plan.chains.clone().unwrap_or_default().iter() {
            instructions = instructions.saturating_add(chain?.instructions.map_or(0, |list| list.len()));
        }
        Ok(MethodMeta { name, inputs, outputs, attributes, planned_memory, backends, instructions })
    }
}

impl ValueMeta {
    /// The tensor, if it is one.
    pub fn tensor(&self) -> Option<&TensorSignature> {
        match self {
            ValueMeta::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    fn of(value: Option<KernelTypes<'_>>, what: &str) -> Result<Self, Error> {
        Ok(match value {
            Some(KernelTypes::Int(int)) => ValueMeta::Int(int.int_val),
            Some(KernelTypes::Bool(bool)) => ValueMeta::Bool(bool.bool_val),
            Some(KernelTypes::Double(double)) => ValueMeta::Double(double.double_val),
            Some(KernelTypes::String(text)) => ValueMeta::Text(text.string_val.unwrap_or_default().into_owned()),
            Some(KernelTypes::Tensor(tensor)) => ValueMeta::Tensor(TensorSignature::of(&tensor, what)?),
            Some(KernelTypes::IntList(_)) => ValueMeta::Other("IntList"),
            Some(KernelTypes::DoubleList(_)) => ValueMeta::Other("DoubleList"),
            Some(KernelTypes::BoolList(_)) => ValueMeta::Other("BoolList"),
            Some(KernelTypes::TensorList(_)) => ValueMeta::Other("TensorList"),
            Some(KernelTypes::OptionalTensorList(_)) => ValueMeta::Other("OptionalTensorList"),
            Some(KernelTypes::Unknown(_)) => ValueMeta::Other("unknown"),
            Some(KernelTypes::Null(_)) | None => ValueMeta::Null,
        })
    }
}

impl TensorSignature {
    fn of(tensor: &Tensor<'_>, what: &str) -> Result<Self, Error> {
        let order: Vec<u8> = room::collect(tensor.dim_order.iter().flat_map(|order| order.iter()))?;
        let sizes = tensor.sizes.iter().flat_map(|sizes| sizes.iter());
        let layout = TensorLayout::from_wire(tensor.scalar_type, sizes, &order)
            .map_err(|error| Error::Layout { what: what.to_owned(), error })?;
        let name = tensor.extra_tensor_info.as_ref().and_then(|info| info.fully_qualified_name.as_deref());
        Ok(TensorSignature {
            layout,
            dynamic: tensor.shape_dynamism != TensorShapeDynamism::STATIC,
            planned: tensor.allocation_info.is_some(),
            name: name.map(str::to_owned),
        })
    }
}
