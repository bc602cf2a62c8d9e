//! Packages in gzip: inflated into memory, within the limits, before anything else is done with them.

use std::io::{self, Read};
use std::sync::Arc;

use edgepack_format::FileKind;
use edgepack_format::detect::{DETECT_LEN, detect};
use edgepack_format::limits::Limits;
use flate2::read::MultiGzDecoder;

use crate::error::Error;
use crate::memory_source::MemorySource;
use crate::source::Source;

/// A source as a stream.
struct Stream<'s> {
    source: &'s dyn Source,
    at: u64,
}

impl Read for Stream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.source.len().saturating_sub(self.at);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
        let Some(into) = into.get_mut(..len) else { return Ok(0) };
        self.source.read_at(self.at, into)?;
        self.at = self.at.saturating_add(len as u64);
        Ok(len)
    }
}

/// Inflates a package in gzip. `None` if the source is not in gzip, or is another thing in gzip. More bytes than the
/// limits allow for memory are refused when the first of them too many appears.
pub fn inflate(source: &dyn Source, limits: &Limits) -> Result<Option<Arc<dyn Source>>, Error> {
    let mut magic = [0; 3];
    if source.len() < 18 || source.read_at(0, &mut magic).is_err() || magic != [0x1f, 0x8b, 8] {
        return Ok(None);
    }
    let stream = || MultiGzDecoder::new(io::BufReader::new(Stream { source, at: 0 }));
    let mut first = [0; DETECT_LEN];
    let mut known = 0;
    let mut start = stream();
    while let Some(room) = first.get_mut(known..).filter(|room| !room.is_empty()) {
        match start.read(room) {
            Ok(0) | Err(_) => break,
            Ok(count) => known = known.saturating_add(count),
        }
    }
    if detect(first.get(..known).unwrap_or_default()) != FileKind::ModelLibrary {
        return Ok(None);
    }
    let what = || "the inflated package".to_owned();
    let limit = limits.memory_bytes;
    let mut whole = Vec::new();
    let mut piece = [0; 16 << 10];
    let mut stream = stream();
    loop {
        let count = stream.read(&mut piece).map_err(|error| Error::Io { what: source.name(), error })?;
        let bytes = (whole.len() as u64).saturating_add(count as u64);
        if bytes > limit {
            return Err(Error::Limit { what: what(), bytes, limit });
        }
        whole.try_reserve(count).map_err(|_| Error::Memory { what: what(), bytes })?;
        whole.extend_from_slice(piece.get(..count).unwrap_or_default());
        if count == 0 {
            return Ok(Some(Arc::new(MemorySource::new(whole))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn tar(bytes: usize) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes as u64);
        builder.append_data(&mut header, "metadata.json", &*vec![b' '; bytes]).unwrap();
        builder.into_inner().unwrap()
    }

    fn inflated(bytes: &[u8], limits: &Limits) -> Result<Option<Vec<u8>>, Error> {
        let source = inflate(&MemorySource::new(bytes), limits)?;
        Ok(source.map(|source| {
            let mut bytes = vec![0; source.len() as usize];
            source.read_at(0, &mut bytes).unwrap();
            bytes
        }))
    }

    #[test]
    fn packages_are_inflated_and_nothing_else_is() {
        let package = tar(100_000);
        assert_eq!(inflated(&gzip(&package), &Limits::hostile()).unwrap().as_deref(), Some(&*package));
        let (first, second) = package.split_at(3000);
        let both = [gzip(first), gzip(second)].concat();
        assert_eq!(inflated(&both, &Limits::hostile()).unwrap(), Some(package.clone()));
        for other in [package, gzip(b"any text"), b"\x1f\x8b\x08".to_vec(), vec![]] {
            assert_eq!(inflated(&other, &Limits::hostile()).unwrap(), None);
        }
    }

    #[test]
    fn damage_is_an_error() {
        let whole = gzip(&tar(100_000));
        for end in [whole.len() - 1, whole.len() / 2] {
            assert!(
                inflated(&whole[..end], &Limits::hostile()).is_ok_and(|found| found.is_none())
                    || matches!(inflated(&whole[..end], &Limits::hostile()), Err(Error::Io { .. }))
            );
        }
        let mut wrong = whole.clone();
        let at = wrong.len() - 6;
        wrong[at] ^= 1;
        assert!(matches!(inflated(&wrong, &Limits::hostile()), Err(Error::Io { .. })));
    }

    #[test]
    fn a_few_bytes_never_become_more_than_the_limits_allow() {
        let bomb = gzip(&tar(64 << 20));
        assert!(bomb.len() < 100 << 10);
        let mut limits = Limits::hostile();
        limits.memory_bytes = 1 << 20;
        assert!(matches!(inflated(&bomb, &limits), Err(Error::Limit { limit, .. }) if limit == 1 << 20));
    }
}
