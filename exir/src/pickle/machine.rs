//! The stack machine, without the instructions that call.

use std::collections::BTreeMap;

use edgepack_format::room;

use super::{Error, Id, MAX_LEN, Pickle, Value, known};

type Result<T> = std::result::Result<T, Error>;

/// Bytes that are read from the front.
struct Input<'b> {
    rest: &'b [u8],
}

impl<'b> Input<'b> {
    fn take(&mut self, len: usize) -> Result<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or("it ends in the middle of an instruction")?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| "it ends in the middle of an instruction".into())
    }

    fn byte(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    /// Reads bytes after their count, which takes `width` bytes.
    fn counted(&mut self, width: usize) -> Result<&'b [u8]> {
        let mut count = [0u8; 8];
        let written = self.take(width)?;
        count.get_mut(..width).ok_or("a count of that width")?.copy_from_slice(written);
        let count = usize::try_from(u64::from_le_bytes(count)).map_err(|_| "a count beyond its end")?;
        self.take(count)
    }

    fn line(&mut self) -> Result<&'b str> {
        let end = self.rest.iter().position(|byte| *byte == b'\n').ok_or("a line is not ended")?;
        let line = self.take(end)?;
        self.take(1)?;
        utf8(line)
    }
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| "a text is not UTF-8".into())
}

#[derive(Default)]
struct Machine {
    values: Vec<Value>,
    stack: Vec<Id>,
    /// Height of the stack at each open bracket.
    marks: Vec<usize>,
    memo: BTreeMap<u32, Id>,
}

/// Reads a pickle of protocol 2 to 5. The error says what in it is not read.
pub fn read(bytes: &[u8]) -> Result<Pickle> {
    if bytes.len() as u64 > MAX_LEN {
        return Err(format!("{} bytes, at most {MAX_LEN} are read", bytes.len()).into());
    }
    let mut machine = Machine::default();
    let mut input = Input { rest: bytes };
    loop {
        let code = input.byte()?;
        if code == b'.' {
            let root = machine.pop()?;
            return Ok(Pickle { values: machine.values, root });
        }
        machine.step(code, &mut input)?;
    }
}

