//! Data files of a program that runs.

use std::path::PathBuf;
use std::sync::Arc;

use edgepack_format::FileKind;
use edgepack_format::ptd::Accept;
use edgepack_loader::{DataFile, NamedDataMap};

use crate::formats::{self, wrong_kind};
use crate::session::Session;
use crate::status::Failure;

/// Opens data files for a run.
pub fn open_data(paths: &[PathBuf], session: &mut Session) -> Result<Vec<Arc<dyn NamedDataMap>>, Failure> {
    let mut maps: Vec<Arc<dyn NamedDataMap>> = Vec::new();
    for path in paths {
        let (file, format) = formats::open(path, session)?;
        if !matches!(format.kind(), FileKind::Data | FileKind::FlatData) {
            return Err(wrong_kind(&file, "a data file"));
        }
        let opened = DataFile::from_source(file.source, session.limits, Accept::ALL);
        maps.push(Arc::new(opened.map_err(|error| Failure::from(error).about(&file.name))?));
    }
    Ok(maps)
}
