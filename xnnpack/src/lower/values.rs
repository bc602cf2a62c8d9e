//! Values of a payload as values of instructions.
//!
//! Unsigned 8-bit numbers are signed ones in here: 128 less, and so is their zero point. Arguments and constants are
//! converted where they come in and go out.

use std::collections::HashMap;
use std::sync::Arc;

use edgepack_executor::delegate::{Instructions, Local, LocalOperator};
use edgepack_executor::kernel::{Kernel, KernelError, Operator, Prepare};
use edgepack_format::finding::ErrorCode;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{MAX_RANK, TensorLayout};
use edgepack_format::xnnpack::{Datatype, Payload, Shape, Value};
use edgepack_kernels::FAMILIES;

use super::{Made, refused};
use crate::constants::{Stored, Weights};
use crate::operators::{bytes, relabel, rows};

/// A value of a payload.
#[derive(Clone, Copy)]
pub(super) struct Lowered {
    /// A contiguous tensor of the physical dimensions.
    pub local: Local,
    /// Physical dimensions; of a dynamic value the bounds.
    pub shape: Shape,
    /// Type of its elements: see [`signed`].
    pub datatype: Datatype,
    /// True if sizes may be smaller than the shape.
    pub dynamic: bool,
    /// True if instructions may write it.
    pub writable: bool,
    /// Scale and zero point of every row, for rows that are quantised at run time.
    pub rows: Option<Local>,
    /// Index among the values of the payload.
    pub index: usize,
}

/// A result of the payload that goes outside in another dim order.
struct Outside {
    view: Local,
    argument: Local,
    /// Dimension `i` of the argument is dimension `order[i]` in memory.
    order: Vec<usize>,
}

/// A conversion of a value; nodes often need the same conversion of one value several times.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Derived {
    /// Rows of so many dimensions, quantised.
    Rows(usize),
    /// Quantised, by the bits of the scale and the zero point.
    Quantized(u32, i32),
    /// Another order of dimensions.
    Permuted(Vec<u32>),
}

/// All values, and the instructions so far.
pub(super) struct Values<'l> {
    pub(super) payload: &'l Payload<'l>,
    pub(super) weights: &'l Weights,
    pub(super) call: &'l Prepare<'l>,
    pub(super) all: Instructions,
    lowered: Vec<Option<Lowered>>,
    /// Position among the arguments, by value, of each result that goes outside.
    outside: HashMap<usize, usize>,
    relabelled: Vec<Outside>,
    /// Results that go outside as another type: from, to.
    converted: Vec<(Local, Local)>,
    library: HashMap<&'static str, LocalOperator>,
    /// Values of sizes that do not change which are written as images, and those images.
    images: HashMap<Local, Local>,
    derived: HashMap<(Local, Derived), Lowered>,
}

/// The operators of the library by name.
fn library(name: &str) -> Option<&'static Kernel> {
    FAMILIES.iter().flat_map(|family| family.tables).flat_map(|table| table.iter()).copied().find(|k| k.name == name)
}

pub(super) fn error(message: impl Into<String>) -> KernelError {
    KernelError::new(ErrorCode::InvalidProgram, message.into())
}

/// The type that elements have in here.
fn signed(datatype: Datatype) -> Datatype {
    match datatype {
        Datatype::QUINT8 => Datatype::QINT8,
        other => other,
    }
}

/// Bytes of one element as a tensor of the executor has them; four-bit rows are rows of bytes.
pub(super) fn scalar_type(datatype: Datatype) -> Result<ScalarType, KernelError> {
    Ok(match datatype {
        Datatype::FP32 => ScalarType::FLOAT,
        Datatype::FP16 => ScalarType::HALF,
        Datatype::BF16 => ScalarType::BFLOAT16,
        Datatype::QINT8 | Datatype::QCINT8 | Datatype::QDINT8 => ScalarType::CHAR,
        Datatype::QUINT8 | Datatype::QCINT4 | Datatype::QBINT4 => ScalarType::BYTE,
        Datatype::INT32 | Datatype::QINT32 | Datatype::QCINT32 => ScalarType::INT,
        other => return Err(refused(format!("values of type {}", other.label().unwrap_or("unknown")))),
    })
}

/// A contiguous layout of physical dimensions.
pub(super) fn contiguous(datatype: Datatype, dims: &[u32]) -> Result<TensorLayout, KernelError> {
    let mut sizes: Vec<usize> = dims.iter().map(|dim| *dim as usize).collect();
    if matches!(datatype, Datatype::QCINT4 | Datatype::QBINT4)
        && let Some(last) = sizes.last_mut()
    {
        *last = last.div_ceil(2);
    }
    TensorLayout::contiguous(scalar_type(datatype)?, &sizes).map_err(|e| error(e.to_string()))
}

