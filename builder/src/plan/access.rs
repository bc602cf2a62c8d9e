//! Effects of instructions on tensors: the program as a list of reads and writes.
//!
//! If a schema says which arguments an operator writes, it decides. Without a schema, as for a delegate, an argument is
//! taken for an output if it was never seen before and no later argument was.

use edgepack_format::operators::{Schema, lookup_overload};
use edgepack_format::pte::{ExecutionPlan, Instruction, InstructionArguments, KernelTypes, Operator};
use edgepack_format::row::Rows;
use edgepack_format::wire;

use super::regions::Jump;

/// Effect of an instruction on a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    /// Only reads it.
    Read,
    /// Writes all of it without looking.
    Write,
    /// Reads and writes it.
    Update,
    /// Writes a part of it at a time.
    Fill,
    /// Reads it or writes it, who knows.
    Unknown,
}

/// One access: the position of the instruction, the value, what happens to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) position: u32,
    pub(super) value: usize,
    pub(super) access: Access,
}

/// All that planning needs to know about the code of a method.
#[derive(Default)]
pub(super) struct Code {
    /// In program order; position 0 is before the first instruction.
    pub(super) events: Vec<Event>,
    pub(super) jumps: Vec<Jump>,
    /// `(from, to)`: the bytes of `from` may be looked at under the name of `to`.
    pub(super) aliases: Vec<(usize, usize)>,
    /// Values that are set or looked at from outside between chains.
    pub(super) chain_inputs: Vec<usize>,
    pub(super) chain_outputs: Vec<usize>,
    /// The position after the last instruction.
    pub(super) end: u32,
}

/// Knowledge about an operator of the plan, parsed once.
enum Known {
    Schema(Schema<'static>),
    View,
    CopyIndex,
    /// Writes all of its first argument, although its schema calls that one an input.
    CopyInto,
    Unknown,
}

impl Known {
    fn of(operator: &Operator<'_>) -> Known {
        let name = operator.name.as_deref().unwrap_or_default();
        let overload = operator.overload.as_deref().unwrap_or_default();
        match (name, overload) {
            ("executorch_prim::et_view", _) => Known::View,
            ("executorch_prim::et_copy_index", _) => Known::CopyIndex,
            ("aten::copy_", "") => Known::CopyInto,
            _ => match lookup_overload(name, overload).and_then(|text| Schema::parse(text).ok()) {
                Some(schema) => Known::Schema(schema),
                None => Known::Unknown,
            },
        }
    }

    /// Returns the operator's effect on argument `place` of `args`.
    fn access(&self, place: usize, args: &[i32]) -> Access {
        match self {
            Known::Schema(schema) => match schema.args().get(place) {
                Some(arg) if arg.is_out() => Access::Write,
                Some(arg) if arg.mutated => Access::Update,
                Some(_) => Access::Read,
                // What follows the arguments repeats a result, or is one.
                None => Access::Write,
            },
            Known::View if place == 2 => Access::Write,
            Known::CopyIndex if place == 0 => Access::Fill,
            Known::CopyInto if place != 1 => Access::Write,
            Known::View | Known::CopyIndex | Known::CopyInto => Access::Read,
            // By convention the result of a custom operator is its last argument, repeated.
            Known::Unknown => match args {
                [rest @ .., out, again] if out == again => {
                    if place >= rest.len() {
                        Access::Write
                    } else {
                        Access::Read
                    }
                }
                _ => Access::Unknown,
            },
        }
    }
}

impl Code {
    /// The code of a plan whose values are these.
    pub(super) fn of(plan: &ExecutionPlan<'_>, values: &[Option<KernelTypes<'_>>]) -> wire::Result<Code> {
        let operators: Vec<Known> = match &plan.operators {
            Some(rows) => rows.iter().map(|row| Ok(Known::of(&row?))).collect::<wire::Result<_>>()?,
            None => Vec::new(),
        };
        let mut code = Code::default();
        let mut walk = Walk { values, operators: &operators, code: &mut code };
        for chain in plan.chains.iter().flat_map(Rows::iter) {
            let chain = chain?;
            for (list, inputs) in [(&chain.inputs, true), (&chain.outputs, false)] {
                for value in list.iter().flat_map(|list| list.iter()) {
                    walk.boundary(value, inputs);
                }
            }
            let start = walk.code.end;
            for instruction in chain.instructions.iter().flat_map(Rows::iter) {
                walk.instruction(&instruction?, start);
                walk.code.end = walk.code.end.saturating_add(1);
            }
        }
        code.end = code.end.saturating_add(1);
        Ok(code)
    }
}

