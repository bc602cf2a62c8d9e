//! The instructions of x86-64, and the system call of Linux that allows them.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};
use std::marker::PhantomData;
use std::sync::OnceLock;

use super::{CHANNELS, Inputs, Places, ROWS, Sums};
use crate::simd::dot::Group;

/// Bytes of a row of a register.
const WIDTH: usize = 64;
/// Groups of weights of a register.
const GROUPS: usize = 16;

/// Registers that hold matrices of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Matrices(());

impl Matrices {
    /// The token, if the machine has the instructions and the system allows them.
    pub(crate) fn detect() -> Option<Self> {
        static FOUND: OnceLock<bool> = OnceLock::new();
        FOUND.get_or_init(|| !cfg!(miri) && has_instructions() && is_allowed()).then_some(Matrices(()))
    }

    /// Registers for rows of so many bytes: matrices of 64 bytes a row, and one of what is left.
    #[inline(always)]
    pub(crate) fn shaped(self, row: usize) -> Shaped {
        let rest = row % WIDTH;
        assert!(rest.is_multiple_of(4), "inputs come in groups of four");
        // Where nothing is left, its registers are never used.
        let last = if rest == 0 { WIDTH } else { rest };
        let mut shapes = Shapes { palette: 1, start: 0, reserved: [0; 14], widths: [0; 16], heights: [0; 16] };
        shapes.widths[..8].fill(WIDTH as u16);
        shapes.heights[..8].fill(ROWS as u8);
        (shapes.widths[6], shapes.heights[7]) = (last as u16, (last / 4) as u8);
        // SAFETY: the token exists, and these are shapes that the instruction takes.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &shapes, options(nostack, preserves_flags, readonly)) };
        Shaped { rest, copied: Copied([[0; WIDTH]; ROWS]), thread: PhantomData }
    }
}

/// True if there are registers for matrices, products of bytes in them, and a system that saves them.
fn has_instructions() -> bool {
    const SAVES: u32 = 1 << 27;
    const PRODUCTS: u32 = 1 << 24 | 1 << 25;
    const SAVED: u64 = 1 << 17 | 1 << 18;
    if __cpuid(0).eax < 7 || __cpuid(1).ecx & SAVES == 0 {
        return false;
    }
    // SAFETY: the machine has just said that it has this instruction.
    let saved = unsafe { saved() };
    __cpuid_count(7, 0).edx & PRODUCTS == PRODUCTS && saved & SAVED == SAVED
}

/// The registers that the system saves.
#[target_feature(enable = "xsave")]
fn saved() -> u64 {
    // SAFETY: register 0 exists wherever the instruction does.
    unsafe { _xgetbv(0) }
}

/// Asks the system to let this process use the registers.
fn is_allowed() -> bool {
    const ASK: libc::c_int = 0x1023;
    const MATRICES: libc::c_ulong = 18;
    // SAFETY: the call takes two numbers and touches no memory of this process.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ASK, MATRICES) == 0 }
}

/// Shapes of the registers, as the instruction takes them: sums from register 0 on, inputs in 4, weights in 5, and what is left
/// of inputs and weights in 6 and 7.
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    start: u8,
    reserved: [u8; 14],
    /// Bytes of a row.
    widths: [u16; 16],
    /// Rows.
    heights: [u8; 16],
}

/// Rows that are copied next to each other.
#[repr(align(64))]
struct Copied([[i8; WIDTH]; ROWS]);

/// Registers with shapes, until it is dropped.
pub(crate) struct Shaped {
    /// Bytes of a row behind the last whole 64.
    rest: usize,
    /// Room for rows that are not equally far from each other.
    copied: Copied,
    /// Registers are those of a thread.
    thread: PhantomData<*const ()>,
}

impl Drop for Shaped {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: there is a token wherever registers have shapes.
        unsafe { asm!("tilerelease", options(nostack, preserves_flags, nomem)) };
    }
}

/// Loads inputs, and adds their products with the weights of each tile. `$inputs` and `$weights` are registers.
macro_rules! add_products {
    ($product:literal, $inputs:literal, $weights:literal, $tiles:expr, $from:expr, $step:expr, $panel:expr) => {{
        asm!(
            concat!("tileloadd ", $inputs, ", [{from} + {step} * 1]"),
            from = in(reg) $from,
            step = in(reg) $step,
            options(nostack, preserves_flags, readonly),
        );
        add_products!(@ $product, $inputs, $weights, $tiles, $panel, "tmm0" 0, "tmm1" 1, "tmm2" 2, "tmm3" 3)
    }};
    (@ $product:literal, $inputs:literal, $weights:literal, $tiles:expr, $panel:expr, $($sums:literal $tile:literal),*) => {{
        $(if $tile < $tiles {
            asm!(
                concat!("tileloadd ", $weights, ", [{from} + {step} * 1 + ", $tile, " * 64]"),
                concat!($product, " ", $sums, ", ", $inputs, ", ", $weights),
                from = in(reg) $panel,
                step = in(reg) $tiles * size_of::<Group>(),
                options(nostack, preserves_flags, readonly),
            );
        })*
    }};
}

