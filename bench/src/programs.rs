//! The programs that are measured: reference exports where they are installed, else made here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use edgepack_builder::raw;
use edgepack_format::pte::{
    AllocationDetails, Chain, EValue, ExecutionPlan, Instruction, InstructionArguments, Int, IntList, KernelCall,
    KernelTypes, NamedData, Operator, Program, SubsegmentOffsets, Tensor,
};
use edgepack_format::scalar::ScalarType;
use edgepack_loader::{Error, MappedFile, OpenOptions};

/// A program file in memory.
pub struct Sample {
    /// For titles.
    pub name: String,
    /// Bytes of the file.
    pub bytes: Arc<[u8]>,
}

/// The folder of reference exports, if there is one.
pub fn models_dir() -> Option<PathBuf> {
    std::env::var_os("EDGEPACK_BENCH_MODELS").map(PathBuf::from).filter(|dir| dir.is_dir())
}

/// A reference export by name.
pub fn model(name: &str) -> Option<Sample> {
    let bytes = std::fs::read(models_dir()?.join(name).with_extension("pte")).ok()?;
    Some(Sample { name: format!("{name}.pte"), bytes: bytes.into() })
}

/// Names of the models in the folder of reference exports, without what their forms add.
pub fn names() -> Vec<String> {
    let entries = models_dir().into_iter().flat_map(std::fs::read_dir).flatten().flatten();
    let files = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let stems = files.filter_map(|file| file.strip_suffix(".pte").map(str::to_owned));
    let mut names: Vec<String> = stems.filter(|stem| !stem.contains("_xnn")).collect();
    names.sort();
    names
}

/// Returns whether the folder has the ONNX form of a model.
pub fn has_onnx(name: &str) -> bool {
    models_dir().is_some_and(|dir| dir.join(name).with_extension("onnx").is_file())
}

/// Opens a program, from a mapped file or one that is read.
pub fn open(path: &Path, mapped: bool) -> Result<edgepack_loader::Program, Error> {
    if !mapped {
        return edgepack_loader::Program::open(path);
    }
    // SAFETY: the folder of models is left alone while it is measured.
    let file = unsafe { MappedFile::open(path) };
    let file = file.map_err(|error| Error::Io { what: path.display().to_string(), error })?;
    OpenOptions::default().open_source(Arc::new(file))
}

/// A small program of the corpus.
pub fn small() -> Sample {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/models/mlp_portable.pte");
    let bytes = std::fs::read(path).expect("the corpus is part of the checkout");
    Sample { name: "mlp_portable.pte".to_owned(), bytes: bytes.into() }
}

/// A program of about 30 000 values: `deep.pte` of the reference exports, else one made here.
pub fn large() -> Sample {
    model("deep").unwrap_or_else(|| synthetic(5_000))
}

/// A program of `calls` additions with six values each, in the proportions of exported transformers: two in five
/// values are tensors, as many are numbers, the rest are lists.
pub fn synthetic(calls: usize) -> Sample {
    let bytes = raw::program(&rows(calls), &[&[0; 1024]], &raw::Options::DEFAULT).expect("rows that can be written");
    Sample { name: format!("{} values, made here", 6 * calls + 1), bytes: bytes.into() }
}

/// The rows of [`synthetic`].
pub fn rows(calls: usize) -> Program<'static> {
    let tensor = |index: usize| Tensor {
        scalar_type: ScalarType::FLOAT,
        sizes: Some(vec![1, 8, 32].into()),
        dim_order: Some(vec![0u8, 1, 2].into()),
        allocation_info: Some(AllocationDetails {
            memory_id: 1,
            memory_offset_low: (index % 16 * 1024) as u32,
            memory_offset_high: 0,
        }),
        ..Tensor::default()
    };
    let constant = Tensor { allocation_info: None, data_buffer_idx: 1, ..tensor(0) };
    let mut values = Vec::new();
    let mut push = |value| {
        values.push(EValue { val: Some(value) });
        values.len() as i32 - 1
    };
    let input = push(KernelTypes::Tensor(tensor(0)));
    let mut last = input;
    let mut instructions = Vec::new();
    for call in 0..calls {
        let weight = push(KernelTypes::Tensor(constant.clone()));
        let alpha = push(KernelTypes::Int(Int { int_val: 1 }));
        let item = push(KernelTypes::Int(Int { int_val: call as i64 }));
        push(KernelTypes::IntList(IntList { items: Some(vec![i64::from(alpha), i64::from(item)].into()) }));
        push(KernelTypes::Int(Int { int_val: -1 }));
        let out = push(KernelTypes::Tensor(tensor(call + 1)));
        instructions.push(KernelCall { op_index: 0, args: Some(vec![last, weight, alpha, out, out].into()) });
        last = out;
    }
    program(plan(values, [input], [last], "aten::add", "out", instructions, 16 * 1024), &[0; 1024])
}

