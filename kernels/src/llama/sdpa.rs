//! The attention operators: over a cache, with the cache written first, and over bytes with a scale for every row.
//!
//! Queries are `[batch, position, head, dim]`. Without a mask as many keys are looked at as have been written: `start_pos`
//! and one for every query. With a mask all of the keys are, and `start_pos` is not looked at. Dropout is for training.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run, Views};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::scalar::ScalarType;
use half::{bf16, f16};

use super::cache::{start_in, start_of, write_of};
use super::{expect_contiguous, expect_sizes, scratch_of, sizes_of};
use crate::check::{Shape, expect_dtype, expect_same};
use crate::schema::{kernel, position};
use edgepack_compute::attention::{Attention, Bytes, Floats, Geometry, Rows, Strides, Visible};
use edgepack_compute::cache::CacheWrite;
use edgepack_compute::number::{Cast, Number};

/// `llama::custom_sdpa.out`.
pub static CUSTOM: Kernel = kernel(CUSTOM_NAME, Alias::Disjoint, |args| prepare(args, &CUSTOM_FORM));

/// `llama::custom_quantized_sdpa.out`.
pub static QUANTIZED: Kernel = kernel(QUANTIZED_NAME, Alias::Disjoint, |args| prepare(args, &QUANTIZED_FORM));

/// `llama::sdpa_with_kv_cache.out`.
pub static WITH_CACHE: Kernel = kernel(WITH_CACHE_NAME, Alias::Disjoint, |args| prepare(args, &WITH_CACHE_FORM));

const CUSTOM_NAME: &str = "llama::custom_sdpa.out";
const QUANTIZED_NAME: &str = "llama::custom_quantized_sdpa.out";
const WITH_CACHE_NAME: &str = "llama::sdpa_with_kv_cache.out";

/// Arguments of all three.
const QUERY: usize = position(CUSTOM_NAME, "query");
const KEY: usize = position(CUSTOM_NAME, "key");
const VALUE: usize = position(CUSTOM_NAME, "value");

