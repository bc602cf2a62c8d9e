//! Decoders of delegates' payloads that come with the library.

use edgepack_format::payload::Payloads;

/// All of them, one for every backend whose payloads the library reads.
pub fn payloads() -> Payloads {
    let payloads = Payloads::new();
    #[cfg(feature = "xnnpack")]
    let payloads = payloads.with(edgepack_format::xnnpack::XnnpackFormat);
    payloads
}
