//! Takes the instructions of backends over: values and calls in the place of delegate calls.
//!
//! A backend's instructions are as little trusted as a file: every value exists, kinds fit schemas, nothing writes an
//! input or a constant. An argument that is read and whose memory an output shares is read from a copy, as an opaque
//! delegate would read it.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use edgepack_format::finding::ErrorCode;
use edgepack_format::operators::Trailing;
use edgepack_format::tensor::TensorLayout;

use crate::api::delegate::{Delegate, Instructions, Local};
use crate::api::error::KernelError;
use crate::api::instructions::LocalValue;
use crate::api::kernel::Operator;
use crate::api::operator::OperatorInfo;
use crate::api::prepare::Prepare;
use crate::api::room::grow;
use crate::api::state::{Dynamism, NONE, Span, Value, ValueId};
use crate::api::storage::Region;
use crate::pte::error::LoadError;
use crate::pte::load::LoadedDelegate;
use crate::pte::overlap::{Overlaps, delegate_outs};
use crate::pte::plan_graph::{Node, PlanGraph, PlanInstruction, PlanInstructionKind, PlanOperator};

/// Replaces the delegate calls that a backend answers with instructions. What these retain is taken off `retained`, bytes
/// that the method has left.
pub(crate) fn splice(
    graph: &mut PlanGraph<'_>,
    delegates: &[LoadedDelegate],
    optimize: bool,
    retained: &Cell<u64>,
) -> Result<(), LoadError> {
    let mut known = Known::default();
    for chain in 0..graph.chains.len() {
        if !graph.chains[chain]
            .iter()
            .any(|instruction| matches!(instruction.kind, PlanInstructionKind::Delegate { .. }))
        {
            continue;
        }
        let old = std::mem::take(&mut graph.chains[chain]);
        let mut new = Vec::new();
        // Where each old instruction went, and where the end is.
        let mut places = Vec::new();
        grow(&mut places, old.len().saturating_add(1))?;
        for instruction in &old {
            places.push(new.len() as u32);
            if let PlanInstructionKind::Delegate { delegate, args } = instruction.kind
                && let Some(loaded) = delegates.get(delegate as usize)
            {
                let origin = (instruction.origin, delegate);
                let mut call = Call { graph: &mut *graph, known: &mut known, args, origin, new: &mut new };
                let refused =
                    |error| LoadError::Delegate { delegate: delegate as usize, backend: loaded.id.clone(), error };
                if call.inline(&*loaded.delegate, optimize, retained).map_err(refused)? {
                    continue;
                }
            }
            grow(&mut new, 1)?;
            new.push(*instruction);
        }
        places.push(new.len() as u32);
        for instruction in &mut new {
            if let PlanInstructionKind::JumpFalse { target, .. } = &mut instruction.kind {
                *target = places.get(*target as usize).copied().unwrap_or(*target);
            }
        }
        graph.chains[chain] = new;
    }
    Ok(())
}

/// Facts about operators that were met, by name with schema: those of one kind, one for each node, have one schema.
#[derive(Default)]
struct Known {
    infos: HashMap<Box<str>, Arc<OperatorInfo>>,
    /// The name that is looked for.
    name: String,
}

impl Known {
    fn info(&mut self, operator: &dyn Operator) -> Result<Arc<OperatorInfo>, KernelError> {
        self.name.clear();
        self.name.push_str(operator.name());
        self.name.push_str(operator.schema());
        if let Some(known) = self.infos.get(&*self.name) {
            return Ok(Arc::clone(known));
        }
        let info = Arc::new(OperatorInfo::parse(operator)?);
        self.infos.insert(self.name.as_str().into(), Arc::clone(&info));
        Ok(info)
    }
}

/// One call of a delegate.
struct Call<'c, 'r> {
    graph: &'c mut PlanGraph<'r>,
    known: &'c mut Known,
    args: Span,
    /// Instruction of the file, and delegate.
    origin: (u32, u32),
    new: &'c mut Vec<PlanInstruction>,
}

/// Values of [`Instructions`] as values of the graph, and which of them their calls may write.
struct Locals {
    ids: Vec<ValueId>,
    /// Temporaries, outputs, and views of such.
    writable: HashSet<ValueId>,
}