impl<'l> Values<'l> {
    pub fn new(payload: &'l Payload<'l>, weights: &'l Weights, call: &'l Prepare<'l>) -> Result<Self, KernelError> {
        let (inputs, outputs) = (payload.inputs()?, payload.outputs()?);
        call.expect_len(inputs.len() + outputs.len())?;
        let mut values = Values {
            payload,
            weights,
            call,
            all: Instructions::new(call.len()),
            lowered: vec![None; payload.values().len()],
            outside: HashMap::new(),
            relabelled: Vec::new(),
            converted: Vec::new(),
            library: HashMap::new(),
            images: HashMap::new(),
            derived: HashMap::new(),
        };
        for (argument, (_, value)) in inputs.iter().enumerate() {
            let index = values.index(value)?;
            let lowered = values.argument(argument, index, value, false)?;
            values.lowered[index] = Some(lowered);
            if value.tensor().is_some_and(|tensor| tensor.seen_as() == Datatype::QDINT8) {
                // Read as rows of its last dimension.
                let lowered = Lowered { datatype: Datatype::QDINT8, ..values.rows(lowered, 1, u32::MAX)? };
                values.lowered[index] = Some(lowered);
            }
        }
        for (argument, (_, value)) in outputs.iter().enumerate() {
            let index = values.index(value)?;
            values.outside.insert(index, inputs.len() + argument);
        }
        Ok(values)
    }

    fn index(&self, value: &Value<'_>) -> Result<usize, KernelError> {
        let id = value.tensor().map(|tensor| tensor.id_out);
        id.and_then(|id| self.payload.index_of(id)).ok_or_else(|| error("an external value without an id"))
    }

    /// An argument of the call as a contiguous tensor.
    fn argument(
        &mut self,
        argument: usize,
        index: usize,
        value: &Value<'_>,
        writable: bool,
    ) -> Result<Lowered, KernelError> {
        let info = self.call.tensor(argument)?;
        let tensor = value.tensor().ok_or_else(|| error("an external value of an unknown kind"))?;
        let (meta, datatype) = (info.meta, tensor.datatype);
        // Places of greatest elements are 64-bit outside.
        let is_long = writable && datatype == Datatype::INT32 && meta.dtype == ScalarType::LONG;
        if meta.dtype != scalar_type(datatype)? && !is_long {
            let label = datatype.label().unwrap_or("unknown");
            return Err(error(format!("argument {argument} is {}, the payload takes {label}", meta.dtype)));
        }
        let physical: Vec<u32> = meta.dim_order.iter().map(|&dim| meta.sizes[dim as usize] as u32).collect();
        // A number is a list of one to a payload.
        let declared = tensor.shape().unwrap_or_default();
        let scalar = physical.is_empty() && declared.dims() == [1];
        let physical = if scalar { vec![1] } else { physical };
        if physical.len() != declared.rank() {
            return Err(error(format!(
                "argument {argument} has sizes {physical:?}, the payload {:?}",
                declared.dims()
            )));
        }
        let shape = Shape::new(physical.iter().copied()).ok_or_else(|| refused("more than six dimensions"))?;
        let own = self.all.argument(argument);
        let is_contiguous = meta.dim_order.iter().enumerate().all(|(index, dim)| index == *dim as usize);
        let local = match is_contiguous && !scalar {
            true => own,
            false => {
                let layout = TensorLayout::contiguous(
                    meta.dtype,
                    &shape.dims().iter().map(|dim| *dim as usize).collect::<Vec<_>>(),
                );
                let layout = layout.map_err(|e| error(e.to_string()))?;
                let order: Vec<usize> = meta.dim_order.iter().map(|dim| *dim as usize).collect();
                self.seen_through(own, layout, order, info.dynamic, writable)?
            }
        };
        let local = match is_long || datatype == Datatype::QUINT8 {
            true => self.converted(local, signed(datatype), &shape, info.dynamic, writable)?,
            false => local,
        };
        let datatype = signed(datatype);
        Ok(Lowered { local, shape, datatype, dynamic: info.dynamic, writable, rows: None, index })
    }

