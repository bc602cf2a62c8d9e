//! A TensorFlow Lite model as rows: its tables, the maps around its packages, and what follows the flatbuffer.
//!
//! Invariant: custom options that are taken apart are written again to the byte; others stay bytes in their row.

use edgepack_builder::tflite::{OptionValue, custom_options};
use edgepack_format::row::Blob;
use edgepack_format::tflite::{CustomOptions, Model};
use serde::{Deserialize, Serialize};

use super::error::Error;

/// A model without its packages. It is written at the places it was read from, or not at all: option tables of
/// operators that are built in are bytes between places.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRows<'a> {
    /// Tables of the model. Custom options that `options` holds are absent.
    pub model: Model<'a>,
    /// Custom options of compiled operators.
    pub options: Vec<OperatorOptions<'a>>,
    /// Bytes behind the flatbuffer: an archive of labels.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub behind: Blob<'a>,
}

/// Custom options of a compiled operator, without the packages in them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorOptions<'a> {
    /// Index of the subgraph.
    pub subgraph: usize,
    /// Index of the operator in it.
    pub operator: usize,
    /// Indices of the packages: that of key 4, then those of key 7.
    pub packages: Vec<usize>,
    /// Version of the wrapper, key 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// Name of the chip, key 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chip_name: Option<Blob<'a>>,
    /// Executable that loads parameters, key 3 of early wrappers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separate: Option<Blob<'a>>,
    /// Preference for its execution, key 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preference: Option<i64>,
    /// Codes of chips, key 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chips: Option<Vec<i64>>,
    /// True if key 7 is there.
    #[serde(default)]
    pub further: bool,
}

fn is_empty(blob: &Blob<'_>) -> bool {
    blob.as_slice().is_empty()
}

impl OperatorOptions<'_> {
    /// Returns the options of these bytes around packages of zeros; `None` if the map does not state every byte.
    pub(super) fn of(
        (subgraph, operator): (usize, usize),
        packages: Vec<usize>,
        options: &CustomOptions<'_>,
        blob: &[u8],
    ) -> Option<OperatorOptions<'static>> {
        let owned = |bytes: &[u8]| Blob(bytes.to_vec().into());
        let found = OperatorOptions {
            subgraph,
            operator,
            packages,
            version: options.version,
            chip_name: options.chip_name.map(owned),
            separate: options.separate.map(owned),
            preference: options.preference,
            chips: options.chips.clone(),
            further: options.further.is_some(),
        };
        let lens: Vec<usize> = options.packages().map(|(_, package)| package.len()).collect();
        (found.around(&lens) == blob).then_some(found)
    }

    /// The options around packages of zeros of these lengths.
    fn around(&self, lens: &[usize]) -> Vec<u8> {
        let zeros: Vec<Vec<u8>> = lens.iter().map(|len| vec![0; *len]).collect();
        let entries = [
            ("1", self.version.map(OptionValue::Int)),
            ("2", self.chip_name.as_ref().map(|name| OptionValue::String(name.as_slice()))),
            ("3", self.separate.as_ref().map(|one| OptionValue::String(one.as_slice()))),
            ("4", zeros.first().map(|package| OptionValue::String(package))),
            ("5", self.preference.map(OptionValue::Int)),
            ("6", self.chips.clone().map(OptionValue::Ints)),
            ("7", self.further.then(|| OptionValue::Strings(zeros.iter().skip(1).map(Vec::as_slice).collect()))),
        ];
        let entries: Vec<_> = entries.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        custom_options(&entries)
    }
}

impl<'a> ModelRows<'a> {
    /// The tables with their custom options, in which packages of these lengths are zeros.
    pub(super) fn whole(&self, lens: &[usize]) -> Result<Model<'a>, Error> {
        let mut model = self.model.clone();
        for (index, options) in self.options.iter().enumerate() {
            let place = || format!("model.rows.options[{index}]");
            let missing = |what: &str, number: usize| Error::refused(place(), format!("there is no {what} {number}"));
            let OperatorOptions { subgraph, operator, packages, .. } = options;
            let len = |package: &usize| lens.get(*package).copied().ok_or_else(|| missing("package", *package));
            let found = packages.iter().map(len).collect::<Result<Vec<_>, _>>()?;
            let subgraphs = model.subgraphs.as_mut().map(|rows| rows.to_mut()).transpose()?;
            let graph = subgraphs.and_then(|rows| rows.get_mut(*subgraph));
            let operators = graph.and_then(|graph| graph.operators.as_mut()).map(|rows| rows.to_mut()).transpose()?;
            let row = operators.and_then(|rows| rows.get_mut(*operator));
            let row = row.ok_or_else(|| missing("operator", *operator))?;
            row.custom_options = Some(Blob(options.around(&found).into()));
        }
        Ok(model)
    }

    /// Visits what can be large in it.
    pub(super) fn each_blob(
        &mut self,
        path: &str,
        visit: &mut dyn FnMut(String, &mut Blob<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for rows in self.model.buffers.iter_mut() {
            for (index, row) in rows.to_mut()?.iter_mut().enumerate() {
                let Some(blob) = &mut row.data else { continue };
                visit(format!("{path}.model.buffers[{index}]"), blob)?;
            }
        }
        visit(format!("{path}.behind"), &mut self.behind)
    }
}
