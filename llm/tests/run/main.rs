//! Models and sessions over whole programs: tiny ones of this folder, and those of `EDGEPACK_CORPUS`.

mod corpus;
mod failing;
mod forms;
mod generating;
mod lies;
mod sampling;
mod saving;
mod sessions;
mod story;
mod support;
