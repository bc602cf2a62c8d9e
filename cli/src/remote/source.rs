//! A file elsewhere as a source: ranges are fetched when they are read, and what was fetched is retained for a while.
//!
//! Invariant: all bytes handed out are of one file, as far as its server says: every answer has the length, the ETag and the
//! date of the first. No more is fetched than the limits allow.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use edgepack_loader::Source;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore};
use tokio::runtime::{Builder, Runtime};

use super::error::RemoteError;
use super::transport::Transport;

/// Bytes that are fetched and retained together.
const BLOCK: u64 = 32 << 10;

/// Most bytes of one question.
const PIECE: u64 = 2 << 20;

/// Most blocks that are retained: 64 MiB.
const RETAINED: usize = 2048;

/// A file of a server.
pub struct RemoteSource {
    store: Box<dyn ObjectStore>,
    path: Path,
    transport: Transport,
    runtime: Runtime,
    name: String,
    limit: u64,
    /// Facts about the file in the first answer; `None` if it has no bytes.
    first: Option<ObjectMeta>,
    state: Mutex<State>,
}

/// Bytes that were fetched, and how many.
#[derive(Default)]
struct State {
    /// Blocks by their number, with the time of their last use.
    blocks: BTreeMap<u64, (Bytes, u64)>,
    /// Number of uses.
    clock: u64,
    /// Bytes fetched.
    fetched: u64,
    /// End of the blocks fetched last, and their number: who reads on from there is given more at a time.
    last: (u64, u64),
}

impl RemoteSource {
    /// Opens an object of a store that asks by `transport`, with its first bytes. At most `limit` bytes are ever fetched.
    pub fn open(
        store: Box<dyn ObjectStore>,
        path: Path,
        transport: Transport,
        name: String,
        limit: u64,
    ) -> Result<RemoteSource, RemoteError> {
        let runtime = Builder::new_current_thread().enable_time().build().map_err(|_| RemoteError::Failed)?;
        let state = Mutex::new(State::default());
        let mut source = RemoteSource { store, path, transport, runtime, name, limit, first: None, state };
        let (meta, bytes) = match source.fetch(0..BLOCK, &mut State::default()) {
            Err(_) if source.transport.is_empty() => return Ok(source),
            fetched => fetched?,
        };
        if !is_identified(&meta) && meta.size > bytes.len() as u64 {
            return Err(RemoteError::Unidentified);
        }
        let state = source.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.fetched = bytes.len() as u64;
        state.last = (1, 1);
        state.blocks.insert(0, (bytes, 0));
        source.first = Some(meta);
        Ok(source)
    }

