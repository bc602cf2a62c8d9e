//! Messages between a parent and the child process that runs the code of a package.
//!
//! A message is a tag, the length of its body (64 bits, little-endian), and the body. The parent believes nothing of what
//! the child says: an answer is longer than its bound for no reason, and is refused before its body is read; texts and
//! lists are taken apart within the body; of outputs there are exactly as many bytes as the parent asked for.

use std::io::{self, Read, Write};

use edgepack_executor::mlf::Operand;
use edgepack_format::limits::Limits;
use edgepack_format::mlf::{Class, DataType};
use edgepack_loader::AlignedBytes;

use crate::spec::IoSpec;

/// Reason for which a message is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A message is longer than it may be.
    #[error("a message of {bytes} bytes, at most {most} are taken")]
    Long {
        /// Bytes that it says it has.
        bytes: u64,
        /// Bytes that it may have.
        most: u64,
    },
    /// There are more or fewer bytes of outputs than the parent asked for.
    #[error("{have} bytes of outputs, {want} were asked for")]
    Outputs {
        /// Bytes that the child says it has.
        have: u64,
        /// Bytes of the outputs that were asked for.
        want: u64,
    },
    /// The body of a message makes no sense.
    #[error("a message that makes no sense: {0}")]
    Malformed(&'static str),
    /// There is no memory for what the message holds.
    #[error("there is no memory for {0} bytes")]
    Memory(u64),
}

type Result<T> = std::result::Result<T, ProtocolError>;

/// A request of the parent, as the child reads it.
#[derive(Debug)]
pub(crate) enum Request {
    /// Loads a module; sent first, once.
    Load(Load),
    /// Runs the module.
    Run(Run),
}

/// A module to load.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Load {
    /// Path of the compiled library.
    pub library: Vec<u8>,
    /// Bytes of the package.
    pub package: Vec<u8>,
    /// Name of the module.
    pub module: String,
    /// Name of one function of it, if that is to be called alone.
    pub function: Option<String>,
    /// Threads of parallel loops.
    pub threads: u64,
    /// Ceilings of the package: visits, planned memory, memory in all.
    pub limits: [u64; 3],
}

/// One run.
#[derive(Debug)]
pub(crate) struct Run {
    /// Inputs and their bytes.
    pub inputs: Vec<(Operand, AlignedBytes)>,
    /// Outputs that are wanted.
    pub outputs: Vec<Operand>,
}

/// Facts about a loaded module.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Loaded {
    /// Inputs, as far as the package says.
    pub inputs: Vec<IoSpec>,
    /// Outputs, as far as the package says.
    pub outputs: Vec<IoSpec>,
    /// Calls that a run makes.
    pub calls: u64,
    /// Bytes of the graph's storages.
    pub memory_bytes: u64,
}

/// An answer of the child, as the parent reads it.
#[derive(Debug)]
pub enum Answer {
    /// The module is loaded.
    Loaded(Loaded),
    /// It ran: the bytes of its outputs.
    Ran(Vec<AlignedBytes>),
    /// It cannot: the message of its error.
    Failed(String),
}

/// Answer that the parent waits for.
#[derive(Clone, Copy, Debug)]
pub enum Expected<'a> {
    /// To a request to load.
    Loaded,
    /// To a request to run: the outputs that were asked for.
    Ran(&'a [Operand]),
}

const LOAD: u8 = 1;
const RUN: u8 = 2;
const LOADED: u8 = 3;
const RAN: u8 = 4;
const FAILED: u8 = 5;

/// Most bytes of the description of a module.
const MOST_DESCRIPTION: u64 = 1 << 20;
/// Most bytes of an error's message.
const MOST_TEXT: u64 = 64 << 10;
/// Most dimensions of a tensor.
const MOST_RANK: u64 = 32;

fn write_message(out: &mut dyn Write, tag: u8, parts: &[&[u8]]) -> Result<()> {
    let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
    out.write_all(&[tag])?;
    out.write_all(&len.to_le_bytes())?;
    parts.iter().try_for_each(|part| out.write_all(part))?;
    Ok(out.flush()?)
}

fn head(from: &mut dyn Read) -> Result<(u8, u64)> {
    let mut head = [0; 9];
    from.read_exact(&mut head)?;
    let [tag, len @ ..] = head;
    Ok((tag, u64::from_le_bytes(len)))
}

