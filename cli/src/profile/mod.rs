//! Profiles: what a method, or a trace of one, spent its time and memory on.

mod bounds;
mod exported;
mod folded;
mod memory;
mod page;
mod print;
mod record;
mod report;
mod spread;
mod trace;
mod watch;
mod work;

pub use bounds::NameRoom;
pub use exported::{ExportRecord, read_stack};
pub use folded::folded;
pub use memory::{Alive, Arenas, MemoryUse};
pub use page::page;
pub use print::print;
pub use record::Recorder;
pub use report::{By, Origins, Overhead, Profile};
pub use spread::{Spread, nanos};
pub use trace::observed;
pub use watch::{Node, Observation, Step, Watch};
pub use work::Work;
