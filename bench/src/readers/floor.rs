//! The floor: a hand loop that follows offsets and loads numbers, and does nothing a reader could leave out.
//!
//! The loop trusts vtables to be long enough for the slots it asks for only as far as their own length says, and panics
//! on anything outside the bytes; nothing else is checked.

use super::add;

fn u16_at(bytes: &[u8], pos: usize) -> usize {
    u16::from_le_bytes([bytes[pos], bytes[pos + 1]]) as usize
}

fn u32_at(bytes: &[u8], pos: usize) -> u32 {
    u32::from_le_bytes(bytes[pos..pos + 4].try_into().unwrap())
}

/// Position of a field of the table at `pos`, 0 if absent.
#[inline(always)]
fn field(bytes: &[u8], pos: usize, slot: usize) -> usize {
    let vtable = pos.wrapping_sub(u32_at(bytes, pos) as i32 as isize as usize);
    let at = 4 + 2 * slot;
    if at >= u16_at(bytes, vtable) {
        return 0;
    }
    match u16_at(bytes, vtable + at) {
        0 => 0,
        offset => pos + offset,
    }
}

/// Position that the offset in a field points at, 0 if absent.
#[inline(always)]
fn target(bytes: &[u8], pos: usize, slot: usize) -> usize {
    match field(bytes, pos, slot) {
        0 => 0,
        at => at + u32_at(bytes, at) as usize,
    }
}

/// Calls `each` with the position of every element of a vector.
#[inline(always)]
fn items(bytes: &[u8], pos: usize, slot: usize, size: usize, mut each: impl FnMut(usize)) {
    let vector = target(bytes, pos, slot);
    if vector != 0 {
        (0..u32_at(bytes, vector) as usize).for_each(|index| each(vector + 4 + index * size));
    }
}

/// Calls `each` with the position of every table of a vector of tables.
#[inline(always)]
fn tables(bytes: &[u8], pos: usize, slot: usize, mut each: impl FnMut(usize)) {
    items(bytes, pos, slot, 4, |at| each(at + u32_at(bytes, at) as usize));
}

/// A number of up to four bytes, 0 if absent.
#[inline(always)]
fn number(bytes: &[u8], pos: usize, slot: usize) -> u32 {
    match field(bytes, pos, slot) {
        0 => 0,
        at => u32_at(bytes, at),
    }
}

#[inline(always)]
fn byte(bytes: &[u8], pos: usize, slot: usize) -> u8 {
    match field(bytes, pos, slot) {
        0 => 0,
        at => bytes[at],
    }
}

fn i64_at(bytes: &[u8], pos: usize) -> i64 {
    i64::from_le_bytes(bytes[pos..pos + 8].try_into().unwrap())
}

/// The sum of a program that is known to be good.
pub fn walk(bytes: &[u8]) -> u64 {
    let mut sum = 0;
    tables(bytes, u32_at(bytes, 0) as usize, 1, |plan| {
        tables(bytes, plan, 2, |evalue| {
            let tag = byte(bytes, evalue, 0);
            add(&mut sum, tag);
            let value = target(bytes, evalue, 1);
            match tag {
                2 => match field(bytes, value, 0) {
                    0 => {}
                    at => add(&mut sum, i64_at(bytes, at)),
                },
                3 => add(&mut sum, byte(bytes, value, 0)),
                5 => {
                    add(&mut sum, byte(bytes, value, 0) as i8);
                    add(&mut sum, number(bytes, value, 5));
                    items(bytes, value, 2, 4, |at| add(&mut sum, u32_at(bytes, at) as i32));
                    let place = target(bytes, value, 6);
                    if place != 0 {
                        add(&mut sum, number(bytes, place, 0));
                        add(&mut sum, number(bytes, place, 1));
                    }
                }
                7 => items(bytes, value, 0, 8, |at| add(&mut sum, i64_at(bytes, at))),
                10 => items(bytes, value, 0, 4, |at| add(&mut sum, u32_at(bytes, at) as i32)),
                _ => {}
            }
        });
        tables(bytes, plan, 5, |chain| {
            tables(bytes, chain, 2, |instruction| {
                let tag = byte(bytes, instruction, 0);
                add(&mut sum, tag);
                if tag == 1 {
                    let call = target(bytes, instruction, 1);
                    add(&mut sum, number(bytes, call, 0) as i32);
                    items(bytes, call, 1, 4, |at| add(&mut sum, u32_at(bytes, at) as i32));
                }
            });
        });
    });
    sum
}