impl Locals {
    fn get(&self, local: Local) -> Result<ValueId, KernelError> {
        self.ids.get(local.0 as usize).copied().ok_or_else(|| local.missing())
    }
}

impl Call<'_, '_> {
    /// `false`, and nothing changed, if the delegate runs this call itself.
    fn inline(&mut self, delegate: &dyn Delegate, optimize: bool, retained: &Cell<u64>) -> Result<bool, KernelError> {
        let graph = &*self.graph;
        let args = graph.args[self.args.range()].to_vec();
        let prepare = Prepare::new(&graph.state, &args, &graph.variable, optimize, retained);
        let Some(instructions) = delegate.instructions(&prepare)? else { return Ok(false) };
        if instructions.arguments as usize != args.len() {
            let message = format!("instructions for {} arguments, the call has {}", instructions.arguments, args.len());
            return Err(KernelError::new(ErrorCode::Internal, message));
        }
        let mut locals = self.arguments(args, delegate)?;
        self.values(&mut locals, &instructions)?;
        self.calls(&locals, &instructions)?;
        Ok(true)
    }

    /// The arguments; those whose memory an output shares become copies.
    fn arguments(&mut self, args: Vec<ValueId>, delegate: &dyn Delegate) -> Result<Locals, KernelError> {
        let outs = delegate_outs(delegate, args.len());
        let mut overlaps = Overlaps::default();
        let shared = overlaps.shared_inputs(&self.graph.state, &args, outs)?;
        let written = args.iter().enumerate().filter(|(arg, _)| outs >> arg & 1 == 1);
        let mut locals = Locals { writable: written.map(|(_, &id)| id).collect(), ids: args };
        // By tensor, so that one that is passed twice is copied once.
        let mut copies: Vec<(u32, ValueId)> = Vec::new();
        for arg in 0..locals.ids.len() {
            let id = locals.ids[arg];
            if outs >> arg & 1 == 1 {
                continue;
            }
            match self.graph.state.values[id as usize] {
                Value::Tensor(tensor) if shared.contains(&tensor) => {
                    let known = copies.iter().find(|(of, _)| *of == tensor).map(|(_, copy)| *copy);
                    let copy = match known {
                        Some(copy) => copy,
                        None => self.copy(id, tensor)?,
                    };
                    copies.push((tensor, copy));
                    locals.ids[arg] = copy;
                }
                _ if self.graph.state.tensors_of(id).any(|tensor| shared.contains(&tensor)) => {
                    return Err(KernelError::unsupported("a list holds a tensor that shares memory with an output"));
                }
                _ => {}
            }
        }
        Ok(locals)
    }

    /// A temporary with the bytes that a tensor has before the instructions run.
    fn copy(&mut self, from: ValueId, tensor: u32) -> Result<ValueId, KernelError> {
        let state = &self.graph.state;
        let found = state.tensors[tensor as usize];
        let layout = TensorLayout::new(found.dtype, state.bounds(&found), state.dim_order(&found));
        let layout = layout.map_err(|error| KernelError::new(ErrorCode::Internal, error.to_string()))?;
        let to = self.temporary(&layout, found.dynamism == Dynamism::Bound)?;
        self.push(PlanInstructionKind::Move { from, to }, u32::MAX)?;
        Ok(to)
    }

    fn push(&mut self, kind: PlanInstructionKind, node: u32) -> Result<(), KernelError> {
        grow(self.new, 1)?;
        let (origin, delegate) = self.origin;
        self.new.push(PlanInstruction { kind, origin, node: Some(Node { delegate, node }) });
        Ok(())
    }

