//! Saving a session, and restoring it.
//!
//! A saved session is untrusted: everything in it is read, compared with its digest, and found to fit the model before the
//! session changes. Numbers are little-endian:
//!
//! | bytes | content |
//! | --- | --- |
//! | 8 | `EPLMSESS` |
//! | 4 | version, 1 |
//! | 4 | number of state images: one per step, none for models without state |
//! | 32 | SHA-256 digest of the program and its data ([`Model::digest`](crate::model::Model::digest)) |
//! | 8 | number of tokens |
//! | 8 | number of logits: those of the vocabulary, or 0 |
//! | 4 each | tokens |
//! | 4 each | logits, `f32` |
//! | 8 and its bytes, each | length and content of an image (`Method::save_state`) |
//! | 32 | SHA-256 digest of all of the above |

use std::io::{self, BufWriter, ErrorKind, Read, Write};

use edgepack_executor::{RunError, StateScope};
use sha2::{Digest, Sha256};

use crate::error::{Error, reserve};
use crate::model::Cache;
use crate::session::{NO_TOKEN, Session};

const MAGIC: [u8; 8] = *b"EPLMSESS";
const VERSION: u32 = 1;

impl Session {
    /// Writes the session: tokens, logits and state. Only a session of the same program can restore it.
    ///
    /// # Errors
    ///
    /// The program cannot be read for its digest, or `writer` fails.
    pub fn save(&mut self, writer: impl Write) -> Result<(), Error> {
        self.settle()?;
        let digest = self.model.digest()?;
        let mut out = Hashed { inner: BufWriter::new(writer), hash: Sha256::new() };
        let logits = self.logits().map_or(0, <[f32]>::len);
        out.put(&MAGIC)?;
        out.put(&VERSION.to_le_bytes())?;
        out.put(&(self.images() as u32).to_le_bytes())?;
        out.put(&digest)?;
        out.put(&(self.tokens.len() as u64).to_le_bytes())?;
        out.put(&(logits as u64).to_le_bytes())?;
        self.tokens.iter().try_for_each(|token| out.put(&token.to_le_bytes()))?;
        self.logits[..logits].iter().try_for_each(|logit| out.put(&logit.to_le_bytes()))?;
        for index in 0..self.images() {
            let step = &mut self.steps[index];
            let failed = |failure| match failure {
                Failure::Run(error) => Error::run(&step.form.method, error),
                Failure::Io(error) => error.into(),
            };
            let len = step.method.state_len(scope(index)).map_err(|error| failed(error.into()))?;
            out.put(&len.to_le_bytes())?;
            step.method.save_state(scope(index), |bytes| Ok(out.put(bytes)?)).map_err(failed)?;
        }
        let digest = out.hash.finalize();
        out.inner.write_all(&digest)?;
        out.inner.flush()?;
        Ok(())
    }

    /// Becomes the session that was saved. Reads to its end and no further.
    ///
    /// # Errors
    ///
    /// It was saved for another program, is damaged, or does not fit the model; then nothing has changed.
    pub fn restore(&mut self, reader: impl Read) -> Result<(), Error> {
        let digest = self.model.digest()?;
        let mut input = Hashed { inner: reader, hash: Sha256::new() };
        if input.array()? != MAGIC {
            return Err(saved("it does not start with `EPLMSESS`"));
        }
        let (version, images) = (u32::from_le_bytes(input.array()?), u32::from_le_bytes(input.array()?) as usize);
        if (version, images) != (VERSION, self.images()) {
            let want = self.images();
            return Err(saved(format!(
                "version {version} with {images} images, this is version {VERSION} with {want}"
            )));
        }
        if input.array::<32>()? != digest {
            return Err(saved("it is of another program"));
        }
        let count = input.count("tokens", self.model.context(), None)?;
        let logits = input.count("logits", self.logits.len(), Some(self.logits.len()))?;
        let tokens = input.bytes("tokens", count * 4)?;
        let logits = input.bytes("logits", logits * 4)?;
        let mut states = Vec::new();
        for index in 0..images {
            let method = &self.steps[index].method;
            let most = method.most_state_bytes(scope(index)).map_err(|error| Error::run(method.name(), error))?;
            let len = u64::from_le_bytes(input.array()?);
            let Some(len) = usize::try_from(len).ok().filter(|_| len <= most) else {
                return Err(saved(format!("{len} bytes of state, the model has {most} at most")));
            };
            states.push(input.bytes("state", len)?);
        }
        let found = std::mem::take(&mut input.hash).finalize();
        if input.array::<32>()? != found[..] {
            return Err(saved("its content does not have the digest it states"));
        }
        let word = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
        let known =
            |token: u32| (token as usize) < self.logits.len() || (token == NO_TOKEN && self.embedding.is_some());
        if let Some(token) = tokens.as_chunks().0.iter().map(word).find(|&token| !known(token)) {
            return Err(saved(format!("token {token} of a vocabulary of {}", self.logits.len())));
        }
        for (index, state) in states.iter().enumerate() {
            let method = &self.steps[index].method;
            method.check_state(scope(index), state).map_err(|error| Error::run(method.name(), error))?;
        }
        // From here on nothing fails but for lack of memory; the state of the tokens so far is then computed again.
        self.unsettled = true;
        for (index, state) in states.iter().enumerate() {
            let step = &mut self.steps[index];
            let restored = step.method.restore_state(scope(index), state);
            restored.map_err(|error| Error::run(&step.form.method, error))?;
        }
        self.tokens.clear();
        self.tokens.extend(tokens.as_chunks().0.iter().map(word));
        self.has_logits = !logits.is_empty();
        self.logits.iter_mut().zip(logits.as_chunks().0).for_each(|(to, from)| *to = f32::from_le_bytes(*from));
        self.unsettled = false;
        Ok(())
    }

    /// Number of steps whose state is saved.
    fn images(&self) -> usize {
        if self.model.cache() == Cache::Absent { 0 } else { self.steps.len() }
    }
}

/// State that the steps share is saved with the first.
fn scope(index: usize) -> StateScope {
    if index == 0 { StateScope::WithShared } else { StateScope::Own }
}

fn saved(message: impl Into<String>) -> Error {
    Error::Saved(message.into())
}

/// Reason for which a state could not be written.
enum Failure {
    Run(RunError),
    Io(io::Error),
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Failure::Run(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Io(error)
    }
}

/// A reader or writer, and the digest of what went through.
struct Hashed<T> {
    inner: T,
    hash: Sha256,
}

impl<W: Write> Hashed<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.inner.write_all(bytes)
    }
}

impl<R: Read> Hashed<R> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.inner.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => saved("it ends too early"),
            _ => Error::Io(error),
        })?;
        self.hash.update(&*bytes);
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        self.fill(&mut array)?;
        Ok(array)
    }

    /// A count of at most `most`; if it has to be `whole`, that or 0.
    fn count(&mut self, what: &str, most: usize, whole: Option<usize>) -> Result<usize, Error> {
        let count = u64::from_le_bytes(self.array()?);
        let fits = usize::try_from(count).ok().filter(|&count| count <= most);
        fits.filter(|&count| count == 0 || whole.is_none_or(|whole| count == whole))
            .ok_or_else(|| saved(format!("{count} {what}, the model has {most}")))
    }

    fn bytes(&mut self, what: &'static str, len: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        reserve(&mut bytes, len, what)?;
        bytes.resize(len, 0);
        self.fill(&mut bytes)?;
        Ok(bytes)
    }
}
