//! Puts a sum into the convolution that gives one of its operands, as at the end of a residual block: results are added while
//! they are in registers, and written once.

use std::sync::Arc;

use edgepack_compute::epilogue::Epilogue;
use edgepack_executor::kernel::Operator;
use edgepack_executor::plan::{PlanGraph, Rewrite};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::{Dynamism, Value, ValueId};
use edgepack_format::scalar::ScalarType;

use super::chain::{Call, arg, collected, for_each_pair, is, is_private, merge, overlap, own_names, tensor};
use crate::aten::conv;
use crate::aten::elementwise::arithmetic::{ALPHA, FUSED_ADD};
use crate::fused::{Base, Fused};

/// Merges convolutions with the sums behind them.
pub struct AddResults;

const ADD: &str = "aten::add.out";

impl Rewrite for AddResults {
    fn name(&self) -> &'static str {
        "add results"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        let Some(names) = own_names(graph) else { return 0 };
        let sums = (0..).zip(&names).map(|(operator, name)| sum(graph, operator, *name));
        let Some(sums) = collected(names.len(), sums) else { return 0 };
        if sums.iter().all(Option::is_none) {
            return 0;
        }
        let Some(uses) = Uses::of(graph) else { return 0 };
        // The last operator that was made, and of which sum and convolution.
        let mut made: Option<(u32, &'static Base, u32)> = None;
        for_each_pair(graph, |graph, first, second| {
            let epilogue = sums.get(second.operator as usize)?.as_ref()?;
            let (base, results) = convolution(graph, first.operator)?;
            let out = arg(graph, second, FUSED_ADD.out)?;
            let addend = addend(graph, &uses, arg(graph, first, results)?, second)?;
            let input = arg(graph, first, conv::FORWARD.input)?;
            // An input in the place of the result would have to be copied.
            if overlap(graph, input, out)? || overlap(graph, addend, out)? {
                return None;
            }
            let mut args = graph.args(first.args).get(..results)?.to_vec();
            // The output, and the result that repeats it.
            args.extend([addend, out, out]);
            let known = made.filter(|(sum, of, _)| *sum == second.operator && std::ptr::eq(*of, base));
            let operator = match known {
                Some((_, _, operator)) => operator,
                None => graph.push_operator(Arc::new(Fused::new(base, epilogue.clone())) as Arc<dyn Operator>).ok()?,
            };
            made = Some((second.operator, base, operator));
            merge(graph, first, second, operator, &args)
        })
    }
}

/// The operations behind an operator of the graph, if it is a sum of FLOAT.
fn sum(graph: &PlanGraph<'_>, operator: u32, name: Option<&'static str>) -> Option<Arc<Epilogue>> {
    if name == Some(ADD) {
        return Some(Arc::new(Epilogue::new(ScalarType::FLOAT, &[]).ok()?));
    }
    let kernel = &graph.operators()[operator as usize].kernel;
    let (base, epilogue) = kernel.as_any()?.downcast_ref::<Fused>()?.parts();
    (std::ptr::eq(base, &FUSED_ADD) && epilogue.expect_floats().is_ok()).then(|| Arc::clone(epilogue))
}

/// The form with an addend of an operator that is a convolution with nothing behind it, and where its results are.
fn convolution(graph: &PlanGraph<'_>, operator: u32) -> Option<(&'static Base, usize)> {
    if is(graph, operator, &conv::CONVOLUTION) {
        return Some((&conv::ADDED, conv::OUT));
    }
    is(graph, operator, &conv::SCALED).then_some((&conv::SCALED_ADDED, conv::SCALED_OUT))
}

/// The operand of a sum that is added to the results of a convolution, if the sum is plain and nothing else reads them: all
/// of the same sizes, known at load, with the channels of a pixel next to each other.
fn addend(graph: &PlanGraph<'_>, uses: &Uses, results: ValueId, sum: Call) -> Option<ValueId> {
    let [a, b, alpha, out] =
        [arg(graph, sum, 0)?, arg(graph, sum, 1)?, arg(graph, sum, ALPHA)?, arg(graph, sum, FUSED_ADD.out)?];
    let addend = if a == results { b } else { a };
    let is_plain = matches!(graph.value(alpha), Value::Int(1)) && !graph.is_variable(alpha);
    if !is_plain || (a == results) == (b == results) || !is_private(graph, uses, results) {
        return None;
    }
    let images = |id: ValueId| Some(graph.tensor(tensor(graph, id)?));
    let [results, addend_images, out] = [images(results)?, images(addend)?, images(out)?];
    let fits = [&results, &addend_images, &out].iter().all(|images| {
        images.dtype() == ScalarType::FLOAT
            && images.dynamism() == Dynamism::Static
            && images.bounds() == out.bounds()
            && images.dim_order() == out.dim_order()
    });
    (fits && out.dim_order().last() == Some(&1)).then_some(addend)
}