fn body(from: &mut dyn Read, len: u64, most: u64) -> Result<Vec<u8>> {
    let count = usize::try_from(len).ok().filter(|_| len <= most).ok_or(ProtocolError::Long { bytes: len, most })?;
    let mut body = Vec::new();
    body.try_reserve_exact(count).map_err(|_| ProtocolError::Memory(len))?;
    from.take(len).read_to_end(&mut body)?;
    if body.len() != count {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(body)
}

fn tensor(from: &mut dyn Read, bytes: usize) -> Result<AlignedBytes> {
    let mut tensor = AlignedBytes::zeroed(bytes).ok_or(ProtocolError::Memory(bytes as u64))?;
    from.read_exact(tensor.as_mut_slice())?;
    Ok(tensor)
}

/// A body that is being written.
#[derive(Default)]
struct Text(Vec<u8>);

impl Text {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn operand(&mut self, operand: &Operand) {
        let data_type = operand.data_type();
        self.0.extend([data_type.class().code(), data_type.bits()]);
        self.0.extend(data_type.lanes().to_le_bytes());
        self.number(operand.sizes().len() as u64);
        operand.sizes().iter().for_each(|&size| self.number(size as u64));
    }

    fn specs(&mut self, specs: &[IoSpec]) {
        self.number(specs.len() as u64);
        for spec in specs {
            self.bytes(spec.name.as_bytes());
            self.0.push(u8::from(spec.operand.is_some()));
            spec.operand.iter().for_each(|operand| self.operand(operand));
        }
    }
}

/// A body that is being read.
struct Body<'b>(&'b [u8]);

impl<'b> Body<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(ProtocolError::Malformed("it ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?;
        taken.first_chunk().copied().ok_or(ProtocolError::Malformed("it ends early"))
    }

    fn number(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A number of things that take at least `least` bytes each.
    fn count(&mut self, least: usize) -> Result<usize> {
        let count = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        let fits = count.checked_mul(least).is_some_and(|bytes| bytes <= self.0.len());
        if fits { Ok(count) } else { Err(ProtocolError::Malformed("a list is longer than its message")) }
    }

    fn bytes(&mut self) -> Result<&'b [u8]> {
        let count = self.count(1)?;
        self.take(count)
    }

    fn text(&mut self) -> Result<String> {
        let text = std::str::from_utf8(self.bytes()?).map_err(|_| ProtocolError::Malformed("a text is not UTF-8"))?;
        Ok(text.to_owned())
    }

    fn operand(&mut self) -> Result<Operand> {
        let [class, bits, lanes @ ..] = self.array::<4>()?;
        let data_type = Class::from_code(class).and_then(|class| DataType::new(class, bits, u16::from_le_bytes(lanes)));
        let data_type = data_type.ok_or(ProtocolError::Malformed("an element type that there is not"))?;
        let rank = self.number()?;
        if rank > MOST_RANK {
            return Err(ProtocolError::Malformed("a tensor of too many dimensions"));
        }
        let sizes = (0..rank).map(|_| self.number()).collect::<Result<Vec<_>>>()?;
        Operand::new(data_type, &sizes).ok_or(ProtocolError::Malformed("a tensor larger than any memory"))
    }

    fn specs(&mut self) -> Result<Vec<IoSpec>> {
        let count = self.count(9)?;
        let spec = |_| {
            let name = self.text()?;
            let operand = match self.array()? {
                [0] => None,
                [1] => Some(self.operand()?),
                _ => return Err(ProtocolError::Malformed("a flag that is neither 0 nor 1")),
            };
            Ok(IoSpec { name, operand })
        };
        (0..count).map(spec).collect()
    }

    fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(ProtocolError::Malformed("it has more than it should")) }
    }
}

impl Load {
    /// Sends the request.
    pub(crate) fn send(&self, out: &mut dyn Write) -> Result<()> {
        let mut text = Text::default();
        text.bytes(&self.library);
        text.bytes(self.module.as_bytes());
        text.0.push(u8::from(self.function.is_some()));
        text.bytes(self.function.as_deref().unwrap_or_default().as_bytes());
        text.number(self.threads);
        self.limits.iter().for_each(|limit| text.number(*limit));
        text.number(self.package.len() as u64);
        write_message(out, LOAD, &[&text.0, &self.package])
    }
}

