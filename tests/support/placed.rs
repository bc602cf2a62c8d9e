//! Programs whose values are one behind the other in memory.

use crate::alike::numbers;
use crate::assemble::{Assembly, Id, Spec, float};

/// An assembly whose values are one behind the other in memory.
pub struct Placed {
    /// The program so far.
    pub a: Assembly,
    next: u64,
    dynamic: bool,
}

impl Placed {
    /// An assembly without values, whose sizes may be bounds.
    pub fn new(dynamic: bool) -> Placed {
        Placed { a: Assembly::new(), next: 0, dynamic }
    }

    fn spec(&self, sizes: &[i32]) -> Spec {
        if self.dynamic { float(sizes).dynamic() } else { float(sizes) }
    }

    /// A value of floats behind all others.
    pub fn value(&mut self, sizes: &[i32]) -> Id {
        self.next += 4 * sizes.iter().map(|&size| size as u64).product::<u64>().next_multiple_of(16);
        self.view(sizes)
    }

    /// Another value at the place of the last one.
    pub fn view(&mut self, sizes: &[i32]) -> Id {
        let spec = self.spec(sizes);
        let bytes = 4 * sizes.iter().map(|&size| size as u64).product::<u64>().next_multiple_of(16);
        self.a.planned_at(spec, self.next - bytes)
    }

    /// A list of integers.
    pub fn list(&mut self, numbers: &[i32]) -> Id {
        let items: Vec<Id> = numbers.iter().map(|&number| self.a.int(number.into())).collect();
        self.a.ints(&items)
    }

    /// The last value in other sizes.
    pub fn viewed(&mut self, from: Id, sizes: &[i32], copied: bool) -> Id {
        if !copied {
            return self.view(sizes);
        }
        let (list, out) = (self.list(sizes), self.value(sizes));
        self.a.call("aten::view_copy.out", &[from, list, out, out]);
        out
    }

    /// A value with its dimensions in another order.
    pub fn permuted(&mut self, from: Id, dims: &[i32], sizes: &[i32]) -> Id {
        let (dims, out) = (self.list(dims), self.value(sizes));
        self.a.call("aten::permute_copy.out", &[from, dims, out, out]);
        out
    }

    /// Convolution of single pixels.
    pub fn convolved(&mut self, from: Id, [inputs, channels]: [i32; 2], [batch, h, w]: [i32; 3]) -> Id {
        let weight = self.a.constant(float(&[channels, inputs, 1, 1]), &numbers((channels * inputs) as usize));
        let (one, none, no) = (self.a.int(1), self.a.null(), self.a.bool(false));
        let (ones, zeros) = (self.list(&[1, 1]), self.list(&[0, 0]));
        let out = self.value(&[batch, channels, h, w]);
        self.a.call("aten::convolution.out", &[from, weight, none, ones, zeros, ones, no, zeros, one, out, out]);
        out
    }

    /// `relu` of a value.
    pub fn relu(&mut self, from: Id, sizes: &[i32]) -> Id {
        let out = self.value(sizes);
        self.a.call("aten::relu.out", &[from, out, out]);
        out
    }

    /// A value in two parts along the channels.
    pub fn split(&mut self, from: Id, parts: [i32; 2], sizes: [i32; 4]) -> [Id; 2] {
        let out = parts.map(|channels| self.value(&[sizes[0], channels, sizes[2], sizes[3]]));
        let (list, dim) = (self.list(&parts), self.a.int(1));
        let (outs, again) = (self.a.tensors(&out), self.a.tensors(&out));
        self.a.call("aten::split_with_sizes_copy.out", &[from, list, dim, outs, again]);
        out
    }
}
