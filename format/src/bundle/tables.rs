//! The tables of bundled programs, one struct each.

use serde::{Deserialize, Serialize};

use crate::row::{Blob, Rows, Scalars, Table, Text, Union};
use crate::scalar::ScalarType;

pub use crate::pte::{Bool, Double, Int};

/// A tensor with its data.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tensor<'a> {
    /// Element type.
    #[slot(0)]
    pub scalar_type: ScalarType,
    /// Elements along each dimension.
    #[slot(1)]
    pub sizes: Option<Scalars<'a, i32>>,
    /// The elements, in memory order.
    #[slot(2, align = 16)]
    pub data: Option<Blob<'a>>,
    /// Dimensions from outermost to innermost in memory.
    #[slot(3)]
    pub dim_order: Option<Scalars<'a, u8>>,
}

/// Input or output of a method. The tags are not those of a program's values.
#[derive(Clone, PartialEq, Debug, Union, Serialize, Deserialize)]
#[table(name = "ValueUnion")]
pub enum ValueUnion<'a> {
    /// Tensor, elements included; among a program's values this kind has tag 5.
    #[tag(1)]
    Tensor(Tensor<'a>),
    /// Signed number of 64 bits, for an `Int` of the method.
    #[tag(2)]
    Int(Int),
    /// Truth value, for a `Bool` of the method.
    #[tag(3)]
    Bool(Bool),
    /// Number in double precision, for a `Double` of the method.
    #[tag(4)]
    Double(Double),
    /// A kind without a name yet.
    #[unknown]
    Unknown(u8),
}

/// An input or an expected output.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Value<'a> {
    /// Content of the value; absent if there is none.
    #[slot(0)]
    pub val: Option<ValueUnion<'a>>,
}

/// One recorded run of a method.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BundledMethodTestCase<'a> {
    /// Inputs of the case, one per input of the method.
    #[slot(0)]
    pub inputs: Option<Rows<'a, Value<'a>>>,
    /// Outputs to expect; empty for a case that is only run.
    #[slot(1)]
    pub expected_outputs: Option<Rows<'a, Value<'a>>>,
}

/// The recorded runs of one method.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BundledMethodTestSuite<'a> {
    /// Name of a method of the program; suites are sorted by it.
    #[slot(0)]
    pub method_name: Option<Text<'a>>,
    /// Cases of the method, in the order of their runs.
    #[slot(1)]
    pub test_cases: Option<Rows<'a, BundledMethodTestCase<'a>>>,
}

/// The root of a `.bpte` file.
#[derive(Clone, PartialEq, Debug, Default, Table, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BundledProgram<'a> {
    /// Version of the schema: 2.
    #[slot(0)]
    pub version: u32,
    /// One suite per method, sorted by its name.
    #[slot(1)]
    pub method_test_suites: Option<Rows<'a, BundledMethodTestSuite<'a>>>,
    /// A complete program file.
    #[slot(2, align = 32)]
    pub program: Option<Blob<'a>>,
}
