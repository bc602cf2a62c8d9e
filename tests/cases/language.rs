//! Recorded runs of language models: a prompt and steps that share the caches of one loaded method.
//!
//! Rows quantised while the program runs may fall on another side of a rounding than they did in the reference, so a run
//! may differ by more than the last bits; the greatest logit has to stay the greatest.

use std::fs;
use std::path::Path;

use edgepack_cli::cases::{Recorded, from_safetensors};
use edgepack_executor::{Method, Options};
use edgepack_format::tensor::TensorBuf;
use edgepack_loader::Program;

/// Distance to the recorded logits in nine runs of ten, over the largest of them.
const USUAL: f32 = 1e-6;

/// Distance that no run passes.
const MOST: f32 = 3e-2;

/// Replays the runs next to a program, with rewrites and without, and compares their logits.
pub fn judge(path: &Path) -> Result<(), String> {
    let recording = fs::read(path.with_extension("safetensors")).map_err(text)?;
    let (recorded, program) = (from_safetensors(&recording).map_err(text)?, Program::open(path).map_err(text)?);
    if recorded.is_empty() || recorded.iter().any(|run| run.method != "forward" || run.outputs.is_empty()) {
        return Err("a recording without runs of `forward`, or without logits".into());
    }
    for no_optimize in [false, true] {
        let options = Options { backends: edgepack::backends(), no_optimize, ..Options::default() };
        let mut method = Method::load(&program, "forward", &edgepack_kernels::registry(), &options).map_err(text)?;
        let distances: Vec<f32> = recorded.iter().map(|run| distance(&mut method, run)).collect::<Result<_, _>>()?;
        let unusual = distances.iter().filter(|&&distance| distance > USUAL).count();
        if unusual > recorded.len().div_ceil(10) || distances.iter().any(|&distance| distance > MOST) {
            return Err(format!("logits differ by {distances:?} of the largest"));
        }
    }
    Ok(())
}

/// Returns the largest difference of logits over the largest logit.
fn distance(method: &mut Method, run: &Recorded) -> Result<f32, String> {
    let inputs: Vec<_> = run.inputs.values().map(TensorBuf::view).collect();
    let outputs = method.run(&inputs).map_err(text)?;
    let mut most = 0f32;
    for (&index, want) in &run.outputs {
        let have = outputs.get(index).and_then(|output| output.tensor());
        let have = have.ok_or_else(|| format!("run {}: output {index} is missing", run.run))?;
        let have: &[f32] = have.as_slice().map_err(text)?;
        let want = want.view().typed::<f32>().map_err(text)?;
        let want = want.as_slice();
        if have.len() != want.len() || greatest(have) != greatest(want) {
            return Err(format!("run {}: another token than the recorded one is the most likely", run.run));
        }
        let largest = want.iter().fold(f32::MIN_POSITIVE, |largest, x| largest.max(x.abs()));
        for (have, want) in have.iter().zip(want) {
            let difference = (have - want).abs() / largest;
            // One that is not a number counts as the worst.
            most = most.max(if difference.is_nan() { f32::INFINITY } else { difference });
        }
    }
    Ok(most)
}

/// Returns the index of the greatest element.
fn greatest(logits: &[f32]) -> Option<usize> {
    (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]))
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
