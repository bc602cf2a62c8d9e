//! Options of opening and loading.

use edgepack::format::limits::Limits;
use edgepack::loader::machine_limits;

use crate::problem::Problem;

/// Ceilings by name: `default`, or `hostile` for files of strangers.
pub fn limits(name: Option<&str>) -> Result<Limits, Problem> {
    match name {
        None | Some("default") => Ok(machine_limits()),
        Some("hostile") => Ok(Limits::hostile()),
        Some(other) => Err(Problem::new("UsageError", format!("limits are \"default\" or \"hostile\", not {other:?}"))),
    }
}
