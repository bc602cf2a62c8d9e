//! The parts of `examples/fused_mlp`, as tests use them.

#[path = "../../examples/fused_mlp/backend.rs"]
pub mod backend;
#[path = "../../examples/fused_mlp/export.rs"]
pub mod export;
#[path = "../../examples/fused_mlp/format.rs"]
pub mod format;
#[path = "../../examples/fused_mlp/map.rs"]
pub mod map;
#[path = "../../examples/fused_mlp/payload.rs"]
pub mod payload;