    /// A temporary of another type than an argument: read from it now, or written to it at the end.
    fn converted(
        &mut self,
        argument: Local,
        datatype: Datatype,
        shape: &Shape,
        dynamic: bool,
        writable: bool,
    ) -> Result<Local, KernelError> {
        let local = self.temporary(datatype, shape, dynamic)?;
        if writable {
            self.converted.push((local, argument));
        } else {
            let operator = self.own(bytes::converted());
            self.all.call(operator, &[argument, local], u32::MAX);
        }
        Ok(local)
    }

    /// Quantises rows of `inner` dimensions; their scales and zero points are a value of their own.
    pub fn rows(&mut self, x: Lowered, inner: usize, node: u32) -> Result<Lowered, KernelError> {
        let outer = x.shape.rank().checked_sub(inner).ok_or_else(|| refused("rows of more dimensions than it has"))?;
        let rows = x.shape.dims()[..outer].iter().map(|dim| *dim as usize).product();
        let params = TensorLayout::contiguous(ScalarType::FLOAT, &[rows, 2]).map_err(|e| error(e.to_string()))?;
        let params = self.all.temporary(params, x.dynamic);
        let local = self.temporary(Datatype::QDINT8, &x.shape, x.dynamic)?;
        let inner = self.all.int(inner as i64);
        let operator = self.own(rows::quantize());
        self.all.call(operator, &[x.local, inner, local, params], node);
        Ok(Lowered { local, datatype: Datatype::QDINT8, writable: true, rows: Some(params), ..x })
    }

    /// A view of an argument in physical dimensions.
    fn seen_through(
        &mut self,
        argument: Local,
        layout: TensorLayout,
        order: Vec<usize>,
        dynamic: bool,
        writable: bool,
    ) -> Result<Local, KernelError> {
        if !dynamic {
            return Ok(self.all.view(argument, layout, false));
        }
        if writable {
            let view = self.all.view(argument, layout, true);
            self.relabelled.push(Outside { view, argument, order });
            return Ok(view);
        }
        // What comes from outside is not resized, so a dynamic one is copied.
        let copy = self.all.temporary(layout, true);
        let operator = self.own(relabel::permuted(order));
        self.all.call(operator, &[argument, copy], u32::MAX);
        Ok(copy)
    }

    /// The value that nodes call so; constants come into being when they are asked for.
    pub fn get(&mut self, id: u32) -> Result<Lowered, KernelError> {
        let index = self.payload.index_of(id).ok_or_else(|| error(format!("there is no value {id}")))?;
        if let Some(lowered) = self.lowered[index] {
            return Ok(lowered);
        }
        let value = &self.payload.values()[index];
        let tensor = value.tensor().filter(|tensor| tensor.is_constant());
        let tensor = tensor.ok_or_else(|| error(format!("value {id} is read before it is made")))?;
        let shape = tensor.shape().ok_or_else(|| refused("more than six dimensions"))?;
        let datatype = signed(tensor.datatype);
        let local = self.constant(index, contiguous(datatype, shape.dims())?)?;
        let lowered = Lowered { local, shape, datatype, dynamic: false, writable: false, rows: None, index };
        self.lowered[index] = Some(lowered);
        Ok(lowered)
    }

    /// The value that nodes call so, for a node that packs it if it is a constant of quantised numbers: instructions see no
    /// bytes of such a one.
    pub fn packable(&mut self, id: u32) -> Result<Lowered, KernelError> {
        let index = self.index_of(id)?;
        let tensor = self.payload.values().get(index).and_then(|value| value.tensor());
        match tensor.filter(|tensor| tensor.is_constant() && self.lowered[index].is_none()) {
            Some(tensor) if !tensor.datatype.is_float() => {
                let shape = tensor.shape().ok_or_else(|| refused("more than six dimensions"))?;
                let datatype = signed(tensor.datatype);
                let local = self.all.packed(contiguous(datatype, shape.dims())?);
                Ok(Lowered { local, shape, datatype, dynamic: false, writable: false, rows: None, index })
            }
            _ => self.get(id),
        }
    }

    /// A constant that came of [`Values::packable`], with its bytes.
    pub fn placed(&mut self, constant: Lowered) -> Result<Lowered, KernelError> {
        let layout = contiguous(constant.datatype, constant.shape.dims())?;
        Ok(Lowered { local: self.constant(constant.index, layout)?, ..constant })
    }

    /// The weights of a constant as it is stored, so many bytes; `columns` is their number, where they are packed as rows.
    pub fn stored(&self, of: Lowered, columns: Option<usize>) -> Result<Stored, KernelError> {
        let tensor = self.payload.values().get(of.index).and_then(|value| value.tensor());
        let index = tensor.ok_or_else(|| error("a constant of an unknown kind"))?.constant_buffer_idx;
        let len = of.shape.dims().iter().try_fold(1usize, |len, dim| len.checked_mul(*dim as usize));
        Ok(Stored { index, len, is_unsigned: self.less(of.index) != 0, columns })
    }

