//! Times other engines on request: lanes of `edgepack-bench engines`.
//!
//! usage: `edgepack-bench-peers rten|tract MODELS_DIR THREADS`
//!
//! Prints `ready`, then answers each line `run NAME` of its input with the nanoseconds of one run of `MODELS_DIR/NAME.onnx`,
//! or with the reason why it does not run. A model is loaded when it is first asked for; its inputs are the same numbers
//! in every run.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rten::{Dimension, Model, RunOptions, ThreadPool, Value};
use rten_tensor::Tensor;
use rten_tensor::prelude::*;
use tract_linalg::multithread::{Executor, set_default_executor};
use tract_onnx::prelude::{Framework, InferenceModelExt, IntoRunnable, Runnable, TValue, tvec};

/// A model that is loaded, and one run of it.
type Loaded = Box<dyn FnMut() -> Result<(), Box<dyn Error>>>;

/// Loads a file for so many threads.
type Load = fn(&Path, usize) -> Result<Loaded, Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [engine, folder, threads] = arguments.as_slice() else {
        return Err("usage: edgepack-bench-peers rten|tract MODELS_DIR THREADS".into());
    };
    let load: Load = match engine.as_str() {
        "rten" => rten,
        "tract" => tract,
        _ => return Err(format!("no engine is called {engine}").into()),
    };
    serve(load, &PathBuf::from(folder), threads.parse()?)?;
    Ok(())
}

/// Answers requests until there are no more.
fn serve(load: Load, folder: &Path, threads: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut answer = |text: String| writeln!(out, "{text}").and_then(|()| out.flush());
    let mut models: HashMap<String, Loaded> = HashMap::new();
    answer("ready".into())?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let Some(("run", name)) = line.split_once(' ') else {
            answer(format!("not a request: {line}"))?;
            continue;
        };
        let model = match models.entry(name.to_owned()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => load(&folder.join(format!("{name}.onnx")), threads).map(|model| place.insert(model)),
        };
        let time = model.and_then(|run| {
            let start = Instant::now();
            run()?;
            Ok(start.elapsed().as_nanos())
        });
        // An answer is one line.
        answer(time.map_or_else(|error| error.to_string().replace('\n', " "), |time| time.to_string()))?;
    }
    Ok(())
}

/// Numbers for an input of so many elements.
fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * 7919 % 2000) as f32 - 1000.0) / 500.0).collect()
}

fn rten(path: &Path, threads: usize) -> Result<Loaded, Box<dyn Error>> {
    let model = Model::load_file(path)?;
    let mut inputs = Vec::new();
    for (index, &id) in model.input_ids().iter().enumerate() {
        let sizes = model.input_shape(index).ok_or("an input without a shape")?.into_iter().map(|size| match size {
            Dimension::Fixed(size) => Ok(size),
            Dimension::Symbolic(name) => Err(format!("an input of {name} elements")),
        });
        let sizes = sizes.collect::<Result<Vec<usize>, String>>()?;
        let count = sizes.iter().product();
        inputs.push((id, Value::from(Tensor::from_data(sizes.as_slice(), numbers(count)))));
    }
    let outputs = model.output_ids().to_vec();
    let mut options = RunOptions::default();
    options.thread_pool = Some(Arc::new(ThreadPool::with_num_threads(threads)));
    Ok(Box::new(move || {
        let inputs = inputs.iter().map(|(id, value)| (*id, value.into())).collect();
        model.run(inputs, &outputs, Some(options.clone()))?;
        Ok(())
    }))
}

fn tract(path: &Path, threads: usize) -> Result<Loaded, Box<dyn Error>> {
    if threads > 1 {
        set_default_executor(Executor::multithread(threads));
    }
    let model = tract_onnx::onnx().model_for_path(path)?.into_optimized()?;
    let mut inputs = tvec![];
    for index in 0..model.inputs.len() {
        let fact = model.input_fact(index)?;
        let sizes = fact.shape.as_concrete().ok_or("an input of an unknown size")?.to_vec();
        let count = sizes.iter().product();
        inputs.push(TValue::from(tract_onnx::prelude::Tensor::from_shape(&sizes, &numbers(count))?));
    }
    let model = model.into_runnable()?;
    Ok(Box::new(move || {
        model.run(inputs.clone())?;
        Ok(())
    }))
}
