//! Protocol buffers as far as models have them: fields one after the other, borrowed from the file.

use crate::tokenizer::Error;

/// Value of a field.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Value<'a> {
    /// Variable-length number.
    Number(u64),
    /// Bytes: a string or a message.
    Bytes(&'a [u8]),
    /// Four bytes: an `f32` where scores are.
    Fixed(u32),
}

impl<'a> Value<'a> {
    /// Bytes of a string or message.
    pub fn bytes(self) -> Option<&'a [u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    /// Signed number of 32 bits, as enumerations and ids are.
    pub fn int(self) -> Option<i32> {
        if let Self::Number(number) = self { Some(number as i32) } else { None }
    }

    /// Whether a number is not zero.
    pub fn flag(self) -> Option<bool> {
        if let Self::Number(number) = self { Some(number != 0) } else { None }
    }

    /// Number of 32 bits with a fraction.
    pub fn float(self) -> Option<f32> {
        if let Self::Fixed(bits) = self { Some(f32::from_bits(bits)) } else { None }
    }
}

/// Fields of a message.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    place: &'static str,
}

impl<'a> Fields<'a> {
    pub fn new(bytes: &'a [u8], place: &'static str) -> Self {
        Self { rest: bytes, place }
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn field(&mut self) -> Option<(u64, Option<Value<'a>>)> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Some(Value::Number(self.varint()?)),
            1 => {
                self.rest = self.rest.get(8..)?;
                None
            }
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                Some(Value::Bytes(bytes))
            }
            5 => {
                let (word, rest) = self.rest.split_first_chunk::<4>()?;
                self.rest = rest;
                Some(Value::Fixed(u32::from_le_bytes(*word)))
            }
            _ => return None,
        };
        (tag >> 3 != 0).then_some((tag >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            match self.field() {
                Some((number, Some(value))) => return Some(Ok((number, value))),
                // Eight bytes: no field of interest has them.
                Some((_, None)) => {}
                None => {
                    self.rest = &[];
                    return Some(Err(Error::malformed(self.place, "its fields do not end where it ends")));
                }
            }
        }
        None
    }
}
