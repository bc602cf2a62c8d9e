//! Products of 16-bit floats, computed as those of `f32` and rounded once.

use std::ops::Range;

use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};

use super::{Call, Form, Product, Strides};
use edgepack_compute::gemm::Mat;
use edgepack_compute::half::Narrow;
use edgepack_compute::panels::{Lies, Panel, Panels};

/// The first step.
pub(super) fn prepare<T: Narrow>(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    let (lhs, rhs) = (args.tensor(form.lhs.0)?, args.tensor(form.rhs.0)?);
    let elements = lhs.meta.element_count();
    let panels = match Product::new(form, &lhs.meta, &rhs.meta) {
        Ok(Product { m, n, k, .. }) => Panels { m, n, k },
        // Bounds need not fit each other as sizes must.
        Err(_) if lhs.dynamic || rhs.dynamic => {
            let k = lhs.meta.sizes.last().copied().unwrap_or(1).max(1);
            Panels { m: elements / k, k, n: rhs.meta.element_count() }
        }
        Err(error) => return Err(error),
    };
    let elements = panels.scratch().saturating_add(elements);
    args.scratch(elements.saturating_mul(size_of::<f32>()));
    Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(form, cx)))
}

fn run<T: Narrow>(form: &Form, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let call = Call::<f32>::new(form, cx)?;
    let Product { batch, m, n, k, .. } = call.product;
    let views = cx.views();
    let (lhs, rhs, add) = call.operands(form, &views)?;
    let strides = Strides::new(form, &call.product, [&lhs.meta(), &rhs.meta()]);
    let mut out = views.out(form.out)?;
    let transposed = super::out_is_transposed(form, &call.product, &out.meta())?;
    let beta = match add {
        Some((add, name)) => {
            super::start(add, name, &mut out)?;
            call.beta
        }
        None => 0.0,
    };
    let (lhs, rhs, out) = (lhs.as_slice::<T>()?, rhs.as_slice::<T>()?, out.into_slice::<T>()?);
    let scratch: &mut [f32] = bytemuck::try_cast_slice_mut(views.scratch()?)
        .map_err(|_| KernelError::unsupported("the scratch memory is not aligned"))?;
    let (wide, scratch) = scratch
        .split_at_mut_checked(lhs.len())
        .ok_or_else(|| KernelError::unsupported("the operand is larger than at load"))?;
    T::widen(lhs, wide);
    if m * n == 0 {
        return Ok(());
    }
    for (index, out) in out.chunks_exact_mut(m * n).enumerate().take(batch) {
        let lhs = Mat::new(wide.get(index * strides.step[0]..).unwrap_or(&[]), [m, k], strides.lhs)?;
        let rhs = Mat::new(rhs.get(index * strides.step[1]..).unwrap_or(&[]), [k, n], strides.rhs)?;
        let out_strides = if transposed { [1, m] } else { [n, 1] };
        let mut stored = Stored { rhs, out, out_strides };
        Panels { m, k, n }.multiply(lhs, [call.alpha, beta], scratch, &mut stored)?;
    }
    Ok(())
}

/// The matrices that are not `f32`.
struct Stored<'a, T> {
    rhs: Mat<'a, T>,
    out: &'a mut [T],
    out_strides: [usize; 2],
}

impl<T: Narrow> Stored<'_, T> {
    fn place(&self, row: usize, column: usize) -> usize {
        row * self.out_strides[0] + column * self.out_strides[1]
    }
}

impl<T: Narrow> Panel for Stored<'_, T> {
    fn lies(&self) -> Lies {
        if self.rhs.strides()[0] == 1 { Lies::Columns } else { Lies::Rows }
    }

    fn fill(&self, columns: Range<usize>, panel: &mut [f32]) {
        let (data, [row, column]) = (self.rhs.data(), self.rhs.strides());
        let (lines, len) = match self.lies() {
            Lies::Columns => (columns.clone(), self.rhs.rows),
            Lies::Rows => (0..self.rhs.rows, columns.len()),
        };
        for (line, panel) in lines.zip(panel.chunks_exact_mut(len.max(1))) {
            match self.lies() {
                Lies::Columns => T::widen(&data[line * column..][..len], panel),
                Lies::Rows if column == 1 => T::widen(&data[line * row + columns.start..][..len], panel),
                Lies::Rows => {
                    for (x, at) in panel.iter_mut().zip(columns.clone()) {
                        T::widen(&data[line * row + at * column..][..1], std::slice::from_mut(x));
                    }
                }
            }
        }
    }

    fn start(&self, columns: Range<usize>, block: &mut [f32]) {
        for (row, block) in block.chunks_exact_mut(columns.len()).enumerate() {
            if self.out_strides[1] == 1 {
                T::widen(&self.out[self.place(row, columns.start)..][..block.len()], block);
                continue;
            }
            for (x, column) in block.iter_mut().zip(columns.clone()) {
                T::widen(&self.out[self.place(row, column)..][..1], std::slice::from_mut(x));
            }
        }
    }

    fn take(&mut self, columns: Range<usize>, block: &[f32]) {
        for (row, results) in block.chunks_exact(columns.len()).enumerate() {
            let first = self.place(row, columns.start);
            if self.out_strides[1] == 1 {
                T::narrow(results, &mut self.out[first..][..results.len()]);
                continue;
            }
            for (index, result) in results.iter().enumerate() {
                T::narrow(std::slice::from_ref(result), &mut self.out[first + index * self.out_strides[1]..][..1]);
            }
        }
    }
}
