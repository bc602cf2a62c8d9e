//! Data files and safetensors files, one from the other.
//!
//! safetensors knows neither memory order nor bytes that are no tensor. Both are noted in its metadata, so that a data
//! file comes back as it was but for keys that shared a segment.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use edgepack_format::ptd::{FlatTensor, NamedData};
use edgepack_format::tensor::safetensors::{dtype_of, scalar_type_of};
use edgepack_format::tensor::{TensorLayout, TensorView, is_contiguous};
use edgepack_loader::Source;
use safetensors::tensor::{Dtype, Metadata};
use serde_json::json;

use super::content::Content;
use super::error::Error;
use super::join::entries_of;
use super::package::Package;
use super::root::Root;
use super::split::row_of;

/// Metadata entry: keys whose bytes are no tensor.
const BYTES: &str = "edgepack.bytes";
/// Metadata entry: memory orders that are not contiguous, by key.
const ORDERS: &str = "edgepack.dim_orders";
/// Ceiling of the length of a header, as readers of the format agree.
const MAX_HEADER: u64 = 100_000_000;

/// A data file of the tensors of a safetensors file, in the order of their bytes. Bytes stay where they are until the
/// package is written.
pub fn from_safetensors(source: Arc<dyn Source>) -> Result<Package<'static>, Error> {
    let name = source.name();
    let broken = |message: &dyn std::fmt::Display| {
        Error::refused(&*name, format!("this is not a valid safetensors file: {message}"))
    };
    let mut len = [0; 8];
    source.read_at(0, &mut len).map_err(Error::io(&*name))?;
    let len = u64::from_le_bytes(len);
    let base = len.saturating_add(8);
    if len > MAX_HEADER || base > source.len() {
        return Err(broken(&format!("a header of {len} bytes")));
    }
    let mut head = vec![0; len as usize];
    source.read_at(8, &mut head).map_err(Error::io(&*name))?;
    let metadata: Metadata = serde_json::from_slice(&head).map_err(|error| broken(&error))?;

    let notes = metadata.metadata().clone().unwrap_or_default();
    let note = |key: &str| notes.get(key).map(String::as_str);
    let blobs: Vec<String> = serde_json::from_str(note(BYTES).unwrap_or("[]"))?;
    let orders: BTreeMap<String, Vec<u8>> = serde_json::from_str(note(ORDERS).unwrap_or("{}"))?;

    let mut tensors: Vec<_> = metadata.tensors().into_iter().collect();
    tensors.sort_by(|(a, x), (b, y)| (x.data_offsets, a).cmp(&(y.data_offsets, b)));
    let (mut entries, mut segments) = (Vec::new(), Vec::new());
    for (index, (key, info)) in tensors.into_iter().enumerate() {
        let (start, end) = info.data_offsets;
        let content = Content::of(source.clone(), base.saturating_add(start as u64)..base.saturating_add(end as u64));
        let content = content.ok_or_else(|| broken(&format!("{key:?} is outside the file")))?;
        let (layout, content) = if blobs.contains(&key) {
            (None, content)
        } else {
            let unknown = || Error::refused(&*key, format!("there is no element type for {:?}", info.dtype));
            let scalar_type = scalar_type_of(info.dtype).ok_or_else(unknown)?;
            let wrong = |error| Error::Layout { place: key.clone(), error };
            let contiguous = TensorLayout::contiguous(scalar_type, &info.shape).map_err(wrong)?;
            if content.len() != contiguous.byte_len() as u64 {
                return Err(broken(&format!("{key:?} has {} bytes for {contiguous}", content.len())));
            }
            match orders.get(&key) {
                None => (Some(contiguous), content),
                Some(order) => {
                    let layout = TensorLayout::new(scalar_type, &info.shape, order).map_err(wrong)?;
                    (Some(layout), ordered(&key, &content, &contiguous, order)?)
                }
            }
        };
        let segment_index = u32::try_from(index).map_err(|_| broken(&"too many tensors"))?;
        entries.push(NamedData { key: Some(key.into()), segment_index, tensor_layout: layout.as_ref().map(row_of) });
        segments.push(content);
    }
    let root = FlatTensor { version: 0, segments: Some(Vec::new().into()), named_data: Some(entries.into()) };
    let mut package = Package { segments, ..Package::new(Root::Data(root)) };
    package.place()?;
    Ok(package)
}

/// Writes a data file of any generation as a safetensors file; contiguous tensors stream through.
pub fn write_safetensors(package: &Package<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let mut entries = entries_of(package)?;
    // Large elements first, so that each tensor is aligned as its elements ask.
    let width =
        |layout: &Option<TensorLayout>| layout.as_ref().and_then(|layout| layout.scalar_type().size()).unwrap_or(1);
    entries.sort_by(|a, b| (width(&b.layout), &a.key).cmp(&(width(&a.layout), &b.key)));

    let (mut blobs, mut orders) = (Vec::new(), BTreeMap::new());
    let mut header = serde_json::Map::new();
    let mut at = 0u64;
    for entry in &entries {
        let end = at.saturating_add(entry.content.len());
        let (dtype, shape) = match &entry.layout {
            None => {
                blobs.push(&entry.key);
                (Dtype::U8, vec![entry.content.len() as usize])
            }
            Some(layout) => {
                if !is_contiguous(layout.dim_order()) {
                    orders.insert(&entry.key, layout.dim_order());
                }
                let unknown = || Error::refused(&*entry.key, format!("safetensors has no {}", layout.scalar_type()));
                (dtype_of(layout.scalar_type()).ok_or_else(unknown)?, layout.sizes().to_vec())
            }
        };
        let info = json!({ "dtype": dtype, "shape": shape, "data_offsets": [at, end] });
        if entry.key == "__metadata__" || header.insert(entry.key.clone(), info).is_some() {
            return Err(Error::refused(
                "named_data",
                format!("the key {:?} cannot be in a safetensors file", entry.key),
            ));
        }
        at = end;
    }
    let mut notes = serde_json::Map::new();
    if !blobs.is_empty() {
        notes.insert(BYTES.into(), serde_json::to_string(&blobs)?.into());
    }
    if !orders.is_empty() {
        notes.insert(ORDERS.into(), serde_json::to_string(&orders)?.into());
    }
    if !notes.is_empty() {
        header.insert("__metadata__".into(), notes.into());
    }
    let mut header = serde_json::to_vec(&header)?;
    // What readers of the format ask for, asked before anything is written.
    let checked: Result<Metadata, _> = serde_json::from_slice(&header);
    checked.map_err(|error| Error::refused("the header", format!("this is not a valid safetensors file: {error}")))?;
    header.resize(header.len().next_multiple_of(8), b' ');
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    for entry in &entries {
        match &entry.layout {
            Some(layout) if !is_contiguous(layout.dim_order()) => {
                let order: Vec<u8> = (0..layout.sizes().len() as u8).collect();
                ordered(&entry.key, &entry.content, layout, &order)?.write_to(out)?;
            }
            _ => entry.content.write_to(out)?,
        }
    }
    Ok(())
}

fn ordered(key: &str, content: &Content, from: &TensorLayout, order: &[u8]) -> Result<Content, Error> {
    let bytes = content.read().map_err(Error::io(key))?;
    let moved = TensorView::new(from.clone(), &bytes).and_then(|tensor| tensor.in_order(order));
    Ok(moved.map_err(|_| Error::refused(key, format!("{} bytes for {from}", bytes.len())))?.into_data().into())
}
