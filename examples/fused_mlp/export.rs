//! The export side: weights are laid out for the product once, and stored once for all methods that use them.

use edgepack::builder::content::Data;
use edgepack::builder::preprocess::{Preprocess, PreprocessError, Processed, Subgraph, preprocess};
use edgepack::builder::ptd::{DataFormat, data_file};
use edgepack::builder::pte::{ProgramBuilder, TensorSpec, compile_spec};
use edgepack::builder::{BuildError, NamedDataStore, args, sink};
use edgepack::format::pte::CompileSpec;
use edgepack::format::scalar::ScalarType;

use super::payload::{Block, IDENTIFIER, Layer};

/// The backend's name in programs.
pub const BACKEND: &str = "FusedMlp";

/// A linear layer as an exporter has it: `outputs` rows of `inputs` numbers.
#[derive(Clone, Debug)]
pub struct Linear {
    /// A name, unique in the model.
    pub name: String,
    /// Numbers that go in.
    pub inputs: usize,
    /// Numbers that come out.
    pub outputs: usize,
    /// `outputs * inputs` numbers.
    pub weight: Vec<f32>,
    /// `outputs` numbers.
    pub bias: Vec<f32>,
}

/// The graph this backend understands: linear layers with `relu` between them.
#[derive(Clone, Debug, Default)]
pub struct Mlp {
    /// In order.
    pub layers: Vec<Linear>,
}

/// The export half of the backend.
pub struct Exporter {
    /// The data file weights go to; `None` for the program itself.
    pub external: Option<String>,
}

impl Preprocess<Mlp> for Exporter {
    fn backend(&self) -> &str {
        BACKEND
    }

    fn preprocess<'d>(
        &self,
        graph: &Mlp,
        _: &[CompileSpec<'_>],
        store: &mut NamedDataStore<'d>,
    ) -> Result<Data<'d>, PreprocessError> {
        let last = graph.layers.len().checked_sub(1).ok_or("a block without layers")?;
        let mut rows = Vec::new();
        for (index, layer) in graph.layers.iter().enumerate() {
            let (weight, bias) = (format!("{}.packed", layer.name), format!("{}.bias", layer.name));
            // The same key with the same bytes is the same entry: that is how methods come to share weights.
            store.add(&weight, pack(layer)?, 64, self.external.as_deref())?;
            store.add(&bias, bytes(&layer.bias), 64, self.external.as_deref())?;
            rows.push(Layer {
                weight: Some(weight.into()),
                bias: Some(bias.into()),
                inputs: u32::try_from(layer.inputs)?,
                outputs: u32::try_from(layer.outputs)?,
                relu: index != last,
            });
        }
        Ok(Data::from(sink::flatbuffer(&Block { layers: Some(rows.into()) }, IDENTIFIER)?))
    }

    /// All parts of all methods at once: a layer that two of them name must be the same layer.
    fn preprocess_all<'d>(
        &self,
        parts: &[Subgraph<'_, Mlp>],
        store: &mut NamedDataStore<'d>,
    ) -> Result<Vec<Processed<'d>>, PreprocessError> {
        let layers = || parts.iter().flat_map(|part| part.graph.layers.iter().map(move |layer| (part.method, layer)));
        for (first, a) in layers() {
            if let Some((second, b)) =
                layers().find(|(_, b)| a.name == b.name && [a.inputs, a.outputs] != [b.inputs, b.outputs])
            {
                let sides = [(first, a), (second, b)]
                    .map(|(method, layer)| format!("{}x{} in {method}", layer.outputs, layer.inputs));
                return Err(format!("layer {} is {} and {}", a.name, sides[0], sides[1]).into());
            }
        }
        parts.iter().map(|part| Ok(part.processed(self.preprocess(part.graph, part.specs, store)?))).collect()
    }
}

/// The weight with the outputs innermost: what the product reads in order.
fn pack(layer: &Linear) -> Result<Vec<u8>, PreprocessError> {
    let Linear { inputs, outputs, weight, bias, .. } = layer;
    if weight.len() != inputs * outputs || bias.len() != *outputs {
        let sizes = format!("{} weights and {} biases", weight.len(), bias.len());
        return Err(format!("layer {} of {outputs}x{inputs} has {sizes}", layer.name).into());
    }
    let turned = (0..*inputs).flat_map(|i| (0..*outputs).map(move |o| weight[o * inputs + i]));
    Ok(turned.flat_map(f32::to_le_bytes).collect())
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A program and the data files next to it, as bytes.
pub struct Files {
    /// The `.pte`.
    pub program: Vec<u8>,
    /// Data files by tag.
    pub data: Vec<(String, Vec<u8>)>,
    /// Flat-layout data file with the contents of a store under the same keys, for programs that store data elsewhere.
    pub flat_data: Vec<u8>,
}

/// A program with two methods over one block: `prefill` takes `rows` rows at once, `decode` takes one.
pub fn export(mlp: &Mlp, rows: usize, external: Option<&str>) -> Result<Files, BuildError> {
    let exporter = Exporter { external: external.map(str::to_owned) };
    let specs = [compile_spec("threads", 0u32.to_le_bytes())];
    let part = |method| Subgraph { method, index: 0, graph: mlp, specs: &specs };
    let mut store = NamedDataStore::new();
    let payloads = preprocess(&exporter, &[part("prefill"), part("decode")], &mut store)?;

    let mut program = ProgramBuilder::new();
    let [inputs, outputs] = [mlp.layers.first().map(|l| l.inputs), mlp.layers.last().map(|l| l.outputs)];
    for (payload, rows) in payloads.iter().zip([rows, 1]) {
        let mut method = program.method(payload.method());
        let x = method.input(TensorSpec::new(ScalarType::FLOAT, [rows, inputs.unwrap_or(0)]))?;
        let block = method.delegate(BACKEND, payload.payload().clone(), &specs)?;
        let spec = TensorSpec::new(ScalarType::FLOAT, [rows, outputs.unwrap_or(0)]);
        let y = method.call_delegate(block, args![x], spec)?;
        method.output(y)?;
    }
    let flat_data = data_file(&store, DataFormat::FlatData, 128)?.to_bytes()?;
    program.merge_named_data(store)?;
    let built = program.finish()?;
    let data = built.data_files().map(|(tag, file)| Ok((tag.to_owned(), file.to_bytes()?)));
    Ok(Files { program: built.to_bytes()?, data: data.collect::<Result<_, BuildError>>()?, flat_data })
}
