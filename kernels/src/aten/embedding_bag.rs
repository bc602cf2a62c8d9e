//! `_embedding_bag`: rows of a table, gathered in bags and summed, averaged or compared.
//!
//! Beside the result it answers what its gradient needs: which bag every index is in, how many count in each bag, and
//! for maxima which row they came from. Exporters give these outputs no room where PyTorch leaves them empty; then they
//! stay empty.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::{Scalar, TensorRef};
use edgepack_format::scalar::ScalarType;

use crate::check::{Class, Shape, expect_class, expect_same, with_float};
use edgepack_compute::number::{Cast, Compute, Number};

/// The operators of this family.
pub static KERNELS: &[&Kernel] = &[&EMBEDDING_BAG];

static EMBEDDING_BAG: Kernel = Kernel {
    name: "aten::_embedding_bag.out",
    schema: "(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2, Tensor(d!) out3) -> (Tensor(a!), Tensor(b!), Tensor(c!), Tensor(d!))",
    alias: Alias::Disjoint,
    prepare,
};

/// The result, the bag of every index, the sizes of bags, the rows of maxima.
const OUTS: [usize; 4] = [9, 10, 11, 12];

/// Columns gathered side by side.
const LANES: usize = 64;

/// What becomes of the rows in a bag.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Sum,
    Mean,
    Max,
}

impl Mode {
    fn new(number: i64) -> Result<Mode, KernelError> {
        match number {
            0 => Ok(Mode::Sum),
            1 => Ok(Mode::Mean),
            2 => Ok(Mode::Max),
            other => Err(KernelError::argument(format!("`mode` is {other}, not 0 (sum), 1 (mean) or 2 (max)"))),
        }
    }
}

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let dtype = args.tensor(0)?.meta.dtype;
    expect_class("weight", dtype, Class::Float)?;
    expect_same(("weight", dtype), ("out0", args.tensor(OUTS[0])?.meta.dtype))?;
    let places = args.tensor(1)?.meta.dtype;
    if !matches!(places, ScalarType::INT | ScalarType::LONG) {
        return Err(KernelError::argument(format!("`indices` is {places}, the operator wants INT or LONG")));
    }
    expect_same(("indices", places), ("offsets", args.tensor(2)?.meta.dtype))?;
    for (out, name) in OUTS[1..].iter().zip(["out1", "out2", "out3"]) {
        expect_same(("offsets", places), (name, args.tensor(*out)?.meta.dtype))?;
    }
    if let Some(weights) = args.tensor_opt(6)? {
        expect_same(("weight", dtype), ("per_sample_weights", weights.meta.dtype))?;
        if args.int(4)?.is_some_and(|mode| mode != 0) {
            return Err(KernelError::argument("`per_sample_weights` go with sums only, `mode` is another"));
        }
    }
    for arg in [0, OUTS[0]] {
        if !args.tensor(arg)?.meta.is_contiguous() {
            return Err(KernelError::unsupported("`weight` and `out0` must be contiguous"));
        }
    }
    let ints = places == ScalarType::INT;
    with_float!(dtype, T => Ok(if ints {
        Box::new(run::<T, i32>) as Box<dyn Run>
    } else {
        Box::new(run::<T, i64>) as Box<dyn Run>
    }))
}

/// The bags of a call.
struct Bags<'a, T, I> {
    rows: &'a [T],
    width: usize,
    indices: &'a [I],
    offsets: &'a [I],
    factors: Option<&'a [T]>,
    padding: i64,
    mode: Mode,
}

/// The lengths of the table, the indices and the offsets.
fn one_dimension(name: &str, sizes: &[usize]) -> Result<usize, KernelError> {
    match *sizes {
        [length] => Ok(length),
        _ => Err(KernelError::argument(format!("`{name}` is {}, the operator wants one dimension", Shape(sizes)))),
    }
}

