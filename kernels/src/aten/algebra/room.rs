//! Working memory, reserved at load for the matrices of a call.
//!
//! Invariant: what a tensor of the call has no memory for is not reserved, so no file asks for more than it holds.

use edgepack_executor::kernel::{KernelError, Prepare};

/// Function that returns how many numbers the working memory of one matrix holds: at least what the operator takes by
/// [`pieces`], and no less for larger matrices.
pub type Room = fn(&Prepare<'_>, Matrices) -> Result<u128, KernelError>;

/// The sizes of the matrices of a call.
#[derive(Clone, Copy, Default)]
pub struct Matrices {
    /// Sizes of a matrix of the first input.
    pub a: Matrix,
    /// Sizes of a matrix of the second input, if there is one.
    pub b: Matrix,
}

/// The sizes of one matrix, small enough that no sum of some products of two of them overflows.
#[derive(Clone, Copy, Default)]
pub struct Matrix {
    /// Rows.
    pub rows: u128,
    /// Columns.
    pub columns: u128,
}

impl Matrix {
    fn of(sizes: &[usize]) -> Matrix {
        let size = |from_end: usize| sizes.iter().nth_back(from_end).map_or(1, |&size| size as u128).min(1 << 56);
        Matrix { rows: size(1), columns: size(0) }
    }

    /// Number of elements.
    pub fn elements(self) -> u128 {
        self.rows * self.columns
    }

    /// The length of the diagonal.
    pub fn least(self) -> u128 {
        self.rows.min(self.columns)
    }

    /// The longer side.
    pub fn most(self) -> u128 {
        self.rows.max(self.columns)
    }
}

/// Numbers that any call may have to compute with; larger ones have [`WORK_PER_ELEMENT`] for each element of its tensors.
const MOST_WORK: u128 = 4 << 20;

/// More than any operator needs: six matrices as large as those it is given or gives, and some vectors.
const WORK_PER_ELEMENT: u128 = 8;

/// The working memory of a call, which is charged to the method.
pub fn reserve(args: &Prepare<'_>, inputs: &[usize], room: Room) -> Result<Vec<f64>, KernelError> {
    let mut sizes = [Matrix::default(); 2];
    for (matrix, &input) in sizes.iter_mut().zip(inputs) {
        *matrix = Matrix::of(args.tensor(input)?.meta.sizes);
    }
    let [a, b] = sizes;
    let needed = room(args, Matrices { a, b })?;
    let tensors = (0..args.len()).filter_map(|arg| args.tensor(arg).ok());
    let elements: u128 = tensors.map(|tensor| tensor.meta.element_count() as u128).sum();
    let refused = || {
        let (rows, columns) = (a.rows, a.columns);
        KernelError::unsupported(format!("matrices of {rows} by {columns}: there is no room to compute with"))
    };
    if needed > MOST_WORK.max(elements * WORK_PER_ELEMENT) {
        return Err(refused());
    }
    let needed = usize::try_from(needed).map_err(|_| refused())?;
    args.retained().reserve(needed.saturating_mul(size_of::<f64>()))?;
    let mut work: Vec<f64> = Vec::new();
    work.try_reserve_exact(needed).map_err(|_| refused())?;
    work.resize(needed, 0.0);
    Ok(work)
}

/// Working memory in pieces of these lengths; an error if it was made for smaller matrices.
pub fn pieces<const N: usize>(mut work: &mut [f64], lengths: [usize; N]) -> Result<[&mut [f64]; N], KernelError> {
    let needed = lengths.iter().fold(0usize, |all, length| all.saturating_add(*length));
    if needed > work.len() {
        return Err(KernelError::unsupported("matrices that are larger than at load"));
    }
    Ok(lengths.map(|length| {
        let (piece, rest) = std::mem::take(&mut work).split_at_mut(length);
        work = rest;
        piece
    }))
}
