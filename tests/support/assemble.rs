//! Programs for tests, assembled value by value and instruction by instruction, right or wrong.

use edgepack_builder::raw;
use edgepack_format::pte::{
    AllocationDetails, BackendDelegate, BackendDelegateDataReference, BackendDelegateInlineData, Chain, DelegateCall,
    Double, EValue, ExecutionPlan, ExtraTensorInfo, FreeCall, Instruction, InstructionArguments, Int, IntList,
    JumpFalseCall, KernelCall, KernelTypes, MoveCall, Null, Operator, Program, SubsegmentOffsets, Tensor,
    TensorDataLocation, TensorList, TensorShapeDynamism,
};
use edgepack_format::row::Blob;
use edgepack_format::scalar::ScalarType;

/// Index of a value.
pub type Id = i32;

/// One method under construction.
#[derive(Clone, Default)]
pub struct Assembly {
    values: Vec<EValue<'static>>,
    inputs: Vec<Id>,
    outputs: Vec<Id>,
    operators: Vec<Operator<'static>>,
    chains: Vec<Vec<Instruction<'static>>>,
    delegates: Vec<BackendDelegate<'static>>,
    payloads: Vec<Vec<u8>>,
    constants: Vec<Vec<u8>>,
    /// One list of initial values per mutable segment.
    mutable: Vec<Vec<Vec<u8>>>,
    planned: u64,
}

/// A tensor's shape and where its bytes are.
#[derive(Clone)]
pub struct Spec {
    dtype: ScalarType,
    sizes: Vec<i32>,
    dim_order: Vec<u8>,
    dynamic: bool,
}

/// A float tensor of these sizes.
pub fn float(sizes: &[i32]) -> Spec {
    Spec::new(ScalarType::FLOAT, sizes)
}

impl Spec {
    /// A contiguous static tensor.
    pub fn new(dtype: ScalarType, sizes: &[i32]) -> Self {
        let dim_order = (0..sizes.len() as u8).collect();
        Spec { dtype, sizes: sizes.to_vec(), dim_order, dynamic: false }
    }

    /// Sizes are upper bounds.
    pub fn dynamic(self) -> Self {
        Spec { dynamic: true, ..self }
    }

    /// Another dim order.
    pub fn dim_order(self, dim_order: &[u8]) -> Self {
        Spec { dim_order: dim_order.to_vec(), ..self }
    }

    fn bytes(&self) -> u64 {
        self.sizes.iter().map(|&size| size as u64).product::<u64>() * self.dtype.size().unwrap() as u64
    }

    fn row(&self) -> Tensor<'static> {
        let shape_dynamism =
            if self.dynamic { TensorShapeDynamism::DYNAMIC_BOUND } else { TensorShapeDynamism::STATIC };
        Tensor {
            scalar_type: self.dtype,
            sizes: Some(self.sizes.clone().into()),
            dim_order: Some(self.dim_order.clone().into()),
            shape_dynamism,
            ..Tensor::default()
        }
    }
}

fn at(offset: u64) -> Option<AllocationDetails> {
    Some(AllocationDetails {
        memory_id: 1,
        memory_offset_low: offset as u32,
        memory_offset_high: (offset >> 32) as u32,
    })
}

impl Assembly {
    /// A method without anything, in one chain.
    pub fn new() -> Self {
        Assembly { chains: vec![Vec::new()], planned: 0, ..Self::default() }
    }

    /// Any value.
    pub fn value(&mut self, value: KernelTypes<'static>) -> Id {
        self.values.push(EValue { val: Some(value) });
        (self.values.len() - 1) as Id
    }

    /// A boxed integer.
    pub fn int(&mut self, int_val: i64) -> Id {
        self.value(KernelTypes::Int(Int { int_val }))
    }

    /// A boxed bool.
    pub fn bool(&mut self, bool_val: bool) -> Id {
        self.value(KernelTypes::Bool(edgepack_format::pte::Bool { bool_val }))
    }

    /// A boxed double.
    pub fn double(&mut self, double_val: f64) -> Id {
        self.value(KernelTypes::Double(Double { double_val }))
    }

    /// Adds a string value.
    pub fn text(&mut self, text: &'static str) -> Id {
        self.value(KernelTypes::String(edgepack_format::pte::String { string_val: Some(text.into()) }))
    }

    /// `None`.
    pub fn null(&mut self) -> Id {
        self.value(KernelTypes::Null(Null {}))
    }

