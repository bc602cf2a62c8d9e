//! Recorded runs of a package: a folder of `caseK_inI.npy` and `caseK_outJ.npy`, or a safetensors file as for programs.

use std::collections::BTreeMap;
use std::path::Path;

use edgepack_format::tensor::{TensorBuf, TensorLayout};
use edgepack_native::{Error, Runner};

use super::inputs::{fit, wanted};
use crate::cases::{Recorded, ReplayError, Replayed};
use crate::compare::{Tolerance, compare};
use crate::interchange;
use crate::value::Value;

/// The runs of a folder, in order; files of other names are not looked at.
pub fn from_folder(folder: &Path, module: &str) -> Result<Vec<Recorded>, String> {
    let failed = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut runs: BTreeMap<u64, Recorded> = BTreeMap::new();
    let entries = std::fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| failed(folder, &error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((run, is_input, index)) = parse_name(&name) else { continue };
        let bytes = std::fs::read(&path).map_err(|error| failed(&path, &error))?;
        let tensor = interchange::read_npy(&bytes).map_err(|error| failed(&path, &error))?;
        let recorded = runs.entry(run).or_insert_with(|| Recorded {
            method: module.to_owned(),
            run,
            inputs: BTreeMap::new(),
            outputs: BTreeMap::new(),
        });
        let side = if is_input { &mut recorded.inputs } else { &mut recorded.outputs };
        side.insert(index, tensor);
    }
    Ok(runs.into_values().collect())
}

/// `case3_in0.npy`: the run, whether it is an input, and which.
fn parse_name(name: &str) -> Option<(u64, bool, usize)> {
    let (run, side) = name.strip_prefix("case")?.strip_suffix(".npy")?.split_once('_')?;
    let (is_input, index) = match side.strip_prefix("in") {
        Some(index) => (true, index),
        None => (false, side.strip_prefix("out")?),
    };
    Some((run.parse().ok()?, is_input, index.parse().ok()?))
}

/// Replays recorded runs in order on one module.
pub fn replay(runner: &mut Runner, recorded: &[Recorded], tolerance: Tolerance) -> Vec<Replayed> {
    recorded.iter().map(|case| replay_one(runner, case, tolerance)).collect()
}

fn replay_one(runner: &mut Runner, case: &Recorded, tolerance: Tolerance) -> Replayed {
    let mut report = Replayed { method: case.method.clone(), run: case.run, outputs: Vec::new(), failure: None };
    let fitted = fit(&wanted(runner), &case.inputs, runner).map_err(ReplayError::Input);
    let outputs = fitted.and_then(|()| run(runner, case).map_err(|error| ReplayError::Module(error.into())));
    let outputs = match outputs {
        Ok(outputs) => outputs,
        Err(error) => {
            report.failure = Some(error);
            return report;
        }
    };
    let past = case.outputs.keys().next_back().map_or(0, |last| last + 1);
    for index in 0..outputs.len().max(past) {
        let have = outputs.get(index).cloned().map_or(Value::Null, Value::Tensor);
        if let Some(want) = case.outputs.get(&index) {
            report.outputs.push((index, compare(&have, want, tolerance)));
        }
    }
    report
}

/// Runs a module on recorded inputs; the layouts of its outputs are those recorded, in index order.
fn run(runner: &mut Runner, case: &Recorded) -> Result<Vec<TensorBuf>, Error> {
    let inputs = case.inputs.values().map(TensorBuf::contiguous).collect::<Result<Vec<_>, _>>()?;
    let wanted = case.outputs.values().map(TensorBuf::layout);
    let wanted = wanted.map(|layout| TensorLayout::contiguous(layout.scalar_type(), layout.sizes()));
    runner.run(&inputs, &wanted.collect::<Result<Vec<_>, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_run_side_and_place() {
        assert_eq!(parse_name("case3_in0.npy"), Some((3, true, 0)));
        assert_eq!(parse_name("case12_out10.npy"), Some((12, false, 10)));
        for other in ["case_in0.npy", "case0_mid0.npy", "case0_in0.txt", "node3_out0.npy"] {
            assert_eq!(parse_name(other), None, "{other}");
        }
    }
}
