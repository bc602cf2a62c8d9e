//! Model Library Format packages: parameters, graphs, and the archive around them.
//!
//! Packages from [`LibraryParts::finish`] verify clean and are reproducible, byte for byte, from the same parts: no
//! time, no owner, files in the order of their paths.

mod graph;
mod params;
mod parts;
mod versions;

pub use graph::{GraphBuilder, graph_text};
pub use params::params_file;
pub use parts::{LibraryParts, ModuleParts, archive};
