//! Graphs of files as pictures: a page, text for Graphviz, a document for Model Explorer, and memory as text.

mod dot;
mod explorer;
mod graph;
mod memory;
mod modules;
mod page;
mod part;
mod picture;

pub use dot::dot;
pub use explorer::explorer;
pub use graph::{Graph, Kind, Node, Stored, Value, View, Writer};
pub use memory::add as add_memory;
pub use page::page;
pub use part::part;
pub use picture::print as print_memory;
