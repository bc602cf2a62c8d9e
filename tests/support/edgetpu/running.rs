//! Runs of compiled models on the device of software, which checks every transfer: outputs against those that the device
//! gives for the bytes it should have got, state from run to run, failures in between, models that share the chip.

use std::collections::BTreeMap;
use std::path::Path;

use edgepack_executor::darwinn::{
    Chip, Extraction, Fault, Output, RunError, Runner, Simulator, TensorBytes, prepare_input,
};
use edgepack_format::darwinn::{Accept, DataType, Executable, Geometry, Layer};
use edgepack_format::row::Rows;
use edgepack_format::tflite::VARIABLE_SUFFIX;
use edgepack_format::{FileKind, detect};
use edgepack_loader::{Registration, Registry};

use super::{Answer, Listed, same, splitmix};

fn text<E: ToString>(error: E) -> String {
    error.to_string()
}

/// The packages of a model, or the package that the file is.
fn registered(path: &Path) -> Result<Vec<Registration>, String> {
    let bytes = std::fs::read(path).map_err(text)?;
    let mut registry = Registry::accepting(Accept::ALL);
    if detect(&bytes) != FileKind::TfLite {
        return Ok(vec![registry.register(&bytes).map_err(text)?]);
    }
    let model = registry.register_model(&bytes).map_err(text)?;
    Ok(model.operators().iter().flat_map(|one| one.packages()).map(|(_, package)| package.clone()).collect())
}

fn layers<'a>(rows: &Option<Rows<'a, Layer<'a>>>) -> Vec<Layer<'a>> {
    rows.iter().flat_map(|rows| rows.iter().flatten().collect::<Vec<_>>()).collect()
}

fn name(layer: &Layer<'_>) -> String {
    layer.name.as_deref().unwrap_or_default().to_owned()
}

/// An input in which every element is the number that stands for 0.
fn zeros(layer: &Layer<'_>, bytes: usize) -> Vec<u8> {
    let stored = layer.numerics.as_ref().map_or(0, |numerics| numerics.zero_point);
    let host = match layer.data_type {
        DataType::SIGNED_FIXED_POINT8 => stored - 128,
        DataType::SIGNED_FIXED_POINT16 => stored - 32_768,
        _ => stored,
    };
    host.to_le_bytes()[..layer.data_type.size().unwrap_or(1)].iter().copied().cycle().take(bytes).collect()
}

/// A package and what an undisturbed device gives for it.
struct Wanted<'a> {
    cached: Vec<u8>,
    row: Executable<'a>,
    /// By name, per entry.
    state: BTreeMap<String, Vec<Vec<u8>>>,
}

impl<'a> Wanted<'a> {
    fn new(package: &'a Registration) -> Result<Self, String> {
        let view = package.package().map_err(text)?;
        let main = view.executables().get(package.main()).ok_or("no executable")?;
        let cached = package.caching().and_then(|index| package.parameters(index)).map(|bytes| bytes.to_vec());
        Ok(Wanted { cached: cached.unwrap_or_default(), row: main.row().clone(), state: BTreeMap::new() })
    }

    fn is_whole(&self) -> bool {
        self.row.dma_hints.as_ref().is_some_and(|hints| hints.fully_deterministic)
    }

    /// Inputs that differ from run to run; variables are left out.
    fn inputs(&self, seed: u64) -> Result<Vec<TensorBytes>, String> {
        let (outputs, mut inputs) = (layers(&self.row.output_layers), Vec::new());
        for (index, layer) in layers(&self.row.input_layers).iter().enumerate() {
            let next = name(layer) + VARIABLE_SUFFIX;
            if outputs.iter().any(|output| name(output) == next) {
                continue;
            }
            let bytes = Geometry::of(layer).map_err(text)?.actual_bytes;
            // One entry more than a batch.
            let entries = (0..=self.row.batch_size as u64).map(|at| splitmix(seed + 100 * at + index as u64, bytes));
            inputs.push(TensorBytes { name: name(layer), entries: entries.collect() });
        }
        Ok(inputs)
    }

