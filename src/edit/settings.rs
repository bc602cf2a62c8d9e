//! Settings of a program: named data under `metadata.`, set and removed.

use std::collections::BTreeMap;

use edgepack_format::pte::NamedData;
use edgepack_format::pte::metadata::{METADATA_PREFIX, MetadataValue};

use super::content::Content;
use super::error::Error;
use super::package::Package;
use super::program::references;

/// Sets settings of a program, by name without `metadata.`; `None` removes one. Everything else stays as it is, and data
/// that nothing refers to any more are left out.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use edgepack::edit::{self, Opened};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/corpus/models/mlp_portable.pte");
/// let file = Opened::open(path)?;
/// let settings = BTreeMap::from([("tokenizer.bos_id".to_owned(), Some(128_000.into()))]);
/// let bytes = edit::change_metadata(file.package()?, &settings)?.to_bytes()?;
/// # assert!(bytes.len() > std::fs::read(path)?.len());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A file that is not a program, and a setting to remove that is not there.
pub fn change_metadata<'a>(
    mut package: Package<'a>,
    settings: &BTreeMap<String, Option<MetadataValue>>,
) -> Result<Package<'a>, Error> {
    let kind = Error::Kind { found: package.root.kind(), wanted: "a program" };
    let before = references(package.program().ok_or(kind)?)?;
    let mut waiting: BTreeMap<&str, &Option<MetadataValue>> =
        settings.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let mut segments = std::mem::take(&mut package.segments);
    let mut stored = |value: &MetadataValue| {
        segments.push(Content::from(value.encode()));
        (segments.len() as u32).saturating_sub(1)
    };
    let named = package.program().and_then(|program| program.named_data.clone()).unwrap_or_default();
    let mut rows = Vec::new();
    for row in named.iter() {
        let mut row: NamedData<'a> = row?;
        let setting = row.key.as_deref().and_then(|key| waiting.remove(key.strip_prefix(METADATA_PREFIX)?));
        match setting {
            Some(None) => continue,
            Some(Some(value)) => row.segment_index = stored(value),
            None => {}
        }
        rows.push(row);
    }
    for (name, value) in waiting {
        let Some(value) = value else { return Err(Error::NotFound { what: "setting", name: name.to_owned() }) };
        if name.is_empty() {
            return Err(Error::refused("metadata", "a setting has a name"));
        }
        let key = Some(format!("{METADATA_PREFIX}{name}").into());
        rows.push(NamedData { key, segment_index: stored(value) });
    }
    package.segments = segments;
    if let Some(program) = package.program_mut() {
        program.named_data = if rows.is_empty() { None } else { Some(rows.into()) };
        let after = references(program)?;
        let gone = before.keys().filter(|index| !after.contains_key(index)).copied().collect();
        package.remove_segments(&gone)?;
    }
    package.settle()?;
    Ok(package)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::Opened;
    use edgepack_builder::args;
    use edgepack_builder::pte::ProgramBuilder;
    use edgepack_loader::Program;

    fn changed(bytes: &[u8], settings: &[(&str, Option<MetadataValue>)]) -> Result<Vec<u8>, Error> {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let file = Opened::from_bytes(bytes.to_vec())?;
        let package = change_metadata(file.package()?, &settings)?;
        assert!(!package.ready()?.verify().has_errors());
        package.to_bytes()
    }

    #[test]
    fn settings_are_set_replaced_and_removed() {
        let mut program = ProgramBuilder::new();
        program.getter("get_vocab_size", args![32_000i64]).unwrap();
        program.metadata("a", 1i64).unwrap();
        // One segment under two keys: the other key keeps its bytes.
        program.metadata("b", 1i64).unwrap();
        program.named_data("weights", vec![7; 64], 16, None).unwrap();
        let bytes = program.finish().unwrap().to_bytes().unwrap();
        let set = changed(&bytes, &[("a", Some("text".into())), ("new", Some(vec![1i64, 2].into()))]).unwrap();
        let read = Program::from_bytes(set.clone()).unwrap().metadata().unwrap();
        assert_eq!(read.setting("a"), Some(Ok("text".into())));
        assert_eq!(read.setting("b"), Some(Ok(MetadataValue::Int(1))));
        assert_eq!(read.setting("new"), Some(Ok(MetadataValue::Ints(vec![1, 2]))));
        let back = changed(&set, &[("a", Some(1i64.into())), ("new", None)]).unwrap();
        let read = Program::from_bytes(back).unwrap();
        assert_eq!(read.metadata().unwrap().named_data.len(), 2);
        assert_eq!(read.metadata().unwrap().setting("a"), Some(Ok(MetadataValue::Int(1))));
        assert!(matches!(changed(&bytes, &[("none", None)]), Err(Error::NotFound { .. })));
        assert!(matches!(changed(&bytes, &[("", Some(1i64.into()))]), Err(Error::Refused { .. })));
    }

    #[test]
    fn what_was_added_is_gone_when_it_is_removed() {
        let mut program = ProgramBuilder::new();
        program.getter("get_vocab_size", args![32_000i64]).unwrap();
        let bytes = program.finish().unwrap().to_bytes().unwrap();
        let set = changed(&bytes, &[("a", Some("text".into()))]).unwrap();
        assert_ne!(set, bytes);
        assert_eq!(changed(&set, &[("a", None)]).unwrap(), bytes);
    }
}
