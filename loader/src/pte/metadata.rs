//! Settings that a program states about itself, which runners read before they run it.

use edgepack_format::pte::metadata::{MetadataError, MetadataValue};
use edgepack_format::room;

use crate::bytes::Bytes;
use crate::error::Error;
use crate::named_data::NamedDataMap;

use super::meta::ValueMeta;
use super::program::Program;

pub use edgepack_format::pte::metadata::METADATA_PREFIX;

/// Settings of a program, of both kinds that exporters write.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// Constant methods: those that take nothing and run nothing, with what they return, in order of the file.
    pub constant_methods: Vec<(String, Vec<ValueMeta>)>,
    /// Named data whose keys start with [`METADATA_PREFIX`], by key without it.
    pub named_data: Vec<(String, Bytes)>,
}

impl Metadata {
    /// Returns the value of a constant method, if it returns one value.
    ///
    /// ```
    /// # use edgepack_loader::{Program, ValueMeta};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/models/mlp_portable.pte");
    /// let metadata = Program::open(path)?.metadata()?;
    /// if let Some(ValueMeta::Int(size)) = metadata.value("get_vocab_size") {
    ///     println!("{size} tokens");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn value(&self, name: &str) -> Option<&ValueMeta> {
        match self.constant_methods.iter().find(|(found, _)| found == name)?.1.as_slice() {
            [value] => Some(value),
            _ => None,
        }
    }

    /// Returns a setting by its name, `tokenizer.bos_id`: named data without the prefix.
    ///
    /// ```
    /// # use edgepack_loader::Program;
    /// use edgepack_format::pte::metadata::MetadataValue;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/models/mlp_portable.pte");
    /// let metadata = Program::open(path)?.metadata()?;
    /// if let Some(MetadataValue::Text(template)) = metadata.setting("tokenizer.chat_template").transpose()? {
    ///     println!("{template}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Data that are not a setting.
    pub fn setting(&self, name: &str) -> Option<Result<MetadataValue, MetadataError>> {
        self.bytes(name).map(MetadataValue::decode)
    }

    /// Named metadata as it is stored, by key without the prefix.
    pub fn bytes(&self, key: &str) -> Option<&[u8]> {
        self.named_data.iter().find(|(found, _)| found == key).map(|(_, bytes)| &bytes[..])
    }
}

impl Program {
    /// The settings in the program; segments of metadata are read, others are not.
    pub fn metadata(&self) -> Result<Metadata, Error> {
        let mut metadata = Metadata { constant_methods: Vec::new(), named_data: Vec::new() };
        for name in self.method_names()? {
            let meta = self.method_meta(&name)?;
            if meta.is_constant() {
                room::push(&mut metadata.constant_methods, (name, meta.outputs))?;
            }
        }
        let data = self.named_data()?;
        for key in (0..data.len()).filter_map(|index| data.key(index)) {
            if let Some(name) = key.strip_prefix(METADATA_PREFIX)
                && let Some(bytes) = data.data(key)?
            {
                room::push(&mut metadata.named_data, (name.to_owned(), bytes))?;
            }
        }
        Ok(metadata)
    }
}
