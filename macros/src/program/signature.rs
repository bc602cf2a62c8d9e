//! Signatures of a verified program's methods: arguments, results and calls.

use edgepack_format::pte::{
    EValue, ExecutionPlan, InstructionArguments, KernelTypes, ProgramRef, Tensor, TensorShapeDynamism,
};
use edgepack_format::row::{Rows, Scalars};
use edgepack_format::tensor::TensorLayout;
use edgepack_format::wire;

/// Method that can have a typed interface.
pub struct Method {
    pub name: String,
    pub inputs: Vec<Value>,
    pub outputs: Vec<Value>,
}

/// An input or output.
pub enum Value {
    Null,
    Int(i64),
    Bool(bool),
    Double(f64),
    Text(String),
    Tensor { layout: TensorLayout, dynamic: bool },
}

/// All methods, or why one cannot have a typed interface.
pub fn methods(program: &ProgramRef<'_>) -> Result<Vec<Method>, String> {
    let mut methods = Vec::new();
    for plan in program.plans().iter() {
        let plan = plan.map_err(|error| error.to_string())?;
        let name = plan.name.clone().unwrap_or_default().into_owned();
        let values = plan.values.clone().unwrap_or_default();
        let list = |what: &str, ids: &Option<Scalars<'_, i32>>| -> Result<Vec<Value>, String> {
            let ids = ids.iter().flat_map(|ids| ids.iter()).enumerate();
            ids.map(|(index, id)| value(&values, id).map_err(|why| format!("method `{name}`, {what} {index}: {why}")))
                .collect()
        };
        let (inputs, outputs) = (list("input", &plan.inputs)?, list("output", &plan.outputs)?);
        methods.push(Method { name, inputs, outputs });
    }
    Ok(methods)
}

fn value(values: &Rows<'_, EValue<'_>>, id: i32) -> Result<Value, String> {
    // A negative index is not an index; verification has refused it.
    let row = values.get(usize::try_from(id).unwrap_or(usize::MAX)).map_err(|error| error.to_string())?;
    Ok(match row.val {
        None | Some(KernelTypes::Null(_)) => Value::Null,
        Some(KernelTypes::Int(int)) => Value::Int(int.int_val),
        Some(KernelTypes::Bool(bool)) => Value::Bool(bool.bool_val),
        Some(KernelTypes::Double(double)) => Value::Double(double.double_val),
        Some(KernelTypes::String(text)) => Value::Text(text.string_val.unwrap_or_default().into_owned()),
        Some(KernelTypes::Tensor(row)) => tensor(&row)?,
        Some(_) => return Err("a list cannot be passed".to_owned()),
    })
}

fn tensor(row: &Tensor<'_>) -> Result<Value, String> {
    let order: Vec<u8> = row.dim_order.iter().flat_map(|order| order.iter()).collect();
    let sizes = row.sizes.iter().flat_map(|sizes| sizes.iter());
    let layout = TensorLayout::from_wire(row.scalar_type, sizes, &order).map_err(|error| error.to_string())?;
    Ok(Value::Tensor { layout, dynamic: row.shape_dynamism != TensorShapeDynamism::STATIC })
}

/// Operators that are called but not allowed: each with where it is called first.
pub fn outside(program: &ProgramRef<'_>, allowed: &[String]) -> wire::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut lines = Vec::new();
    for plan in program.plans().iter() {
        let plan = plan?;
        for (name, place) in calls(&plan)? {
            if !allowed.contains(&name) && !found.contains(&name) {
                lines.push(format!(
                    "`{name}`, first in method `{}` at {place}",
                    plan.name.as_deref().unwrap_or_default()
                ));
                found.push(name);
            }
        }
    }
    Ok(lines)
}

/// Every kernel call of a method: the operator and the place.
fn calls(plan: &ExecutionPlan<'_>) -> wire::Result<Vec<(String, String)>> {
    let mut names = Vec::new();
    for operator in plan.operators.clone().unwrap_or_default().iter() {
        let operator = operator?;
        let (name, overload) = (operator.name.unwrap_or_default(), operator.overload.unwrap_or_default());
        let dot = if overload.is_empty() { "" } else { "." };
        names.push([&*name, dot, &*overload].concat());
    }
    let mut calls = Vec::new();
    for (chain, row) in plan.chains.clone().unwrap_or_default().iter().enumerate() {
        for (index, instruction) in row?.instructions.unwrap_or_default().iter().enumerate() {
            if let Some(InstructionArguments::KernelCall(call)) = instruction?.instr_args
                && let Some(name) = usize::try_from(call.op_index).ok().and_then(|index| names.get(index))
            {
                calls.push((name.clone(), format!("chains[{chain}].instructions[{index}]")));
            }
        }
    }
    Ok(calls)
}
