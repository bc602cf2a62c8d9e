//! Data files: opened and verified, their data read on demand or retained for structs that borrow them.

mod data_file;
mod held_data;

pub use data_file::DataFile;
pub use held_data::HeldData;
