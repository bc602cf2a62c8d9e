//! Arguments of a call of a function: arguments to read, then results to write.
//!
//! Invariant, maintained by the executor's plan: the memory of a result is that of no argument and no other result.

use bytemuck::Pod;
use edgepack_format::mlf::DataType;
use edgepack_format::scalar::Element;
use edgepack_loader::AlignedBytes;

use super::error::FunctionError;
use super::operand::Operand;

/// A tensor to read.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a> {
    /// Its element type and shape.
    pub operand: &'a Operand,
    /// Its bytes, exactly.
    pub bytes: &'a [u8],
}

/// A tensor to write.
#[derive(Debug)]
pub struct Result<'a> {
    /// Its element type and shape.
    pub operand: &'a Operand,
    /// Its bytes, exactly.
    pub bytes: &'a mut [u8],
}

fn expect<T: Element>(operand: &Operand) -> std::result::Result<(), FunctionError> {
    if DataType::from_scalar_type(T::SCALAR_TYPE) == Some(operand.data_type()) {
        return Ok(());
    }
    Err(FunctionError(format!("{operand} where elements are {}", T::SCALAR_TYPE)))
}

impl<'a> Argument<'a> {
    /// Borrows the elements; an error if the element type is another.
    pub fn as_slice<T: Element + Pod>(&self) -> std::result::Result<&'a [T], FunctionError> {
        expect::<T>(self.operand)?;
        bytemuck::try_cast_slice(self.bytes).map_err(|error| FunctionError(error.to_string()))
    }
}

impl Result<'_> {
    /// Borrows the elements to write them; an error if the element type is another.
    pub fn as_slice<T: Element + Pod>(&mut self) -> std::result::Result<&mut [T], FunctionError> {
        expect::<T>(self.operand)?;
        bytemuck::try_cast_slice_mut(self.bytes).map_err(|error| FunctionError(error.to_string()))
    }
}

/// One call.
pub struct Call<'a> {
    /// Per entry of the graph.
    pub(super) operands: &'a [Operand],
    /// Per entry the place of its storage.
    pub(super) places: &'a [usize],
    /// All storages, except those of the results.
    pub(super) storages: &'a [AlignedBytes],
    /// Entries that are read.
    pub(super) inputs: &'a [usize],
    /// Entries that are written.
    pub(super) outputs: &'a [usize],
    /// The storages of the results.
    pub(super) written: &'a mut [AlignedBytes],
    /// Arguments and results in one dimension, where the graph asks for it.
    pub(super) flat: &'a [Operand],
}

impl<'a> Call<'a> {
    /// Returns the number of arguments.
    pub fn argument_count(&self) -> usize {
        self.inputs.len()
    }

    /// Returns the number of results.
    pub fn result_count(&self) -> usize {
        self.outputs.len()
    }

    fn operand(&self, place: usize, entry: usize) -> &'a Operand {
        self.flat.get(place).unwrap_or(&self.operands[entry])
    }

    /// Borrows an argument, which can be held while results are written.
    pub fn argument(&self, index: usize) -> std::result::Result<Argument<'a>, FunctionError> {
        let missing = || FunctionError(format!("argument {index} of {}", self.inputs.len()));
        let entry = *self.inputs.get(index).ok_or_else(missing)?;
        let operand = self.operand(index, entry);
        let bytes = self.storages[self.places[entry]].get(..operand.byte_len()).ok_or_else(missing)?;
        Ok(Argument { operand, bytes })
    }

    /// Borrows one result, of which every element is to be written.
    pub fn result(&mut self, index: usize) -> std::result::Result<Result<'_>, FunctionError> {
        let missing = || FunctionError(format!("result {index} of {}", self.outputs.len()));
        let entry = *self.outputs.get(index).ok_or_else(missing)?;
        let operand = self.operand(self.inputs.len() + index, entry);
        let bytes = self.written[index].as_mut_slice().get_mut(..operand.byte_len()).ok_or_else(missing)?;
        Ok(Result { operand, bytes })
    }

    /// All results, to write them side by side.
    pub fn results(&mut self) -> impl Iterator<Item = Result<'_>> {
        let (operands, flat, first) = (self.operands, self.flat, self.inputs.len());
        let entries = self.outputs.iter().zip(self.written.iter_mut()).enumerate();
        entries.map(move |(index, (&entry, storage))| {
            let operand = flat.get(first + index).unwrap_or(&operands[entry]);
            Result { operand, bytes: &mut storage.as_mut_slice()[..operand.byte_len()] }
        })
    }
}
