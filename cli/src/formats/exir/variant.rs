//! Variants of archives: places in their records change, not in the archive around them.

use edgepack_exir::archive::{Archive, records, write_records};
use edgepack_smith::Rng;
use edgepack_smith::mutate::archive::{Container, edit};

/// A variant of an archive; `None` of what cannot be read as one.
pub fn variant(bytes: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    Archive::parse(bytes).ok()?;
    edit(bytes, &Zip, rng)
}

/// Archives of export IR as records.
struct Zip;

impl Container for Zip {
    fn read<'a>(&self, archive: &'a [u8]) -> Option<Vec<(String, &'a [u8])>> {
        records(archive).ok()
    }

    fn write(&self, records: &[(&str, &[u8])]) -> Option<Vec<u8>> {
        write_records(records.iter().copied()).ok()
    }
}
