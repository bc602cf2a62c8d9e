//! Stacks of matrices in tensors of any dim order.

use edgepack_executor::kernel::KernelError;
use edgepack_executor::tensor::{TensorMut, TensorRef, TensorShape};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::Shape;

/// Where the matrices of a tensor lie. A vector counts as a matrix of one column.
pub struct Layout {
    outer: Dims,
    strides: Dims,
    /// Rows of each matrix.
    pub rows: usize,
    /// Columns of each matrix.
    pub columns: usize,
    steps: [usize; 2],
}

impl Layout {
    /// The last two dimensions are the matrices'; `vectors` makes it the last one.
    pub fn new(name: &str, meta: &TensorShape<'_>, vectors: bool) -> Result<Layout, KernelError> {
        let inner = if vectors { 1 } else { 2 };
        let Some(outer) = meta.rank().checked_sub(inner) else {
            return Err(KernelError::argument(format!("`{name}` is {}, no matrix", Shape(meta.sizes))));
        };
        let columns = if vectors { 1 } else { meta.sizes[outer + 1] };
        let step = if vectors { 0 } else { meta.strides[outer + 1] };
        Ok(Layout {
            outer: Dims::from_slice(&meta.sizes[..outer]).unwrap_or_default(),
            strides: Dims::from_slice(&meta.strides[..outer]).unwrap_or_default(),
            rows: meta.sizes[outer],
            columns,
            steps: [meta.strides[outer], step],
        })
    }

    /// The sizes of the stack.
    pub fn outer(&self) -> &[usize] {
        &self.outer
    }

    /// Elements of one matrix.
    pub fn len(&self) -> usize {
        self.rows * self.columns
    }

    /// An error unless matrices are square.
    pub fn expect_square(&self, name: &str) -> Result<usize, KernelError> {
        if self.rows == self.columns {
            return Ok(self.rows);
        }
        Err(KernelError::argument(format!(
            "`{name}` holds matrices of {} by {}, not square ones",
            self.rows, self.columns
        )))
    }

    /// Where matrix `at` of a stack of `outer` begins; a size of 1 stands for all.
    fn start(&self, outer: &[usize], mut at: usize) -> usize {
        let skip = outer.len() - self.outer.len().min(outer.len());
        let mut start = 0;
        for dim in (0..outer.len()).rev() {
            let index = at % outer[dim].max(1);
            at /= outer[dim].max(1);
            if let Some(own) = dim.checked_sub(skip).filter(|&own| self.outer[own] != 1) {
                start += index * self.strides[own];
            }
        }
        start
    }

    /// Copies matrix `at` of a stack, row by row.
    pub fn read(&self, tensor: &TensorRef<'_>, outer: &[usize], at: usize, to: &mut [f64]) -> Result<(), KernelError> {
        let start = self.start(outer, at);
        let places =
            (0..self.len()).map(|i| start + i / self.columns * self.steps[0] + i % self.columns * self.steps[1]);
        // A stack of none, repeated beside a stack of some, has no matrix to give.
        let outside = || KernelError::argument("stacks of matrices whose sizes do not fit together".to_owned());
        match tensor.dtype {
            ScalarType::FLOAT => {
                let values = tensor.as_slice::<f32>()?;
                for (to, place) in to.iter_mut().zip(places) {
                    *to = values.get(place).map(|value| f64::from(*value)).ok_or_else(outside)?;
                }
            }
            ScalarType::DOUBLE => {
                let values = tensor.as_slice::<f64>()?;
                for (to, place) in to.iter_mut().zip(places) {
                    *to = values.get(place).copied().ok_or_else(outside)?;
                }
            }
            ScalarType::INT => {
                let values = tensor.as_slice::<i32>()?;
                for (to, place) in to.iter_mut().zip(places) {
                    *to = values.get(place).map(|value| f64::from(*value)).ok_or_else(outside)?;
                }
            }
            other => return Err(unfit(other)),
        }
        Ok(())
    }

    /// Puts a matrix into its place.
    pub fn write(
        &self,
        tensor: &mut TensorMut<'_>,
        outer: &[usize],
        at: usize,
        from: &[f64],
    ) -> Result<(), KernelError> {
        let start = self.start(outer, at);
        let places =
            (0..self.len()).map(|i| start + i / self.columns * self.steps[0] + i % self.columns * self.steps[1]);
        match tensor.dtype {
            ScalarType::FLOAT => {
                let values = tensor.as_slice::<f32>()?;
                places.zip(from).for_each(|(place, &from)| values[place] = from as f32);
            }
            ScalarType::DOUBLE => {
                let values = tensor.as_slice::<f64>()?;
                places.zip(from).for_each(|(place, &from)| values[place] = from);
            }
            ScalarType::INT => {
                let values = tensor.as_slice::<i32>()?;
                places.zip(from).for_each(|(place, &from)| values[place] = from as i32);
            }
            other => return Err(unfit(other)),
        }
        Ok(())
    }
}

fn unfit(dtype: ScalarType) -> KernelError {
    KernelError::unsupported(format!("matrices of {dtype}"))
}

/// The sizes of a stack that two stacks make together.
pub fn together(a: &[usize], b: &[usize]) -> Result<Dims, KernelError> {
    crate::broadcast::broadcast(a, b)
        .ok_or_else(|| KernelError::argument(format!("stacks of {} and {} do not fit", Shape(a), Shape(b))))
}
