//! The attention operators: over a cache, with the cache written first, and over bytes with a scale for every row.
//!
//! Queries are `[batch, position, head, dim]`. Without a mask as many keys are looked at as have been written: `start_pos`
//! and one for every query. With a mask all of the keys are, and `start_pos` is not looked at. Dropout is for training.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run, Views};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::scalar::ScalarType;
use half::{bf16, f16};

use super::attention::{Attention, Bytes, Floats, Geometry, Rows, Sight, Steps};
use super::cache::{Write, start_in};
use super::{expect_contiguous, expect_sizes, scratch_of, sizes_of};
use crate::check::{Shape, expect_dtype, expect_same};
use edgepack_compute::number::{Cast, Number};

/// `llama::custom_sdpa.out`.
pub static CUSTOM: Kernel = Kernel {
    name: "llama::custom_sdpa.out",
    schema: "(Tensor query, Tensor key, Tensor value, SymInt start_pos, Tensor? attn_mask=None, float drpout_p=0.0, bool is_causal=False, float? scale=None, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &CUSTOM_FORM),
};

/// `llama::custom_quantized_sdpa.out`.
pub static QUANTIZED: Kernel = Kernel {
    name: "llama::custom_quantized_sdpa.out",
    schema: "(Tensor query, Tensor key, Tensor value, SymInt start_pos, Tensor? attn_mask=None, float drpout_p=0.0, bool is_causal=False, float? scale=None, Tensor? q_zero_points=None, Tensor? q_scales=None, Tensor? k_zero_points=None, Tensor? k_scales=None, Tensor? v_zero_points=None, Tensor? v_scales=None, bool is_seq_at_dim_2=False, *, Tensor(a!) out) -> Tensor(a!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &QUANTIZED_FORM),
};

/// `llama::sdpa_with_kv_cache.out`.
pub static WITH_CACHE: Kernel = Kernel {
    name: "llama::sdpa_with_kv_cache.out",
    schema: "(Tensor query, Tensor key, Tensor value, Tensor(a!) key_cache, Tensor(b!) value_cache, SymInt start_pos, SymInt seq_len, Tensor? attn_mask=None, float drpout_p=0.0, bool is_causal=False, float? scale=None, *, Tensor(c!) out) -> Tensor(c!)",
    alias: Alias::Disjoint,
    prepare: |args| prepare(args, &WITH_CACHE_FORM),
};