    /// Bytes fetched so far.
    pub fn fetched(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).fetched
    }

    /// Fetches a range, which ends at the end of the file at the latest unless nothing is known of the file.
    fn fetch(&self, range: Range<u64>, state: &mut State) -> Result<(ObjectMeta, Bytes), RemoteError> {
        let bytes = state.fetched.saturating_add(range.end.saturating_sub(range.start));
        if bytes > self.limit {
            return Err(RemoteError::Limit { bytes, limit: self.limit });
        }
        let mut options = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        if let Some(first) = &self.first {
            // A weak tag is equal to none, by its definition.
            match first.e_tag.as_ref().filter(|tag| tag.starts_with('"')) {
                Some(tag) => options.if_match = Some(tag.clone()),
                None if has_date(first) => options.if_unmodified_since = Some(first.last_modified),
                None => {}
            }
        }
        let fetched = self.runtime.block_on(async {
            let found = self.store.get_opts(&self.path, options).await?;
            let meta = found.meta.clone();
            Ok::<_, object_store::Error>((meta, found.bytes().await?))
        });
        let (meta, bytes) = fetched.map_err(|_| self.transport.failure().unwrap_or(RemoteError::Failed))?;
        state.fetched = state.fetched.saturating_add(bytes.len() as u64);
        if let Some(first) = &self.first {
            unchanged(first, &meta)?;
            if bytes.len() as u64 != range.end - range.start {
                return Err(RemoteError::Failed);
            }
        }
        Ok((meta, bytes))
    }

    /// Fills `into` from `offset`, which are inside of the file.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), RemoteError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut at, mut rest) = (offset, into);
        while !rest.is_empty() {
            let number = at / BLOCK;
            if rest.len() as u64 >= PIECE && !state.blocks.contains_key(&number) {
                let (piece, more) = rest.split_at_mut(PIECE as usize);
                piece.copy_from_slice(&self.fetch(at..at + PIECE, &mut state)?.1);
                (at, rest) = (at + PIECE, more);
                continue;
            }
            let block = self.block(number, at + rest.len() as u64, &mut state)?;
            let from = block.get((at % BLOCK) as usize..).unwrap_or_default();
            let len = from.len().min(rest.len());
            if len == 0 {
                return Err(RemoteError::Failed);
            }
            let (piece, more) = rest.split_at_mut(len);
            piece.copy_from_slice(&from[..len]);
            (at, rest) = (at + len as u64, more);
        }
        Ok(())
    }

    /// A block. One that has to be fetched brings those behind it along that are wanted up to `end`, and more where one block
    /// after the other is read.
    fn block(&self, number: u64, end: u64, state: &mut State) -> Result<Bytes, RemoteError> {
        state.clock += 1;
        let clock = state.clock;
        if let Some((block, used)) = state.blocks.get_mut(&number) {
            *used = clock;
            return Ok(block.clone());
        }
        let wanted = end.div_ceil(BLOCK) - number;
        let (next, before) = state.last;
        let ahead = if next == number { before * 2 } else { 1 };
        let blocks = self.len().div_ceil(BLOCK) - number;
        let count = wanted.max(ahead).min(PIECE / BLOCK).min(blocks);
        let known = state.blocks.range(number..number + count).next().map_or(count, |(known, _)| known - number);
        let range = number * BLOCK..((number + known) * BLOCK).min(self.len());
        let (_, bytes) = self.fetch(range, state)?;
        state.last = (number + known, known);
        while state.blocks.len() + known as usize > RETAINED {
            let oldest = state.blocks.iter().min_by_key(|(_, (_, used))| *used).map(|(number, _)| *number);
            oldest.and_then(|oldest| state.blocks.remove(&oldest));
        }
        for index in 0..known {
            let start = (index * BLOCK) as usize;
            let block = bytes.slice(start..bytes.len().min(start + BLOCK as usize));
            state.blocks.insert(number + index, (block, clock));
        }
        Ok(bytes.slice(..bytes.len().min(BLOCK as usize)))
    }
}

/// Returns whether the server said when the file was last changed. The store takes the beginning of time for the answer.
fn has_date(meta: &ObjectMeta) -> bool {
    meta.last_modified.timestamp() != 0
}

/// Returns whether the file can be told from others.
fn is_identified(meta: &ObjectMeta) -> bool {
    meta.e_tag.is_some() || has_date(meta)
}

/// Compares what two answers say of the file.
fn unchanged(first: &ObjectMeta, now: &ObjectMeta) -> Result<(), RemoteError> {
    let tag = |meta: &ObjectMeta| meta.e_tag.clone().unwrap_or_else(|| "none".to_owned());
    let date = |meta: &ObjectMeta| match has_date(meta) {
        true => meta.last_modified.to_rfc2822(),
        false => "none".to_owned(),
    };
    for (what, before, after) in [
        ("its length", first.size.to_string(), now.size.to_string()),
        ("its ETag", tag(first), tag(now)),
        ("its date", date(first), date(now)),
    ] {
        if before != after {
            return Err(RemoteError::Changed { what, before, after });
        }
    }
    Ok(())
}

impl Source for RemoteSource {
    fn len(&self) -> u64 {
        self.first.as_ref().map_or(0, |first| first.size)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(into.len() as u64).filter(|end| *end <= self.len());
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(self.read(offset, into)?)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
