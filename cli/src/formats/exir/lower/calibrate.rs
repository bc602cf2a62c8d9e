//! Ranges of tensors: programs are run on recorded inputs while their tensors are watched.

use std::collections::BTreeMap;
use std::sync::Arc;

use edgepack_executor::{Method, Options as LoadOptions, Output};
use edgepack_exir::backends::xnnpack::{self, Bounds};
use edgepack_exir::lower::{ByName, Options, ProgramManager, lower};
use edgepack_loader::MemorySource;

use super::failure;
use crate::cases::Recorded;
use crate::formats::pte;
use crate::status::Failure;

/// Runs every method on its recorded inputs, and answers with the range of each tensor, by method and name.
pub fn ranges(
    manager: &mut ProgramManager<'_>,
    options: &Options,
    runs: &[Recorded],
) -> Result<BTreeMap<String, BTreeMap<String, Bounds>>, Failure> {
    let mut all = BTreeMap::new();
    let methods: Vec<String> = manager.methods().map(str::to_owned).collect();
    for method in methods {
        let runs: Vec<&Recorded> = runs.iter().filter(|run| run.method == method).collect();
        if runs.is_empty() {
            let message = format!("no run of method {method} is recorded: its tensors have no ranges");
            return Err(Failure::findings(message));
        }
        let (program, names) = xnnpack::watching(manager, &method).map_err(failure)?;
        let options = Options { external_weights: ByName::default(), ..options.clone() };
        let built = lower(vec![(method.clone(), program)], &options).map_err(failure)?;
        let bytes = built.to_bytes().map_err(Failure::unreadable)?;
        let file = pte::open(Arc::new(MemorySource::new(bytes)), &options.limits)?;
        let mut loaded = Method::load(&file, &method, &edgepack_kernels::registry(), &LoadOptions::default())
            .map_err(|error| Failure::cannot_run(error).about(&format!("method {method} is run for ranges")))?;
        let mut ranges: BTreeMap<String, Bounds> = BTreeMap::new();
        for run in runs {
            let inputs: Vec<_> = run.inputs.values().map(|input| input.view()).collect();
            let outputs = loaded
                .run(&inputs)
                .map_err(|error| Failure::cannot_run(error).about(&format!("method {method}, run {}", run.run)))?;
            let first = outputs.len().saturating_sub(names.len());
            for (name, index) in names.iter().zip(first..) {
                let Some(Output::Tensor(tensor)) = outputs.get(index) else { continue };
                let Ok(numbers) = tensor.as_slice::<f32>() else { continue };
                let range = ranges.entry(name.clone()).or_insert((f32::INFINITY, f32::NEG_INFINITY));
                for number in numbers {
                    *range = (range.0.min(*number), range.1.max(*number));
                }
            }
        }
        all.insert(method, ranges);
    }
    Ok(all)
}
