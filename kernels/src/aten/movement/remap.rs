//! Outputs every index of which comes from an index of the input, dimension by dimension: rolls, and padding with what
//! is there. And the triangle of a matrix.

use edgepack_executor::kernel::{Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_format::tensor::Dims;

use super::row;
use super::transfer::expect_same_type;
use crate::dims::dim_of;

/// Where an index of the output comes from, along one dimension.
#[derive(Clone, Copy, Default)]
struct Source {
    rule: Rule,
    /// How far the input is moved.
    shift: i64,
    /// Elements of the input.
    size: i64,
}

/// What happens beyond the ends.
#[derive(Clone, Copy, Default)]
enum Rule {
    /// The other end comes in.
    #[default]
    Wrap,
    /// The input goes on backwards, without its last element.
    Reflect,
    /// The last element goes on.
    Repeat,
}

impl Source {
    fn index(self, out: usize) -> usize {
        let at = out as i64 - self.shift;
        let last = self.size - 1;
        (match self.rule {
            Rule::Wrap => at.rem_euclid(self.size),
            Rule::Reflect if at < 0 => -at,
            Rule::Reflect if at > last => 2 * last - at,
            Rule::Reflect => at,
            Rule::Repeat => at.min(last).max(0),
        }) as usize
    }
}

/// Copies every element of the output from where its index comes from.
fn remap(cx: &mut KernelContext<'_>, out: usize, sources: &Dims<Source>) -> Result<(), KernelError> {
    let views = cx.views();
    let (input, mut target) = (views.tensor(0)?, views.out(out)?);
    let meta = target.meta();
    let (sizes, strides): (Dims, Dims) =
        (Dims::from_slice(meta.sizes).unwrap_or_default(), Dims::from_slice(meta.strides).unwrap_or_default());
    let width = meta.dtype.size().unwrap_or(1);
    let bytes = target.bytes();
    let Some((&inner, outer)) = sizes.split_last() else {
        bytes.copy_from_slice(input.bytes());
        return Ok(());
    };
    let last = outer.len();
    if inner == 0 {
        return Ok(());
    }
    for flat in 0..outer.iter().product::<usize>() {
        let (mut rest, mut from, mut to) = (flat, 0, 0);
        for dim in (0..last).rev() {
            let index = rest % sizes[dim];
            rest /= sizes[dim];
            to += index * strides[dim];
            from += sources[dim].index(index) * input.strides[dim];
        }
        for index in 0..inner {
            let from = (from + sources[last].index(index) * input.strides[last]) * width;
            let to = (to + index * strides[last]) * width;
            bytes[to..to + width].copy_from_slice(&input.bytes()[from..from + width]);
        }
    }
    Ok(())
}

fn unmoved(sizes: &[usize]) -> Dims<Source> {
    Dims::collect(sizes.iter().map(|&size| Source { rule: Rule::Wrap, shift: 0, size: size as i64 }))
        .unwrap_or_default()
}

fn roll(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let (meta, shifts, dims) = (cx.meta(0)?, cx.ints(1)?, cx.ints(2)?);
    if shifts.len() != dims.len() || shifts.is_empty() {
        let (shifts, dims) = (shifts.len(), dims.len());
        return Err(KernelError::argument(format!("`shifts` has {shifts} items, `dims` has {dims}")));
    }
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    let mut sources = unmoved(&sizes);
    for (shift, dim) in shifts.iter().zip(dims.iter()) {
        let dim = dim_of("dims", dim, "self", meta.rank())?;
        if let Some(source) = sources.get_mut(dim).filter(|source| source.size > 0) {
            source.shift = (source.shift + shift.rem_euclid(source.size)) % source.size;
        }
    }
    cx.resize(3, &sizes)?;
    remap(cx, 3, &sources)
}

/// Padding of the last `count` dimensions, the last one first: before and after.
fn pad(cx: &mut KernelContext<'_>, rule: Rule, count: usize) -> Result<(), KernelError> {
    let (meta, padding) = (cx.meta(0)?, cx.ints(1)?);
    let rank = meta.rank();
    if padding.len() != 2 * count || !(count..=count + 2).contains(&rank) {
        let items = padding.len();
        return Err(KernelError::argument(format!("`padding` has {items} items, `self` has {rank} dimensions")));
    }
    let mut sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    let mut sources = unmoved(&sizes);
    for pair in 0..count {
        let dim = rank - 1 - pair;
        let (before, after) = (padding.at(2 * pair).unwrap_or(0), padding.at(2 * pair + 1).unwrap_or(0));
        let size = sizes[dim] as i64;
        let most = match rule {
            Rule::Reflect => size - 1,
            Rule::Repeat | Rule::Wrap => i64::from(i32::MAX),
        };
        let padded = before.saturating_add(after).saturating_add(size);
        if before > most || after > most || padded < 1 || size == 0 {
            return Err(KernelError::argument(format!("`padding` {before} and {after} do not fit {size} elements")));
        }
        sizes[dim] = padded as usize;
        sources[dim] = Source { rule, shift: before, size };
    }
    cx.resize(2, &sizes)?;
    remap(cx, 2, &sources)
}

fn padding<const COUNT: usize>(args: &Prepare<'_>, rule: Rule) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(4)?;
    expect_same_type(args, 0, 2)?;
    Ok(Box::new(move |cx: &mut KernelContext<'_>| pad(cx, rule, COUNT)))
}

/// The lower triangle of every matrix, zeros above diagonal `diagonal`.
fn tril(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let meta = cx.meta(0)?;
    let sizes = Dims::from_slice(meta.sizes).unwrap_or_default();
    let &[.., rows, columns] = &*sizes else {
        return Err(KernelError::argument(format!("`self` has {} dimensions, at least 2 are needed", meta.rank())));
    };
    let diagonal = cx.int(1)?;
    cx.resize(2, &sizes)?;
    let views = cx.views();
    let (input, mut out) = (views.tensor(0)?, views.out(2)?);
    let width = out.dtype.size().unwrap_or(1);
    if rows == 0 || columns == 0 {
        return Ok(());
    }
    let lines = input.bytes().chunks_exact(columns * width).zip(out.bytes().chunks_exact_mut(columns * width));
    for (line, (from, to)) in lines.enumerate() {
        let kept = diagonal.saturating_add((line % rows) as i64 + 1).min(columns as i64).max(0) as usize * width;
        to[..kept].copy_from_slice(&from[..kept]);
        to[kept..].fill(0);
    }
    Ok(())
}

/// The operators of this table.
pub const KERNELS: &[&Kernel] = &[
    &row(
        "aten::roll.out",
        "(Tensor self, SymInt[1] shifts, int[1] dims=[], *, Tensor(a!) out) -> Tensor(a!)",
        |args| {
            args.expect_len(5)?;
            expect_same_type(args, 0, 3)?;
            Ok(Box::new(roll))
        },
    ),
    &row("aten::reflection_pad1d.out", "(Tensor self, SymInt[2] padding, *, Tensor(a!) out) -> Tensor(a!)", |args| {
        padding::<1>(args, Rule::Reflect)
    }),
    &row("aten::reflection_pad2d.out", "(Tensor self, SymInt[4] padding, *, Tensor(a!) out) -> Tensor(a!)", |args| {
        padding::<2>(args, Rule::Reflect)
    }),
    &row("aten::reflection_pad3d.out", "(Tensor self, SymInt[6] padding, *, Tensor(a!) out) -> Tensor(a!)", |args| {
        padding::<3>(args, Rule::Reflect)
    }),
    &row("aten::replication_pad1d.out", "(Tensor self, SymInt[2] padding, *, Tensor(a!) out) -> Tensor(a!)", |args| {
        padding::<1>(args, Rule::Repeat)
    }),
    &row("aten::replication_pad2d.out", "(Tensor self, SymInt[4] padding, *, Tensor(a!) out) -> Tensor(a!)", |args| {
        padding::<2>(args, Rule::Repeat)
    }),
    &row("aten::replication_pad3d.out", "(Tensor self, SymInt[6] padding, *, Tensor(a!) out) -> Tensor(a!)", |args| {
        padding::<3>(args, Rule::Repeat)
    }),
    &row("aten::tril.out", "(Tensor self, SymInt diagonal=0, *, Tensor(a!) out) -> Tensor(a!)", |args| {
        args.expect_len(4)?;
        expect_same_type(args, 0, 2)?;
        if !args.tensor(0)?.meta.is_contiguous() || !args.tensor(2)?.meta.is_contiguous() {
            return Err(KernelError::unsupported("`self` and `out` must be contiguous"));
        }
        Ok(Box::new(tril))
    }),
];
