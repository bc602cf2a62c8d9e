//! Puts a convolution of single pixels and a depthwise one of its results together, where the images between them are larger
//! than a cache.

use std::sync::Arc;

use edgepack_compute::conv::lines;
use edgepack_compute::epilogue::Epilogue;
use edgepack_executor::kernel::Operator;
use edgepack_executor::plan::{PlanGraph, Rewrite};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::Dynamism;

use super::chain::{Call, arg, for_each_pair, is, is_private, merge, tensor};
use crate::aten::conv::{self, Pair};
use crate::fused::Fused;

/// Merges two convolutions.
pub struct PairConvolutions;

impl Rewrite for PairConvolutions {
    fn name(&self) -> &'static str {
        "pair convolutions"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        // Who has none need not be looked at closely.
        let mut found = false;
        for_each_pair(graph, |graph, first, second| {
            found |= images(graph, first, second).is_some();
            None
        });
        if !found {
            return 0;
        }
        let Some(uses) = Uses::of(graph) else { return 0 };
        for_each_pair(graph, |graph, first, second| {
            let Images { scaled, out, epilogues } = images(graph, first, second)?;
            if !is_private(graph, &uses, arg(graph, first, out)?) {
                return None;
            }
            let (before, behind) = (graph.args(first.args).get(..out)?, graph.args(second.args).get(1..=out)?);
            // The output, and the result that repeats it.
            let args = [before, behind, behind.last_chunk::<1>()?].concat();
            let pair = Pair::new(scaled, epilogues);
            if !graph.look(&args, |args| pair.pays(args))? {
                return None;
            }
            let operator = graph.push_operator(Arc::new(pair) as Arc<dyn Operator>).ok()?;
            merge(graph, first, second, operator, &args)
        })
    }
}

/// Two convolutions, one behind the other.
struct Images {
    /// True if both have factors.
    scaled: bool,
    /// Position of the output of each.
    out: usize,
    epilogues: [Option<Arc<Epilogue>>; 2],
}

/// Two convolutions that may be one, as far as a first look says.
fn images(graph: &PlanGraph<'_>, first: Call, second: Call) -> Option<Images> {
    let ((scaled, before), (next, behind)) =
        (convolution(graph, first.operator)?, convolution(graph, second.operator)?);
    if scaled != next {
        return None;
    }
    let out = if scaled { conv::SCALED_OUT } else { conv::OUT };
    let of = |call: Call, at: usize| Some(graph.tensor(tensor(graph, arg(graph, call, at)?)?));
    let [input, between, result] = [of(first, conv::FORWARD.input)?, of(first, out)?, of(second, out)?];
    if arg(graph, second, conv::FORWARD.input)? != arg(graph, first, out)? {
        return None;
    }
    let is_last = [&input, &between, &result].iter().all(|images| images.dim_order() == [0, 2, 3, 1]);
    let is_static = [&input, &between, &result].iter().all(|images| images.dynamism() == Dynamism::Static);
    let is_large = between.bounds().iter().product::<usize>() >= lines::LEAST;
    // An input in the place of the result would have to be copied.
    let fits = is_last && is_static && is_large && !input.overlaps(&result);
    fits.then_some(Images { scaled, out, epilogues: [before, behind] })
}

/// Returns whether an operator is a convolution with factors, and what is done to its results; `None` if it is none.
fn convolution(graph: &PlanGraph<'_>, operator: u32) -> Option<(bool, Option<Arc<Epilogue>>)> {
    if is(graph, operator, &conv::CONVOLUTION) {
        return Some((false, None));
    }
    if is(graph, operator, &conv::SCALED) {
        return Some((true, None));
    }
    let kernel = &graph.operators()[operator as usize].kernel;
    let (base, epilogue) = kernel.as_any()?.downcast_ref::<Fused>()?.parts();
    let of = |scaled| Some((scaled, Some(Arc::clone(epilogue))));
    if std::ptr::eq(base, &conv::FUSED) {
        return of(false);
    }
    if std::ptr::eq(base, &conv::SCALED_FUSED) { of(true) } else { None }
}
