//! Summary of a program with recorded runs.

use edgepack_format::bundle::{BundledProgram, Value, ValueUnion};
use edgepack_format::pte::{Program, TensorShapeDynamism};
use edgepack_format::row::Rows;
use edgepack_format::wire::{Table, Vector};
use serde::Serialize;

use crate::formats::pte::summary::ProgramSummary;
use crate::formats::pte::tables;
use crate::{readable, spelling};

/// Facts about a bundled program that `inspect` shows.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct BundleSummary {
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Version of the schema that the file states; no reader looks at it.
    pub version: u32,
    /// Recorded runs by method, in the order of the file.
    pub suites: Vec<SuiteSummary>,
    /// The program, if it can be read.
    pub program: Option<ProgramSummary>,
}

/// The recorded runs of a method.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SuiteSummary {
    /// Name of the method; `?` if there is none.
    pub method: String,
    /// Runs in the order of the file.
    pub cases: Vec<CaseSummary>,
}

/// Recorded run of a method: inputs, and the outputs that are expected.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CaseSummary {
    /// Types of tensors and values of numbers, one per input.
    pub inputs: Vec<String>,
    /// Types of tensors and values of numbers, one per output; empty if nobody recorded them.
    pub outputs: Vec<String>,
}

/// The program inside a bundle, if there is one.
pub fn program<'a>(root: &Table<'a>) -> Option<Vector<'a>> {
    root.vector(BundledProgram::PROGRAM.index, 1).ok()?
}

impl BundleSummary {
    /// Summarises a bundle with this root table.
    pub fn new(root: &Table<'_>, bytes: u64) -> Self {
        let suites = root.get(BundledProgram::METHOD_TEST_SUITES).unwrap_or_default();
        let suites = readable::rows(&suites).into_iter().flatten().map(|suite| SuiteSummary {
            method: spelling::name(suite.method_name.as_deref().unwrap_or("?")),
            cases: readable::rows(&suite.test_cases)
                .into_iter()
                .flatten()
                .map(|case| CaseSummary { inputs: types(&case.inputs), outputs: types(&case.expected_outputs) })
                .collect(),
        });
        let program = program(root).and_then(|vector| {
            let bytes = vector.bytes();
            let program: Program<'_> = tables::program(&Table::root(bytes).ok()?);
            Some(ProgramSummary::new(&program, bytes, bytes.len() as u64))
        });
        BundleSummary {
            bytes,
            version: root.get(BundledProgram::VERSION).unwrap_or_default(),
            suites: suites.collect(),
            program,
        }
    }
}

fn types(values: &Option<Rows<'_, Value<'_>>>) -> Vec<String> {
    let values = readable::rows(values).into_iter();
    values
        .map(|value| match value.and_then(|value| value.val) {
            Some(ValueUnion::Tensor(tensor)) => {
                let sizes: Vec<i64> = tensor.sizes.iter().flat_map(|sizes| sizes.iter()).map(i64::from).collect();
                let order: Vec<u8> = tensor.dim_order.iter().flat_map(|order| order.iter()).collect();
                spelling::shape(tensor.scalar_type, &sizes, &order, TensorShapeDynamism::STATIC)
            }
            Some(ValueUnion::Int(value)) => value.int_val.to_string(),
            Some(ValueUnion::Bool(value)) => value.bool_val.to_string(),
            Some(ValueUnion::Double(value)) => spelling::double(value.double_val),
            Some(ValueUnion::Unknown(tag)) => format!("kind {tag}"),
            None => "unreadable".to_owned(),
        })
        .collect()
}