    /// The type that elements of a result have.
    pub fn datatype(&self, id: u32) -> Result<Datatype, KernelError> {
        let tensor = self.payload.value(id).and_then(|value| value.tensor());
        Ok(signed(tensor.ok_or_else(|| error(format!("there is no value {id}")))?.datatype))
    }

    /// The place of a result. Its dimensions are those that nodes make of the arguments: what a payload declares inside is
    /// not always so.
    pub fn make(&mut self, made: Made) -> Result<Lowered, KernelError> {
        let index = self.payload.index_of(made.id).ok_or_else(|| error(format!("there is no value {}", made.id)))?;
        let datatype = self.datatype(made.id)?;
        let lowered = match self.outside.get(&index) {
            Some(&argument) => {
                let lowered = self.argument(argument, index, &self.payload.values()[index], true)?;
                if lowered.shape != made.shape {
                    let (have, want) = (lowered.shape, made.shape);
                    return Err(refused(format!("sizes {:?} for a result of {:?}", have.dims(), want.dims())));
                }
                lowered
            }
            None => {
                let local = self.all.temporary(contiguous(datatype, made.shape.dims())?, made.dynamic);
                let (shape, dynamic) = (made.shape, made.dynamic);
                Lowered { local, shape, datatype, dynamic, writable: true, rows: None, index }
            }
        };
        self.lowered[index] = Some(lowered);
        Ok(lowered)
    }

    /// Gives a result that no instruction makes the shape that the payload declares.
    pub fn declared(&mut self, id: u32) -> Result<(), KernelError> {
        let index = self.index_of(id)?;
        let tensor = self.payload.values().get(index).and_then(|value| value.tensor());
        let tensor = tensor.ok_or_else(|| error(format!("there is no value {id}")))?;
        let (datatype, shape) = (tensor.datatype, tensor.shape().unwrap_or_default());
        let local = self.all.temporary(contiguous(datatype, shape.dims())?, false);
        let lowered = Lowered { local, shape, datatype, dynamic: false, writable: true, rows: None, index };
        self.lowered[index] = Some(lowered);
        Ok(())
    }

    /// Says that a result is in a place that is known already.
    pub fn put(&mut self, id: u32, lowered: Lowered) {
        if let Some(index) = self.payload.index_of(id) {
            self.lowered[index] = Some(Lowered { index, ..lowered });
        }
    }

    /// The place of a value among all.
    pub fn index_of(&self, id: u32) -> Result<usize, KernelError> {
        self.payload.index_of(id).ok_or_else(|| error(format!("there is no value {id}")))
    }

    /// Takes for a result what another node made of the same value; `false` if none did, or if it goes outside.
    pub fn again(&mut self, from: Local, derived: &Derived, made: Made) -> bool {
        let known = self.derived.get(&(from, derived.clone())).copied();
        let datatype = self.datatype(made.id).ok();
        let known = known.filter(|known| known.shape == made.shape && Some(known.datatype) == datatype);
        match known {
            Some(known) if !self.goes_outside(made.id) => {
                self.put(made.id, known);
                true
            }
            _ => false,
        }
    }

    /// Notes what a node made of a value.
    pub fn remember(&mut self, from: Local, derived: Derived, lowered: Lowered) {
        self.derived.insert((from, derived), lowered);
    }

    /// Returns whether a result goes outside.
    pub fn goes_outside(&self, id: u32) -> bool {
        self.payload.index_of(id).is_some_and(|index| self.outside.contains_key(&index))
    }

    /// A contiguous temporary.
    pub fn temporary(&mut self, datatype: Datatype, shape: &Shape, dynamic: bool) -> Result<Local, KernelError> {
        Ok(self.all.temporary(contiguous(datatype, shape.dims())?, dynamic))
    }

    /// A temporary for the places of greatest elements, which nothing reads.
    pub fn indices(&mut self, of: &Lowered) -> Result<Local, KernelError> {
        let found = channels_last(of.datatype, &of.shape)?;
        let layout = TensorLayout::new(ScalarType::LONG, found.sizes(), found.dim_order());
        Ok(self.all.temporary(layout.map_err(|e| error(e.to_string()))?, of.dynamic))
    }

    /// The instructions so far.
    pub fn all(&mut self) -> &mut Instructions {
        &mut self.all
    }