/// Moves the sums of each tile with an instruction, to or from rows that are `$step` bytes apart.
macro_rules! move_sums {
    (load, $tiles:expr, $at:expr, $step:expr) => {
        move_sums!(@ "tileloadd ", ", [{at} + {step} * 1]", $tiles, $at, $step, "tmm0" 0, "tmm1" 1, "tmm2" 2, "tmm3" 3)
    };
    (store, $tiles:expr, $at:expr, $step:expr) => {
        move_sums!(@ "tilestored [{at} + {step} * 1], ", "", $tiles, $at, $step, "tmm0" 0, "tmm1" 1, "tmm2" 2, "tmm3" 3)
    };
    (@ $before:literal, $behind:literal, $tiles:expr, $at:expr, $step:expr, $($sums:literal $tile:literal),*) => {{
        $(if $tile < $tiles {
            asm!(
                concat!($before, $sums, $behind),
                at = in(reg) $at.wrapping_add($tile),
                step = in(reg) $step,
                options(nostack, preserves_flags),
            );
        })*
    }};
}

impl Shaped {
    /// Sums of every row begin with a number for each channel.
    #[inline(always)]
    pub(crate) fn start<const C: usize>(&mut self, starts: &[[i32; CHANNELS]; C]) {
        const { assert!(C <= 4, "registers for sums") };
        // SAFETY: registers have shapes; all rows are read from the same 64 bytes, which are those of a tile.
        unsafe { move_sums!(load, C, starts.as_ptr(), 0usize) };
    }

    /// Adds the products of rows of inputs, from byte `offset` of each on, with the groups of `C` tiles.
    ///
    /// # Panics
    ///
    /// If a row has fewer inputs than there are weights, or whole 64 inputs leave another rest than that of the shapes.
    #[inline(always)]
    pub(crate) fn add<const C: usize>(&mut self, inputs: &Inputs<'_>, offset: usize, panel: &[[Group; C]]) {
        const { assert!(C <= 4, "registers for sums") };
        let (whole, rest) = panel.as_chunks::<GROUPS>();
        assert_eq!(4 * rest.len(), self.rest, "inputs that are left");
        let parts = whole.iter().map(<[_; GROUPS]>::as_slice).chain((!rest.is_empty()).then_some(rest));
        if let Places::Steps(first, step) = inputs.places {
            let end = step.saturating_mul(ROWS - 1).saturating_add(first).saturating_add(offset);
            assert!(end.saturating_add(4 * panel.len()) <= inputs.bytes.len(), "rows of inputs");
        }
        for (index, part) in parts.enumerate() {
            let at = offset + index * WIDTH;
            let (from, step) = match inputs.places {
                Places::Steps(first, step) => (inputs.bytes.as_ptr().wrapping_add(first + at), step),
                Places::Each(places) => {
                    for (to, place) in self.copied.0.iter_mut().zip(places) {
                        let row = &inputs.bytes[place + at..];
                        match row.first_chunk() {
                            Some(row) => *to = *row,
                            None => to[..4 * part.len()].copy_from_slice(&row[..4 * part.len()]),
                        }
                    }
                    (self.copied.0.as_ptr().cast(), WIDTH)
                }
            };
            // SAFETY: registers have shapes. Of each of 16 rows as many bytes are read as there are weights, whole 64 or the rest:
            // they are within the inputs, which was asserted, or within the copies. Of the weights 16 lines are read, or as many
            // as are left, and of each all tiles.
            unsafe {
                match (part.len() == GROUPS, inputs.signed) {
                    (true, true) => add_products!("tdpbssd", "tmm4", "tmm5", C, from, step, part.as_ptr()),
                    (true, false) => add_products!("tdpbusd", "tmm4", "tmm5", C, from, step, part.as_ptr()),
                    (false, true) => add_products!("tdpbssd", "tmm6", "tmm7", C, from, step, part.as_ptr()),
                    (false, false) => add_products!("tdpbusd", "tmm6", "tmm7", C, from, step, part.as_ptr()),
                }
            }
        }
    }

    /// Writes the sums.
    #[inline(always)]
    pub(crate) fn sums<const C: usize>(&self, to: &mut Sums<C>) {
        const { assert!(C <= 4, "registers for sums") };
        let at: *mut [i32; CHANNELS] = to.0.as_mut_ptr().cast();
        // SAFETY: registers have shapes; 16 rows are written, of each the lines of all tiles.
        unsafe { move_sums!(store, C, at, C * size_of::<[i32; CHANNELS]>()) };
    }
}
