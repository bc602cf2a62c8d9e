//! Numbers times a slope where they are not greater than zero, as exported: a comparison, a product, and a choice between them.

use edgepack_compute::layout::broadcast;
use edgepack_executor::plan::{self, PlanGraph, PlanInstructionKind, Rewrite};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::{Dynamism, Value, ValueId};
use edgepack_format::scalar::ScalarType;

use super::chain::{Call, arg, is_private, own_names, tensor};
use crate::prelu::{PRELU, axis};
use crate::schema::position;

/// Replaces such instructions by one.
pub struct FormPrelu;

const GREATER: &str = "aten::gt.Scalar_out";
const THAN: usize = position(GREATER, "other");
const IS_GREATER: usize = position(GREATER, "out");
const PRODUCT: &str = "aten::mul.out";
const TIMES: usize = position(PRODUCT, "out");
const CHOICE: &str = "aten::where.self_out";
const CONDITION: usize = position(CHOICE, "condition");
const IF_TRUE: usize = position(CHOICE, "self");
const IF_FALSE: usize = position(CHOICE, "other");
const CHOSEN: usize = position(CHOICE, "out");

impl Rewrite for FormPrelu {
    fn name(&self) -> &'static str {
        "form prelu"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        let Some(names) = own_names(graph) else { return 0 };
        if !names.contains(&Some(CHOICE)) {
            return 0;
        }
        let Some(uses) = Uses::of(graph) else { return 0 };
        let (mut operator, mut changed) = (None, 0);
        for chain in 0..graph.chains().len() {
            // The last two instructions.
            let mut before: [Option<Call>; 2] = [None; 2];
            for index in 0..graph.chains()[chain].len() {
                let call = match graph.chains()[chain][index].kind {
                    PlanInstructionKind::Nop => continue,
                    PlanInstructionKind::Kernel { operator, args } => Some(Call { chain, index, operator, args }),
                    _ => None,
                };
                if let (Some(choice), [Some(first), Some(second)]) = (call, before)
                    && merge(graph, &uses, &names, [first, second, choice], &mut operator).is_some()
                {
                    changed += 1;
                    before = [None; 2];
                    continue;
                }
                before = [before[1], call];
            }
        }
        changed
    }
}

/// Merges a comparison, a product and a choice. `operator` is the index of the one in their place, once there is one.
fn merge(
    graph: &mut PlanGraph<'_>,
    uses: &Uses,
    names: &[Option<&str>],
    [first, second, choice]: [Call; 3],
    operator: &mut Option<u32>,
) -> Option<()> {
    let name = |call: Call| names.get(call.operator as usize).copied().flatten();
    let [greater, product] = match [name(first)?, name(second)?, name(choice)?] {
        [GREATER, PRODUCT, CHOICE] => [first, second],
        [PRODUCT, GREATER, CHOICE] => [second, first],
        _ => return None,
    };
    let x = arg(graph, greater, 0)?;
    let (is_greater, times) = (arg(graph, greater, IS_GREATER)?, arg(graph, product, TIMES)?);
    let out = arg(graph, choice, CHOSEN)?;
    let chosen = [CONDITION, IF_TRUE, IF_FALSE].map(|at| arg(graph, choice, at));
    if chosen != [Some(is_greater), Some(x), Some(times)] || !is_zero(graph, arg(graph, greater, THAN)?) {
        return None;
    }
    let factors = [arg(graph, product, 0)?, arg(graph, product, 1)?];
    let slopes = match factors {
        [slopes, number] | [number, slopes] if number == x && slopes != x => slopes,
        _ => return None,
    };
    let of = |id: ValueId| Some(graph.tensor(tensor(graph, id)?));
    let [input, factor, result, mask, product_of] = [of(x)?, of(slopes)?, of(out)?, of(is_greater)?, of(times)?];
    let floats = [&input, &factor, &product_of, &result].iter().all(|each| each.dtype() == ScalarType::FLOAT);
    let alike = |other: &plan::PlanTensor<'_>| {
        (other.bounds(), other.dim_order(), other.dynamism()) == (input.bounds(), input.dim_order(), input.dynamism())
    };
    // Slopes that change their sizes might stretch the numbers, and what is in the place of a result is not there any more.
    let fits = floats
        && mask.dtype() == ScalarType::BOOL
        && [&result, &mask, &product_of].into_iter().all(alike)
        && factor.dynamism() == Dynamism::Static
        && broadcast(factor.bounds(), input.bounds()).as_deref() == Some(input.bounds())
        && axis(input.bounds(), factor.bounds()).is_some()
        && [&result, &mask, &product_of].iter().all(|other| !input.overlaps(other) && !factor.overlaps(other));
    if !fits || !is_private(graph, uses, is_greater) || !is_private(graph, uses, times) {
        return None;
    }
    let index = operator.map_or_else(|| graph.push_operator(&PRELU).ok(), Some)?;
    *operator = Some(index);
    let call = plan::Call::Kernel { operator: index, args: &[x, slopes, out, out] };
    graph.replace(choice.chain, choice.index, call).ok()?;
    for call in [first, second] {
        graph.replace(call.chain, call.index, plan::Call::Nothing).ok()?;
    }
    Some(())
}

/// Returns whether a value is the number 0.
fn is_zero(graph: &PlanGraph<'_>, id: ValueId) -> bool {
    let zero = match graph.value(id) {
        Value::Int(number) => number == 0,
        Value::Double(number) => number == 0.0,
        _ => false,
    };
    zero && !graph.is_variable(id)
}