/// Positions of the arguments that differ.
struct Form {
    /// The keys and values that are looked at.
    looked_at: [usize; 2],
    key_names: [&'static str; 2],
    /// The number of tokens, where keys and values that are looked at are caches that [`KEY`] and [`VALUE`] are written
    /// to first.
    written: Option<usize>,
    start: usize,
    mask: usize,
    dropout: usize,
    causal: usize,
    scale: usize,
    affine: Option<Affine>,
    out: usize,
}

/// Positions of the arguments that give the numbers that bytes represent, and their layout.
#[derive(Clone, Copy)]
struct Affine {
    /// Positions of the parameters, in the order of [`AFFINE_NAMES`].
    parameters: [usize; 6],
    heads_first: usize,
}

impl Form {
    const fn of(name: &str, key_names: [&'static str; 2], written: Option<usize>, affine: Option<Affine>) -> Form {
        Form {
            looked_at: [position(name, key_names[0]), position(name, key_names[1])],
            key_names,
            written,
            start: position(name, "start_pos"),
            mask: position(name, "attn_mask"),
            dropout: position(name, "drpout_p"),
            causal: position(name, "is_causal"),
            scale: position(name, "scale"),
            affine,
            out: position(name, "out"),
        }
    }
}

static CUSTOM_FORM: Form = Form::of(CUSTOM_NAME, ["key", "value"], None, None);
static QUANTIZED_FORM: Form = Form::of(
    QUANTIZED_NAME,
    ["key", "value"],
    None,
    Some(Affine {
        parameters: [
            position(QUANTIZED_NAME, AFFINE_NAMES[0]),
            position(QUANTIZED_NAME, AFFINE_NAMES[1]),
            position(QUANTIZED_NAME, AFFINE_NAMES[2]),
            position(QUANTIZED_NAME, AFFINE_NAMES[3]),
            position(QUANTIZED_NAME, AFFINE_NAMES[4]),
            position(QUANTIZED_NAME, AFFINE_NAMES[5]),
        ],
        heads_first: position(QUANTIZED_NAME, "is_seq_at_dim_2"),
    }),
);
static WITH_CACHE_FORM: Form =
    Form::of(WITH_CACHE_NAME, ["key_cache", "value_cache"], Some(position(WITH_CACHE_NAME, "seq_len")), None);

const AFFINE_NAMES: [&str; 6] = ["q_zero_points", "q_scales", "k_zero_points", "k_scales", "v_zero_points", "v_scales"];

impl Form {
    /// The sizes of a call whose keys are all looked at, whether or not they fit each other.
    fn sizes(&self, [query, key, _]: &[TensorShape<'_>; 3], heads_first: bool) -> Result<Geometry, KernelError> {
        let [batch, a, b, dim] = sizes_of("query", query)?;
        let (queries, heads) = if heads_first { (b, a) } else { (a, b) };
        let [_, a, b, _] = sizes_of(self.key_names[0], key)?;
        let (keys, key_heads) = if heads_first { (b, a) } else { (a, b) };
        let (query_strides, key_strides) =
            (Strides::new(queries, heads, dim, heads_first), Strides::new(keys, key_heads, dim, heads_first));
        let converted = query.dtype != ScalarType::FLOAT;
        Ok(Geometry { batch, heads, key_heads, queries, keys, dim, converted, query_strides, key_strides })
    }

    /// Returns the sizes and strides of the tensors, or an error that says why they do not fit.
    fn geometry(&self, metas: &[TensorShape<'_>; 3], heads_first: bool) -> Result<Geometry, KernelError> {
        let geometry = self.sizes(metas, heads_first)?;
        let [query, key, value] = metas;
        let [key_name, value_name] = self.key_names;
        expect_sizes(value_name, value.sizes, key.sizes, "the other")?;
        let [batch, .., dim] = sizes_of::<4>(key_name, key)?;
        let Geometry { heads, key_heads, .. } = geometry;
        if [batch, dim] != [geometry.batch, geometry.dim] || key_heads == 0 || !heads.is_multiple_of(key_heads) {
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
    fn write(&self, metas: [TensorShape<'_>; 4]) -> Result<[CacheWrite; 2], KernelError> {
        let [key, value, key_cache, value_cache] = metas;
        let [key_name, value_name] = self.key_names;
        expect_sizes("value", value.sizes, key.sizes, "`key`")?;
        Ok([write_of(("key", &key), (key_name, &key_cache))?, write_of(("value", &value), (value_name, &value_cache))?])
    }
}

/// Returns an error unless the mask has a number for each query and key.
fn expect_mask(mask: &TensorShape<'_>, geometry: &Geometry) -> Result<(), KernelError> {
    expect_sizes("attn_mask", mask.sizes, &[geometry.queries, geometry.keys], "the number of queries and keys")
}

fn prepare(args: &Prepare<'_>, form: &'static Form) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(form.out + 2)?;
    let (query, out) = (args.tensor(QUERY)?, args.tensor(form.out)?);
    let dtype = query.meta.dtype;
    let mut fixed = !query.dynamic;
    let mut tensors =
        vec![(QUERY, "query"), (form.looked_at[0], form.key_names[0]), (form.looked_at[1], form.key_names[1])];
    if form.written.is_some() {
        tensors.extend([(KEY, "key"), (VALUE, "value")]);
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
    let causal = args.bool(form.causal)?;
    if causal == Some(true) && mask.is_some() {
        return Err(both());
    }
    args.double(form.dropout)?;
    if !args.is_none(form.scale) {
        args.double(form.scale)?;
    }
    let heads_first = match form.affine {
        Some(affine) => args
            .bool(affine.heads_first)?
            .ok_or_else(|| KernelError::unsupported("`is_seq_at_dim_2` must be known when the program is loaded"))?,
        None => false,
    };
    if let Some(affine) = form.affine {
        for (index, (arg, name)) in affine.parameters.into_iter().zip(AFFINE_NAMES).enumerate() {
            if args.is_none(arg) {
                return Err(KernelError::argument(format!("`{name}` is None, `query` holds bytes that need it")));
            }
            let info = args.tensor(arg)?;
            expect_dtype(name, info.meta.dtype, [ScalarType::CHAR, ScalarType::FLOAT][index % 2])?;
            expect_contiguous(name, &info.meta)?;
            fixed &= !info.dynamic;
        }
    }
    let metas = [query.meta, args.tensor(form.looked_at[0])?.meta, args.tensor(form.looked_at[1])?.meta];
    let start = args.int(form.start)?;
    if let Some(length) = form.written {
        args.int(length)?;
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
        if form.written.is_some() {
            let metas = [args.tensor(KEY)?.meta, args.tensor(VALUE)?.meta, metas[1], metas[2]];
            let [write, _] = form.write(metas)?;
            start.map(|start| start_of(&write, start, form.key_names[0])).transpose()?;
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
            return Err(KernelError::argument(format!("`query` is {dtype}, the operator wants f32, f16 or bf16")));
        }
    };
    Ok(Box::new(move |cx: &mut KernelContext<'_>| run(cx, form)))
}

fn both() -> KernelError {
    KernelError::argument("`attn_mask` is given and `is_causal` is true: the operator takes one of them")
}

/// Returns an error unless scales and zero points have one element for every row of their tensor.
fn check_affine<'a>(
    form: &Form,
    metas: &[TensorShape<'_>; 3],
    meta_of: impl Fn(usize) -> Result<TensorShape<'a>, KernelError>,
) -> Result<(), KernelError> {
    let Some(affine) = form.affine else { return Ok(()) };
    for (index, (arg, name)) in affine.parameters.into_iter().zip(AFFINE_NAMES).enumerate() {
        let mut rows: [usize; 4] = sizes_of(["query", "key", "value"][index / 2], &metas[index / 2])?;
        rows[3] = 1;
        expect_sizes(name, meta_of(arg)?.sizes, &rows, "a number per row")?;
    }
    Ok(())
}

/// The computation of a call.
struct Call {
    geometry: Geometry,
    /// The place of the first query, if queries look at keys up to their own place.
    causal: Option<usize>,
    scale: f32,
}

/// Checks the sizes and numbers of a call.
fn call(cx: &mut KernelContext<'_>, form: &Form, heads_first: bool) -> Result<Call, KernelError> {
    let metas = [cx.meta(QUERY)?, cx.meta(form.looked_at[0])?, cx.meta(form.looked_at[1])?];
    let mut geometry = form.geometry(&metas, heads_first)?;
    check_affine(form, &metas, |index| cx.meta(index))?;
    let is_causal = cx.bool(form.causal)?;
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
    let scale = cx.double_opt(form.scale)?.unwrap_or_else(|| 1.0 / (geometry.dim as f64).sqrt());
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
        let visible = match (&mask, self.causal) {
            (Some(mask), _) => Visible::Mask(mask.as_slice()?),
            (None, Some(start)) => Visible::Causal(start),
            (None, None) => Visible::All,
        };
        let &Call { geometry, scale, .. } = self;
        let scratch = scratch_of(views.scratch()?, geometry.scratch())?;
        let out = views.out(form.out)?.into_slice::<T>()?;
        Ok(Attention { geometry, query, key, value, visible, scale }.run(out, scratch)?)
    }
}

fn floats<T: Number + Send + Sync>(cx: &mut KernelContext<'_>, form: &Form) -> Result<(), KernelError>
where
    f32: Cast<T>,
{
    let Some(length) = form.written else {
        let call = call(cx, form, false)?;
        let views = cx.views();
        let read = |arg: usize| views.tensor(arg)?.as_slice::<T>().map(Floats);
        return call.run::<T, _>([read(QUERY)?, read(KEY)?, read(VALUE)?], &views, form);
    };
    let [key_cache, value_cache] = form.looked_at;
    let metas = [cx.meta(KEY)?, cx.meta(VALUE)?, cx.meta(key_cache)?, cx.meta(value_cache)?];
    let [key_write, value_write] = form.write(metas)?;
    let [_, tokens, ..] = sizes_of::<4>("key", &metas[0])?;
    let seq_len = cx.int(length)?;
    if usize::try_from(seq_len) != Ok(tokens) {
        return Err(KernelError::argument(format!("`seq_len` is {seq_len}, `key` has {tokens} tokens")));
    }
    let start = start_of(&key_write, cx.int(form.start)?, form.key_names[0])?;
    let call = call(cx, form, false)?;
    let views = cx.views();
    let mut caches = [views.out(key_cache)?, views.out(value_cache)?];
    for ((cache, write), arg) in caches.iter_mut().zip([key_write, value_write]).zip([KEY, VALUE]) {
        write.run(views.tensor(arg)?.bytes(), cache.bytes_mut(), start)?;
    }
    let [key, value] = &mut caches;
    let query = Floats(views.tensor(QUERY)?.as_slice::<T>()?);
    let (key, value) = (Floats(&*key.as_mut_slice::<T>()?), Floats(&*value.as_mut_slice::<T>()?));
    call.run::<T, _>([query, key, value], &views, form)
}

fn quantized(cx: &mut KernelContext<'_>, form: &Form, heads_first: bool) -> Result<(), KernelError> {
    let call = call(cx, form, heads_first)?;
    let views = cx.views();
    let Some(affine) = form.affine else {
        return Err(KernelError::argument("the operator has no scales and zero points"));
    };
    let read = |arg: usize, index: usize| -> Result<Bytes<'_>, KernelError> {
        let [zeros, scales] = [0, 1].map(|part| views.tensor(affine.parameters[2 * index + part]));
        Ok(Bytes { values: views.tensor(arg)?.as_slice()?, zeros: zeros?.as_slice()?, scales: scales?.as_slice()? })
    };
    call.run::<f32, _>([read(QUERY, 0)?, read(KEY, 1)?, read(VALUE, 2)?], &views, form)
}
