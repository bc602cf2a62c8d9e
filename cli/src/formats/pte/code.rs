//! Values and instructions of a method as lines: `%12 = aten::add.out(%3, %7, 1)`.

use std::collections::HashSet;

use edgepack_format::notation::ValueName;
use edgepack_format::operators::{Schema, Trailing, lookup};
use edgepack_format::pte::{EValue, ExecutionPlan, InstructionArguments, KernelCall, KernelTypes, MoveCall};
use edgepack_format::row::Scalars;

use super::values::operator_name;
use super::{tables, values};
use crate::{readable, spelling};

/// A method whose values can be named and whose instructions can be written.
pub struct Code<'a> {
    /// Values of the method; `None` where one cannot be read.
    pub values: Vec<Option<EValue<'a>>>,
    /// Operators by index, with their overloads.
    pub operators: Vec<String>,
    /// Backends of delegates by index.
    pub delegates: Vec<String>,
    /// Indices of the values that go in.
    pub inputs: Vec<i32>,
    /// Indices of the values that come out.
    pub outputs: Vec<i32>,
    /// Values that some instruction writes, and inputs: never shown as literals.
    pub variable: HashSet<i32>,
    /// Instructions by chain.
    pub chains: Vec<Vec<Option<InstructionArguments<'a>>>>,
}

/// One value for a table: what it is, and where it lives.
pub struct ValueLine {
    /// `%12`.
    pub id: String,
    /// `f32[1, 3]`, `int`.
    pub kind: String,
    /// `3`, `[1, 2]`; empty for tensors.
    pub literal: String,
    /// `memory 1 at 0x40`, `constant.3`, `input 0`.
    pub place: String,
}

impl<'a> Code<'a> {
    /// Reads the code of a method.
    pub fn new(plan: &ExecutionPlan<'a>) -> Self {
        let list = |ids: &Option<Scalars<'a, i32>>| ids.iter().flat_map(|ids| ids.iter()).collect::<Vec<_>>();
        let name = |name: Option<String>| name.unwrap_or("?".to_owned());
        let chains = tables::chains(plan);
        let chains = chains.iter().map(|chain| {
            let rows = readable::rows(&chain.instructions);
            rows.into_iter().map(|row| row.and_then(|instruction| instruction.instr_args)).collect()
        });
        let mut code = Code {
            values: readable::rows(&plan.values),
            operators: readable::rows(&plan.operators)
                .iter()
                .map(|operator| name(operator.as_ref().map(operator_name)))
                .collect(),
            delegates: readable::rows(&plan.delegates)
                .into_iter()
                .map(|delegate| name(delegate.and_then(|delegate| delegate.id).map(|id| spelling::name(&id))))
                .collect(),
            inputs: list(&plan.inputs),
            outputs: list(&plan.outputs),
            variable: HashSet::new(),
            chains: chains.collect(),
        };
        code.variable = code.written();
        code
    }

    fn written(&self) -> HashSet<i32> {
        let mut written: HashSet<i32> = self.inputs.iter().copied().collect();
        for instruction in self.chains.iter().flatten().flatten() {
            match instruction {
                InstructionArguments::KernelCall(call) => written.extend(self.split(call).1),
                InstructionArguments::MoveCall(MoveCall { move_to, .. }) => {
                    written.insert(*move_to);
                }
                _ => {}
            }
        }
        written
    }

