//! Parameter files. The order of parameters is retained: a file that was read is written back to the byte.

use edgepack_format::mlf::Param;
use edgepack_format::mlf::params::{CPU, LIST_MAGIC, TENSOR_MAGIC};

use crate::build_error::BuildError;

/// Writes a parameter file.
pub fn params_file(params: &[Param<'_>]) -> Result<Vec<u8>, BuildError> {
    let mut names = std::collections::BTreeSet::new();
    let mut out = Vec::new();
    out.extend(LIST_MAGIC.to_le_bytes());
    out.extend(0u64.to_le_bytes());
    out.extend((params.len() as u64).to_le_bytes());
    for param in params {
        if !names.insert(param.name) {
            let why = "an earlier one has this name";
            return Err(BuildError::Name { what: "a parameter", name: param.name.to_owned(), why });
        }
        out.extend((param.name.len() as u64).to_le_bytes());
        out.extend(param.name.as_bytes());
    }
    out.extend((params.len() as u64).to_le_bytes());
    for param in params {
        let have = param.data.len() as u64;
        if param.want_bytes() != Some(have) {
            let want = param.want_bytes().unwrap_or(u64::MAX);
            return Err(BuildError::Length { place: format!("the parameter {:?}", param.name), have, want });
        }
        out.extend(TENSOR_MAGIC.to_le_bytes());
        out.extend(0u64.to_le_bytes());
        out.extend(CPU.to_le_bytes());
        out.extend(param.device_id.to_le_bytes());
        // The byte count fits, so there are few dimensions, unless some are zero or one; 2^31 of them fit no memory.
        out.extend((param.shape.len() as i32).to_le_bytes());
        let data_type = param.data_type;
        out.extend([data_type.class().code(), data_type.bits()]);
        out.extend(data_type.lanes().to_le_bytes());
        param.shape.iter().for_each(|size| out.extend(size.to_le_bytes()));
        out.extend(have.to_le_bytes());
        out.extend(param.data);
    }
    Ok(out)
}
