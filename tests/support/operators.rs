//! A handful of plain operators for tests of the executor itself, so that those do not depend on the library.

use edgepack_executor::Registry;
use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Run};
use edgepack_format::tensor::Dims;

type Step = fn(&mut KernelContext<'_>) -> Result<(), KernelError>;

macro_rules! kernel {
    ($name:literal, $schema:literal, $alias:expr, $step:expr) => {
        &Kernel {
            name: $name,
            schema: $schema,
            alias: $alias,
            is_pure: false,
            prepare: |_| {
                let step: Step = $step;
                Ok(Box::new(step) as Box<dyn Run>)
            },
        }
    };
}

/// `t::add.out`, `t::fill_ints.out`, `t::inc`, `t::lt`, `t::half`, `t::two.out`, `t::sum_list.out`, `t::neg.out`.
pub fn registry() -> Registry {
    static KERNELS: &[&Kernel] = &[
        kernel!("t::add.out", "(Tensor a, Tensor b, *, Tensor(a!) out) -> Tensor(a!)", Alias::Disjoint, |cx| {
            let sizes: Dims = Dims::from_slice(cx.meta(0)?.sizes).unwrap_or_default();
            cx.resize(2, &sizes)?;
            let views = cx.views();
            let (a, b) = (views.tensor(0)?.as_slice::<f32>()?, views.tensor(1)?.as_slice::<f32>()?);
            let mut out = views.out(2)?;
            for (i, out) in out.as_mut_slice::<f32>()?.iter_mut().enumerate() {
                // Reversed on purpose: writing where it reads would show.
                let last = a.len() - 1;
                *out = a[last - i] + b[last - i];
            }
            Ok(())
        }),
        kernel!("t::neg.out", "(Tensor a, *, Tensor(a!) out) -> Tensor(a!)", Alias::SameRange, |cx| {
            let views = cx.views();
            let input = views.tensor(0)?;
            let mut out = views.out(1)?;
            let out = out.as_mut_slice::<f32>()?;
            if !input.is_in_place() {
                out.copy_from_slice(input.as_slice::<f32>()?);
            }
            out.iter_mut().for_each(|x| *x = -*x);
            Ok(())
        }),
        kernel!("t::fill_ints.out", "(int[] list, *, Tensor(a!) out) -> Tensor(a!)", Alias::Disjoint, |cx| {
            let list: Dims<i64> = Dims::collect(cx.ints(0)?.iter()).unwrap_or_default();
            let views = cx.views();
            for (out, item) in views.out(1)?.as_mut_slice::<f32>()?.iter_mut().zip(&*list) {
                *out = *item as f32;
            }
            Ok(())
        }),
        kernel!("t::sum_list.out", "(Tensor[] list, *, Tensor(a!) out) -> Tensor(a!)", Alias::Disjoint, |cx| {
            let count = cx.list_len(0)?;
            let views = cx.views();
            let mut sum = 0.0;
            for item in 0..count {
                sum += views.item(0, item)?.map_or(Ok(0.0), |t| t.as_slice::<f32>().map(|t| t.iter().sum::<f32>()))?;
            }
            views.out(1)?.as_mut_slice::<f32>()?.fill(sum);
            Ok(())
        }),
        kernel!(
            "t::two.out",
            "(Tensor a, *, Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))",
            Alias::Disjoint,
            |cx| {
                let views = cx.views();
                let input = views.tensor(0)?.as_slice::<f32>()?;
                views.out(1)?.as_mut_slice::<f32>()?.copy_from_slice(input);
                views.out(2)?.as_mut_slice::<f32>()?.copy_from_slice(input);
                Ok(())
            }
        ),
        kernel!("t::inc", "(int a) -> int", Alias::Disjoint, |cx| {
            let next = cx.int(0)? + 1;
            cx.set_int(1, next)
        }),
        kernel!("t::lt", "(int a, int b) -> bool", Alias::Disjoint, |cx| {
            let less = cx.int(0)? < cx.int(1)?;
            cx.set_bool(2, less)
        }),
        kernel!("t::half", "(int a) -> float", Alias::Disjoint, |cx| {
            let half = cx.int(0)? as f64 / 2.0;
            cx.set_double(1, half)
        }),
    ];
    Registry::new().with_kernels(KERNELS)
}
