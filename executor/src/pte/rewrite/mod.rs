//! Building blocks of rewrites, and the rewrites that need no knowledge of operators.
//!
//! A rewrite concludes over storage, not over value ids: [`Uses`] says who reads and writes which tensor and which
//! memory outlives a run, and answers only for methods without jumps, where "before" and "after" mean something.

mod content;
mod fold;
mod share;
mod uses;

use std::collections::HashMap;

use crate::pte::plan_graph::PlanGraph;

pub use fold::FoldConstants;
pub use share::ShareEqual;
pub use uses::{Use, Uses};

/// Returns, by operator of the graph, what a test of names says. Each name is asked about once: the instructions of backends
/// have operators of their own, of which many have one name.
fn by_operator(graph: &PlanGraph<'_>, test: fn(&str) -> bool) -> Vec<bool> {
    let mut known: HashMap<&str, bool> = HashMap::new();
    let names = graph.operators.iter().map(|operator| &*operator.name);
    names.map(|name| *known.entry(name).or_insert_with(|| test(name))).collect()
}
