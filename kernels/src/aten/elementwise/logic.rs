//! Comparisons, logic, operators on bits, and choices.

use edgepack_format::scalar::{Bool, ScalarType};

use super::engine::Input::{Mask, Scalar, Tensor};
use super::lanes::{Body, Lane, Params, loops, map3, with_class};
use super::schema::{BINARY, UNARY, WITH_NUMBER};
use super::{kernels, specs};
use edgepack_compute::number::Compute;

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
    eq: all<C: Compute> -> Bool, |p; a, b| Bool::from(a.same(b));
    ne: all<C: Compute> -> Bool, |p; a, b| Bool::from(!a.same(b));
    lt: all<C: Compute> -> Bool, |p; a, b| Bool::from(a.less(b));
    le: all<C: Compute> -> Bool, |p; a, b| Bool::from(a.less_or_same(b));
    gt: all<C: Compute> -> Bool, |p; a, b| Bool::from(b.less(a));
    ge: all<C: Compute> -> Bool, |p; a, b| Bool::from(b.less_or_same(a));
    and: bits<C: Bits> -> C, |p; a, b| a.and(b);
    or: bits<C: Bits> -> C, |p; a, b| a.or(b);
    xor: bits<C: Bits> -> C, |p; a, b| a.xor(b);
    not: bits<C: Bits> -> C, |p; a| a.not();
    left: integer<C: Shift> -> C, |p; a, by| a.left(by);
    right: integer<C: Shift> -> C, |p; a, by| a.right(by);
}

fn choose(compute: ScalarType) -> Option<Body> {
    fn run<C: Compute>(_: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
        map3(lanes, out, |mask: Bool, a: C, b: C| if mask.get() { a } else { b });
    }
    fn body<C: Compute>() -> Body {
        Body { run: run::<C>, result: C::SCALAR_TYPE }
    }
    with_class!(all, compute, T => body::<T>())
}

fn masked(compute: ScalarType) -> Option<Body> {
    fn run<C: Compute>(_: &Params, lanes: &[Lane<'_>], out: &mut [u8]) {
        map3(lanes, out, |a: C, mask: Bool, value: C| if mask.get() { value } else { a });
    }
    fn body<C: Compute>() -> Body {
        Body { run: run::<C>, result: C::SCALAR_TYPE }
    }
    with_class!(all, compute, T => body::<T>())
}

specs! {
    EQ: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, eq;
    NE: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, ne;
    LT: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, lt;
    LE: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, le;
    GT: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, gt;
    GE: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, ge;
    EQ_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, eq;
    NE_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, ne;
    LT_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, lt;
    LE_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, le;
    GT_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, gt;
    GE_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, ge;
    LOGICAL_AND: BINARY, [Tensor(0), Tensor(1)], [], 2, Bools, and;
    LOGICAL_OR: BINARY, [Tensor(0), Tensor(1)], [], 2, Bools, or;
    LOGICAL_XOR: BINARY, [Tensor(0), Tensor(1)], [], 2, Bools, xor;
    LOGICAL_NOT: UNARY, [Tensor(0)], [], 1, Bools, not;
    AND: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, and;
    OR: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, or;
    XOR: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, xor;
    AND_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, and;
    OR_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, or;
    XOR_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, xor;
    NOT: UNARY, [Tensor(0)], [], 1, Promote, not;
    LEFT: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, left;
    LEFT_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, left;
    RIGHT: BINARY, [Tensor(0), Tensor(1)], [], 2, Promote, right;
    RIGHT_NUMBER: WITH_NUMBER, [Tensor(0), Scalar(1)], [], 2, Promote, right;
    WHERE: "(Tensor condition, Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
        [Mask(0), Tensor(1), Tensor(2)], [], 3, Promote, choose;
    MASKED_FILL: "(Tensor self, Tensor mask, Scalar value, *, Tensor(a!) out) -> Tensor(a!)",
        [Tensor(0), Mask(1), Scalar(2)], [], 3, First, masked;
}

kernels! {
    "aten::eq.Tensor_out" => EQ,
    "aten::ne.Tensor_out" => NE,
    "aten::lt.Tensor_out" => LT,
    "aten::le.Tensor_out" => LE,
    "aten::gt.Tensor_out" => GT,
    "aten::ge.Tensor_out" => GE,
    "aten::eq.Scalar_out" => EQ_NUMBER,
    "aten::ne.Scalar_out" => NE_NUMBER,
    "aten::lt.Scalar_out" => LT_NUMBER,
    "aten::le.Scalar_out" => LE_NUMBER,
    "aten::gt.Scalar_out" => GT_NUMBER,
    "aten::ge.Scalar_out" => GE_NUMBER,
    "aten::logical_and.out" => LOGICAL_AND,
    "aten::logical_or.out" => LOGICAL_OR,
    "aten::logical_xor.out" => LOGICAL_XOR,
    "aten::logical_not.out" => LOGICAL_NOT,
    "aten::bitwise_and.Tensor_out" => AND,
    "aten::bitwise_or.Tensor_out" => OR,
    "aten::bitwise_xor.Tensor_out" => XOR,
    "aten::bitwise_and.Scalar_out" => AND_NUMBER,
    "aten::bitwise_or.Scalar_out" => OR_NUMBER,
    "aten::bitwise_xor.Scalar_out" => XOR_NUMBER,
    "aten::bitwise_not.out" => NOT,
    "aten::bitwise_left_shift.Tensor_out" => LEFT,
    "aten::bitwise_left_shift.Tensor_Scalar_out" => LEFT_NUMBER,
    "aten::bitwise_right_shift.Tensor_out" => RIGHT,
    "aten::bitwise_right_shift.Tensor_Scalar_out" => RIGHT_NUMBER,
    "aten::where.self_out" => WHERE,
    "aten::masked_fill.Scalar_out" => MASKED_FILL;
}