struct Walk<'c, 'v> {
    values: &'c [Option<KernelTypes<'v>>],
    operators: &'c [Known],
    code: &'c mut Code,
}

impl Walk<'_, '_> {
    fn boundary(&mut self, value: i32, input: bool) {
        let values = self.values;
        tensors(values, value, &mut |value| match input {
            true => self.code.chain_inputs.push(value),
            false => self.code.chain_outputs.push(value),
        });
    }

    fn touch(&mut self, value: i32, access: Access) {
        let position = self.code.end.saturating_add(1);
        let events = &mut self.code.events;
        tensors(self.values, value, &mut |value| events.push(Event { position, value, access }));
    }

    fn alias(&mut self, from: i32, to: i32) {
        if let (Ok(from), Ok(to)) = (usize::try_from(from), usize::try_from(to))
            && from.max(to) < self.values.len()
        {
            self.code.aliases.push((from, to));
        }
    }

    fn instruction(&mut self, instruction: &Instruction<'_>, start: u32) {
        match &instruction.instr_args {
            Some(InstructionArguments::KernelCall(call)) => {
                let operator = usize::try_from(call.op_index).ok().and_then(|index| self.operators.get(index));
                let args: Vec<i32> = call.args.iter().flat_map(|args| args.iter()).collect();
                let Some(operator) = operator else { return };
                // Reads come before writes, whatever the order of the arguments.
                for writes in [false, true] {
                    for (place, value) in args.iter().enumerate() {
                        let access = operator.access(place, &args);
                        if writes == (access == Access::Write) {
                            self.touch(*value, access);
                        }
                    }
                }
                if let (Known::View, [from, _, to, ..]) = (operator, args.as_slice()) {
                    self.alias(*from, *to);
                }
            }
            Some(InstructionArguments::DelegateCall(call)) => {
                for value in call.args.iter().flat_map(|args| args.iter()) {
                    self.touch(value, Access::Unknown);
                }
            }
            Some(InstructionArguments::MoveCall(call)) => {
                self.touch(call.move_from, Access::Read);
                self.touch(call.move_to, Access::Write);
                // The reference runtime lets the destination look at the source's bytes.
                self.alias(call.move_from, call.move_to);
            }
            Some(InstructionArguments::JumpFalseCall(call)) => {
                self.touch(call.cond_value_index, Access::Read);
                let to = u32::try_from(call.destination_instruction).unwrap_or(0);
                self.code.jumps.push(Jump {
                    from: self.code.end.saturating_add(1),
                    to: start.saturating_add(to).saturating_add(1),
                });
            }
            Some(InstructionArguments::FreeCall(call)) => self.touch(call.value_index, Access::Read),
            Some(InstructionArguments::Unknown(_)) | None => {}
        }
    }
}

/// The tensors of a value: itself, or what a list holds.
fn tensors(values: &[Option<KernelTypes<'_>>], value: i32, each: &mut dyn FnMut(usize)) {
    let find = |value: i32| usize::try_from(value).ok().and_then(|index| Some((index, values.get(index)?.as_ref()?)));
    let items = match find(value) {
        Some((index, KernelTypes::Tensor(_))) => return each(index),
        Some((_, KernelTypes::TensorList(list))) => &list.items,
        Some((_, KernelTypes::OptionalTensorList(list))) => &list.items,
        _ => return,
    };
    for item in items.iter().flat_map(|items| items.iter()) {
        if let Some((index, KernelTypes::Tensor(_))) = find(item) {
            each(index);
        }
    }
}

/// The tensors of these values, for inputs and outputs of a plan.
pub(super) fn tensors_of(values: &[Option<KernelTypes<'_>>], list: impl IntoIterator<Item = i32>) -> Vec<usize> {
    let mut found = Vec::new();
    for value in list {
        tensors(values, value, &mut |value| found.push(value));
    }
    found
}

/// Bytes of a tensor; `None` if nothing can be said.
pub(super) fn byte_len(tensor: &edgepack_format::pte::Tensor<'_>) -> Option<u64> {
    let element = tensor.scalar_type.size()? as u64;
    tensor.sizes.as_ref()?.iter().try_fold(element, |bytes, size| bytes.checked_mul(u64::try_from(size).ok()?))
}
