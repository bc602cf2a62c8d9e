//! A method as text.

use edgepack_format::notation::ValueName;
use edgepack_format::pte::{BackendDelegate, Chain, DataLocation, ExecutionPlan, Operator};

use super::instructions::{Names, labels, print as instruction};
use super::spelling::{base64, line, named, numbers, optional, references};
use super::values;
use crate::edit::Error;

/// Prints a method at its place in the list of methods.
pub(super) fn print(plan: &ExecutionPlan<'_>, out: &mut String) -> Result<(), Error> {
    line(out, 1, &format!("method {} {{", optional(plan.name.as_deref())));
    if let Some(meta) = &plan.container_meta_type {
        let (inputs, outputs) = (meta.encoded_inp_str.as_deref(), meta.encoded_out_str.as_deref());
        line(out, 2, &format!("trees {} -> {}", optional(inputs), optional(outputs)));
    }
    if let Some(sizes) = &plan.non_const_buffer_sizes {
        line(out, 2, &format!("memory {}", numbers(sizes)));
    }
    if let Some(devices) = &plan.non_const_buffer_device {
        line(out, 2, "devices {");
        for device in devices.iter() {
            let device = device?;
            let kind = named(device.device_type.name(), device.device_type.0);
            line(out, 3, &format!("memory {} on {kind} {}", device.buffer_idx, device.device_index));
        }
        line(out, 2, "}");
    }
    let operators: Vec<Operator<'_>> = plan.operators.iter().flat_map(|rows| rows.iter()).collect::<Result<_, _>>()?;
    if plan.operators.is_some() {
        line(out, 2, "operators {");
        for (index, operator) in operators.iter().enumerate() {
            let overload = operator.overload.as_deref().map(|text| format!(" {}", optional(Some(text))));
            let name = optional(operator.name.as_deref());
            line(out, 3, &format!("operator {name}{} // {index}", overload.unwrap_or_default()));
        }
        line(out, 2, "}");
    }
    let delegates: Vec<BackendDelegate<'_>> =
        plan.delegates.iter().flat_map(|rows| rows.iter()).collect::<Result<_, _>>()?;
    if plan.delegates.is_some() {
        line(out, 2, "delegates {");
        for (index, row) in delegates.iter().enumerate() {
            delegate(index, row, out)?;
        }
        line(out, 2, "}");
    }
    if let Some(list) = &plan.values {
        line(out, 2, "values {");
        for (index, value) in list.iter().enumerate() {
            line(out, 3, &format!("{} = {}", ValueName(index), values::print(&value?)));
        }
        line(out, 2, "}");
    }
    for (name, list) in [("inputs", &plan.inputs), ("outputs", &plan.outputs)] {
        if let Some(list) = list {
            line(out, 2, &format!("{name} {}", references(list)));
        }
    }
    if let Some(chains) = &plan.chains {
        let names = Names::new(&operators);
        line(out, 2, "chains {");
        for chain in chains.iter() {
            self::chain(&chain?, &names, &delegates, out)?;
        }
        line(out, 2, "}");
    }
    line(out, 1, "}");
    Ok(())
}

fn delegate(index: usize, row: &BackendDelegate<'_>, out: &mut String) -> Result<(), Error> {
    let mut text = format!("delegate {}", optional(row.id.as_deref()));
    if let Some(place) = &row.processed {
        let location = match place.location {
            DataLocation::INLINE => "inline".to_owned(),
            DataLocation::SEGMENT => "segment".to_owned(),
            other => format!("#{}", other.0),
        };
        text.push_str(&format!(" data {location} {}", place.index));
    }
    let Some(specs) = &row.compile_specs else {
        line(out, 3, &format!("{text} // {index}"));
        return Ok(());
    };
    line(out, 3, &format!("{text} {{ // {index}"));
    for spec in specs.iter() {
        let spec = spec?;
        let value = spec.value.as_ref().map_or_else(|| "absent".to_owned(), |blob| base64(blob.as_slice()));
        line(out, 4, &format!("option {} {value}", optional(spec.key.as_deref())));
    }
    line(out, 3, "}");
    Ok(())
}

fn chain(chain: &Chain<'_>, names: &Names, delegates: &[BackendDelegate<'_>], out: &mut String) -> Result<(), Error> {
    line(out, 3, "chain {");
    for (name, list) in [("inputs", &chain.inputs), ("outputs", &chain.outputs)] {
        if let Some(list) = list {
            line(out, 4, &format!("{name} {}", references(list)));
        }
    }
    if let Some(rows) = &chain.instructions {
        line(out, 4, "code {");
        let targets = labels(rows)?;
        let count = rows.len();
        let label = |index: usize, out: &mut String| {
            if targets.contains(&index) {
                line(out, 4, &format!("L{index}:"));
            }
        };
        for (index, row) in rows.iter().enumerate() {
            label(index, out);
            line(out, 5, &instruction(&row?, names, delegates, count));
        }
        label(count, out);
        line(out, 4, "}");
    }
    if let Some(lists) = &chain.stacktrace {
        line(out, 4, "stack {");
        for (index, list) in lists.iter().enumerate() {
            let Some(frames) = list?.items else {
                line(out, 5, &format!("frames // {index}"));
                continue;
            };
            line(out, 5, &format!("frames {{ // {index}"));
            for frame in frames.iter() {
                let frame = frame?;
                let [file, name, context] =
                    [&frame.filename, &frame.name, &frame.context].map(|text| optional(text.as_deref()));
                line(out, 6, &format!("frame {file} {} in {name} {context}", frame.lineno));
            }
            line(out, 5, "}");
        }
        line(out, 4, "}");
    }
    line(out, 3, "}");
    Ok(())
}
