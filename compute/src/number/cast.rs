//! Conversions between element types.
//!
//! They follow C++ where C++ defines them. A float outside the range of an integer of up to 16 bits wraps around, as it does
//! on x86; outside the range of a wider one it saturates; NaN becomes 0 and, as a bool, true.

use edgepack_format::scalar::Bool;
use half::{bf16, f16};

/// A conversion between two element types.
pub trait Cast<To> {
    /// Converts.
    fn cast(self) -> To;
}

macro_rules! cast {
    // An integer of 8 or 16 bits takes the low bits of a float, as the conversion instruction of x86 leaves them.
    (f32 => u8, $x:expr) => {
        $x as i32 as u8
    };
    (f32 => i8, $x:expr) => {
        $x as i32 as i8
    };
    (f32 => u16, $x:expr) => {
        $x as i32 as u16
    };
    (f32 => i16, $x:expr) => {
        $x as i32 as i16
    };
    (f64 => u8, $x:expr) => {
        $x as i32 as u8
    };
    (f64 => i8, $x:expr) => {
        $x as i32 as i8
    };
    (f64 => u16, $x:expr) => {
        $x as i32 as u16
    };
    (f64 => i16, $x:expr) => {
        $x as i32 as i16
    };
    ($from:ident => $to:ident, $x:expr) => {
        $x as $to
    };
}

macro_rules! casts {
    ($($from:ident)*) => { $(casts!(@from $from: u8 i8 i16 i32 i64 u16 u32 u64 f32 f64);)* };
    (@from $from:ident: $($to:ident)*) => {
        $(impl Cast<$to> for $from {
            #[inline(always)]
            fn cast(self) -> $to {
                cast!($from => $to, self)
            }
        })*
        impl Cast<Bool> for $from {
            #[inline(always)]
            fn cast(self) -> Bool {
                Bool::from(self != 0 as $from)
            }
        }
        impl Cast<$from> for Bool {
            #[inline(always)]
            fn cast(self) -> $from {
                self.get() as u8 as $from
            }
        }
        impl Cast<f16> for $from {
            #[inline(always)]
            fn cast(self) -> f16 {
                f16::from_f32(self as f32)
            }
        }
        impl Cast<bf16> for $from {
            #[inline(always)]
            fn cast(self) -> bf16 {
                bf16::from_f32(self as f32)
            }
        }
        impl Cast<$from> for f16 {
            #[inline(always)]
            fn cast(self) -> $from {
                self.to_f32().cast()
            }
        }
        impl Cast<$from> for bf16 {
            #[inline(always)]
            fn cast(self) -> $from {
                self.to_f32().cast()
            }
        }
    };
}

casts!(u8 i8 i16 i32 i64 u16 u32 u64 f32 f64);

macro_rules! small_casts {
    ($($from:ident => $to:ident: |$x:ident| $body:expr;)*) => {
        $(impl Cast<$to> for $from {
            #[inline(always)]
            fn cast(self) -> $to {
                let $x = self;
                $body
            }
        })*
    };
}

small_casts! {
    f16 => f16: |x| x;
    bf16 => bf16: |x| x;
    Bool => Bool: |x| Bool::from(x.get());
    f16 => bf16: |x| bf16::from_f32(x.to_f32());
    bf16 => f16: |x| f16::from_f32(x.to_f32());
    f16 => Bool: |x| Bool::from(x.to_f32() != 0.0);
    bf16 => Bool: |x| Bool::from(x.to_f32() != 0.0);
    Bool => f16: |x| f16::from_f32(f32::from(u8::from(x.get())));
    Bool => bf16: |x| bf16::from_f32(f32::from(u8::from(x.get())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_wrap_and_saturate() {
        assert_eq!(Cast::<u8>::cast(-1.0f32), 255);
        assert_eq!(Cast::<i8>::cast(300i64), 44);
        assert_eq!(Cast::<i64>::cast(f64::INFINITY), i64::MAX);
        assert_eq!(Cast::<Bool>::cast(f16::NAN), Bool(1));
        assert_eq!(Cast::<i32>::cast(Bool(7)), 1);
        assert_eq!(Cast::<f32>::cast(bf16::from_f32(1.5)), 1.5);
    }
}