/// A chain of additions of one element: as little work per instruction as there can be.
pub fn trivial(calls: usize) -> Sample {
    let tensor = |index: usize| Tensor {
        scalar_type: ScalarType::FLOAT,
        sizes: Some(vec![1].into()),
        dim_order: Some(vec![0u8].into()),
        allocation_info: Some(AllocationDetails {
            memory_id: 1,
            memory_offset_low: (index * 16) as u32,
            memory_offset_high: 0,
        }),
        ..Tensor::default()
    };
    let tensors = (0..3).map(|index| EValue { val: Some(KernelTypes::Tensor(tensor(index))) });
    let values = tensors.chain([EValue { val: Some(KernelTypes::Int(Int { int_val: 1 })) }]).collect();
    let calls = (0..calls).map(|call| {
        let (from, to) = ((call % 2) as i32, ((call + 1) % 2) as i32);
        KernelCall { op_index: 0, args: Some(vec![from, 2, 3, to, to].into()) }
    });
    let plan = plan(values, [0], [1], "aten::add", "out", calls.collect(), 64);
    file("additions of one element".to_owned(), plan, &[0; 16])
}

/// A program without instructions and with `keys` entries of named data.
pub fn named(keys: usize) -> Sample {
    let plan = plan(Vec::new(), [], [], "aten::add", "out", Vec::new(), 0);
    let mut row = program(plan, &[0; 64]);
    let entries: Vec<_> =
        (0..keys).map(|key| NamedData { key: Some(key_name(key).into()), segment_index: 0 }).collect();
    row.named_data = Some(entries.into());
    let bytes = raw::program(&row, &[&[0; 64]], &raw::Options::DEFAULT).expect("rows that can be written");
    Sample { name: format!("{keys} keys"), bytes: bytes.into() }
}

/// The key of entry `index` of [`named`].
pub fn key_name(index: usize) -> String {
    format!("model.layers.{}.weight.{index}", index % 32)
}

fn plan<'a>(
    values: Vec<EValue<'a>>,
    inputs: impl Into<Vec<i32>>,
    outputs: impl Into<Vec<i32>>,
    operator: &'a str,
    overload: &'a str,
    calls: Vec<KernelCall<'a>>,
    memory: i64,
) -> ExecutionPlan<'a> {
    let instructions: Vec<_> = calls
        .into_iter()
        .map(|call| Instruction { instr_args: Some(InstructionArguments::KernelCall(call)) })
        .collect();
    let chain = Chain { instructions: Some(instructions.into()), ..Chain::default() };
    let operator = Operator { name: Some(operator.into()), overload: Some(overload.into()) };
    ExecutionPlan {
        name: Some("forward".into()),
        values: Some(values.into()),
        inputs: Some(inputs.into().into()),
        outputs: Some(outputs.into().into()),
        chains: Some(vec![chain].into()),
        operators: Some(vec![operator].into()),
        delegates: Some(Vec::new().into()),
        non_const_buffer_sizes: Some(vec![0, memory].into()),
        ..ExecutionPlan::default()
    }
}

fn program<'a>(plan: ExecutionPlan<'a>, weights: &[u8]) -> Program<'a> {
    let segments = raw::segments(&[weights], &raw::Options::DEFAULT).expect("one segment fits");
    Program {
        execution_plan: Some(vec![plan].into()),
        segments: Some(segments.into()),
        constant_segment: Some(SubsegmentOffsets { segment_index: 0, offsets: Some(vec![0, 0].into()) }),
        ..Program::default()
    }
}

fn file(name: String, plan: ExecutionPlan<'_>, weights: &[u8]) -> Sample {
    let row = program(plan, weights);
    let bytes = raw::program(&row, &[weights], &raw::Options::DEFAULT).expect("rows that can be written");
    Sample { name, bytes: bytes.into() }
}
