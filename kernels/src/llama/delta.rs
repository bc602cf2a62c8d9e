//! The gated delta rule: a state per head that every token decays, corrects towards its value, and is asked for a result.
//!
//! For each token, with a state of `key elements × value elements`: the state is scaled by the decay (one number for all
//! rows, or one for each); what the key finds in it is compared with the value, and `beta` times the difference is
//! written back under the key; the queries that share the state are multiplied with it. Invariant: token after token, so
//! results do not depend on how a sequence is cut into calls.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::scalar::ScalarType;

use super::{expect_contiguous, expect_sizes, scratch_of, sizes_of};
use crate::check::{Shape, expect_dtype};
use edgepack_compute::simd::wide;
use edgepack_compute::threads::{Write, for_each};

/// `llama::gated_delta_rule.out`.
pub static GATED: Kernel = kernel("llama::gated_delta_rule.out");

/// `llama::channelwise_gated_delta_rule.out`: the former name of the same.
pub static CHANNELWISE: Kernel = kernel("llama::channelwise_gated_delta_rule.out");

const fn kernel(name: &'static str) -> Kernel {
    Kernel {
        name,
        schema: "(Tensor query, Tensor key, Tensor value, Tensor decay, Tensor beta, Tensor initial_state, *, Tensor(a!) out, Tensor(b!) final_state_out) -> (Tensor(a!), Tensor(b!))",
        alias: Alias::Disjoint,
        prepare,
    }
}

const NAMES: [&str; 8] = ["query", "key", "value", "decay", "beta", "initial_state", "out", "final_state_out"];
const OUT: usize = 6;
const STATE_OUT: usize = 7;

/// From this many multiplications on, heads are given to several threads.
const WORTH_THREADS: usize = 1 << 18;

/// The sizes of one call.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    batch: usize,
    heads: usize,
    /// Heads of states.
    states: usize,
    tokens: usize,
    key: usize,
    value: usize,
    /// Numbers of decay per token: 1, or one for each element of a key.
    decays: usize,
}

impl Geometry {
    fn new(metas: [TensorShape<'_>; 6]) -> Result<Self, KernelError> {
        let [query, key, value, decay, beta, state] = metas;
        let [batch, heads, tokens, width] = sizes_of("query", &query)?;
        let [_, states, ..] = sizes_of::<4>("key", &key)?;
        let [.., elements] = sizes_of::<4>("value", &value)?;
        expect_sizes("key", key.sizes, &[batch, states, tokens, width], "`query`")?;
        expect_sizes("value", value.sizes, &[batch, states, tokens, elements], "`key`")?;
        let decays = match decay.rank() {
            3 => {
                expect_sizes("decay", decay.sizes, &[batch, states, tokens], "`key`")?;
                1
            }
            _ => {
                expect_sizes("decay", decay.sizes, &[batch, states, tokens, width], "`key`")?;
                width
            }
        };
        expect_sizes("beta", beta.sizes, &[batch, states, tokens], "`key`")?;
        expect_sizes("initial_state", state.sizes, &[batch, states, width, elements], "`key` and `value`")?;
        if states == 0 || !heads.is_multiple_of(states) {
            return Err(KernelError::argument(format!(
                "`query` is {}, `key` is {}: heads of `key` must divide those of `query`",
                Shape(query.sizes),
                Shape(key.sizes)
            )));
        }
        Ok(Geometry { batch, heads, states, tokens, key: width, value: elements, decays })
    }

    fn scratch(&self) -> usize {
        self.batch.saturating_mul(self.states).saturating_mul(self.value)
    }
}

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(9)?;
    let mut fixed = true;
    for (arg, name) in NAMES.into_iter().enumerate() {
        let info = args.tensor(arg)?;
        expect_dtype(name, info.meta.dtype, ScalarType::FLOAT)?;
        expect_contiguous(name, &info.meta)?;
        fixed &= arg >= OUT || !info.dynamic;
    }
    let metas = [0, 1, 2, 3, 4, 5].map(|arg| args.tensor(arg).map(|info| info.meta));
    let [query, key, value, decay, beta, state] = metas;
    let metas = [query?, key?, value?, decay?, beta?, state?];
    let [batch, states, ..] = sizes_of::<4>("key", &metas[1])?;
    let [.., elements] = sizes_of::<4>("value", &metas[2])?;
    args.scratch(batch.saturating_mul(states).saturating_mul(elements).saturating_mul(size_of::<f32>()));
    if fixed {
        Geometry::new(metas)?;
    }
    Ok(Box::new(run))
}

