//! One data file of several.

use std::collections::BTreeMap;

use edgepack_format::ptd::{FlatTensor, NamedData};

use super::error::Error;
use super::join::entries_of;
use super::package::Package;
use super::root::Root;
use super::split::row_of;

/// Puts what is in several data files, of any generation, into one of today's layout: keys in the order of the files, and
/// keys that share bytes in a file share them in the result. Bytes stay where they are until the package is written.
///
/// # Errors
///
/// [`Error::Refused`] if a key is in two files with another layout or other bytes; what is the same in both is in the
/// result once. [`Error::Kind`] for what is not a data file.
pub fn merge(data: &[Package<'_>]) -> Result<Package<'static>, Error> {
    let (mut rows, mut segments) = (Vec::new(), Vec::new());
    let mut taken = BTreeMap::new();
    for (file, package) in data.iter().enumerate() {
        let mut places: BTreeMap<((u32, u64), u64), u32> = BTreeMap::new();
        for entry in entries_of(package)? {
            if let Some((first, layout, content)) = taken.get(&entry.key) {
                let same = *layout == entry.layout && entry.content.same(content).map_err(Error::io(&*entry.key))?;
                match same {
                    true => continue,
                    false => {
                        let message = format!("files {first} and {file}, counted from 0, have other content under it");
                        return Err(Error::refused(format!("key {:?}", entry.key), message));
                    }
                }
            }
            let next = u32::try_from(segments.len()).map_err(|_| Error::refused(&*entry.key, "too many segments"))?;
            let segment = *places.entry((entry.place, entry.content.len())).or_insert(next);
            if segment == next {
                segments.push(entry.content.clone());
            }
            let tensor_layout = entry.layout.as_ref().map(row_of);
            rows.push(NamedData { key: Some(entry.key.clone().into()), segment_index: segment, tensor_layout });
            taken.insert(entry.key, (file, entry.layout, entry.content));
        }
    }
    let root = FlatTensor { version: 0, segments: Some(Vec::new().into()), named_data: Some(rows.into()) };
    let mut package = Package { segments, ..Package::new(Root::Data(root)) };
    package.place()?;
    Ok(package)
}