    /// The outputs, and the state after the run.
    fn run(&mut self, inputs: &[TensorBytes]) -> Result<Vec<TensorBytes>, String> {
        let count = self.row.batch_size as usize + 1;
        let (mut given, mut results) = (vec![Vec::new(); count], Vec::new());
        for layer in layers(&self.row.input_layers) {
            let geometry = Geometry::of(&layer).map_err(text)?;
            let tensor = inputs.iter().find(|tensor| tensor.name == name(&layer)).map(|tensor| &tensor.entries);
            let state = tensor.or(self.state.get(&name(&layer)));
            for (entry, list) in given.iter_mut().enumerate() {
                let zeros = || zeros(&layer, geometry.actual_bytes);
                let host = state.map_or_else(zeros, |entries| entries[entry].clone());
                let mut device = prepare_input(&layer, &host).map_err(text)?;
                device.resize(geometry.padded_bytes, 0);
                list.push((name(&layer), device));
            }
        }
        given.iter_mut().for_each(|list| list.sort());
        for layer in layers(&self.row.output_layers) {
            let output = Output::new(&layer).map_err(text)?;
            let take = |list: &Vec<(String, Vec<u8>)>| {
                let inputs: Vec<_> = list.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
                let device = Simulator::digest(&self.cached, &inputs, &name(&layer), output.device_bytes());
                output.take(&device).map_err(text)
            };
            let entries = given.iter().map(take).collect::<Result<Vec<_>, _>>()?;
            let name = name(&layer);
            match name.strip_suffix(VARIABLE_SUFFIX) {
                Some(variable) => drop(self.state.insert(variable.to_owned(), entries)),
                None => results.push(TensorBytes { name, entries }),
            }
        }
        Ok(results)
    }
}

/// Every package runs as over USB, if its list is whole, and as over PCIe: three runs, with a failure before the second
/// and one before the third.
pub fn runs(path: &Path) -> Answer {
    for package in &registered(path)? {
        for extraction in [Extraction::Hints, Extraction::Instructions] {
            let mut wanted = Wanted::new(package)?;
            let chip = Chip::new(Simulator::new().with_extraction(extraction));
            let mut runner = Runner::new(&chip, package).map_err(text)?;
            if extraction == Extraction::Hints && !wanted.is_whole() {
                let refused = matches!(runner.run(&wanted.inputs(0)?), Err(RunError::Partial));
                same("a list that is not whole is refused", refused, true)?;
                continue;
            }
            for (round, fault) in [None, Some(Fault::Reset), Some(Fault::Short(0))].into_iter().enumerate() {
                let inputs = wanted.inputs(1000 * round as u64)?;
                if let Some(fault) = fault {
                    chip.with_device(|device| device.inject(round, fault));
                    same("a fault is noticed", runner.run(&inputs).is_err(), true)?;
                }
                let results = runner.run(&inputs).map_err(text)?;
                let want = wanted.run(&inputs)?;
                for (have, want) in results.iter().zip(&want) {
                    same(format!("output {} of run {round}", want.name), have == want, true)?;
                }
                same("outputs", results.len(), want.len())?;
                for (name, entries) in &wanted.state {
                    same(format!("variable {name}"), runner.state(name) == Some(entries.as_slice()), true)?;
                }
            }
            let loads = chip.with_device(|device| device.loads());
            same("loads", loads, if package.caching().is_some() { 3 } else { 0 })?;
        }
    }
    Ok(())
}

/// Models of one token take turns without a load, and a stranger in between makes all of them load again.
pub fn sharing(folder: &Path) -> Vec<Listed> {
    let mut groups: BTreeMap<u64, Vec<Registration>> = BTreeMap::new();
    let models = super::beside(folder, "golden.json").into_iter();
    let models = models.chain(["left.tflite", "right.tflite", "alone.dwn"].map(|name| folder.join(name)));
    for package in models.filter_map(|path| registered(&path).ok()).flatten() {
        if Wanted::new(&package).is_ok_and(|wanted| wanted.is_whole()) && package.caching().is_some() {
            groups.entry(package.token()).or_default().push(package);
        }
    }
    let groups: Vec<_> = groups.into_iter().collect();
    let one = |index: usize| -> Option<Listed> {
        let (token, members) = groups.get(index).cloned().filter(|(_, members)| members.len() > 1)?;
        let stranger = groups.iter().find(|(other, _)| *other != token)?.1[0].clone();
        let judge = move || take_turns(&members, &stranger);
        Some((format!("{token:016x}"), Box::new(judge)))
    };
    (0..groups.len()).filter_map(one).collect()
}

fn take_turns(members: &[Registration], stranger: &Registration) -> Answer {
    let chip = Chip::new(Simulator::new());
    let all = || members.iter().chain([stranger]);
    let mut wanted = all().map(Wanted::new).collect::<Result<Vec<_>, _>>()?;
    let runners = all().map(|package| Runner::new(&chip, package).map_err(text)).collect::<Result<Vec<_>, _>>();
    let mut runners = runners?;
    for round in 0..3 {
        let turns = (0..2).flat_map(|_| 0..members.len()).chain([members.len()]);
        for index in turns {
            let inputs = wanted[index].inputs(1000 * round)?;
            let results = runners[index].run(&inputs).map_err(text)?;
            same("outputs", results == wanted[index].run(&inputs)?, true)?;
        }
        let loads = chip.with_device(|device| device.loads());
        same("loads", loads, (round as usize + 1) * (members.len() + 1))?;
    }
    Ok(())
}
