//! Methods of programs: from the file to a plan graph, through rewrites to a plan that only needs to be run.

pub(crate) mod account;
pub(crate) mod arena;
pub(crate) mod attribute;
pub(crate) mod bind;
pub mod embed;
pub(crate) mod error;
pub(crate) mod freeze;
pub(crate) mod input;
pub(crate) mod input_slots;
pub(crate) mod interpret;
pub(crate) mod lasting;
pub(crate) mod load;
pub(crate) mod method;
pub mod observer;
pub(crate) mod options;
pub(crate) mod output_copies;
pub(crate) mod outputs;
pub(crate) mod overlap;
pub(crate) mod owners;
pub(crate) mod place;
pub mod plan_graph;
pub(crate) mod registry;
pub(crate) mod release;
pub mod rewrite;
pub(crate) mod run;
pub(crate) mod saved_state;
#[cfg(feature = "tracing")]
mod spans;
pub(crate) mod splice;
pub(crate) mod temporaries;