fn run<T: Number, I: Number + Into<i64>>(cx: &mut KernelContext<'_>) -> Result<(), KernelError>
where
    usize: TryInto<I>,
{
    let &[rows, width] = cx.meta(0)?.sizes else {
        let sizes = cx.meta(0)?.sizes;
        return Err(KernelError::argument(format!("`weight` is {}, the operator wants a matrix", Shape(sizes))));
    };
    let count = one_dimension("indices", cx.meta(1)?.sizes)?;
    let offsets = one_dimension("offsets", cx.meta(2)?.sizes)?;
    let last = cx.bool(7)?;
    let bags = if last { offsets.checked_sub(1) } else { Some(offsets) };
    let bags = bags.ok_or_else(|| KernelError::argument("`offsets` is empty, the end of the last bag is missing"))?;
    let mode = Mode::new(cx.int(4)?)?;
    let padding = match cx.int(8)? {
        -1 => -1,
        row if row < 0 => row.saturating_add(rows as i64),
        row => row,
    };
    if let Some(factors) = cx.meta_opt(6)?
        && (factors.element_count() != count || mode != Mode::Sum)
    {
        let have = factors.element_count();
        return Err(KernelError::argument(format!(
            "`per_sample_weights` has {have} elements for {count} `indices`; they go with sums only"
        )));
    }
    cx.resize(OUTS[0], &[bags, width])?;
    let wanted = OUTS.map(|out| cx.meta(out).map(|meta| meta.element_count() != 0));
    let [_, of_index, of_bag, of_maximum] = wanted;
    if of_index? {
        cx.resize(OUTS[1], &[count])?;
    }
    if of_bag? {
        cx.resize(OUTS[2], &[bags])?;
    }
    let maxima = of_maximum? && mode == Mode::Max;
    if maxima {
        cx.resize(OUTS[3], &[bags, width])?;
    }
    let views = cx.views();
    let factors: Option<TensorRef<'_>> = views.tensor_opt(6)?;
    let call = Bags {
        rows: views.tensor(0)?.as_slice::<T>()?,
        width,
        indices: views.tensor(1)?.as_slice::<I>()?,
        offsets: views.tensor(2)?.as_slice::<I>()?,
        factors: factors.map(|factors| factors.as_slice::<T>()).transpose()?,
        padding,
        mode,
    };
    call.check(rows)?;
    let out = views.out(OUTS[0])?.into_slice::<T>()?;
    let [by_index, by_bag, by_maximum] = [OUTS[1], OUTS[2], OUTS[3]].map(|out| views.out(out)?.into_slice::<I>());
    let (by_index, by_bag, by_maximum) = (by_index?, by_bag?, by_maximum?);
    let number = |value: usize| value.try_into().unwrap_or_default();
    by_maximum.fill(I::default());
    for bag in 0..bags {
        let range = call.members(bag, bags);
        let counted = call.indices[range.clone()].iter().filter(|&&index| index.into() != padding).count();
        if let Some(size) = by_bag.get_mut(bag) {
            *size = number(counted);
        }
        if let Some(places) = by_index.get_mut(range.clone()) {
            places.fill(number(bag));
        }
        let row = &mut out[bag * width..][..width];
        if mode == Mode::Max {
            let places = if maxima { &mut by_maximum[bag * width..][..width] } else { &mut [] };
            call.greatest(range, row, places);
        } else {
            call.sum(bag, counted, row);
        }
    }
    Ok(())
}

impl<T: Number, I: Number + Into<i64>> Bags<'_, T, I> {
    /// An error unless every index names a row and the offsets grow from 0 to the number of indices.
    fn check(&self, rows: usize) -> Result<(), KernelError> {
        if let Some(&index) = self.indices.iter().find(|&&index| !(0..rows as i64).contains(&index.into())) {
            let index: i64 = index.into();
            return Err(KernelError::argument(format!("`indices` holds {index}, `weight` has {rows} rows")));
        }
        let count = self.indices.len() as i64;
        let mut before = 0i64;
        for &offset in self.offsets {
            let offset: i64 = offset.into();
            if offset < before || offset > count {
                return Err(KernelError::argument(format!(
                    "`offsets` holds {offset} after {before}, there are {count} indices"
                )));
            }
            before = offset;
        }
        match self.offsets.first() {
            Some(&first) if first.into() != 0 => {
                let first: i64 = first.into();
                Err(KernelError::argument(format!("`offsets` begins with {first}, not 0")))
            }
            _ => Ok(()),
        }
    }

    /// The places of the indices in a bag; the offsets were checked.
    fn range(&self, bag: usize) -> std::ops::Range<usize> {
        let end = self.offsets.get(bag + 1).map_or(self.indices.len(), |&end| end.into() as usize);
        self.offsets[bag].into() as usize..end
    }

    /// The indices that belong to a bag. All that are left belong to the last one, also behind an offset that is its
    /// end: they count in its size and its maximum, though not in its sum.
    fn members(&self, bag: usize, bags: usize) -> std::ops::Range<usize> {
        let range = self.range(bag);
        if bag + 1 == bags { range.start..self.indices.len() } else { range }
    }

    /// The rows of these indices that count, each with its place among them.
    fn items(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = (usize, usize)> + '_ {
        range
            .map(|at| (at, self.indices[at].into()))
            .filter(|&(_, index)| index != self.padding)
            .map(|(at, index)| (at, index as usize))
    }

    fn sum(&self, bag: usize, counted: usize, out: &mut [T]) {
        for (block, out) in out.chunks_mut(LANES).enumerate() {
            let mut sums = [T::Compute::ZERO; LANES];
            for (at, row) in self.items(self.range(bag)) {
                let row = &self.rows[row * self.width + block * LANES..][..out.len()];
                match self.factors {
                    None => sums.iter_mut().zip(row).for_each(|(sum, x)| *sum = sum.plus(x.to_compute())),
                    Some(factors) => {
                        let factor = factors[at].to_compute();
                        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum = sum.plus(factor.times(x.to_compute())));
                    }
                }
            }
            let mean = self.mode == Mode::Mean && counted > 0;
            for (out, sum) in out.iter_mut().zip(sums) {
                let sum: f64 = if mean { Cast::<f64>::cast(sum) / counted as f64 } else { sum.cast() };
                *out = T::from_scalar(Scalar::Double(sum));
            }
        }
    }

    fn greatest(&self, range: std::ops::Range<usize>, out: &mut [T], places: &mut [I]) {
        out.fill(T::default());
        for (order, (at, row)) in self.items(range).enumerate() {
            let row = &self.rows[row * self.width..][..self.width];
            for (column, (out, &x)) in out.iter_mut().zip(row).enumerate() {
                if order == 0 || out.to_compute().less(x.to_compute()) {
                    *out = x;
                    if let Some(place) = places.get_mut(column) {
                        *place = self.indices[at];
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_executor::call::{Arg, call};

    fn bag(mode: i64, offsets: &[i64], last: bool, padding: i64, factors: Option<&[f32]>) -> [Vec<f32>; 2] {
        let bags = offsets.len() - usize::from(last);
        let args = [
            Arg::tensor(&[4, 2], &[1.0f32, 10.0, 2.0, -20.0, 3.0, 30.0, 4.0, 40.0]),
            Arg::tensor(&[5], &[1i64, 3, 0, 2, 1]),
            Arg::tensor(&[offsets.len()], offsets),
            Arg::bool(false),
            Arg::int(mode),
            Arg::bool(false),
            factors.map_or(Arg::None, |factors| Arg::tensor(&[5], factors)),
            Arg::bool(last),
            Arg::int(padding),
            Arg::out(ScalarType::FLOAT, &[bags, 2]),
            Arg::out(ScalarType::LONG, &[5]),
            Arg::out(ScalarType::LONG, &[bags]),
            Arg::out(ScalarType::LONG, &if mode == 2 { vec![bags, 2] } else { vec![bags] }),
        ];
        let outs = call(&EMBEDDING_BAG, &args).unwrap();
        let sizes = outs[2].as_slice::<i64>().unwrap().into_iter().map(|x| x as f32).collect();
        [outs[0].as_slice().unwrap(), sizes]
    }

    #[test]
    fn rows_are_summed_averaged_and_compared() {
        assert_eq!(bag(0, &[0, 2, 2], false, -1, None), [vec![6.0, 20.0, 0.0, 0.0, 6.0, 20.0], vec![2.0, 0.0, 3.0]]);
        assert_eq!(bag(1, &[0, 2, 5], true, -1, None)[0], [3.0, 10.0, 2.0, 20.0 / 3.0]);
        assert_eq!(bag(2, &[0, 2], false, -1, None)[0], [4.0, 40.0, 3.0, 30.0]);
    }

    #[test]
    fn padding_does_not_count_and_factors_do() {
        assert_eq!(bag(1, &[0, 2], false, 1, None), [vec![4.0, 40.0, 2.0, 20.0], vec![1.0, 2.0]]);
        let factors = [2.0, 0.5, 1.0, 0.0, -1.0];
        assert_eq!(bag(0, &[0, 2], false, -1, Some(&factors))[0], [6.0, -20.0, -1.0, 30.0]);
    }

    #[test]
    fn indices_and_offsets_are_checked() {
        let attempt = |index: i64, offset: i64| {
            let args = [
                Arg::tensor(&[2, 1], &[1.0f32, 2.0]),
                Arg::tensor(&[1], &[index]),
                Arg::tensor(&[2], &[0, offset]),
                Arg::bool(false),
                Arg::int(0),
                Arg::bool(false),
                Arg::None,
                Arg::bool(false),
                Arg::int(-1),
                Arg::out(ScalarType::FLOAT, &[2, 1]),
                Arg::out(ScalarType::LONG, &[0]),
                Arg::out(ScalarType::LONG, &[2]),
                Arg::out(ScalarType::LONG, &[2]),
            ];
            call(&EMBEDDING_BAG, &args).map(|_| ()).map_err(|error| error.message.into_owned())
        };
        assert_eq!(attempt(1, 1), Ok(()));
        assert_eq!(attempt(2, 1).unwrap_err(), "`indices` holds 2, `weight` has 2 rows");
        assert_eq!(attempt(1, 2).unwrap_err(), "`offsets` holds 2 after 0, there are 1 indices");
    }
}
