//! Compiled Edge TPU models: packages, identifier `DWN1`, as they are inside `*_edgetpu.tflite` files or alone.
//!
//! A [`Package`] holds a [`MultiExecutable`] as bytes, which holds [`Executable`]s as bytes. [`PackageRef`] is all of it,
//! verified. What the numbers mean is here, too: the sizes of a layer ([`Geometry`]), where the elements of an output are
//! ([`Route`]), the real value of a stored number ([`NumericsConstants::real`]).

mod data_type;
mod geometry;
mod output;
mod package;
mod slices;
mod tables;
mod tiles;
pub mod verify;

pub use geometry::{Geometry, GeometryError, shape_elements};
pub use output::{Route, RouteError, output_of};
pub use package::{
    Accept, ExecutableRef, IDENTIFIER, NARROW_MEMORY, NEWEST_RUNTIME, OLDEST_RUNTIME, PackageRef, TILES,
    is_der_signature,
};
pub use slices::{MAX_RANK, Slice, SliceError, SliceFault, Slices};
pub use tables::*;
pub use tiles::{Run, TileError, Tiles};
