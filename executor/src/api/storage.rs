//! Memory that tensors live in. One of the few files with `unsafe`; the proof is at load time.
//!
//! A [`Block`] is an owned, zeroed, 64-byte-aligned piece of memory. A [`Region`] is a range of a block (or of bytes
//! borrowed from a caller) as a pointer and a length, so that a tensor needs no search at run time. A block is never
//! borrowed whole while a method exists; only regions are, one instruction at a time.
//!
//! Nothing here is public: code outside this crate can neither make a region nor give a tensor another one.
//!
//! Invariants, maintained by the plan:
//! 1. the memory of a region outlives every use of it: blocks are owned by the method, constants by the program it
//!    holds (`owners` proves both for every tensor when a plan is frozen), borrowed bytes by the borrow of
//!    the call they were passed to, after which, returned or unwound, the tensor has its own region again;
//! 2. two regions handed out at the same time, one of them mutable, do not overlap: the plan refuses or reroutes
//!    every instruction for which that does not hold;
//! 3. regions of an arena that methods share are used under its lock alone;
//! 4. a temporary region has no bytes: before a plan is frozen, every one was given a place, which `owners` proves too.

use std::ptr::NonNull;

use edgepack_compute::zeroed::Zeros;

/// Alignment of every block.
pub const BLOCK_ALIGN: usize = 64;

/// An owned, zeroed, aligned piece of memory.
pub struct Block {
    ptr: NonNull<u8>,
    len: usize,
    /// The memory behind the pointer, to be given back; `None` of an empty block.
    _memory: Option<Zeros>,
}

// SAFETY: a block is plain memory with one owner.
unsafe impl Send for Block {}
// SAFETY: a shared block offers no access to its bytes; regions do, under the invariants above.
unsafe impl Sync for Block {}

impl Block {
    /// A zeroed block, or `None` if there is no memory for it. Its pages are touched when they are first written.
    pub fn zeroed(len: usize) -> Option<Self> {
        if len == 0 {
            return Some(Block { ptr: Self::dangling(), len: 0, _memory: None });
        }
        let mut memory = Zeros::new(len, BLOCK_ALIGN)?;
        // The only borrow of the memory that there ever is.
        let ptr = NonNull::from(memory.bytes_mut()).cast();
        Some(Block { ptr, len, _memory: Some(memory) })
    }

    /// An aligned pointer to nothing, for empty blocks.
    fn dangling() -> NonNull<u8> {
        NonNull::new(std::ptr::without_provenance_mut(BLOCK_ALIGN)).unwrap_or(NonNull::dangling())
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes, all of them, exclusively.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the block owns `len` initialised bytes, and `&mut self` excludes every region in use (invariant 2:
        // regions are used only while their method is borrowed, and the method owns the block).
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }

    /// A range of the block as a writable region; `None` if it is not inside.
    pub fn region(&self, offset: usize, len: usize) -> Option<Region> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: `offset <= self.len`, so the result points into the block or one past its end.
        let ptr = unsafe { self.ptr.add(offset) };
        Some(Region { ptr, len, writable: true, temporary: false })
    }
}

/// Place of a tensor's bytes, or, of a temporary, the place that it will get.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Address of the first byte. In a temporary region it is an offset among the method's temporaries, never read.
    ptr: NonNull<u8>,
    len: usize,
    writable: bool,
    /// It has no bytes yet.
    temporary: bool,
}

/// Addresses of temporary regions start here, beyond all addresses of memory.
const TEMPORARY: u64 = 1 << 63;

