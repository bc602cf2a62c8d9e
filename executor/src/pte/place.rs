//! Finds what a file says about an instruction, when an error needs it.

use edgepack_format::pte::ExecutionPlan;

use crate::pte::error::Place;

/// The place of an instruction, with its innermost stack frame if the file has one.
pub(crate) fn place(plan: &ExecutionPlan<'_>, chain: usize, instruction: usize, what: String) -> Place {
    Place {
        method: plan.name.clone().unwrap_or_default().into_owned(),
        chain,
        instruction,
        what,
        node: None,
        source: frame(plan, chain, instruction),
    }
}

/// The innermost stack frame of an instruction, if the file has one.
pub(crate) fn frame(plan: &ExecutionPlan<'_>, chain: usize, instruction: usize) -> Option<String> {
    let chain = plan.chains.as_ref()?.get(chain).ok()?;
    let frames = chain.stacktrace?.get(instruction).ok()?.items?;
    let last = frames.get(frames.len().checked_sub(1)?).ok()?;
    let file = last.filename.unwrap_or_default();
    let name = last.name.unwrap_or_default();
    Some(format!("{file}:{} in {name}", last.lineno))
}
