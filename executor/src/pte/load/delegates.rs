//! Makes the delegates of a method: each backend gets the bytes it produced at export.

use std::collections::HashMap;
use std::sync::Arc;

use edgepack_compute::threads::Threads;
use edgepack_format::finding::ErrorCode;
use edgepack_format::pte::{BackendDelegate, BackendDelegateInlineData, DataLocation, ExecutionPlan};
use edgepack_format::room::{self, NoRoom};
use edgepack_loader::{AlignedBytes, Bytes, MergedData, NamedDataMap, Program};

use crate::api::delegate::{Delegate, DelegateInit};
use crate::api::error::KernelError;
use crate::api::packing::Packer;
use crate::api::room::grow;
use crate::pte::error::{LoadError, Missing};
use crate::pte::options::Options;

/// A delegate and the id of its backend.
pub(crate) struct LoadedDelegate {
    pub id: String,
    pub delegate: Box<dyn Delegate>,
}

/// Returns a packer for a method without delegates, whose kernels pack constants.
pub(crate) fn packer_of_constants(program: &Program, options: &Options) -> Packer {
    let Options { cache, folder, data, .. } = options;
    Packer::new(cache, folder.as_ref(), program.source(), data, Arc::new(MergedData::default()))
}

/// Makes all delegates of a plan, in order, and the packer that they share.
pub(crate) fn delegates(
    program: &Program,
    plan: &ExecutionPlan<'_>,
    options: &Options,
    threads: Option<&Threads>,
    data: MergedData,
) -> Result<(Vec<LoadedDelegate>, Option<Arc<Packer>>), LoadError> {
    let rows = plan.delegates.clone().unwrap_or_default();
    if rows.is_empty() {
        return Ok((Vec::new(), None));
    }
    let inside: Arc<dyn NamedDataMap> = Arc::new(program.named_data()?);
    let outside: Arc<dyn NamedDataMap> = Arc::new(data);
    let named_data: Arc<dyn NamedDataMap> = Arc::new(MergedData::new([inside, outside])?);
    let Options { cache, folder, data, .. } = options;
    let packer = Packer::new(cache, folder.as_ref(), program.source(), data, Arc::clone(&named_data));
    let packer = Arc::new(packer);
    let mut loaded = Vec::new();
    grow(&mut loaded, rows.len())?;
    // Payloads that several delegates name are read once; the others are given back at once.
    let mut held: Held = HashMap::new();
    for row in rows.iter() {
        if let Some(at) = row?.processed {
            let short = NoRoom::of::<(DataLocation, u32, usize, Bytes)>(rows.len());
            held.try_reserve(1).map_err(|_| edgepack_loader::Error::from(short))?;
            held.entry((at.location, at.index)).or_default().0 += 1;
        }
    }
    for (index, row) in rows.iter().enumerate() {
        let row = row?;
        let id = row.id.clone().unwrap_or_default().into_owned();
        let refused = |error: KernelError| LoadError::Delegate { delegate: index, backend: id.clone(), error };
        let processed = processed(program, &row, &mut held).map_err(|error| match error {
            Some(error) => LoadError::Program(error),
            None => refused(KernelError::new(ErrorCode::NotFound, "its processed bytes are not in the file")),
        })?;
        let mut compile_specs = Vec::new();
        for spec in row.compile_specs.unwrap_or_default().iter() {
            let spec = spec?;
            let value = spec.value.as_ref().map_or(&[][..], |value| value.as_slice());
            let value = room::copy_of(value).map_err(edgepack_loader::Error::from)?;
            grow(&mut compile_specs, 1)?;
            compile_specs.push((spec.key.unwrap_or_default().into_owned(), value));
        }
        let backend = options
            .backends
            .find(&id)
            .ok_or_else(|| LoadError::Missing(Missing { backends: vec![id.clone()], ..Default::default() }))?;
        let method = plan.name.as_deref().unwrap_or_default();
        let named_data = Arc::clone(&named_data);
        let asked = options.backends.options(&id);
        let limits = options.limits.unwrap_or(*program.limits());
        let place = row.processed.map_or_else(String::new, |at| format!("{:?}:{}", at.location, at.index));
        let init = DelegateInit {
            processed,
            compile_specs,
            named_data,
            place,
            cache,
            packer: &packer,
            threads,
            method,
            limits,
            options: asked,
        };
        let delegate = backend.init(init).map_err(refused)?;
        loaded.push(LoadedDelegate { id, delegate });
    }
    Ok((loaded, Some(packer)))
}

/// By place, how many delegates are still to be given a payload, and its bytes while there are any.
type Held = HashMap<(DataLocation, u32), (usize, Option<Bytes>)>;

/// A delegate's bytes; `Err(None)` if the file does not have them.
fn processed(
    program: &Program,
    row: &BackendDelegate<'_>,
    held: &mut Held,
) -> Result<Bytes, Option<edgepack_loader::Error>> {
    let reference = row.processed.ok_or(None)?;
    let (uses, known) = held.entry((reference.location, reference.index)).or_default();
    *uses = uses.saturating_sub(1);
    let bytes = match (known.take(), reference.location) {
        (Some(bytes), _) => bytes,
        (None, DataLocation::SEGMENT) => program.segment(reference.index).map_err(Some)?,
        (None, DataLocation::INLINE) => {
            let view = program.view().map_err(Some)?;
            let list = view.program().backend_delegate_data.clone().ok_or(None)?;
            let row: BackendDelegateInlineData<'_> = list.get(reference.index as usize).map_err(|_| None)?;
            let data = row.data.as_ref().map_or(&[][..], |data| data.as_slice());
            let copy = AlignedBytes::copy_of(data).ok_or(NoRoom { bytes: data.len() as u64 });
            copy.map_err(|error| Some(error.into()))?.into()
        }
        _ => return Err(None),
    };
    *known = (*uses > 0).then(|| bytes.clone());
    Ok(bytes)
}