    /// An operator of this crate.
    pub fn own(&mut self, operator: Arc<dyn Operator>) -> LocalOperator {
        self.all.operator(operator)
    }

    /// Calls an operator of the library.
    pub fn call(&mut self, name: &'static str, args: &[Local], node: u32) -> Result<(), KernelError> {
        let operator = match self.library.get(name) {
            Some(operator) => *operator,
            None => {
                let kernel = library(name).ok_or_else(|| refused(format!("there is no operator {name}")))?;
                let operator = self.all.operator(kernel);
                self.library.insert(name, operator);
                operator
            }
        };
        self.all.call(operator, args, node);
        Ok(())
    }

    /// Returns a four-dimensional value to read, which is `[N, H, W, C]` in memory, as operators of the library see
    /// images: `[N, C, H, W]` with channels last.
    pub fn image(&mut self, value: Lowered, node: u32) -> Result<Local, KernelError> {
        let layout = channels_last(value.datatype, &value.shape)?;
        if self.is_constant(value.index) {
            return self.constant(value.index, layout);
        }
        if let Some(&image) = self.images.get(&value.local) {
            return Ok(image);
        }
        if !value.dynamic {
            return Ok(self.all.view(value.local, layout, false));
        }
        let view = match value.writable {
            true => self.all.view(value.local, layout, true),
            false => self.all.temporary(layout, true),
        };
        let operator = self.own(relabel::permuted(CHANNELS_FIRST.to_vec()));
        self.all.call(operator, &[value.local, view], node);
        Ok(view)
    }

    /// Returns a result to write, as [`Values::image`] does a value to read: call the operator that writes it, then
    /// [`Values::image_made`].
    pub fn image_out(&mut self, value: Lowered) -> Result<Local, KernelError> {
        let image = self.all.view(value.local, channels_last(value.datatype, &value.shape)?, value.dynamic);
        if !value.dynamic {
            self.images.insert(value.local, image);
        }
        Ok(image)
    }

    /// Returns arguments and the result of the same sizes for an operator that goes element by element: as images if all
    /// arguments are, so that the operator may become part of what computes them.
    pub fn element_wise<const N: usize>(
        &mut self,
        from: [Lowered; N],
        to: Lowered,
    ) -> Result<([Local; N], Local), KernelError> {
        let plain = from.map(|from| from.local);
        let mut images = plain;
        for (from, image) in from.iter().zip(&mut images) {
            match self.images.get(&from.local) {
                Some(&found) if !to.dynamic && from.shape == to.shape => *image = found,
                _ => return Ok((plain, to.local)),
            }
        }
        Ok((images, self.image_out(to)?))
    }

    /// A temporary for an image of the sizes of a result, which do not change.
    pub fn temporary_image(&mut self, of: Lowered) -> Result<Local, KernelError> {
        Ok(self.all.temporary(channels_last(of.datatype, &of.shape)?, false))
    }

    /// Gives a result the sizes of its image.
    pub fn image_made(&mut self, value: Lowered, image: Local, node: u32) {
        if value.dynamic {
            let operator = self.own(relabel::permuted(vec![0, 2, 3, 1]));
            self.all.call(operator, &[image, value.local], node);
        }
    }

    /// The instructions, once all nodes are lowered.
    pub fn finish(mut self) -> Result<Instructions, KernelError> {
        for (from, argument) in std::mem::take(&mut self.converted) {
            let operator = self.own(bytes::converted());
            self.all.call(operator, &[from, argument], u32::MAX);
        }
        for Outside { view, argument, order } in std::mem::take(&mut self.relabelled) {
            // Back: memory dimension `i` is dimension `order[i]` of the argument.
            let mut back = vec![0; order.len()];
            order.iter().enumerate().for_each(|(place, dim)| back[*dim] = place);
            let operator = self.own(relabel::permuted(back));
            self.all.call(operator, &[view, argument], u32::MAX);
        }
        Ok(self.all)
    }
}

/// `[N, C, H, W]` out of `[N, H, W, C]`.
const CHANNELS_FIRST: [usize; 4] = [0, 3, 1, 2];

fn channels_last(datatype: Datatype, shape: &Shape) -> Result<TensorLayout, KernelError> {
    let [n, h, w, c] = shape.dims() else { return Err(refused("an image has four dimensions")) };
    let sizes = [n, c, h, w].map(|size| *size as usize);
    TensorLayout::new(scalar_type(datatype)?, &sizes, &[0, 2, 3, 1]).map_err(|e| error(e.to_string()))
}

const _: () = assert!(MAX_RANK >= edgepack_format::xnnpack::MAX_RANK);