// SAFETY: a region is a pointer; its user upholds the invariants of this module.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// No bytes.
    pub fn empty() -> Self {
        Region { ptr: Block::dangling(), len: 0, writable: true, temporary: false }
    }

    /// Bytes that are only read: constants and borrowed inputs.
    pub fn read_only(bytes: &[u8]) -> Self {
        Region { ptr: NonNull::from(bytes).cast(), len: bytes.len(), writable: false, temporary: false }
    }

    /// Bytes that get their place later. Until then the region can be compared with others and has no bytes; regions of
    /// different offsets overlap as their ranges do, and none overlaps memory. `None` if the range overflows.
    pub fn temporary(offset: usize, len: usize) -> Option<Self> {
        let start = offset.checked_add(BLOCK_ALIGN).filter(|start| start.checked_add(len).is_some())?;
        let ptr = NonNull::new(std::ptr::without_provenance_mut(start))?;
        Some(Region { ptr, len, writable: true, temporary: true })
    }

    /// Returns whether it has no place yet.
    pub fn is_temporary(&self) -> bool {
        self.temporary
    }

    /// Returns a region of these bytes that is only read from now on.
    pub fn frozen(self) -> Region {
        Region { writable: false, ..self }
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether it may be written.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// The first `len` bytes, or the whole region if it is shorter.
    pub fn prefix(&self, len: usize) -> Region {
        Region { len: self.len.min(len), ..*self }
    }

    /// All but the first `len` bytes; none if the region is shorter.
    pub fn after(&self, len: usize) -> Region {
        let len = len.min(self.len);
        // Not `add`: a temporary region points nowhere.
        let ptr = self.ptr.map_addr(|start| start.saturating_add(len));
        Region { ptr, len: self.len - len, ..*self }
    }

    /// Returns whether both start at the same byte.
    pub fn same_start(&self, other: &Region) -> bool {
        self.ptr == other.ptr && self.temporary == other.temporary
    }

    /// Returns whether all bytes of the other region are bytes of this one.
    pub fn contains(&self, other: &Region) -> bool {
        let (own, other) = (self.addresses(), other.addresses());
        own.start <= other.start && other.end <= own.end
    }

    /// Returns whether any byte is in both.
    pub fn overlaps(&self, other: &Region) -> bool {
        let (a, b) = (self.ptr.as_ptr() as usize, other.ptr.as_ptr() as usize);
        // Both ends fit: they are ends of allocations, or were checked.
        let near = self.len > 0 && other.len > 0 && a < b + other.len && b < a + self.len;
        near && self.temporary == other.temporary
    }

    /// Returns whether the start is a multiple of `align`.
    pub fn is_aligned(&self, align: usize) -> bool {
        (self.ptr.as_ptr() as usize).is_multiple_of(align)
    }

    /// Copies as many bytes as both have from another region, which may overlap this one. Nothing happens if this
    /// region is read-only.
    ///
    /// # Safety
    /// The memory of both is alive, and nothing else reads or writes it during the call.
    pub unsafe fn copy_from(&self, from: &Region) {
        if self.writable {
            // SAFETY: by the caller; `copy` allows overlap, and the length is inside both.
            unsafe { std::ptr::copy(from.ptr.as_ptr(), self.ptr.as_ptr(), self.len.min(from.len)) };
        }
    }

    /// Returns the start and end addresses, as numbers to compare.
    pub fn addresses(&self) -> std::ops::Range<u64> {
        let start = self.ptr.as_ptr() as u64 | if self.temporary { TEMPORARY } else { 0 };
        start..start + self.len as u64
    }

    /// Borrows all bytes of the region.
    ///
    /// # Safety
    /// The invariants of this module hold for `'a`: the memory is alive and nothing writes to it.
    pub unsafe fn bytes<'a>(&self) -> &'a [u8] {
        debug_assert!(!self.temporary || self.len == 0, "a temporary region has no bytes");
        // SAFETY: by the caller, and all memory behind regions is initialised (zeroed blocks or borrowed slices).
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    /// The bytes, for writing; empty if the region is read-only.
    ///
    /// # Safety
    /// The invariants of this module hold for `'a`: the memory is alive and nothing else reads or writes it.
    pub unsafe fn bytes_mut<'a>(&self) -> &'a mut [u8] {
        if !self.writable {
            return &mut [];
        }
        debug_assert!(!self.temporary || self.len == 0, "a temporary region has no bytes");
        // SAFETY: by the caller; `writable` regions come from blocks or from `&mut` slices.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_zeroed_and_aligned() {
        let mut block = Block::zeroed(100).unwrap();
        assert!(block.region(0, 100).unwrap().is_aligned(BLOCK_ALIGN));
        assert!(block.bytes_mut().iter().all(|&byte| byte == 0));
        // Hidden from a compiler that would leave out an unused allocation.
        let there_is = |len: usize| std::hint::black_box(Block::zeroed(std::hint::black_box(len))).is_some();
        assert!(!there_is(usize::MAX) && there_is(4096));
        // Miri ends where an allocation fails.
        assert!(cfg!(miri) || !there_is(isize::MAX as usize - 4096));
        assert_eq!(Block::zeroed(0).unwrap().bytes_mut().len(), 0);
    }

    #[test]
    fn parts_of_a_region_are_inside_it() {
        let mut block = Block::zeroed(8).unwrap();
        block.bytes_mut().copy_from_slice(&[0, 1, 2, 3, 4, 5, 6, 7]);
        let all = block.region(0, 8).unwrap();
        let bytes = |region: Region| {
            // SAFETY: the block is alive, and nothing writes to it.
            unsafe { region.bytes() }.to_vec()
        };
        assert_eq!(bytes(all.after(3)), [3, 4, 5, 6, 7]);
        assert_eq!(bytes(all.after(3).prefix(2)), [3, 4]);
        assert!(bytes(all.after(8)).is_empty() && bytes(all.after(9)).is_empty());
        assert!(all.contains(&all.after(3)) && !all.after(3).contains(&all));
    }

    #[test]
    fn temporary_regions_overlap_no_memory_and_each_other_by_their_offsets() {
        let at = |offset, len| Region::temporary(offset, len).unwrap();
        assert!(at(0, 64).overlaps(&at(63, 1)) && !at(0, 64).overlaps(&at(64, 64)) && at(8, 0).is_aligned(8));
        assert!(at(0, 64).contains(&at(0, 64).after(3)) && at(0, 64).same_start(&at(0, 8)));
        let block = Block::zeroed(64).unwrap();
        let memory = block.region(0, 64).unwrap();
        let twin = Region::temporary(memory.addresses().start as usize - BLOCK_ALIGN, 64).unwrap();
        assert!(!twin.overlaps(&memory) && !twin.same_start(&memory) && !twin.contains(&memory));
        assert!(Region::temporary(usize::MAX, 1).is_none() && Region::temporary(usize::MAX - 100, 100).is_none());
    }

    #[test]
    fn regions_stay_inside_their_block() {
        let block = Block::zeroed(64).unwrap();
        assert!(block.region(64, 0).is_some());
        assert!(block.region(60, 5).is_none());
        assert!(block.region(usize::MAX, 2).is_none());
        let (a, b) = (block.region(0, 16).unwrap(), block.region(16, 16).unwrap());
        assert!(!a.overlaps(&b));
        assert!(a.overlaps(&block.region(15, 2).unwrap()));
        assert!(!a.overlaps(&block.region(4, 0).unwrap()));
    }
}
