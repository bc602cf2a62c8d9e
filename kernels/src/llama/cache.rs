//! Writing keys or values into their cache: at a position, or each at an index of its own.
//!
//! A cache is `[batch, positions, heads, dim]`, so a token is one run of memory and a sequence of them is, too. The result
//! that the schemas declare is a placeholder nobody reads; it is filled with zeros so that no call depends on what was
//! in memory before.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::scalar::ScalarType;

use super::{expect_contiguous, expect_sizes, sizes_of};
use crate::check::{Shape, expect_dtype, expect_same};

/// `llama::update_cache.out`.
pub static UPDATE: Kernel = Kernel {
    name: "llama::update_cache.out",
    schema: "(Tensor value, Tensor(a!) cache, SymInt start_pos, *, Tensor(b!) out) -> Tensor(b!)",
    alias: Alias::Disjoint,
    prepare: prepare_update,
};

/// `llama::update_cache_with_indices.out`.
pub static UPDATE_WITH_INDICES: Kernel = Kernel {
    name: "llama::update_cache_with_indices.out",
    schema: "(Tensor value, Tensor(a!) cache, SymInt start_pos, Tensor indices, *, Tensor(b!) out) -> Tensor(b!)",
    alias: Alias::Disjoint,
    prepare: prepare_indices,
};

const VALUE: usize = 0;
const CACHE: usize = 1;
const START: usize = 2;
const INDICES: usize = 3;

/// A value and the cache it goes into.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    batch: usize,
    /// Tokens per sequence.
    tokens: usize,
    /// Places per sequence.
    places: usize,
    /// Elements of a token.
    width: usize,
}

impl Write {
    /// What a write into a cache looks like, or why the two do not fit.
    pub fn new(
        (value_name, value): (&str, &TensorShape<'_>),
        (cache_name, cache): (&str, &TensorShape<'_>),
    ) -> Result<Self, KernelError> {
        let [batch, tokens, heads, dim] = sizes_of(value_name, value)?;
        let [cache_batch, places, cache_heads, cache_dim] = sizes_of(cache_name, cache)?;
        if [batch, heads, dim] != [cache_batch, cache_heads, cache_dim] {
            return Err(KernelError::argument(format!(
                "`{value_name}` is {}, `{cache_name}` is {}: only their second dimension may differ",
                Shape(value.sizes),
                Shape(cache.sizes)
            )));
        }
        Ok(Write { batch, tokens, places, width: heads * dim })
    }

    /// The place of the first token, or an error if they do not all fit behind it.
    pub fn start(&self, start: i64, cache: &str) -> Result<usize, KernelError> {
        start_in("start_pos", start, self.tokens, (cache, self.places))
    }

    /// Writes all tokens from place `start` on; `bytes` is the width of an element.
    pub fn run(&self, value: &[u8], cache: &mut [u8], start: usize, bytes: usize) {
        let (run, row) = (self.tokens * self.width * bytes, self.width * bytes);
        if run == 0 {
            return;
        }
        let caches = cache.chunks_exact_mut(self.places * row);
        for (value, cache) in value.chunks_exact(run).zip(caches) {
            cache[start * row..][..run].copy_from_slice(value);
        }
    }

    /// Writes every token at its index; of two at one place the later stays.
    fn scatter(&self, value: &[u8], cache: &mut [u8], indices: &[i64], bytes: usize) -> Result<(), KernelError> {
        let places = self.places;
        if let Some(index) = indices.iter().find(|&&index| usize::try_from(index).map_or(true, |at| at >= places)) {
            return Err(KernelError::argument(format!("`indices` holds {index}, `cache` has {places} places")));
        }
        let row = self.width * bytes;
        if row == 0 {
            return Ok(());
        }
        for (token, (value, &index)) in value.chunks_exact(row).zip(indices).enumerate() {
            let place = token / self.tokens * places + index as usize;
            cache[place * row..][..row].copy_from_slice(value);
        }
        Ok(())
    }
}

/// The place that `count` tokens from `start` on begin at, or an error if it or they are beyond the places of a tensor.
pub fn start_in(name: &str, start: i64, count: usize, (tensor, places): (&str, usize)) -> Result<usize, KernelError> {
    let at = usize::try_from(start).ok().filter(|&at| at < places || count == 0 && at == places);
    match at {
        Some(at) if places - at >= count => Ok(at),
        _ => Err(KernelError::argument(format!(
            "`{name}` is {start} and there are {count} tokens, `{tensor}` has {places} places"
        ))),
    }
}

fn expect_pair(args: &Prepare<'_>) -> Result<(), KernelError> {
    let (value, cache) = (args.tensor(VALUE)?, args.tensor(CACHE)?);
    expect_same(("value", value.meta.dtype), ("cache", cache.meta.dtype))?;
    expect_contiguous("value", &value.meta)?;
    expect_contiguous("cache", &cache.meta)?;
    sizes_of::<4>("value", &value.meta)?;
    sizes_of::<4>("cache", &cache.meta)?;
    Ok(())
}

fn prepare_update(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(5)?;
    expect_pair(args)?;
    let (value, cache) = (args.tensor(VALUE)?, args.tensor(CACHE)?);
    let start = args.int(START)?;
    if !value.dynamic && !cache.dynamic {
        let write = Write::new(("value", &value.meta), ("cache", &cache.meta))?;
        start.map(|start| write.start(start, "cache")).transpose()?;
    }
    args.tensor(3)?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let write = Write::new(("value", &cx.meta(VALUE)?), ("cache", &cx.meta(CACHE)?))?;
        let start = write.start(cx.int(START)?, "cache")?;
        let views = cx.views();
        let (value, mut cache) = (views.tensor(VALUE)?, views.out(CACHE)?);
        write.run(value.bytes(), cache.bytes(), start, value.dtype.size().unwrap_or(0));
        views.out(3)?.bytes().fill(0);
        Ok(())
    }))
}

fn prepare_indices(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(6)?;
    expect_pair(args)?;
    let (value, cache, indices) = (args.tensor(VALUE)?, args.tensor(CACHE)?, args.tensor(INDICES)?);
    expect_dtype("indices", indices.meta.dtype, ScalarType::LONG)?;
    expect_contiguous("indices", &indices.meta)?;
    sizes_of::<2>("indices", &indices.meta)?;
    // Where it is given, every token has its own place and this one is not looked at.
    args.int(START)?;
    if !value.dynamic && !cache.dynamic {
        let write = Write::new(("value", &value.meta), ("cache", &cache.meta))?;
        if !indices.dynamic {
            expect_sizes("indices", indices.meta.sizes, &[write.batch, write.tokens], "`value`")?;
        }
    }
    args.tensor(4)?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let write = Write::new(("value", &cx.meta(VALUE)?), ("cache", &cx.meta(CACHE)?))?;
        expect_sizes("indices", cx.meta(INDICES)?.sizes, &[write.batch, write.tokens], "`value`")?;
        let views = cx.views();
        let (value, indices, mut cache) = (views.tensor(VALUE)?, views.tensor(INDICES)?, views.out(CACHE)?);
        let width = value.dtype.size().unwrap_or(0);
        write.scatter(value.bytes(), cache.bytes(), indices.as_slice()?, width)?;
        views.out(4)?.bytes().fill(0);
        Ok(())
    }))
}
