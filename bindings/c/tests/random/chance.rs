//! Random numbers, and callbacks that ask for anything.

use std::ffi::c_void;

use edgepack_c::arguments::*;
use edgepack_c::call::{EdgepackCall, EdgepackInit};
use edgepack_c::init::*;
use edgepack_c::pointer::{In, Out};
use edgepack_c::value::*;

use crate::support::*;

/// Numbers from a seed, by xorshift.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
    /// A small index, or any number.
    pub fn index(&mut self) -> usize {
        if self.one_in(8) { self.next() as usize } else { self.below(5) }
    }
}

/// A callback that asks for anything, by numbers that the call before left.
fn ask(call: EdgepackCall, seed: u64) -> i32 {
    let mut random = Random(seed | 1);
    let (mut layout, mut count) = (nothing().tensor, 0);
    let (mut words, mut scratch) = (In::NULL, Out::NULL);
    let mut output =
        EdgepackTensorMut { dtype: 0, rank: 0, sizes: In::NULL, dim_order: In::NULL, data: Out::NULL, len: 0 };
    for _ in 0..random.below(8) {
        let call = if random.one_in(10) { EdgepackCall { id: random.next() } } else { call };
        let arg = random.index();
        let mut items = [0i64; 4];
        let _ = match random.below(18) {
            0 => edgepack_call_count(call, out(&mut count)),
            1 => edgepack_call_is_none(call, arg, Out::NULL),
            2 => edgepack_call_int(call, arg, out(&mut 0)),
            3 => edgepack_call_double(call, arg, out(&mut 0.0)),
            4 => edgepack_call_bool(call, arg, out(&mut 0)),
            5 => edgepack_call_ints(call, arg, outs(&mut items), 4, out(&mut count)),
            6 => edgepack_call_text(call, arg, out(&mut words), out(&mut count)),
            7 => edgepack_call_layout(call, arg, out(&mut layout)),
            8 => edgepack_call_want_scratch(call, random.below(1 << 12)),
            9 => edgepack_call_resize(call, arg, to(&[3, 1]), random.below(3)),
            10 => edgepack_call_resize_item(call, arg, random.index(), to(&[3, 1]), random.below(3)),
            11 => edgepack_call_tensor(call, arg, out(&mut layout)),
            12 => edgepack_call_output(call, arg, out(&mut output)),
            13 => edgepack_call_list_count(call, arg, out(&mut count)),
            14 => edgepack_call_list_tensor(call, arg, random.index(), out(&mut layout)),
            15 => edgepack_call_list_outputs(call, arg, out(&mut output), 1),
            16 => edgepack_call_scratch(call, out(&mut scratch), out(&mut count)),
            _ => edgepack_call_set_int(call, arg, 1),
        };
    }
    if random.one_in(3) {
        edgepack_call_fail(call, text(c"by chance"));
    }
    if random.one_in(2) { 0 } else { random.next() as i32 }
}

pub extern "C-unwind" fn chance_of_call(_: Out<c_void>, _: Out<c_void>, call: EdgepackCall) -> i32 {
    ask(call, call.id.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

pub extern "C-unwind" fn chance_to_prepare(_: Out<c_void>, call: EdgepackCall, _: Out<Out<c_void>>) -> i32 {
    ask(call, call.id.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

pub extern "C-unwind" fn chance_of_delegate(_: Out<c_void>, _: Out<c_void>, _: Out<c_void>, call: EdgepackCall) -> i32 {
    ask(call, call.id.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

pub extern "C-unwind" fn chance_to_make(_: Out<c_void>, init: EdgepackInit, _: Out<Out<c_void>>) -> i32 {
    let (mut data, mut len) = (In::NULL, 0);
    let _ = edgepack_init_payload(init, out(&mut data), out(&mut len));
    let _ = edgepack_init_spec(init, 0, Out::NULL, out(&mut data), out(&mut len));
    let _ = edgepack_init_named_data(init, text(c"net.0.weight"), out(&mut data), out(&mut len));
    i32::from(init.id.is_multiple_of(5)) * 0x12
}

pub extern "C-unwind" fn any_output(_: Out<c_void>, _: Out<c_void>, count: usize) -> usize {
    count.wrapping_mul(7) % 3
}