    fn values(&mut self, locals: &mut Locals, instructions: &Instructions) -> Result<(), KernelError> {
        grow(&mut locals.ids, instructions.values.len())?;
        for value in &instructions.values {
            let mut writable = false;
            let id = match value {
                LocalValue::Temporary { layout, dynamic } => {
                    writable = true;
                    self.temporary(layout, *dynamic)?
                }
                LocalValue::View { of, layout, dynamic } => {
                    let of = locals.get(*of)?;
                    writable = locals.writable.contains(&of);
                    self.view(of, layout, *dynamic)?
                }
                LocalValue::Constant { layout, bytes } => {
                    let refused = || KernelError::new(ErrorCode::InvalidProgram, "a constant of another length");
                    self.graph.push_borrowed_constant(layout, bytes).map_err(|error| error.unwrap_or_else(refused))?
                }
                // Without bytes, so that whoever reads or shows them is refused.
                LocalValue::Packed { layout } => self.tensor(layout, false, Region::empty(), false)?,
                LocalValue::Text(text) => {
                    self.graph.state.grow_by_one()?;
                    self.graph.push_text(text)
                }
                other => {
                    let value = self.plain(locals, other)?;
                    self.push_value(value)?
                }
            };
            locals.ids.push(id);
            if writable {
                locals.writable.insert(id);
            }
        }
        Ok(())
    }

    fn push_value(&mut self, value: Value) -> Result<ValueId, KernelError> {
        self.graph.state.grow_by_one()?;
        grow(&mut self.graph.variable, 1)?;
        Ok(self.graph.push_value(value))
    }

    /// A number or a list.
    fn plain(&mut self, locals: &Locals, value: &LocalValue) -> Result<Value, KernelError> {
        let state = &mut self.graph.state;
        let mut list = |items: &mut dyn ExactSizeIterator<Item = Result<ValueId, KernelError>>, int: bool| {
            grow(&mut state.ids, items.len())?;
            let start = state.ids.len();
            for item in items {
                let id = item?;
                let value = state.values.get(id as usize);
                if id != NONE && !matches!((value, int), (Some(Value::Int(_)), true) | (Some(Value::Tensor(_)), false))
                {
                    state.ids.truncate(start);
                    return Err(KernelError::kind("a list holds values of another kind"));
                }
                state.ids.push(id);
            }
            Ok(Span { start: start as u32, len: (state.ids.len() - start) as u32 })
        };
        Ok(match value {
            LocalValue::Int(value) => Value::Int(*value),
            LocalValue::Bool(value) => Value::Bool(*value),
            LocalValue::Double(value) => Value::Double(*value),
            LocalValue::Ints(items) => Value::IntList(list(&mut items.iter().map(|item| locals.get(*item)), true)?),
            LocalValue::Tensors(items) => {
                Value::TensorList(list(&mut items.iter().map(|item| locals.get(*item)), false)?)
            }
            LocalValue::OptionalTensors(items) => {
                let mut items = items.iter().map(|item| item.map_or(Ok(NONE), |item| locals.get(item)));
                Value::OptionalTensorList(list(&mut items, false)?)
            }
            LocalValue::Doubles(items) => {
                grow(&mut state.doubles, items.len())?;
                let start = state.doubles.len() as u32;
                state.doubles.extend_from_slice(items);
                Value::DoubleList(Span { start, len: items.len() as u32 })
            }
            LocalValue::Bools(items) => {
                grow(&mut state.bools, items.len())?;
                let start = state.bools.len() as u32;
                state.bools.extend_from_slice(items);
                Value::BoolList(Span { start, len: items.len() as u32 })
            }
            LocalValue::Null
            | LocalValue::Text(_)
            | LocalValue::Packed { .. }
            | LocalValue::Temporary { .. }
            | LocalValue::View { .. }
            | LocalValue::Constant { .. } => Value::Null,
        })
    }

    fn tensor(
        &mut self,
        layout: &TensorLayout,
        dynamic: bool,
        region: Region,
        constant: bool,
    ) -> Result<ValueId, KernelError> {
        let dynamism = if dynamic { Dynamism::Bound } else { Dynamism::Static };
        self.graph.state.grow_by_one()?;
        let state = &mut self.graph.state;
        let tensor =
            state.push_tensor(layout.scalar_type(), layout.sizes(), layout.dim_order(), dynamism, region, constant);
        self.push_value(Value::Tensor(tensor))
    }

