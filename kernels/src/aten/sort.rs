//! `sort` and `topk`: elements along a dimension in order, with the places they had.
//!
//! Sorting keeps the order of equal elements; `topk` leaves them where `select.rs` does. NaN counts as
//! greater than everything, -0 equals 0. Elements are compared as whole numbers that order like them, beside their
//! places in scratch memory.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::with_element;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::Dims;

use crate::check::{Around, Class, expect_class, expect_dtype, expect_same, expect_same_order};
use crate::dims::dim_of;
use edgepack_compute::number::{Cast, Number};
use edgepack_compute::select::{Entry, select};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&SORT, &SORT_STABLE, &TOPK];

static SORT: Kernel = Kernel {
    name: "aten::sort.values",
    schema: "(Tensor self, int dim=-1, bool descending=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { few: None, dim: 1, descending: 2, values: 3 }),
};
static SORT_STABLE: Kernel = Kernel {
    name: "aten::sort.values_stable",
    schema: "(Tensor self, *, bool? stable, int dim=-1, bool descending=False, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { few: None, dim: 2, descending: 3, values: 4 }),
};
static TOPK: Kernel = Kernel {
    name: "aten::topk.values",
    schema: "(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &Form { few: Some(Few { k: 1, sorted: 4 }), dim: 2, descending: 3, values: 5 }),
};

/// Where the arguments stand; the places follow the values.
struct Form {
    few: Option<Few>,
    dim: usize,
    descending: usize,
    values: usize,
}

