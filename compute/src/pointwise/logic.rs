//! Comparisons, logic, operations on bits, and choices.

use edgepack_format::scalar::{Bool, ScalarType};

use super::{Body, Lane, Mapped, Params, Values, loops, map1, with_class};
use crate::number::Compute;

/// Integers and BOOL as patterns of bits.
trait Bits: Compute {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn not(self) -> Self;
}

/// Integers that can be shifted. Shifting by the width or more, or by a negative number, leaves no bit of the value.
trait Shift: Compute {
    fn left(self, by: Self) -> Self;
    fn right(self, by: Self) -> Self;
}

macro_rules! bits {
    ($($t:ident)*) => {
        $(impl Bits for $t {
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }
            #[inline(always)]
            fn not(self) -> Self {
                !self
            }
        }
        impl Shift for $t {
            #[inline(always)]
            fn left(self, by: Self) -> Self {
                u32::try_from(by).ok().and_then(|by| self.checked_shl(by)).unwrap_or(0)
            }
            #[inline(always)]
            fn right(self, by: Self) -> Self {
                // A negative number keeps its sign however far it is shifted.
                let all = self >> ($t::BITS - 1);
                #[allow(unused_comparisons, reason = "one body for signed and unsigned types")]
                let none = if $t::MIN == 0 { 0 } else { all };
                u32::try_from(by).ok().and_then(|by| self.checked_shr(by)).unwrap_or(none)
            }
        })*
    };
}

bits!(u8 i8 i16 i32 i64);

impl Bits for Bool {
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Bool::from(self.get() & other.get())
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Bool::from(self.get() | other.get())
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Bool::from(self.get() ^ other.get())
    }
    #[inline(always)]
    fn not(self) -> Self {
        Bool::from(!self.get())
    }
}

loops! {
    pub eq: all<C: Compute> -> Bool, |p; a, b| Bool::from(a.same(b));
    pub ne: all<C: Compute> -> Bool, |p; a, b| Bool::from(!a.same(b));
    pub lt: all<C: Compute> -> Bool, |p; a, b| Bool::from(a.less(b));
    pub le: all<C: Compute> -> Bool, |p; a, b| Bool::from(a.less_or_same(b));
    pub gt: all<C: Compute> -> Bool, |p; a, b| Bool::from(b.less(a));
    pub ge: all<C: Compute> -> Bool, |p; a, b| Bool::from(b.less_or_same(a));
    pub and: bits<C: Bits> -> C, |p; a, b| a.and(b);
    pub or: bits<C: Bits> -> C, |p; a, b| a.or(b);
    pub xor: bits<C: Bits> -> C, |p; a, b| a.xor(b);
    pub not: bits<C: Bits> -> C, |p; a| a.not();
    pub left: integer<C: Shift> -> C, |p; a, by| a.left(by);
    pub right: integer<C: Shift> -> C, |p; a, by| a.right(by);
}

/// Picks the loop of `if mask { a } else { b }`; the mask comes first and is BOOL.
pub fn choose(compute: ScalarType) -> Option<Body> {
    fn run<C: Compute>(_: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
        if let Values::One(mask) = lanes[0].values::<Bool>() {
            return map1(&lanes[if mask.get() { 1 } else { 2 }..], out, |x: C| x);
        }
        let choose = |mask: Bool, a: C, b: C| if mask.get() { a } else { b };
        Mapped::<(Bool, C, C), _>::of(lanes, out, choose).run_as::<C>();
    }
    fn body<C: Compute>() -> Body {
        Body { run: run::<C>, result: C::SCALAR_TYPE }
    }
    with_class!(all, compute, T => body::<T>())
}

/// Picks the loop of `if mask { value } else { a }`; the mask comes second and is BOOL.
pub fn masked(compute: ScalarType) -> Option<Body> {
    fn run<C: Compute>(_: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
        if let Values::One(mask) = lanes[1].values::<Bool>() {
            return map1(&lanes[if mask.get() { 2 } else { 0 }..], out, |x: C| x);
        }
        let choose = |a: C, mask: Bool, value: C| if mask.get() { value } else { a };
        Mapped::<(C, Bool, C), _>::of(lanes, out, choose).run_as::<C>();
    }
    fn body<C: Compute>() -> Body {
        Body { run: run::<C>, result: C::SCALAR_TYPE }
    }
    with_class!(all, compute, T => body::<T>())
}
