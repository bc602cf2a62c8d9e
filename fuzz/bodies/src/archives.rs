//! Export-IR archives as containers of records, for the mutator that knows the documents in them.

use edgepack_exir::archive::{Archive, records, write_records};
use edgepack_smith::Rng;
use edgepack_smith::mutate::archive::{self, Container};

struct Zip;

impl Container for Zip {
    fn read<'a>(&self, archive: &'a [u8]) -> Option<Vec<(String, &'a [u8])>> {
        records(archive).ok()
    }

    fn write(&self, records: &[(&str, &[u8])]) -> Option<Vec<u8>> {
        write_records(records.iter().copied()).ok()
    }
}

/// An archive with a document or a pickle in it changed; `None` if the bytes are not an archive or have no document.
pub fn edit(bytes: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    Archive::parse(bytes).ok()?;
    archive::edit(bytes, &Zip, rng)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;
    use edgepack_smith::mutate::archive::places;

    fn archives() -> Vec<Vec<u8>> {
        let mut archives: Vec<_> =
            seeds::corpus(&["pt2"]).into_iter().map(|path| std::fs::read(path).unwrap()).collect();
        archives.retain(|bytes| Archive::parse(bytes).and_then(|archive| archive.program()).is_ok());
        assert!(archives.len() > 4, "archives to start from");
        archives
    }

    #[test]
    fn every_kind_of_place_is_found_in_real_archives() {
        let mut found = std::collections::BTreeSet::new();
        for bytes in archives() {
            let archive = Archive::parse(&bytes).unwrap();
            let document = serde_json::to_value(archive.document("model").unwrap()).unwrap();
            for (place, way) in places(&document) {
                assert!(document.pointer(&way).is_some(), "{way}");
                found.insert(place);
            }
        }
        assert_eq!(found.len(), 11, "{found:?}");
    }

    #[test]
    fn edited_archives_are_read_as_archives_and_often_as_programs() {
        let mut rng = Rng::new(1);
        let (mut all, mut changed, mut read) = (0, 0, 0);
        for bytes in archives() {
            for _ in 0..40 {
                let Some(edited) = edit(&bytes, &mut rng) else { continue };
                let archive = Archive::parse(&edited).expect("the archive around the document is sound");
                all += 1;
                changed += usize::from(edited != bytes);
                read += usize::from(archive.program().is_ok());
            }
        }
        assert!(changed > all / 2 && read > all / 10 && read < all, "{read} of {all} were read, {changed} differ");
    }

    #[test]
    fn the_same_number_is_the_same_archive() {
        let bytes = archives().remove(0);
        assert_eq!(edit(&bytes, &mut Rng::new(7)), edit(&bytes, &mut Rng::new(7)));
    }
}