/// Where `topk` says how many elements it wants, and whether in order.
struct Few {
    k: usize,
    sorted: usize,
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    let input = args.tensor(0)?;
    let dtype = input.meta.dtype;
    expect_class("self", dtype, Class::Any)?;
    expect_same(("self", dtype), ("values", args.tensor(form.values)?.meta.dtype))?;
    expect_dtype("indices", args.tensor(form.values + 1)?.meta.dtype, ScalarType::LONG)?;
    let rank = input.meta.rank();
    let length = match args.int(form.dim)? {
        Some(dim) if !input.dynamic && rank > 0 => input.meta.sizes[dim_of("dim", dim, "self", rank)?],
        _ => input.meta.element_count(),
    };
    args.scratch(length.saturating_mul(size_of::<Entry>()));
    with_element!(dtype, T => Ok(Box::new(move |cx: &mut KernelContext<'_>| run::<T>(form, cx))), else => {
        Err(KernelError::unsupported(dtype.to_string()))
    })
}

fn run<T: Number>(form: &Form, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (meta, dim) = (cx.meta(0)?, cx.int(form.dim)?);
    let dim = dim_of("dim", dim, "self", meta.rank())?;
    let descending = cx.bool(form.descending)?;
    let mut sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    let length = sizes.get(dim).copied().unwrap_or(1);
    let (count, sorted) = match &form.few {
        None => (length, true),
        Some(few) => {
            let k = cx.int(few.k)?;
            let count = usize::try_from(k)
                .ok()
                .filter(|&k| k <= length)
                .ok_or_else(|| KernelError::argument(format!("`k` is {k}, the dimension has {length} elements")))?;
            (count, cx.bool(few.sorted)?)
        }
    };
    if let Some(size) = sizes.get_mut(dim) {
        *size = count;
    }
    cx.resize(form.values, &sizes)?;
    cx.resize(form.values + 1, &sizes)?;
    let views = cx.views();
    let (input, values, indices) = (views.tensor(0)?, views.out(form.values)?, views.out(form.values + 1)?);
    expect_same_order(("self", input.dim_order), ("values", values.dim_order))?;
    expect_same_order(("self", input.dim_order), ("indices", indices.dim_order))?;
    let around = Around::new(input.sizes, input.strides, dim);
    let (input, values, indices) = (input.as_slice::<T>()?, values.into_slice::<T>()?, indices.into_slice::<i64>()?);
    let entries =
        bytemuck::try_cast_slice_mut::<u8, Entry>(views.scratch()?).ok().and_then(|all| all.get_mut(..length));
    let entries =
        entries.ok_or_else(|| KernelError::unsupported(format!("{length} elements are more than at load")))?;
    if count == 0 {
        return Ok(());
    }
    for block in 0..around.outer {
        for lane in 0..around.inner {
            let line = input[block * length * around.inner + lane..].iter().step_by(around.inner);
            for (place, (entry, &x)) in entries.iter_mut().zip(line).enumerate() {
                let key = order(x);
                *entry = [if descending { !key } else { key }, place as u64];
            }
            match form.few {
                None => entries.sort_unstable(),
                Some(_) => select(entries, count, sorted),
            }
            for (i, &[_, place]) in entries[..count].iter().enumerate() {
                let to = (block * count + i) * around.inner + lane;
                values[to] = input[(block * length + place as usize) * around.inner + lane];
                indices[to] = place as i64;
            }
        }
    }
    Ok(())
}

/// What [`order`] gives for NaN, and for nothing else.
pub(crate) const NAN: u64 = u64::MAX;

/// A whole number that orders like the element; [`NAN`] for NaN.
pub(crate) fn order<T: Number>(x: T) -> u64 {
    const TOP: u64 = 1 << 63;
    if T::SCALAR_TYPE == ScalarType::UINT64 {
        return x.cast();
    }
    if !T::SCALAR_TYPE.is_floating() {
        return Cast::<i64>::cast(x) as u64 ^ TOP;
    }
    let x: f64 = x.cast();
    if x.is_nan() {
        return NAN;
    }
    // Adding 0 makes 0 of -0.
    let bits = (x + 0.0).to_bits();
    if bits & TOP == 0 { bits | TOP } else { !bits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_compute::random::Random;
    use edgepack_executor::call::{Arg, call};

    #[test]
    fn ties_keep_their_order_and_nan_is_greatest() {
        let values = [2.0f32, f32::NAN, -0.0, 2.0, 0.0, f32::INFINITY];
        for (descending, want) in [(false, [2, 4, 0, 3, 5, 1]), (true, [1, 5, 0, 3, 2, 4])] {
            let outs = [Arg::out(ScalarType::FLOAT, &[6]), Arg::out(ScalarType::LONG, &[6])];
            let mut args = vec![Arg::tensor(&[6], &values), Arg::int(-1), Arg::bool(descending)];
            args.extend(outs);
            let outs = call(&SORT, &args).unwrap();
            assert_eq!(outs[1].as_slice::<i64>().unwrap(), want);
            let sorted: Vec<u32> = outs[0].as_slice::<f32>().unwrap().iter().map(|x| x.to_bits()).collect();
            let want: Vec<u32> = want.iter().map(|&at| values[at as usize].to_bits()).collect();
            assert_eq!(sorted, want);
        }
    }

    #[test]
    fn topk_is_the_head_of_a_sort() {
        let mut random = Random::new(5);
        for round in 0..30 {
            let sizes = [random.below(4) + 1, random.below(20) + 1, random.below(4) + 1];
            let values: Vec<i16> = (0..sizes.iter().product()).map(|_| random.below(9) as i16 - 4).collect();
            let (k, largest) = (random.below(sizes[1] + 1), round % 2 == 0);
            let out = |dtype| Arg::out(dtype, &[sizes[0], k, sizes[2]]);
            let input = Arg::tensor(&sizes, &values);
            let args = [
                input,
                Arg::int(k as i64),
                Arg::int(1),
                Arg::bool(largest),
                Arg::bool(true),
                out(ScalarType::SHORT),
                out(ScalarType::LONG),
            ];
            let outs = call(&TOPK, &args).unwrap();
            let (have, places) = (outs[0].as_slice::<i16>().unwrap(), outs[1].as_slice::<i64>().unwrap());
            for block in 0..sizes[0] {
                for lane in 0..sizes[2] {
                    let at = |i: usize, size: usize| (block * size + i) * sizes[2] + lane;
                    let mut line: Vec<(i16, i64)> =
                        (0..sizes[1]).map(|i| (values[at(i, sizes[1])], i as i64)).collect();
                    line.sort_by_key(|&(x, _)| if largest { -x } else { x });
                    for (i, &(want, _)) in line[..k].iter().enumerate() {
                        let place = places[at(i, k)] as usize;
                        assert_eq!((have[at(i, k)], values[at(place, sizes[1])]), (want, want));
                    }
                }
            }
        }
    }

    #[test]
    fn k_stays_within_the_dimension() {
        let outs = [Arg::out(ScalarType::FLOAT, &[4]), Arg::out(ScalarType::LONG, &[4])];
        let mut args =
            vec![Arg::tensor(&[3], &[1.0f32, 2.0, 3.0]), Arg::int(4), Arg::int(0), Arg::bool(true), Arg::bool(true)];
        args.extend(outs);
        assert_eq!(call(&TOPK, &args).unwrap_err().message, "`k` is 4, the dimension has 3 elements");
    }
}
