//! Constant folding: rearranged constants are computed now instead of at each run.
//!
//! Only views are folded. The tensor stays where it is in the archive and is rearranged when the file is written.

use std::collections::{BTreeMap, BTreeSet};

use crate::archive::Weight;
use crate::graph::{Argument, ExportedProgram, InputKind, InputSpec, Node, Size, TensorMeta, ValueId};

/// Replaces views of constants by constants.
pub(super) fn constants(program: &mut ExportedProgram<'_>) {
    let mutated: BTreeSet<String> = program.changed().map(str::to_owned).collect();
    let mut known: BTreeMap<ValueId, String> = BTreeMap::new();
    for spec in &program.inputs {
        if let (Some(name), Some(value)) = (spec.kind.tensor(), spec.arg.value())
            && !mutated.contains(name)
        {
            known.insert(value, name.to_owned());
        }
    }
    let mut outputs = BTreeSet::new();
    program.graph.outputs.iter().for_each(|output| {
        output.each_value(&mut |id| {
            outputs.insert(id);
        })
    });
    let mut folded = Vec::new();
    for node in &program.graph.nodes {
        let (Some(result), Some(name)) = (node.result(), node.value_arg("self").and_then(|id| known.get(&id))) else {
            continue;
        };
        let Some(meta) = program.graph.tensor(result).filter(|_| !outputs.contains(&result)) else { continue };
        let Some(weight) = program.weights.find(name).and_then(|weight| view(weight, node, meta)) else { continue };
        let name = format!("{name}.{}", program.graph.name(result));
        if program.weights.find(&name).is_some() {
            continue;
        }
        known.insert(result, name.clone());
        program.weights.constants.insert(name.clone(), weight);
        folded.push((result, name));
    }
    let results: BTreeSet<ValueId> = folded.iter().map(|(value, _)| *value).collect();
    program.graph.nodes.retain(|node| !node.result().is_some_and(|result| results.contains(&result)));
    let at = program.inputs.iter().position(|spec| spec.kind.tensor().is_none()).unwrap_or(program.inputs.len());
    for (value, name) in folded.into_iter().rev() {
        let meta = match program.weights.find(&name) {
            Some(weight) => {
                let size = |size: &usize| Size::Known(i64::try_from(*size).unwrap_or(i64::MAX));
                let sizes: Vec<Size> = weight.sizes().iter().map(size).collect();
                TensorMeta::contiguous(weight.scalar_type(), &sizes)
            }
            None => continue,
        };
        program.graph.set_meta(value, meta.into());
        program.graph.inputs.insert(at.min(program.graph.inputs.len()), Argument::Value(value));
        program.inputs.insert(at, InputSpec { kind: InputKind::Constant(name), arg: Argument::Value(value) });
    }
}

/// Returns the constant that a call makes of another, if it is only a view of it.
fn view<'a>(weight: &Weight<'a>, node: &Node, meta: &TensorMeta) -> Option<Weight<'a>> {
    let rank = i64::try_from(weight.sizes().len()).ok()?;
    let dim = |dim: i64| usize::try_from(if dim < 0 { dim.checked_add(rank)? } else { dim }).ok();
    if node.calls("aten::permute_copy") {
        let dims: Vec<usize> = node.arg("dims")?.as_ints()?.into_iter().map(dim).collect::<Option<_>>()?;
        return weight.reviewed(|sizes, strides, _| {
            let pick = |list: &[usize]| dims.iter().map(|dim| list.get(*dim).copied()).collect::<Option<Vec<_>>>();
            (*sizes, *strides) = (pick(sizes)?, pick(strides)?);
            Some(())
        });
    }
    if node.calls("aten::t_copy") || node.calls("aten::transpose_copy.int") {
        let (a, b) = match node.calls("aten::t_copy") {
            true if rank < 2 => (0, 0),
            true => (0, 1),
            false => (dim(node.arg("dim0")?.as_int()?)?, dim(node.arg("dim1")?.as_int()?)?),
        };
        return weight.reviewed(|sizes, strides, _| {
            if a.max(b) < sizes.len() {
                sizes.swap(a, b);
                strides.swap(a, b);
            }
            Some(())
        });
    }
    if ["aten::view_copy", "aten::unsqueeze_copy", "aten::squeeze_copy.dim", "aten::squeeze_copy.dims"]
        .iter()
        .any(|name| node.calls(name))
    {
        let wanted = meta.known_sizes()?;
        return weight.reviewed(|sizes, strides, _| {
            if *strides != crate::archive::contiguous_strides(sizes) {
                return None;
            }
            *strides = crate::archive::contiguous_strides(&wanted);
            *sizes = wanted;
            Some(())
        });
    }
    None
}