/// Sends a request to run.
pub(crate) fn send_run(out: &mut dyn Write, inputs: &[(Operand, &[u8])], outputs: &[Operand]) -> Result<()> {
    let mut text = Text::default();
    text.number(inputs.len() as u64);
    text.number(outputs.len() as u64);
    inputs.iter().map(|(operand, _)| operand).chain(outputs).for_each(|operand| text.operand(operand));
    let head = (text.0.len() as u64).to_le_bytes();
    let mut parts: Vec<&[u8]> = vec![&head, &text.0];
    parts.extend(inputs.iter().map(|(_, bytes)| *bytes));
    write_message(out, RUN, &parts)
}

/// Reads a request of the parent, which is believed; `None` if there will be no more.
pub(crate) fn read_request(from: &mut dyn Read) -> Result<Option<Request>> {
    let (tag, len) = match head(from) {
        Err(ProtocolError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        head => head?,
    };
    match tag {
        LOAD => {
            let whole = body(from, len, u64::MAX)?;
            let mut body = Body(&whole);
            let (library, module) = (body.bytes()?.to_vec(), body.text()?);
            let [has_function] = body.array()?;
            let function = Some(body.text()?).filter(|_| has_function == 1);
            let threads = body.number()?;
            let limits = [body.number()?, body.number()?, body.number()?];
            let package = body.bytes()?.to_vec();
            body.end()?;
            Ok(Some(Request::Load(Load { library, package, module, function, threads, limits })))
        }
        RUN => {
            let mut first = [0; 8];
            from.read_exact(&mut first)?;
            let text = body(from, u64::from_le_bytes(first), len)?;
            let mut body = Body(&text);
            let (inputs, outputs) = (body.number()?, body.number()?);
            let inputs = (0..inputs).map(|_| body.operand()).collect::<Result<Vec<_>>>()?;
            let outputs = (0..outputs).map(|_| body.operand()).collect::<Result<Vec<_>>>()?;
            body.end()?;
            let mut given = Vec::new();
            for operand in inputs {
                let bytes = tensor(from, operand.byte_len())?;
                given.push((operand, bytes));
            }
            Ok(Some(Request::Run(Run { inputs: given, outputs })))
        }
        _ => Err(ProtocolError::Malformed("a request of an unknown kind")),
    }
}

/// Sends the answer to a request to load.
pub(crate) fn send_loaded(out: &mut dyn Write, loaded: &Loaded) -> Result<()> {
    let mut text = Text::default();
    text.specs(&loaded.inputs);
    text.specs(&loaded.outputs);
    text.number(loaded.calls);
    text.number(loaded.memory_bytes);
    write_message(out, LOADED, &[&text.0])
}

/// Sends the answer to a request to run.
pub(crate) fn send_ran(out: &mut dyn Write, outputs: &[&[u8]]) -> Result<()> {
    write_message(out, RAN, outputs)
}

/// Sends the answer that a request failed.
pub(crate) fn send_failed(out: &mut dyn Write, message: &str) -> Result<()> {
    let end = (0..=message.len().min(MOST_TEXT as usize)).rev().find(|&end| message.is_char_boundary(end));
    write_message(out, FAILED, &[message.get(..end.unwrap_or(0)).unwrap_or_default().as_bytes()])
}

/// Reads an answer of a child that may say anything, within bounds of what is expected and of the limits.
pub fn read_answer(from: &mut dyn Read, expected: Expected<'_>, limits: &Limits) -> Result<Answer> {
    match (head(from)?, expected) {
        ((LOADED, len), Expected::Loaded) => {
            let whole = body(from, len, MOST_DESCRIPTION)?;
            let mut body = Body(&whole);
            let loaded = Loaded {
                inputs: body.specs()?,
                outputs: body.specs()?,
                calls: body.number()?,
                memory_bytes: body.number()?,
            };
            body.end()?;
            let total = loaded.outputs.iter().filter_map(|spec| spec.operand.as_ref());
            let total = total.fold(0u64, |sum, operand| sum.saturating_add(operand.byte_len() as u64));
            match total > limits.memory_bytes {
                true => Err(ProtocolError::Long { bytes: total, most: limits.memory_bytes }),
                false => Ok(Answer::Loaded(loaded)),
            }
        }
        ((RAN, have), Expected::Ran(outputs)) => {
            let want = outputs.iter().fold(0u64, |sum, operand| sum.saturating_add(operand.byte_len() as u64));
            if have != want {
                return Err(ProtocolError::Outputs { have, want });
            }
            Ok(Answer::Ran(outputs.iter().map(|operand| tensor(from, operand.byte_len())).collect::<Result<_>>()?))
        }
        ((FAILED, len), _) => {
            let text = body(from, len, MOST_TEXT)?;
            Ok(Answer::Failed(String::from_utf8_lossy(&text).into_owned()))
        }
        _ => Err(ProtocolError::Malformed("an answer to another question")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operand(shape: &[u64]) -> Operand {
        Operand::new("float32".parse().unwrap(), shape).unwrap()
    }

    fn answer(bytes: &[u8], expected: Expected<'_>) -> Result<Answer> {
        read_answer(&mut &*bytes, expected, &Limits::hostile())
    }

    #[test]
    fn requests_arrive_as_they_were_sent() {
        let load = Load {
            library: b"/tmp/x".to_vec(),
            package: vec![7; 100],
            module: "m".into(),
            function: Some("f".into()),
            threads: 3,
            limits: [1, 2, 3],
        };
        let mut sent = Vec::new();
        load.send(&mut sent).unwrap();
        send_run(&mut sent, &[(operand(&[2]), &[1; 8])], &[operand(&[]), operand(&[3, 1])]).unwrap();
        let mut from = &*sent;
        let Some(Request::Load(have)) = read_request(&mut from).unwrap() else { panic!("another request") };
        assert_eq!(have, load);
        let Some(Request::Run(run)) = read_request(&mut from).unwrap() else { panic!("another request") };
        assert_eq!((&run.inputs[0].0, &*run.inputs[0].1), (&operand(&[2]), &[1; 8][..]));
        assert_eq!(run.outputs, [operand(&[]), operand(&[3, 1])]);
        assert!(read_request(&mut from).unwrap().is_none());
    }

    #[test]
    fn answers_arrive_as_they_were_sent() {
        let unknown = IoSpec { name: "y".into(), operand: None };
        let loaded = Loaded {
            inputs: vec![IoSpec { name: "x".into(), operand: Some(operand(&[2])) }],
            outputs: vec![unknown],
            calls: 4,
            memory_bytes: 5,
        };
        let mut sent = Vec::new();
        send_loaded(&mut sent, &loaded).unwrap();
        assert!(matches!(answer(&sent, Expected::Loaded), Ok(Answer::Loaded(have)) if have == loaded));
        for end in 0..sent.len() {
            assert!(answer(&sent[..end], Expected::Loaded).is_err());
        }
        sent.clear();
        send_ran(&mut sent, &[&[1; 8], &[2; 4]]).unwrap();
        let Ok(Answer::Ran(outputs)) = answer(&sent, Expected::Ran(&[operand(&[2]), operand(&[])])) else {
            panic!("another answer")
        };
        assert_eq!((&*outputs[0], &*outputs[1]), (&[1; 8][..], &[2; 4][..]));
        sent.clear();
        send_failed(&mut sent, &"é".repeat(MOST_TEXT as usize)).unwrap();
        assert!(matches!(answer(&sent, Expected::Loaded), Ok(Answer::Failed(text)) if text.starts_with('é')));
    }

    #[test]
    fn a_hostile_child_is_refused_before_memory_is_reserved() {
        let message = |tag: u8, len: u64, body: &[u8]| [&[tag][..], &len.to_le_bytes(), body].concat();
        let wanted = [operand(&[2])];
        assert!(matches!(answer(&message(LOADED, u64::MAX, b""), Expected::Loaded), Err(ProtocolError::Long { .. })));
        assert!(matches!(answer(&message(FAILED, 1 << 40, b""), Expected::Loaded), Err(ProtocolError::Long { .. })));
        let ran = answer(&message(RAN, 1 << 60, b""), Expected::Ran(&wanted));
        assert!(matches!(ran, Err(ProtocolError::Outputs { want: 8, .. })));
        assert!(matches!(answer(&message(RAN, 0, b""), Expected::Loaded), Err(ProtocolError::Malformed(_))));
        assert!(matches!(answer(&message(9, 0, b""), Expected::Loaded), Err(ProtocolError::Malformed(_))));
        // A list of 2^60 inputs in sixteen bytes.
        let list = [(1u64 << 60).to_le_bytes(), [0; 8]].concat();
        assert!(matches!(answer(&message(LOADED, 16, &list), Expected::Loaded), Err(ProtocolError::Malformed(_))));
        // Outputs that no limits allow.
        let large = IoSpec { name: String::new(), operand: Some(operand(&[1 << 40])) };
        let mut sent = Vec::new();
        send_loaded(&mut sent, &Loaded { outputs: vec![large], ..Loaded::default() }).unwrap();
        assert!(matches!(answer(&sent, Expected::Loaded), Err(ProtocolError::Long { .. })));
    }
}