impl Machine {
    fn step(&mut self, code: u8, input: &mut Input<'_>) -> Result<()> {
        match code {
            0x80 => match input.byte()? {
                2..=5 => Ok(()),
                other => Err(format!("protocol {other}, 2 to 5 are read").into()),
            },
            0x95 => input.take(8).map(drop),
            b'(' => Ok(room::push(&mut self.marks, self.stack.len())?),
            b'0' => self.pop().map(drop),
            b'1' => self.since_mark().map(drop),
            b'2' => {
                let top = self.top()?;
                Ok(room::push(&mut self.stack, top)?)
            }
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Bool(true)),
            0x89 => self.push(Value::Bool(false)),
            b'J' => {
                let number = i32::from_le_bytes(input.array()?);
                self.push(Value::Int(i64::from(number)))
            }
            b'K' => {
                let number = input.byte()?;
                self.push(Value::Int(i64::from(number)))
            }
            b'M' => {
                let number = u16::from_le_bytes(input.array()?);
                self.push(Value::Int(i64::from(number)))
            }
            0x8a => self.long(input.counted(1)?),
            b'G' => {
                let number = f64::from_be_bytes(input.array()?);
                self.push(Value::Float(number))
            }
            b'X' => self.text(input.counted(4)?),
            0x8c => self.text(input.counted(1)?),
            0x8d => self.text(input.counted(8)?),
            b'B' => self.push(Value::Bytes(room::copy_of(input.counted(4)?)?)),
            b'C' => self.push(Value::Bytes(room::copy_of(input.counted(1)?)?)),
            0x8e => self.push(Value::Bytes(room::copy_of(input.counted(8)?)?)),
            b')' => self.push(Value::Tuple(Vec::new())),
            b't' => {
                let items = self.since_mark()?;
                self.push(Value::Tuple(items))
            }
            0x85..=0x87 => {
                let count = usize::from(code.saturating_sub(0x84));
                let start = self.stack.len().checked_sub(count).filter(|start| *start >= self.floor());
                let items = self.take_from(start.ok_or("the stack is empty")?)?;
                self.push(Value::Tuple(items))
            }
            b']' => self.push(Value::List(Vec::new())),
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])
            }
            b'e' => {
                let items = self.since_mark()?;
                self.append(items)
            }
            b'}' => self.push(Value::Dict(Vec::new())),
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(&[key, value])
            }
            b'u' => {
                let items = self.since_mark()?;
                self.set(&items)
            }
            b'q' => {
                let slot = input.byte()?;
                self.keep(u32::from(slot))
            }
            b'r' => {
                let slot = u32::from_le_bytes(input.array()?);
                self.keep(slot)
            }
            0x94 => {
                let slot = u32::try_from(self.memo.len()).map_err(|_| "too many values")?;
                self.keep(slot)
            }
            b'h' => {
                let slot = input.byte()?;
                self.recall(u32::from(slot))
            }
            b'j' => {
                let slot = u32::from_le_bytes(input.array()?);
                self.recall(slot)
            }
            b'c' => {
                let (module, name) = (input.line()?, input.line()?);
                self.name(module, name)
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let text = |id: Id| match self.value(id) {
                    Some(Value::Text(text)) => Ok::<_, Error>(text.clone()),
                    _ => Err("a name that is not a text".into()),
                };
                let (module, name) = (text(module)?, text(name)?);
                self.name(&module, &name)
            }
            // What would be called is noted.
            b'R' | 0x81 => {
                let (arguments, by) = (self.pop()?, self.pop()?);
                if !matches!((self.value(by), self.value(arguments)), (Some(Value::Name(_)), Some(Value::Tuple(_)))) {
                    return Err("it calls something that is not a name, or with something that is not a tuple".into());
                }
                self.push(Value::Made { by, arguments, state: None })
            }
            b'b' => {
                let (given, object) = (self.pop()?, self.top()?);
                match self.values.get_mut(object.0 as usize) {
                    Some(Value::Made { state, .. }) => {
                        *state = Some(given);
                        Ok(())
                    }
                    _ => Err("it gives a state to something that has none".into()),
                }
            }
            b'Q' => {
                let key = self.pop()?;
                self.push(Value::Kept(key))
            }
            other => Err(format!("instruction {other:#04x} is not one that weights are written with").into()),
        }
    }

    fn push(&mut self, value: Value) -> Result<()> {
        let id = Id(u32::try_from(self.values.len()).map_err(|_| "too many values")?);
        room::push(&mut self.values, value)?;
        Ok(room::push(&mut self.stack, id)?)
    }

    fn value(&self, id: Id) -> Option<&Value> {
        self.values.get(id.0 as usize)
    }

    /// Returns the lowest height of the stack: items in front of an open bracket stay.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Result<Id> {
        let top = self.stack.last().filter(|_| self.stack.len() > self.floor());
        top.copied().ok_or_else(|| "the stack is empty".into())
    }

    fn pop(&mut self) -> Result<Id> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// Takes the items behind the last open bracket.
    fn since_mark(&mut self) -> Result<Vec<Id>> {
        let mark = self.marks.pop().ok_or("a bracket was never opened")?;
        self.take_from(mark)
    }

    /// Takes the items from this height on.
    fn take_from(&mut self, start: usize) -> Result<Vec<Id>> {
        let start = start.min(self.stack.len());
        let items = room::copy_of(self.stack.get(start..).unwrap_or_default())?;
        self.stack.truncate(start);
        Ok(items)
    }

    fn append(&mut self, items: Vec<Id>) -> Result<()> {
        let list = self.top()?;
        match self.values.get_mut(list.0 as usize) {
            Some(Value::List(list)) => Ok(room::extend(list, items)?),
            _ => Err("it appends to something that is not a list".into()),
        }
    }

    fn set(&mut self, items: &[Id]) -> Result<()> {
        let target = self.top()?;
        // Entries of an ordered dictionary are set like those of an ordinary one.
        let ordered = match self.value(target) {
            Some(Value::Made { by, .. }) => {
                matches!(self.value(*by), Some(Value::Name(name)) if name == "collections.OrderedDict")
            }
            _ => false,
        };
        if ordered && let Some(value) = self.values.get_mut(target.0 as usize) {
            *value = Value::Dict(Vec::new());
        }
        let (pairs, rest) = items.as_chunks::<2>();
        match self.values.get_mut(target.0 as usize) {
            Some(Value::Dict(entries)) if rest.is_empty() => {
                Ok(room::extend(entries, pairs.iter().map(|[key, value]| (*key, *value)))?)
            }
            _ => Err("it sets entries of something that is not a dictionary".into()),
        }
    }

    fn keep(&mut self, slot: u32) -> Result<()> {
        let top = self.top()?;
        self.memo.insert(slot, top);
        Ok(())
    }

    fn recall(&mut self, slot: u32) -> Result<()> {
        let id = self.memo.get(&slot).ok_or_else(|| format!("nothing was put into place {slot}"))?;
        Ok(room::push(&mut self.stack, *id)?)
    }

    fn name(&mut self, module: &str, name: &str) -> Result<()> {
        if !known::is_known(module, name) {
            let full: String = format!("{module}.{name}").chars().take(200).collect();
            return Err(format!("it names {full:?}, which is not among what may stand in a file of weights").into());
        }
        self.push(Value::Name(format!("{module}.{name}")))
    }

    fn text(&mut self, bytes: &[u8]) -> Result<()> {
        let text = room::text_of(utf8(bytes)?)?;
        self.push(Value::Text(text))
    }

    /// A whole number of at most eight bytes.
    fn long(&mut self, bytes: &[u8]) -> Result<()> {
        let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut whole = [if negative { 0xff } else { 0 }; 8];
        whole.get_mut(..bytes.len()).ok_or("a number of more than 64 bits")?.copy_from_slice(bytes);
        self.push(Value::Int(i64::from_le_bytes(whole)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_and_numbers_are_read() {
        let pickle =
            read(b"\x80\x02}q\x00(X\x01\x00\x00\x00aK\x05X\x01\x00\x00\x00b]q\x01(J\xff\xff\xff\xff\x8a\x01\x80eu.")
                .unwrap();
        let entries = pickle.entries(pickle.root()).unwrap().unwrap();
        assert_eq!(entries[0].0, "a");
        assert_eq!(pickle.size(entries[0].1), Some(5));
        let list = pickle.items(entries[1].1).unwrap();
        assert_eq!([pickle.value(list[0]), pickle.value(list[1])], [&Value::Int(-1), &Value::Int(-128)]);
    }

    #[test]
    fn calls_are_noted_and_names_are_those_of_a_list() {
        let pickle = read(b"\x80\x02ccollections\nOrderedDict\n)R.").unwrap();
        assert_eq!(pickle.made(pickle.root()).unwrap().0, "collections.OrderedDict");
        let error = read(b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.").unwrap_err();
        assert!(error.to_string().contains("os.system"), "{error}");
        let error = read(b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x011\x85R.").unwrap_err();
        assert!(error.to_string().contains("builtins.eval"), "{error}");
    }

    #[test]
    fn nonsense_is_refused() {
        for bytes in [
            &b""[..],
            b".",
            b"\x80\x09.",
            b"(.",
            b"t.",
            b"K",
            b"K\x01K\x02R.",
            b"]K\x01K\x02s.",
            b"h\x05.",
            b"X\xff\xff\xff\xffa.",
            b"\x8d\xff\xff\xff\xff\xff\xff\xff\xffa.",
            b"(K\x01\x86.",
            b"]K\x01b.",
            b"i__main__\nf\n.",
            b"\x82\x01.",
        ] {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
    }
}