fn run(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let metas = [cx.meta(0)?, cx.meta(1)?, cx.meta(2)?, cx.meta(3)?, cx.meta(4)?, cx.meta(5)?];
    let geometry = Geometry::new(metas)?;
    let Geometry { batch, heads, states, tokens, key, value, .. } = geometry;
    cx.resize(OUT, &[batch, heads, tokens, value])?;
    cx.resize(STATE_OUT, &[batch, states, key, value])?;
    let views = cx.views();
    let read = |arg: usize| views.tensor(arg)?.as_slice::<f32>();
    let inputs = [read(0)?, read(1)?, read(2)?, read(3)?, read(4)?];
    let (mut out, mut state) = (views.out(OUT)?, views.out(STATE_OUT)?);
    let (out, state) = (out.as_slice::<f32>()?, state.as_slice::<f32>()?);
    state.copy_from_slice(read(5)?);
    let scratch = scratch_of::<f32>(views.scratch()?, geometry.scratch())?;
    if value == 0 {
        return Ok(());
    }
    if key == 0 || tokens == 0 {
        // An empty state answers nothing.
        out.fill(0.0);
        return Ok(());
    }
    let per_state = heads / states * tokens * value;
    if per_state == 0 {
        // There are states, and keys that change them, but nobody asks.
        let lanes = state.chunks_exact_mut(key * value).zip(scratch.chunks_exact_mut(value)).enumerate();
        lanes.for_each(|(head, (state, scratch))| follow(&geometry, inputs, head, state, &mut [], scratch));
        return Ok(());
    }
    let lanes = (Write(state, key * value), Write(out, per_state), Write(scratch, value));
    let share = batch * heads * tokens * key * value >= WORTH_THREADS;
    for_each(share, lanes, |head, (state, out, scratch)| follow(&geometry, inputs, head, state, out, scratch));
    Ok(())
}

/// Follows one state through all tokens; `out` holds the results of the heads that share it, `found` is scratch.
fn follow(
    geometry: &Geometry,
    [query, key, value, decay, beta]: [&[f32]; 5],
    head: usize,
    state: &mut [f32],
    out: &mut [f32],
    found: &mut [f32],
) {
    let &Geometry { heads, states, tokens, key: keys, value: values, decays, .. } = geometry;
    let repeats = heads / states;
    for token in 0..tokens {
        let at = head * tokens + token;
        let (key, value) = (&key[at * keys..][..keys], &value[at * values..][..values]);
        let decay = &decay[at * decays..][..decays];
        let decay_of = |row: usize| if decays == 1 { decay[0] } else { decay[row] };
        wide(|| {
            found.fill(0.0);
            for (row, (state, &key)) in state.chunks_exact_mut(values).zip(key).enumerate() {
                let decay = decay_of(row);
                for (x, found) in state.iter_mut().zip(&mut *found) {
                    *x *= decay;
                    *found += *x * key;
                }
            }
            found.iter_mut().zip(value).for_each(|(found, value)| *found = (value - *found) * beta[at]);
            for (state, &key) in state.chunks_exact_mut(values).zip(key) {
                state.iter_mut().zip(&*found).for_each(|(x, found)| *x += key * found);
            }
            for repeat in 0..repeats {
                let query = &query[((head * repeats + repeat) * tokens + token) * keys..][..keys];
                let out = &mut out[(repeat * tokens + token) * values..][..values];
                out.fill(0.0);
                for (state, &query) in state.chunks_exact(values).zip(query) {
                    out.iter_mut().zip(state).for_each(|(out, x)| *out += x * query);
                }
            }
        });
    }
}