    /// The value of an index.
    pub fn value(&self, id: i32) -> Option<&KernelTypes<'a>> {
        self.values.get(usize::try_from(id).ok()?)?.as_ref()?.val.as_ref()
    }

    /// The instructions of every chain, as text.
    pub fn chains(&self) -> impl Iterator<Item = Vec<String>> + '_ {
        self.chains.iter().map(|chain| chain.iter().map(|call| self.instruction(call.as_ref())).collect())
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = ValueLine> + '_ {
        self.values.iter().enumerate().map(|(index, value)| {
            let (kind, literal, mut place) = match value {
                None => ("unreadable".to_owned(), String::new(), Vec::new()),
                Some(EValue { val: None }) => ("none".to_owned(), String::new(), Vec::new()),
                Some(EValue { val: Some(KernelTypes::Tensor(tensor)) }) => {
                    (values::tensor(tensor), String::new(), tensor_places(tensor))
                }
                Some(EValue { val: Some(other) }) => (values::kind(other).to_owned(), self.literal(other), Vec::new()),
            };
            let named = |ids: &[i32], noun: &str| {
                let at = ids.iter().position(|id| usize::try_from(*id) == Ok(index));
                at.map(|at| format!("{noun} {at}"))
            };
            place.extend(named(&self.inputs, "input"));
            place.extend(named(&self.outputs, "output"));
            ValueLine { id: ValueName(index).to_string(), kind, literal, place: place.join(", ") }
        })
    }

    /// A number, text or list, as a literal; `-` for what has none.
    fn literal(&self, value: &KernelTypes<'a>) -> String {
        match value {
            KernelTypes::Null(_) => "none".to_owned(),
            KernelTypes::Int(value) => value.int_val.to_string(),
            KernelTypes::Bool(value) => value.bool_val.to_string(),
            KernelTypes::Double(value) => spelling::double(value.double_val),
            KernelTypes::String(value) => spelling::text(value.string_val.as_deref().unwrap_or_default()),
            KernelTypes::IntList(list) => spelling::numbers(list.items.as_ref(), |id| match i32::try_from(id) {
                Ok(id) => self.argument(id),
                Err(_) => ValueName(id).to_string(),
            }),
            KernelTypes::DoubleList(list) => spelling::numbers(list.items.as_ref(), spelling::double),
            KernelTypes::BoolList(list) => spelling::numbers(list.items.as_ref(), |value| value.to_string()),
            KernelTypes::TensorList(list) => spelling::numbers(list.items.as_ref(), |id| ValueName(id).to_string()),
            KernelTypes::OptionalTensorList(list) => spelling::numbers(list.items.as_ref(), |id| {
                if id < 0 { "none".to_owned() } else { ValueName(id).to_string() }
            }),
            KernelTypes::Tensor(_) => "-".to_owned(),
            KernelTypes::Unknown(tag) => format!("kind {tag}"),
        }
    }

    /// A value as an argument: a literal if nothing ever changes it, its number otherwise.
    pub fn argument(&self, id: i32) -> String {
        match self.value(id) {
            Some(KernelTypes::Tensor(_) | KernelTypes::Unknown(_)) | None => ValueName(id).to_string(),
            Some(_) if self.variable.contains(&id) => ValueName(id).to_string(),
            // A list of integers that names lists would not end; integers are all it may name.
            Some(list @ KernelTypes::IntList(items)) => {
                let items = items.items.iter().flat_map(|items| items.iter());
                let mut ids = items.map(|id| i32::try_from(id).ok().and_then(|id| self.value(id)));
                match ids.all(|item| matches!(item, Some(KernelTypes::Int(_)))) {
                    true => self.literal(list),
                    false => ValueName(id).to_string(),
                }
            }
            Some(value) => self.literal(value),
        }
    }

    /// The arguments a call reads, and the values it gives.
    pub fn split(&self, call: &KernelCall<'a>) -> (Vec<i32>, Vec<i32>) {
        let mut args: Vec<i32> = call.args.iter().flat_map(|args| args.iter()).collect();
        let name = usize::try_from(call.op_index).ok().and_then(|index| self.operators.get(index));
        let schema = name.and_then(|name| lookup(name)).and_then(|text| Schema::parse(text).ok());
        if let Some(schema) = schema.filter(|schema| schema.stack_len() == args.len()) {
            let results: Vec<i32> = match schema.trailing() {
                Trailing::Nothing => Vec::new(),
                Trailing::Again(_) | Trailing::Result => args.last().copied().into_iter().collect(),
                Trailing::List => schema.outs().filter_map(|out| args.get(out).copied()).collect(),
            };
            let outs: HashSet<usize> = schema.outs().collect();
            let inputs = args.iter().take(schema.args().len()).enumerate();
            let inputs = inputs.filter(|(index, _)| !outs.contains(index)).map(|(_, id)| *id).collect();
            return (inputs, results);
        }
        // Without a schema: the emitter gives the result last, and an out right before it again.
        let Some(result) = args.pop() else { return (args, Vec::new()) };
        if args.last() == Some(&result) {
            args.pop();
        }
        (args, vec![result])
    }

    fn instruction(&self, call: Option<&InstructionArguments<'a>>) -> String {
        let named = |names: &[String], index: i32, kind: &str| {
            let name = usize::try_from(index).ok().and_then(|index| names.get(index));
            name.cloned().unwrap_or_else(|| format!("{kind} {index}"))
        };
        let ids = |ids: &[i32]| ids.iter().map(|id| ValueName(id).to_string()).collect::<Vec<_>>().join(", ");
        match call {
            None => "unreadable".to_owned(),
            Some(InstructionArguments::KernelCall(call)) => {
                let (args, results) = self.split(call);
                let args: Vec<String> = args.iter().map(|&id| self.argument(id)).collect();
                let call = format!("{}({})", named(&self.operators, call.op_index, "operator"), args.join(", "));
                if results.is_empty() { call } else { format!("{} = {call}", ids(&results)) }
            }
            Some(InstructionArguments::DelegateCall(call)) => {
                let args: Vec<i32> = call.args.iter().flat_map(|args| args.iter()).collect();
                let name = named(&self.delegates, call.delegate_index, "delegate");
                format!("delegate {} {name}({})", call.delegate_index, ids(&args))
            }
            Some(InstructionArguments::MoveCall(call)) => {
                format!("{} = {}", ValueName(call.move_to), self.argument(call.move_from))
            }
            Some(InstructionArguments::JumpFalseCall(call)) => {
                let condition = self.argument(call.cond_value_index);
                format!("if not {condition} goto {}", call.destination_instruction)
            }
            Some(InstructionArguments::FreeCall(call)) => format!("free {}", ValueName(call.value_index)),
            Some(InstructionArguments::Unknown(tag)) => format!("instruction of kind {tag}"),
        }
    }
}

/// Places of a tensor's elements, and its name in the model.
pub fn tensor_places(tensor: &edgepack_format::pte::Tensor<'_>) -> Vec<String> {
    let mut places = Vec::new();
    match (&tensor.allocation_info, tensor.data_buffer_idx) {
        (Some(at), 0) => places.push(format!("memory {} at {:#x}", at.memory_id, at.memory_offset())),
        (Some(at), initial) => {
            places.push(format!("memory {} at {:#x}, initial {initial}", at.memory_id, at.memory_offset()));
        }
        (None, 0) => {}
        (None, constant) => places.push(format!("constant.{constant}")),
    }
    if let Some(info) = &tensor.extra_tensor_info {
        if info.location == edgepack_format::pte::TensorDataLocation::EXTERNAL {
            places.push("external".to_owned());
        }
        places.extend(info.fully_qualified_name.as_deref().map(spelling::name));
    }
    places
}
