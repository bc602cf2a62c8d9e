//! Data files: tensors and bytes under keys, some with equal contents, aligned to any number.

use arbitrary::{Arbitrary, Unstructured};
use edgepack_builder::NamedDataStore;
use edgepack_builder::ptd::{DataFormat, data_file};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;

use crate::decisions::Decisions;

const DTYPES: [ScalarType; 6] = [
    ScalarType::FLOAT,
    ScalarType::LONG,
    ScalarType::CHAR,
    ScalarType::HALF,
    ScalarType::BOOL,
    ScalarType::COMPLEX_FLOAT,
];

/// A valid data file: `.ptd` or FlatData.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataFile {
    /// Whole file, segments included.
    pub bytes: Vec<u8>,
    /// Keys in the order of the file, each with its bytes.
    pub entries: Vec<(String, Vec<u8>)>,
}

impl<'a> Arbitrary<'a> for DataFile {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let refused = arbitrary::Error::IncorrectFormat;
        let format = u.pick(&[DataFormat::FlatTensor, DataFormat::FlatTensor, DataFormat::FlatData]);
        let segment_alignment = u.pick(&[128, 1, 16, 4096]);
        let mut store = NamedDataStore::new();
        let mut entries = Vec::new();
        for index in 0..u.below(8) {
            let key = u.pick(&["weight", "layers.0.bias", "k", "größe", "a/b c"]);
            let key = if index == 0 { key.to_owned() } else { format!("{key}.{index}") };
            let alignment = u.pick(&[1, 3, 16, 64, 256]);
            let sizes: Vec<usize> = (0..u.below(4)).map(|_| u.pick(&[2, 1, 3, 0, 5])).collect();
            let layout = TensorLayout::contiguous(u.pick(&DTYPES), &sizes).map_err(|_| refused)?;
            // Few fillings, so that contents are equal now and then.
            let filling = u.below(3) as u8;
            if format == DataFormat::FlatData || u.one_in(3) {
                let data = vec![filling; u.pick(&[0, 1, 7, 48])];
                store.add(&key, data.clone(), alignment, None).map_err(|_| refused)?;
                entries.push((key, data));
            } else {
                let data = vec![filling.min(1); layout.byte_len()];
                store.add_with_layout(&key, data.clone(), layout, alignment, None).map_err(|_| refused)?;
                entries.push((key, data));
            }
        }
        let file = data_file(&store, format, segment_alignment).and_then(|file| file.to_bytes());
        Ok(DataFile { bytes: file.map_err(|_| refused)?, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use edgepack_format::extent::FileExtent;
    use edgepack_format::limits::Limits;
    use edgepack_format::ptd::DataRef;

    #[test]
    fn data_files_verify_whatever_the_input() {
        let mut keys = 0;
        for seed in 0..500 {
            let mut rng = Rng::new(seed);
            let input: Vec<u8> = (0..rng.below(80)).map(|_| rng.word() as u8).collect();
            let file = DataFile::arbitrary(&mut Unstructured::new(&input)).unwrap();
            DataRef::parse(&file.bytes, FileExtent::of(&file.bytes), &Limits::DEFAULT).unwrap();
            keys += file.entries.len();
        }
        assert!(keys > 500);
    }
}