    /// A list of integers.
    pub fn ints(&mut self, items: &[Id]) -> Id {
        let items: Vec<i64> = items.iter().map(|&item| item.into()).collect();
        self.value(KernelTypes::IntList(IntList { items: Some(items.into()) }))
    }

    /// A list of tensors.
    pub fn tensors(&mut self, items: &[Id]) -> Id {
        self.value(KernelTypes::TensorList(TensorList { items: Some(items.to_vec().into()) }))
    }

    /// A tensor in fresh planned memory.
    pub fn planned(&mut self, spec: Spec) -> Id {
        let offset = self.planned;
        self.planned = (offset + spec.bytes()).next_multiple_of(16);
        self.planned_at(spec, offset)
    }

    /// A tensor at an offset of planned memory, wherever others are.
    pub fn planned_at(&mut self, spec: Spec, offset: u64) -> Id {
        self.planned = self.planned.max(offset + spec.bytes());
        self.value(KernelTypes::Tensor(Tensor { allocation_info: at(offset), ..spec.row() }))
    }

    /// A tensor without memory.
    pub fn unplanned(&mut self, spec: Spec) -> Id {
        self.value(KernelTypes::Tensor(spec.row()))
    }

    /// Adds a constant tensor with these bytes.
    pub fn constant(&mut self, spec: Spec, bytes: &[u8]) -> Id {
        self.constants.push(bytes.to_vec());
        let data_buffer_idx = self.constants.len() as u32;
        self.value(KernelTypes::Tensor(Tensor { data_buffer_idx, ..spec.row() }))
    }

    /// A planned tensor with an initial value in mutable segment `set`.
    pub fn mutable(&mut self, spec: Spec, set: usize, bytes: &[u8]) -> Id {
        self.mutable.resize(self.mutable.len().max(set + 1), Vec::new());
        self.mutable[set].push(bytes.to_vec());
        let offset = self.planned;
        self.planned = (offset + spec.bytes()).next_multiple_of(16);
        let extra = ExtraTensorInfo { mutable_data_segments_idx: set as u64, ..ExtraTensorInfo::default() };
        let data_buffer_idx = self.mutable[set].len() as u32;
        self.value(KernelTypes::Tensor(Tensor {
            allocation_info: at(offset),
            data_buffer_idx,
            extra_tensor_info: Some(extra),
            ..spec.row()
        }))
    }

    /// Adds a copy of a value: for a tensor, in the memory and with the initial value of the other.
    pub fn again(&mut self, id: Id) -> Id {
        self.values.push(self.values[id as usize].clone());
        (self.values.len() - 1) as Id
    }

    /// A constant in a data file.
    pub fn external(&mut self, spec: Spec, name: &'static str) -> Id {
        let extra = ExtraTensorInfo {
            fully_qualified_name: Some(name.into()),
            location: TensorDataLocation::EXTERNAL,
            ..ExtraTensorInfo::default()
        };
        self.value(KernelTypes::Tensor(Tensor { extra_tensor_info: Some(extra), ..spec.row() }))
    }

    /// Makes these values the inputs.
    pub fn inputs(&mut self, ids: &[Id]) {
        self.inputs = ids.to_vec();
    }

    /// Makes these values the outputs.
    pub fn outputs(&mut self, ids: &[Id]) {
        self.outputs = ids.to_vec();
    }

    /// Begins another chain.
    pub fn chain(&mut self) {
        self.chains.push(Vec::new());
    }

    /// Index of the next instruction.
    pub fn here(&self) -> i32 {
        self.chains.last().unwrap().len() as i32
    }

    fn push(&mut self, args: InstructionArguments<'static>) {
        self.chains.last_mut().unwrap().push(Instruction { instr_args: Some(args) });
    }

    /// Calls an operator, `namespace::op.overload`.
    pub fn call(&mut self, name: &str, args: &[Id]) {
        let (op, overload) = name.split_once('.').unwrap_or((name, ""));
        let row = Operator { name: Some(op.to_owned().into()), overload: Some(overload.to_owned().into()) };
        let known = self.operators.iter().position(|known| *known == row);
        let index = known.unwrap_or_else(|| {
            self.operators.push(row);
            self.operators.len() - 1
        });
        self.push(InstructionArguments::KernelCall(KernelCall {
            op_index: index as i32,
            args: Some(args.to_vec().into()),
        }));
    }