/// Where the arguments stand.
struct Form {
    /// The keys that are looked at; the values follow.
    key: usize,
    key_names: [&'static str; 2],
    /// Whether the keys and values are caches that arguments 1 and 2 are written to first.
    writes: bool,
    start: usize,
    /// The mask; dropout, whether to be causal, and the scale follow.
    mask: usize,
    /// Zero points and scales of queries, keys and values, and where positions are.
    affine: Option<usize>,
    out: usize,
}

static CUSTOM_FORM: Form =
    Form { key: 1, key_names: ["key", "value"], writes: false, start: 3, mask: 4, affine: None, out: 8 };
static QUANTIZED_FORM: Form =
    Form { key: 1, key_names: ["key", "value"], writes: false, start: 3, mask: 4, affine: Some(8), out: 15 };
static WITH_CACHE_FORM: Form =
    Form { key: 3, key_names: ["key_cache", "value_cache"], writes: true, start: 5, mask: 7, affine: None, out: 11 };

const AFFINE_NAMES: [&str; 6] = ["q_zero_points", "q_scales", "k_zero_points", "k_scales", "v_zero_points", "v_scales"];

impl Form {
    /// The sizes of a call whose keys are all looked at, whether or not they fit each other.
    fn sizes(&self, [query, key, _]: &[TensorShape<'_>; 3], heads_first: bool) -> Result<Geometry, KernelError> {
        let [batch, a, b, dim] = sizes_of("query", query)?;
        let (queries, heads) = if heads_first { (b, a) } else { (a, b) };
        let [_, a, b, _] = sizes_of(self.key_names[0], key)?;
        let (keys, shared) = if heads_first { (b, a) } else { (a, b) };
        let (query_steps, key_steps) =
            (Steps::new(queries, heads, dim, heads_first), Steps::new(keys, shared, dim, heads_first));
        let converted = query.dtype != ScalarType::FLOAT;
        Ok(Geometry { batch, heads, shared, queries, keys, dim, converted, query_steps, key_steps })
    }

    /// The same, or why they do not fit.
    fn geometry(&self, metas: &[TensorShape<'_>; 3], heads_first: bool) -> Result<Geometry, KernelError> {
        let geometry = self.sizes(metas, heads_first)?;
        let [query, key, value] = metas;
        let [key_name, value_name] = self.key_names;
        expect_sizes(value_name, value.sizes, key.sizes, "the other")?;
        let [batch, .., dim] = sizes_of::<4>(key_name, key)?;
        let Geometry { heads, shared, .. } = geometry;
        if [batch, dim] != [geometry.batch, geometry.dim] || shared == 0 || !heads.is_multiple_of(shared) {
            return Err(KernelError::argument(format!(
                "`query` is {}, `{key_name}` is {}: batch and last dimension must be the same, and heads of keys \
                 divide those of queries",
                Shape(query.sizes),
                Shape(key.sizes)
            )));
        }
        Ok(geometry)
    }

    /// The writes into both caches.
    fn write(&self, metas: [TensorShape<'_>; 4]) -> Result<[Write; 2], KernelError> {
        let [key, value, key_cache, value_cache] = metas;
        let [key_name, value_name] = self.key_names;
        expect_sizes("value", value.sizes, key.sizes, "`key`")?;
        Ok([
            Write::new(("key", &key), (key_name, &key_cache))?,
            Write::new(("value", &value), (value_name, &value_cache))?,
        ])
    }
}

/// An error unless the mask has a number for each query and key.
fn expect_mask(mask: &TensorShape<'_>, geometry: &Geometry) -> Result<(), KernelError> {
    expect_sizes("attn_mask", mask.sizes, &[geometry.queries, geometry.keys], "the number of queries and keys")
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(form.out + 2)?;
    let (query, out) = (args.tensor(0)?, args.tensor(form.out)?);
    let dtype = query.meta.dtype;
    let mut fixed = !query.dynamic;
    let mut tensors = vec![(0, "query"), (form.key, form.key_names[0]), (form.key + 1, form.key_names[1])];
    if form.writes {
        tensors.extend([(1, "key"), (2, "value")]);
    }
    for (arg, name) in tensors {
        let info = args.tensor(arg)?;
        expect_same(("query", dtype), (name, info.meta.dtype))?;
        expect_contiguous(name, &info.meta)?;
        sizes_of::<4>(name, &info.meta)?;
        fixed &= !info.dynamic;
    }
    expect_contiguous("out", &out.meta)?;
    let mask = args.tensor_opt(form.mask)?;
    if let Some(mask) = mask {
        expect_dtype("attn_mask", mask.meta.dtype, ScalarType::FLOAT)?;
        expect_contiguous("attn_mask", &mask.meta)?;
        sizes_of::<2>("attn_mask", &mask.meta)?;
        fixed &= !mask.dynamic;
    }
    let causal = args.bool(form.mask + 2)?;
    if causal == Some(true) && mask.is_some() {
        return Err(both());
    }
    args.double(form.mask + 1)?;
    if !args.is_none(form.mask + 3) {
        args.double(form.mask + 3)?;
    }
    let heads_first = match form.affine {
        Some(affine) => args
            .bool(affine + 6)?
            .ok_or_else(|| KernelError::unsupported("`is_seq_at_dim_2` must be known when the program is loaded"))?,
        None => false,
    };
    if let Some(affine) = form.affine {
        for (index, name) in AFFINE_NAMES.into_iter().enumerate() {
            if args.is_none(affine + index) {
                return Err(KernelError::argument(format!("`{name}` is None, `query` holds bytes that need it")));
            }
            let info = args.tensor(affine + index)?;
            expect_dtype(name, info.meta.dtype, [ScalarType::CHAR, ScalarType::FLOAT][index % 2])?;
            expect_contiguous(name, &info.meta)?;
            fixed &= !info.dynamic;
        }
    }
    let metas = [query.meta, args.tensor(form.key)?.meta, args.tensor(form.key + 1)?.meta];
    let start = args.int(form.start)?;
    if form.writes {
        args.int(form.start + 1)?;
    }
    // Sizes of dynamic tensors are bounds, which need not fit each other.
    args.scratch(form.sizes(&metas, heads_first)?.greatest_scratch().saturating_mul(size_of::<f32>()));
    if fixed {
        let geometry = form.geometry(&metas, heads_first)?;
        check_affine(form, &metas, |index| Ok(args.tensor(index)?.meta))?;
        if let Some(mask) = mask {
            expect_mask(&mask.meta, &geometry)?;
        } else if let Some(start) = start {
            start_in("start_pos", start, geometry.queries, (form.key_names[0], geometry.keys))?;
        }
        if form.writes {
            let metas = [args.tensor(1)?.meta, args.tensor(2)?.meta, metas[1], metas[2]];
            let [write, _] = form.write(metas)?;
            start.map(|start| write.start(start, form.key_names[0])).transpose()?;
        }
    }
    if form.affine.is_some() {
        expect_dtype("query", dtype, ScalarType::CHAR)?;
        expect_dtype("out", out.meta.dtype, ScalarType::FLOAT)?;
        return Ok(Box::new(move |cx: &mut KernelContext<'_>| quantized(cx, form, heads_first)));
    }
    expect_same(("query", dtype), ("out", out.meta.dtype))?;
    let run = match dtype {
        ScalarType::FLOAT => floats::<f32>,
        ScalarType::HALF => floats::<f16>,
        ScalarType::BFLOAT16 => floats::<bf16>,
        _ => {
            return Err(KernelError::argument(format!(
                "`query` is {dtype}, the operator wants FLOAT, HALF or BFLOAT16"
            )));
        }
    };
    Ok(Box::new(move |cx: &mut KernelContext<'_>| run(cx, form)))
}

fn both() -> KernelError {
    KernelError::argument("`attn_mask` is given and `is_causal` is true: the operator takes one of them")
}

/// An error unless scales and zero points have one element for every row of their tensor.
fn check_affine<'a>(
    form: &Form,
    metas: &[TensorShape<'_>; 3],
    meta_of: impl Fn(usize) -> Result<TensorShape<'a>, KernelError>,
) -> Result<(), KernelError> {
    let Some(affine) = form.affine else { return Ok(()) };
    for (index, name) in AFFINE_NAMES.into_iter().enumerate() {
        let mut rows: [usize; 4] = sizes_of(["query", "key", "value"][index / 2], &metas[index / 2])?;
        rows[3] = 1;
        expect_sizes(name, meta_of(affine + index)?.sizes, &rows, "a number per row")?;
    }
    Ok(())
}

/// What a call computes, and where a cache is written first.
struct Call {
    geometry: Geometry,
    /// The place of the first query, if queries look at keys up to their own place.
    causal: Option<usize>,
    scale: f32,
}

/// Checks the sizes and numbers of a call.
fn call(cx: &mut KernelContext<'_>, form: &Form, heads_first: bool) -> Result<Call, KernelError> {
    let metas = [cx.meta(0)?, cx.meta(form.key)?, cx.meta(form.key + 1)?];
    let mut geometry = form.geometry(&metas, heads_first)?;
    check_affine(form, &metas, |index| cx.meta(index))?;
    let is_causal = cx.bool(form.mask + 2)?;
    let causal = match cx.meta_opt(form.mask)? {
        Some(_) if is_causal => return Err(both()),
        Some(mask) => {
            expect_mask(&mask, &geometry)?;
            None
        }
        None => {
            let places = (form.key_names[0], geometry.keys);
            let start = start_in("start_pos", cx.int(form.start)?, geometry.queries, places)?;
            geometry.keys = start + geometry.queries;
            is_causal.then_some(start)
        }
    };
    let scale = cx.double_opt(form.mask + 3)?.unwrap_or_else(|| 1.0 / (geometry.dim as f64).sqrt());
    let sizes: [usize; 4] = sizes_of("query", &metas[0])?;
    cx.resize(form.out, &sizes)?;
    Ok(Call { geometry, causal, scale: scale as f32 })
}

impl Call {
    fn run<T: Number + Send, R: Rows>(
        &self,
        [query, key, value]: [R; 3],
        views: &Views<'_>,
        form: &Form,
    ) -> Result<(), KernelError>
    where
        f32: Cast<T>,
    {
        let mask = views.tensor_opt(form.mask)?;
        let sight = match (&mask, self.causal) {
            (Some(mask), _) => Sight::Mask(mask.as_slice()?),
            (None, Some(start)) => Sight::Causal(start),
            (None, None) => Sight::All,
        };
        let &Call { geometry, scale, .. } = self;
        let scratch = scratch_of(views.scratch()?, geometry.scratch())?;
        let out = views.out(form.out)?.into_slice::<T>()?;
        Attention { geometry, query, key, value, sight, scale }.run(out, scratch)
    }
}

fn floats<T: Number + Send + Sync>(cx: &mut KernelContext<'_>, form: &Form) -> Result<(), KernelError>
where
    f32: Cast<T>,
{
    if !form.writes {
        let call = call(cx, form, false)?;
        let views = cx.views();
        let read = |arg: usize| views.tensor(arg)?.as_slice::<T>().map(Floats);
        return call.run::<T, _>([read(0)?, read(1)?, read(2)?], &views, form);
    }
    let metas = [cx.meta(1)?, cx.meta(2)?, cx.meta(form.key)?, cx.meta(form.key + 1)?];
    let [key_write, value_write] = form.write(metas)?;
    let [_, tokens, ..] = sizes_of::<4>("key", &metas[0])?;
    let seq_len = cx.int(form.start + 1)?;
    if usize::try_from(seq_len) != Ok(tokens) {
        return Err(KernelError::argument(format!("`seq_len` is {seq_len}, `key` has {tokens} tokens")));
    }
    let start = key_write.start(cx.int(form.start)?, form.key_names[0])?;
    let call = call(cx, form, false)?;
    let views = cx.views();
    let mut caches = [views.out(form.key)?, views.out(form.key + 1)?];
    for (index, (cache, write)) in caches.iter_mut().zip([key_write, value_write]).enumerate() {
        write.run(views.tensor(1 + index)?.bytes(), cache.bytes(), start, size_of::<T>());
    }
    let [key, value] = &mut caches;
    let query = Floats(views.tensor(0)?.as_slice::<T>()?);
    let (key, value) = (Floats(&*key.as_slice::<T>()?), Floats(&*value.as_slice::<T>()?));
    call.run::<T, _>([query, key, value], &views, form)
}

fn quantized(cx: &mut KernelContext<'_>, form: &Form, heads_first: bool) -> Result<(), KernelError> {
    let call = call(cx, form, heads_first)?;
    let views = cx.views();
    let affine = form.affine.unwrap_or_default();
    let read = |index: usize| -> Result<Bytes<'_>, KernelError> {
        let (zeros, scales) = (views.tensor(affine + 2 * index)?, views.tensor(affine + 2 * index + 1)?);
        Ok(Bytes { values: views.tensor(index)?.as_slice()?, zeros: zeros.as_slice()?, scales: scales.as_slice()? })
    };
    call.run::<f32, _>([read(0)?, read(1)?, read(2)?], &views, form)
}
