//! Depthwise convolution: a group per input channel.

mod channels_first;
mod channels_last;

pub(super) use channels_first::nchw;
pub(super) use channels_last::nhwc;

/// Nanoseconds of a tap, about.
const TAP: f64 = 0.05;
