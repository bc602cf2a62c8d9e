//! Packages in another version of the format, and their parameters as a safetensors file and back.

use std::borrow::Cow;
use std::collections::BTreeMap;

use edgepack::builder::mlf::{LibraryParts, params_file};
use edgepack::edit::library_parts;
use edgepack_format::limits::Limits;
use edgepack_format::mlf::params::layout;
use edgepack_format::mlf::{DataType, Param, Params};
use edgepack_format::tensor::TensorBuf;
use edgepack_loader::mlf::Library;

use crate::interchange::{self, TensorFile};
use crate::status::Failure;

/// The archive of a package in another version. Nothing is lost, or nothing is written.
pub fn to_version(library: &Library, version: u32) -> Result<Vec<u8>, Failure> {
    let parts = library_parts(library);
    if version == library.metadata().version {
        return archive(&parts);
    }
    archive(&parts.to_version(version).map_err(Failure::findings)?)
}

fn archive(parts: &LibraryParts<'_>) -> Result<Vec<u8>, Failure> {
    Ok(parts.archive().map_err(Failure::findings)?.0)
}

/// The key of a parameter: its name, with its module's in front where there are several.
fn key(library: &Library, module: &str, name: &str) -> String {
    if library.modules().len() > 1 { format!("{module}.{name}") } else { name.to_owned() }
}

/// The parameters of all modules as a safetensors file.
pub fn to_safetensors(library: &Library) -> Result<Vec<u8>, Failure> {
    let mut tensors = Vec::new();
    for module in library.modules() {
        for param in module.params().entries {
            let key = key(library, &module.info().name, param.name);
            let named = |error| Failure::findings(format!("{key}: {error}"));
            let layout = layout(param.data_type, &param.shape).map_err(named)?;
            tensors.push((key.clone(), TensorBuf::from_bytes(layout, param.data.to_vec()).map_err(named)?));
        }
    }
    interchange::write_safetensors(&tensors).map_err(Failure::findings)
}

/// The archive of a package with these parameters in the places of its own. Each must be a parameter of the package, of its
/// type and shape; those that are not given stay.
pub fn with_parameters(library: &Library, tensors: &[u8], limits: &Limits) -> Result<Vec<u8>, Failure> {
    let TensorFile::Named(named) = interchange::read(tensors, limits.memory_bytes).map_err(Failure::unreadable)? else {
        return Err(Failure::usage("parameters have names; this is one tensor without"));
    };
    let mut given: BTreeMap<String, TensorBuf> = named.into_iter().collect();
    let mut parts = library_parts(library);
    for (module, parts) in library.metadata().modules.iter().zip(&mut parts.modules) {
        let Some(bytes) = parts.params.take() else { continue };
        let params = Params::parse(&bytes, limits).map_err(|findings| Failure::findings(findings.to_string()))?;
        let mut replaced = Vec::new();
        for param in &params.entries {
            let key = key(library, &module.name, param.name);
            let tensor = given.remove(&key).map(|tensor| fitting(&key, param, &tensor)).transpose()?;
            replaced.push(tensor);
        }
        let entries: Vec<Param<'_>> = params
            .entries
            .iter()
            .zip(&replaced)
            .map(|(param, tensor)| Param { data: tensor.as_ref().map_or(param.data, TensorBuf::data), ..param.clone() })
            .collect();
        parts.params = Some(Cow::Owned(params_file(&entries).map_err(Failure::findings)?));
    }
    match given.keys().next() {
        Some(stranger) => Err(Failure::findings(format!("the package has no parameter {stranger}"))),
        None => archive(&parts),
    }
}

/// A tensor that takes the place of a parameter.
fn fitting(key: &str, param: &Param<'_>, tensor: &TensorBuf) -> Result<TensorBuf, Failure> {
    let tensor = tensor.contiguous().map_err(Failure::findings)?;
    let have = tensor.layout();
    let sizes: Vec<u64> = have.sizes().iter().map(|&size| size as u64).collect();
    if DataType::from_scalar_type(have.scalar_type()) == Some(param.data_type) && sizes == param.shape {
        return Ok(tensor);
    }
    Err(Failure::findings(format!(
        "{key}: {have} where the package has {}{:?}",
        param.data_type.notation(),
        param.shape
    )))
}
