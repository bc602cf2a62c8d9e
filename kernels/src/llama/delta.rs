//! The gated delta rule: a state per head that every token decays, corrects towards its value, and is asked for a result.
//!
//! The loop is that of `edgepack_compute::delta`; the state that is followed is the output's, a copy of the one given.

use edgepack_executor::kernel::{Alias, Kernel, KernelContext, KernelError, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::scalar::ScalarType;

use super::{expect_contiguous, expect_sizes, scratch_of, sizes_of};
use crate::check::{Shape, expect_dtype};
use crate::schema::{kernel, position};
use edgepack_compute::delta::{DeltaInputs, DeltaRule};

/// `llama::gated_delta_rule.out`.
pub static GATED: Kernel = kernel(NAME, Alias::Disjoint, prepare);

/// `llama::channelwise_gated_delta_rule.out`: the former name of the same.
pub static CHANNELWISE: Kernel = kernel("llama::channelwise_gated_delta_rule.out", Alias::Disjoint, prepare);

const NAME: &str = "llama::gated_delta_rule.out";

const QUERY: usize = position(NAME, "query");
const KEY: usize = position(NAME, "key");
const VALUE: usize = position(NAME, "value");
const DECAY: usize = position(NAME, "decay");
const BETA: usize = position(NAME, "beta");
const STATE: usize = position(NAME, "initial_state");
const OUT: usize = position(NAME, "out");
const STATE_OUT: usize = position(NAME, "final_state_out");

/// Inputs with their names, in the order [`rule_of`] takes them.
const INPUTS: [(usize, &str); 6] =
    [(QUERY, "query"), (KEY, "key"), (VALUE, "value"), (DECAY, "decay"), (BETA, "beta"), (STATE, "initial_state")];

/// The sizes of a call, or why they do not fit.
fn rule_of(metas: [TensorShape<'_>; 6]) -> Result<DeltaRule, KernelError> {
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
    Ok(DeltaRule { batch, heads, states, tokens, key: width, value: elements, decays })
}

fn prepare(args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    args.expect_len(STATE_OUT + 2)?;
    let mut fixed = true;
    for (arg, name) in INPUTS.into_iter().chain([(OUT, "out"), (STATE_OUT, "final_state_out")]) {
        let info = args.tensor(arg)?;
        expect_dtype(name, info.meta.dtype, ScalarType::FLOAT)?;
        expect_contiguous(name, &info.meta)?;
        fixed &= arg == OUT || arg == STATE_OUT || !info.dynamic;
    }
    let [query, key, value, decay, beta, state] = INPUTS.map(|(arg, _)| args.tensor(arg).map(|info| info.meta));
    let metas = [query?, key?, value?, decay?, beta?, state?];
    let [batch, states, ..] = sizes_of::<4>("key", &metas[1])?;
    let [.., elements] = sizes_of::<4>("value", &metas[2])?;
    args.scratch(batch.saturating_mul(states).saturating_mul(elements).saturating_mul(size_of::<f32>()));
    if fixed {
        rule_of(metas)?;
    }
    Ok(Box::new(run))
}

fn run(cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let [query, key, value, decay, beta, state] = INPUTS.map(|(arg, _)| cx.meta(arg));
    let rule = rule_of([query?, key?, value?, decay?, beta?, state?])?;
    let DeltaRule { batch, heads, states, tokens, key, value, .. } = rule;
    cx.resize(OUT, &[batch, heads, tokens, value])?;
    cx.resize(STATE_OUT, &[batch, states, key, value])?;
    let views = cx.views();
    let read = |arg: usize| views.tensor(arg)?.as_slice::<f32>();
    let inputs = DeltaInputs {
        query: read(QUERY)?,
        key: read(KEY)?,
        value: read(VALUE)?,
        decay: read(DECAY)?,
        beta: read(BETA)?,
    };
    let (mut out, mut state) = (views.out(OUT)?, views.out(STATE_OUT)?);
    let (out, state) = (out.as_mut_slice::<f32>()?, state.as_mut_slice::<f32>()?);
    state.copy_from_slice(read(STATE)?);
    let scratch = scratch_of::<f32>(views.scratch()?, rule.scratch())?;
    Ok(rule.run(inputs, state, out, scratch)?)
}