    fn temporary(&mut self, layout: &TensorLayout, dynamic: bool) -> Result<ValueId, KernelError> {
        let region = self
            .graph
            .memory
            .temporary(layout.byte_len())
            .ok_or_else(|| KernelError::new(ErrorCode::MemoryAllocationFailed, "temporaries beyond all memory"))?;
        self.tensor(layout, dynamic, region, false)
    }

    fn view(&mut self, of: ValueId, layout: &TensorLayout, dynamic: bool) -> Result<ValueId, KernelError> {
        let Value::Tensor(base) = self.graph.state.values[of as usize] else {
            return Err(KernelError::kind("a view of what is not a tensor"));
        };
        let base = self.graph.state.tensors[base as usize];
        let fits =
            layout.byte_len() <= base.region.len() && base.region.is_aligned(layout.scalar_type().size().unwrap_or(1));
        if !fits {
            let (want, have) = (layout.byte_len(), base.region.len());
            let message = format!("a view {layout} of {want} bytes of a tensor with {have}");
            return Err(KernelError::new(ErrorCode::InvalidProgram, message));
        }
        self.tensor(layout, dynamic, base.region.prefix(layout.byte_len()), base.constant)
    }

    fn calls(&mut self, locals: &Locals, instructions: &Instructions) -> Result<(), KernelError> {
        let mut operators = Vec::new();
        grow(&mut operators, instructions.operators.len())?;
        for operator in &instructions.operators {
            let info = self.known.info(&**operator)?;
            if info.trailing() == Trailing::Result {
                return Err(KernelError::unsupported(format!("{} returns a number of its own", operator.name())));
            }
            grow(&mut self.graph.operators, 1)?;
            operators.push(self.graph.operators.len() as u32);
            let (name, kernel) = (operator.name().into(), operator.clone());
            self.graph.operators.push(PlanOperator { name, kernel, info });
        }
        for call in &instructions.calls {
            let Some(&operator) = operators.get(call.operator as usize) else {
                return Err(KernelError::new(ErrorCode::Internal, "the instructions have no such operator"));
            };
            let mut args = Vec::new();
            grow(&mut args, call.args.len() + 1)?;
            for local in &call.args {
                args.push(locals.get(*local)?);
            }
            let info = &self.graph.operators[operator as usize].info;
            let trailing = info.trailing();
            let outs = info.outs();
            let written: Vec<usize> = (0..call.args.len().min(128)).filter(|arg| outs >> arg & 1 == 1).collect();
            if let Some(arg) = written.iter().find(|&&arg| !self.may_write(locals, args[arg])) {
                let name = &self.graph.operators[operator as usize].name;
                let message = format!("{name} of node {} writes argument {arg}, an input or a constant", call.node);
                return Err(KernelError::new(ErrorCode::InvalidProgram, message));
            }
            // What programs repeat after the arguments: the tensor that was written, or a list of those that were.
            match trailing {
                Trailing::Again(arg) => args.extend(args.get(arg).copied()),
                Trailing::List => {
                    let ids = &mut self.graph.state.ids;
                    grow(ids, written.len())?;
                    let span = Span { start: ids.len() as u32, len: written.len() as u32 };
                    ids.extend(written.iter().map(|arg| args[*arg]));
                    args.push(self.push_value(Value::TensorList(span))?);
                }
                Trailing::Nothing | Trailing::Result => {}
            }
            let graph = &mut *self.graph;
            let info = &graph.operators[operator as usize].info;
            info.check(&args, &graph.state, &graph.variable)?;
            info.mark_written(&args, &mut graph.variable);
            let span = Span { start: graph.args.len() as u32, len: args.len() as u32 };
            grow(&mut graph.args, args.len())?;
            graph.args.extend(args);
            self.push(PlanInstructionKind::Kernel { operator, args: span }, call.node)?;
        }
        Ok(())
    }

    /// Returns whether a call may write a value: a temporary, an output, or a list of such.
    fn may_write(&self, locals: &Locals, id: ValueId) -> bool {
        match self.graph.state.values[id as usize] {
            Value::TensorList(span) => {
                self.graph.state.ids[span.range()].iter().all(|item| locals.writable.contains(item))
            }
            _ => locals.writable.contains(&id),
        }
    }
}
