//! Model Library Format packages: parameters, graphs, and the archive around them.
//!
//! What [`LibraryParts::finish`] writes verifies clean and is the same bytes for the same parts: no time, no owner, files
//! in the order of their paths.

mod graph;
mod params;
mod parts;
mod versions;

pub use graph::{GraphBuilder, graph_text};
pub use params::params_file;
pub use parts::{LibraryParts, ModuleParts, archive};
