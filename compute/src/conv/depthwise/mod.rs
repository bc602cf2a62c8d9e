//! Depthwise convolution: a group per input channel, or per few of them.

mod channels_first;
mod channels_last;
mod groups;
mod rows;

pub(super) use channels_first::nchw;
pub(super) use channels_last::{meet, nhwc};
pub(super) use groups::{fits_groups, pack as pack_groups, vectors as group_vectors};
pub(super) use rows::{fits_rows, rows, tap_len};

/// Nanoseconds of a tap, about.
const TAP: f64 = 0.05;
