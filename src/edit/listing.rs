//! Everything in a file that has a name, with its bytes.

use std::collections::BTreeMap;

use edgepack_format::tensor::TensorLayout;

use super::content::Content;
use super::error::Error;
use super::join::entries_of;
use super::package::Package;
use super::program::{constant_name, constant_of, each_tensor, initial_of, layout_of, name_of};
use super::root::Root;

/// Something with a name.
#[derive(Clone, Debug)]
pub struct Named {
    /// Name: a key, the name that a constant or initial value carries, or `constant.K` for a constant without one.
    pub name: String,
    /// Shape and element type; `None` for bytes that are not a tensor.
    pub layout: Option<TensorLayout>,
    /// Its bytes.
    pub content: Content,
}

/// Lists what has a name, as [`patch`](super::patch()) and delegates call it: everything in a data file; constants, initial
/// values and named data of a program, each name once. External tensors of a program are in its data files.
pub fn named(package: &Package<'_>) -> Result<Vec<Named>, Error> {
    let Root::Program(program) = &package.root else {
        let entries = entries_of(package)?.into_iter();
        return Ok(entries
            .map(|entry| Named { name: entry.key, layout: entry.layout, content: entry.content })
            .collect());
    };
    let mut found = Vec::new();
    // A constant that several values have is there several times.
    let mut seen: BTreeMap<String, TensorLayout> = BTreeMap::new();
    each_tensor(program, |place, tensor| {
        let (name, content, layout) = match (constant_of(tensor), initial_of(tensor)) {
            (Some(index), _) => {
                let layout = layout_of(place, tensor)?;
                let content = package.constant(place, index, layout.byte_len() as u64)?;
                (constant_name(tensor, index), content, layout)
            }
            (None, Some((list, index))) => {
                let Some(name) = name_of(tensor) else { return Ok(()) };
                let layout = layout_of(place, tensor)?;
                let content = package.initial(place, list, index, layout.byte_len() as u64)?;
                (name.to_owned(), content, layout)
            }
            (None, None) => return Ok(()),
        };
        if seen.get(&name) != Some(&layout) {
            seen.insert(name.clone(), layout.clone());
            found.push(Named { name, layout: Some(layout), content });
        }
        Ok(())
    })?;
    for entry in program.named_data.iter().flat_map(|entries| entries.iter()) {
        let entry = entry?;
        let name = entry.key.unwrap_or_default().into_owned();
        let content = package.segment(&name, entry.segment_index)?.clone();
        found.push(Named { name, layout: None, content });
    }
    Ok(found)
}
