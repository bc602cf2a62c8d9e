//! Writing keys or values into their cache: at a position, or each at an index of its own.
//!
//! The result that the schemas declare is a placeholder that no caller reads; it is filled with zeros so that no call
//! depends on what was in memory before.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::scalar::ScalarType;

use super::{expect_contiguous, expect_sizes, sizes_of};
use crate::check::{Shape, expect_dtype, expect_same, named};
use crate::schema::{kernel, position};
use edgepack_compute::cache::CacheWrite;

const UPDATE_NAME: &str = "llama::update_cache.out";
const WITH_INDICES_NAME: &str = "llama::update_cache_with_indices.out";

/// `llama::update_cache.out`.
pub static UPDATE: Kernel = kernel(UPDATE_NAME, Alias::Disjoint, prepare_update);

/// `llama::update_cache_with_indices.out`.
pub static UPDATE_WITH_INDICES: Kernel = kernel(WITH_INDICES_NAME, Alias::Disjoint, prepare_indices);

/// Arguments of both.
const VALUE: usize = position(UPDATE_NAME, "value");
const CACHE: usize = position(UPDATE_NAME, "cache");
const START: usize = position(UPDATE_NAME, "start_pos");
const UPDATE_OUT: usize = position(UPDATE_NAME, "out");
const INDICES: usize = position(WITH_INDICES_NAME, "indices");
const WITH_INDICES_OUT: usize = position(WITH_INDICES_NAME, "out");

/// The write of a value into a cache, or why the two do not fit.
pub fn write_of(
    (value_name, value): (&str, &TensorShape<'_>),
    (cache_name, cache): (&str, &TensorShape<'_>),
) -> Result<CacheWrite, KernelError> {
    let [batch, tokens, heads, dim] = sizes_of(value_name, value)?;
    let [cache_batch, places, cache_heads, cache_dim] = sizes_of(cache_name, cache)?;
    if [batch, heads, dim] != [cache_batch, cache_heads, cache_dim] {
        return Err(KernelError::argument(format!(
            "`{value_name}` is {}, `{cache_name}` is {}: only their second dimension may differ",
            Shape(value.sizes),
            Shape(cache.sizes)
        )));
    }
    Ok(CacheWrite { batch, tokens, places, width: heads * dim * value.dtype.size().unwrap_or(0) })
}

/// The place of the first token, or an error if they do not all fit behind it.
pub fn start_of(write: &CacheWrite, start: i64, cache: &str) -> Result<usize, KernelError> {
    start_in("start_pos", start, write.tokens, (cache, write.places))
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
    args.expect_len(UPDATE_OUT + 2)?;
    expect_pair(args)?;
    let (value, cache) = (args.tensor(VALUE)?, args.tensor(CACHE)?);
    let start = args.int(START)?;
    if !value.dynamic && !cache.dynamic {
        let write = write_of(("value", &value.meta), ("cache", &cache.meta))?;
        start.map(|start| start_of(&write, start, "cache")).transpose()?;
    }
    args.tensor(UPDATE_OUT)?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let write = write_of(("value", &cx.meta(VALUE)?), ("cache", &cx.meta(CACHE)?))?;
        let start = start_of(&write, cx.int(START)?, "cache")?;
        let views = cx.views();
        let (value, mut cache) = (views.tensor(VALUE)?, views.out(CACHE)?);
        write.run(value.bytes(), cache.bytes_mut(), start)?;
        views.out(UPDATE_OUT)?.bytes_mut().fill(0);
        Ok(())
    }))
}

fn prepare_indices(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(WITH_INDICES_OUT + 2)?;
    expect_pair(args)?;
    let (value, cache, indices) = (args.tensor(VALUE)?, args.tensor(CACHE)?, args.tensor(INDICES)?);
    expect_dtype("indices", indices.meta.dtype, ScalarType::LONG)?;
    expect_contiguous("indices", &indices.meta)?;
    sizes_of::<2>("indices", &indices.meta)?;
    // Where it is given, every token has its own place and this one is not looked at.
    args.int(START)?;
    if !value.dynamic && !cache.dynamic {
        let write = write_of(("value", &value.meta), ("cache", &cache.meta))?;
        if !indices.dynamic {
            expect_sizes("indices", indices.meta.sizes, &[write.batch, write.tokens], "`value`")?;
        }
    }
    args.tensor(WITH_INDICES_OUT)?;
    Ok(Box::new(|cx: &mut KernelContext<'_>| {
        let write = write_of(("value", &cx.meta(VALUE)?), ("cache", &cx.meta(CACHE)?))?;
        expect_sizes("indices", cx.meta(INDICES)?.sizes, &[write.batch, write.tokens], "`value`")?;
        let views = cx.views();
        let (value, indices, mut cache) = (views.tensor(VALUE)?, views.tensor(INDICES)?, views.out(CACHE)?);
        let written = write.scatter(value.bytes(), cache.bytes_mut(), indices.as_slice()?);
        written.map_err(|error| named("indices", error))?;
        views.out(WITH_INDICES_OUT)?.bytes_mut().fill(0);
        Ok(())
    }))
}
