//! Bytes of each type of option.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::SpecValue;

/// A number with a fixed little-endian form.
#[diagnostic::on_unimplemented(
    message = "a list of `{Self}` cannot be the value of a compile spec",
    label = "no number"
)]
pub trait Number: Copy {
    /// Rust's name of the type, for messages.
    const NAME: &'static str;
    /// Appends its bytes.
    fn put(self, out: &mut Vec<u8>);
    /// From exactly its bytes.
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($ty:ident),*) => {
        $(impl Number for $ty {
            const NAME: &'static str = stringify!($ty);
            fn put(self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }
            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map($ty::from_le_bytes)
            }
        }

        impl SpecValue for $ty {
            fn expected() -> Cow<'static, str> {
                let unit = if size_of::<$ty>() == 1 { "byte" } else { "bytes, little-endian" };
                format!("{} ({} {unit})", stringify!($ty), size_of::<$ty>()).into()
            }
            fn to_bytes(&self) -> Vec<u8> {
                self.to_le_bytes().into()
            }
            fn from_bytes(bytes: &[u8]) -> Option<Self> {
                Number::read(bytes)
            }
        })*
    };
}

numbers!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

impl SpecValue for bool {
    fn expected() -> Cow<'static, str> {
        "bool (one byte, 0 or 1)".into()
    }
    fn to_bytes(&self) -> Vec<u8> {
        [u8::from(*self)].into()
    }
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

impl SpecValue for String {
    fn expected() -> Cow<'static, str> {
        "text (UTF-8)".into()
    }
    fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().into()
    }
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        core::str::from_utf8(bytes).ok().map(Into::into)
    }
}

fn put_all<T: Number>(numbers: &[T]) -> Vec<u8> {
    let mut out = Vec::with_capacity(size_of_val(numbers));
    numbers.iter().for_each(|number| number.put(&mut out));
    out
}

impl<T: Number> SpecValue for Vec<T> {
    fn expected() -> Cow<'static, str> {
        match size_of::<T>() {
            1 => "bytes".into(),
            size => format!("a list of {} ({size} bytes each, little-endian)", T::NAME).into(),
        }
    }
    fn to_bytes(&self) -> Vec<u8> {
        put_all(self)
    }
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.chunks(size_of::<T>()).map(T::read).collect()
    }
}

impl<T: Number, const N: usize> SpecValue for [T; N] {
    fn expected() -> Cow<'static, str> {
        format!("{N} times {} ({} bytes each, little-endian)", T::NAME, size_of::<T>()).into()
    }
    fn to_bytes(&self) -> Vec<u8> {
        put_all(self)
    }
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if N.checked_mul(size_of::<T>()) != Some(bytes.len()) {
            return None;
        }
        Vec::from_bytes(bytes)?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T: SpecValue>(bytes: &[u8]) -> bool {
        T::from_bytes(bytes).is_none()
    }

    #[test]
    fn every_value_is_exactly_its_bytes() {
        assert_eq!(u16::from_bytes(&[1, 2]), Some(0x0201));
        assert_eq!((-2i64).to_bytes(), [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(Vec::<i16>::from_bytes(&[1, 0, 255, 255]), Some([1, -1].into()));
        assert_eq!(<[u8; 2]>::from_bytes(&[7, 8]), Some([7, 8]));
        assert_eq!(<[u8; 0]>::from_bytes(&[]), Some([]));
        assert!(refused::<u16>(&[1]) && refused::<u16>(&[1, 2, 3]) && refused::<f64>(&[]));
        assert!(refused::<bool>(&[2]) && refused::<bool>(&[]) && refused::<bool>(&[1, 0]));
        assert!(refused::<String>(&[0xff]) && refused::<Vec<u32>>(&[0; 5]) && refused::<[u8; 2]>(&[0; 3]));
    }
}
