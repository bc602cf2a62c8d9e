//! Payloads of the XNNPACK backend that break one rule each.

mod base;
mod graph;
mod head;
mod nodes;
mod values;

use crate::hostile_data::Case;

pub fn cases() -> Vec<Case> {
    [head::cases(), graph::cases(), values::cases(), nodes::cases()].into_iter().flatten().collect()
}

/// The payloads that recipes change.
pub fn good() -> Vec<Vec<u8>> {
    base::good()
}