    /// Adds a delegate and calls it.
    pub fn delegate(&mut self, id: &'static str, payload: &[u8], args: &[Id]) {
        let index = self.delegates.len();
        self.payloads.push(payload.to_vec());
        self.delegates.push(BackendDelegate {
            id: Some(id.into()),
            processed: Some(BackendDelegateDataReference { index: index as u32, ..Default::default() }),
            compile_specs: None,
        });
        self.call_delegate(index, args);
    }

    /// Calls a delegate that was added before.
    pub fn call_delegate(&mut self, index: usize, args: &[Id]) {
        self.push(InstructionArguments::DelegateCall(DelegateCall {
            delegate_index: index as i32,
            args: Some(args.to_vec().into()),
        }));
    }

    /// Moves a value.
    pub fn mov(&mut self, move_from: Id, move_to: Id) {
        self.push(InstructionArguments::MoveCall(MoveCall { move_from, move_to }));
    }

    /// Jumps if a value is false.
    pub fn jump_false(&mut self, cond_value_index: Id, destination_instruction: i32) {
        self.push(InstructionArguments::JumpFalseCall(JumpFalseCall { cond_value_index, destination_instruction }));
    }

    /// Frees a tensor.
    pub fn free(&mut self, value_index: Id) {
        self.push(InstructionArguments::FreeCall(FreeCall { value_index }));
    }

    /// The method as a row.
    pub fn plan(&self, name: &str) -> ExecutionPlan<'static> {
        let chains = self.chains.iter().map(|instructions| Chain {
            inputs: Some(Vec::new().into()),
            outputs: Some(Vec::new().into()),
            instructions: Some(instructions.clone().into()),
            stacktrace: None,
        });
        ExecutionPlan {
            name: Some(name.to_owned().into()),
            container_meta_type: None,
            values: Some(self.values.clone().into()),
            inputs: Some(self.inputs.clone().into()),
            outputs: Some(self.outputs.clone().into()),
            chains: Some(chains.collect::<Vec<_>>().into()),
            operators: Some(self.operators.clone().into()),
            delegates: Some(self.delegates.clone().into()),
            non_const_buffer_sizes: Some(vec![0, self.planned as i64].into()),
            non_const_buffer_device: None,
        }
    }

    /// The rows of a program with this as its method `forward`, and its segments.
    pub fn program(&self) -> (Program<'static>, Vec<Vec<u8>>) {
        let (constants, offsets) = pack(&self.constants, 16);
        let mut segments = vec![constants];
        let mut sets = Vec::new();
        for set in &self.mutable {
            let (bytes, offsets) = pack(set, 1);
            sets.push(SubsegmentOffsets { segment_index: segments.len() as u32, offsets: Some(offsets.into()) });
            segments.push(bytes);
        }
        let payloads =
            self.payloads.iter().map(|payload| BackendDelegateInlineData { data: Some(Blob(payload.clone().into())) });
        let slices: Vec<&[u8]> = segments.iter().map(Vec::as_slice).collect();
        let rows = raw::segments(&slices, &raw::Options::DEFAULT).unwrap();
        let program = Program {
            version: 0,
            execution_plan: Some(vec![self.plan("forward")].into()),
            constant_buffer: Some(Vec::new().into()),
            backend_delegate_data: Some(payloads.collect::<Vec<_>>().into()),
            segments: Some(rows.into()),
            constant_segment: Some(SubsegmentOffsets { segment_index: 0, offsets: Some(offsets.into()) }),
            mutable_data_segments: (!sets.is_empty()).then(|| sets.into()),
            named_data: None,
        };
        (program, segments)
    }

    /// Bytes of the file.
    pub fn build(&self) -> Vec<u8> {
        let (program, segments) = self.program();
        write(&program, &segments)
    }
}

/// A program file from rows and segments.
pub fn write(program: &Program<'_>, segments: &[Vec<u8>]) -> Vec<u8> {
    let slices: Vec<&[u8]> = segments.iter().map(Vec::as_slice).collect();
    raw::program(program, &slices, &raw::Options::DEFAULT).unwrap()
}

/// Buffers one after another, each padded but the last; entry 0 of the offsets is reserved.
fn pack(buffers: &[Vec<u8>], align: usize) -> (Vec<u8>, Vec<u64>) {
    let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
    for buffer in buffers {
        bytes.resize(bytes.len().next_multiple_of(align), 0);
        offsets.push(bytes.len() as u64);
        bytes.extend(buffer);
    }
    (bytes, offsets)
}
