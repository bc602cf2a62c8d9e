//! A fuzz body: a promise about any bytes, and what campaigns need to hold it.

use std::path::PathBuf;

use edgepack_format::row::TableDesc;
use edgepack_smith::{Rng, dictionary, mutate};

use crate::seeds;

/// A body and how to feed it.
pub struct Body {
    /// Name of the body, its campaign, its findings and its libFuzzer target.
    pub name: &'static str,
    /// Promise that the body checks.
    pub promise: &'static str,
    /// Takes any bytes; panics if the promise does not hold for them.
    pub run: fn(&[u8]),
    /// Extensions of the corpus files it starts from.
    pub extensions: &'static [&'static str],
    /// Seeds that are not files.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Position of the flatbuffer of an input and its root table, for structure-aware mutation.
    pub root: fn(&[u8]) -> Option<(usize, &'static TableDesc)>,
    /// A mutation that knows more than places: of rows, or of the document of an archive. `None` if there is nothing to
    /// change.
    pub edit: fn(&[u8], &mut Rng) -> Option<Vec<u8>>,
    /// Dictionaries of the formats of its inputs; none where inputs are decisions of a generator, or have no words.
    pub dictionary: &'static [&'static str],
}

impl Body {
    /// Files to start from and to replay: the corpus, the hostile files, and findings.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = seeds::corpus(self.extensions);
        files.extend(seeds::findings(self.name));
        files
    }

    /// Everything to start from: seeds that are not files, then the contents of the files.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn inputs(&self) -> std::io::Result<Vec<Vec<u8>>> {
        let mut inputs = (self.seeds)();
        for path in self.files() {
            inputs.push(std::fs::read(path)?);
        }
        Ok(inputs)
    }

    /// Words worth trying, each once.
    pub fn words(&self) -> Vec<Vec<u8>> {
        let mut words: Vec<Vec<u8>> = Vec::new();
        for word in self.dictionary.iter().flat_map(|text| dictionary::read(text)) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        words
    }

    /// A mutation that knows the format; `None` if there is none for this input.
    pub fn mutated(&self, input: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
        if rng.one_in(2)
            && let Some(edited) = (self.edit)(input, rng)
        {
            return Some(edited);
        }
        let (root, desc) = (self.root)(input)?;
        let mut input = input.to_vec();
        mutate::mutate(&mut input, root, desc, rng).then_some(input)
    }
}

pub(super) fn no_seeds() -> Vec<Vec<u8>> {
    Vec::new()
}

pub(super) fn no_root(_: &[u8]) -> Option<(usize, &'static TableDesc)> {
    None
}

pub(super) fn no_edit(_: &[u8], _: &mut Rng) -> Option<Vec<u8>> {
    None
}
