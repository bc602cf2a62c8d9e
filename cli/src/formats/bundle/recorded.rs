//! The runs that a bundle carries.

use std::collections::BTreeMap;

use edgepack_format::bundle::{self, BundleRef, BundledMethodTestCase, ValueUnion};
use edgepack_format::row::Rows;
use edgepack_format::tensor::{TensorBuf, TensorLayout};

use crate::cases::{CasesError, Recorded};
use crate::value::Value;

/// The runs that a bundled program carries.
pub fn recorded_runs(bundle: &BundleRef<'_>) -> Result<Vec<Recorded>, CasesError> {
    let mut runs = Vec::new();
    for suite in bundle.suites().iter() {
        let suite = suite?;
        let method = suite.method_name.unwrap_or_default();
        for (run, case) in suite.test_cases.unwrap_or_default().iter().enumerate() {
            let BundledMethodTestCase { inputs, expected_outputs } = case?;
            runs.push(Recorded {
                method: method.to_string(),
                run: run as u64,
                inputs: bundled(inputs)?,
                outputs: bundled(expected_outputs)?,
            });
        }
    }
    Ok(runs)
}

fn bundled(values: Option<Rows<'_, bundle::Value<'_>>>) -> Result<BTreeMap<usize, TensorBuf>, CasesError> {
    let mut list = BTreeMap::new();
    for (index, value) in values.unwrap_or_default().iter().enumerate() {
        let tensor = match value?.val {
            Some(ValueUnion::Tensor(tensor)) => {
                let order: Vec<u8> = tensor.dim_order.iter().flat_map(|order| order.iter()).collect();
                let sizes = tensor.sizes.iter().flat_map(|sizes| sizes.iter());
                let layout = TensorLayout::from_wire(tensor.scalar_type, sizes, &order)?;
                Some(TensorBuf::from_bytes(layout, tensor.data.unwrap_or_default().0.into_owned())?)
            }
            Some(ValueUnion::Int(value)) => Value::Int(value.int_val).to_tensor(),
            Some(ValueUnion::Bool(value)) => Value::Bool(value.bool_val).to_tensor(),
            Some(ValueUnion::Double(value)) => Value::Double(value.double_val).to_tensor(),
            Some(ValueUnion::Unknown(_)) | None => None,
        };
        list.insert(index, tensor.ok_or(CasesError::Kind)?);
    }
    Ok(list)
}
