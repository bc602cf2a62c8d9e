//! The account of one method's memory: planned memory, values of its own, scratch and packed weights together.
//!
//! Everything whose size comes from the file is charged here before it is allocated, and its allocation can fail; what
//! the method was charged stays charged while it lives. Given arenas belong to the caller and are not charged.

use edgepack_format::limits::Limits;

use crate::api::room::{OutOfMemory, no_room};
use crate::api::storage::Block;

/// Memory that a method was charged, and its limits.
#[derive(Clone, Copy)]
pub(crate) struct Account {
    planned: u64,
    own: u64,
    limits: Limits,
}

impl Account {
    pub fn new(limits: &Limits) -> Self {
        Account { planned: 0, own: 0, limits: *limits }
    }

    /// Charges planned memory.
    pub fn planned(&mut self, bytes: u64) -> Result<(), OutOfMemory> {
        let total = self.planned.saturating_add(bytes);
        within("planned memory", total, self.limits.arena_bytes)?;
        within("memory of the method", total.saturating_add(self.own), self.limits.memory_bytes)?;
        self.planned = total;
        Ok(())
    }

    /// Charges anything else.
    pub fn own(&mut self, what: &str, bytes: u64) -> Result<(), OutOfMemory> {
        let total = self.own.saturating_add(bytes);
        within(what, total, self.limits.method_bytes)?;
        within("memory of the method", total.saturating_add(self.planned), self.limits.memory_bytes)?;
        self.own = total;
        Ok(())
    }

    /// Returns the bytes that can still be charged beyond planned memory.
    pub fn left(&self) -> u64 {
        let whole = self.limits.memory_bytes.saturating_sub(self.planned).saturating_sub(self.own);
        whole.min(self.limits.method_bytes.saturating_sub(self.own))
    }

    /// A zeroed block, charged.
    pub fn block(&mut self, what: &str, bytes: usize) -> Result<Block, OutOfMemory> {
        self.own(what, bytes as u64)?;
        Block::zeroed(bytes).ok_or_else(|| no_room(what, bytes as u64))
    }
}

fn within(what: &str, bytes: u64, limit: u64) -> Result<(), OutOfMemory> {
    if bytes <= limit {
        return Ok(());
    }
    Err(OutOfMemory::new(format!("{bytes} bytes of {what}, the limits allow {limit}")))
}

#[cfg(test)]
mod tests {
    use edgepack_format::finding::ErrorCode;

    use super::*;
    use crate::api::error::KernelError;

    fn limits() -> Limits {
        let mut limits = Limits::hostile();
        (limits.arena_bytes, limits.method_bytes, limits.memory_bytes) = (1000, 800, 1200);
        limits
    }

    #[test]
    fn what_is_charged_for_one_thing_is_gone_for_another() {
        let mut account = Account::new(&limits());
        assert!(account.planned(1001).is_err());
        account.planned(1000).unwrap();
        assert_eq!(account.left(), 200);
        assert!(account.own("scratch", 201).is_err());
        account.own("scratch", 200).unwrap();
        assert!(account.own("scratch", 1).is_err() && account.planned(0).is_ok() && account.left() == 0);
        assert!(Account::new(&limits()).own("scratch", 801).is_err());
        let said = Account::new(&limits()).block("scratch", usize::MAX).err().map(KernelError::from).unwrap();
        assert_eq!(said.code, ErrorCode::MemoryAllocationFailed);
    }
}
