//! Initial values of buffers that a program changes, other than those they were exported with.

use std::collections::{BTreeMap, BTreeSet};

use crate::archive::Weight;
use crate::error::Error;
use crate::graph::ExportedProgram;

/// Initial values of buffers, by name.
pub type State = BTreeMap<String, Weight<'static>>;

/// Lets the buffers of a program begin with recorded values. Names that it does not have are left out; a tensor of another
/// element type or size than the buffer is an error.
pub fn begin_with(program: &mut ExportedProgram<'_>, state: &State) -> Result<(), Error> {
    let weights = &mut program.weights;
    for (name, recorded) in state {
        let known = weights.state.get_mut(name).or_else(|| weights.constants.get_mut(name));
        let Some(weight) = known else { continue };
        if (weight.scalar_type(), weight.sizes()) != (recorded.scalar_type(), recorded.sizes()) {
            let show = |weight: &Weight<'_>| format!("{} {:?}", weight.scalar_type(), weight.sizes());
            let message = format!("it is {}, the recorded state {}", show(weight), show(recorded));
            return Err(Error::program(format!("buffer `{name}`"), message));
        }
        let is_param = weight.is_param;
        *weight = recorded.clone();
        weight.is_param = is_param;
    }
    Ok(())
}

/// Checks that every name is that of state of some program.
pub(super) fn check<'p, 'd: 'p>(
    state: &State,
    programs: impl Iterator<Item = &'p ExportedProgram<'d>>,
) -> Result<(), Error> {
    if state.is_empty() {
        return Ok(());
    }
    let known: BTreeSet<String> = programs.flat_map(ExportedProgram::changed).map(str::to_owned).collect();
    match state.keys().find(|name| !known.contains(*name)) {
        Some(name) if known.is_empty() => {
            Err(Error::program(format!("state `{name}`"), "the program changes no buffer, so it has no state"))
        }
        Some(name) => {
            let names: Vec<String> = known.into_iter().collect();
            let message = format!("no buffer of that name is changed; those that are: {}", names.join(", "));
            Err(Error::program(format!("state `{name}`"), message))
        }
        None => Ok(()),
    }
}
