//! The good programs that recipes change.

use edgepack_builder::raw;
use edgepack_format::pte::{
    AllocationDetails, BackendDelegate, BackendDelegateDataReference, BackendDelegateInlineData, Bool, Buffer, Chain,
    CompileSpec, DataLocation, DataSegment, DelegateCall, Double, EValue, ExecutionPlan, ExtraTensorInfo, FreeCall,
    Instruction, InstructionArguments, Int, IntList, JumpFalseCall, KernelCall, KernelTypes, MoveCall, NamedData, Null,
    Operator, OptionalTensorList, Program, String, SubsegmentOffsets, Tensor, TensorList,
};
use edgepack_format::row::Blob;
use edgepack_format::scalar::ScalarType;

use super::layout;

/// A program as rows that can be changed, and its segments.
pub struct Rows {
    /// Rows of the program.
    pub program: Program<'static>,
    /// Bytes of the segments.
    pub segments: Vec<Vec<u8>>,
}

impl Rows {
    /// Bytes of the file.
    pub fn write(&self) -> Vec<u8> {
        let segments: Vec<&[u8]> = self.segments.iter().map(Vec::as_slice).collect();
        raw::program(&self.program, &segments, &layout()).expect("rows are written as they are")
    }

    /// The first method.
    pub fn plan(&mut self) -> &mut ExecutionPlan<'static> {
        &mut self.plans()[0]
    }

    /// All methods.
    pub fn plans(&mut self) -> &mut Vec<ExecutionPlan<'static>> {
        rows(&mut self.program.execution_plan)
    }

    /// A value of the first method.
    pub fn value(&mut self, index: usize) -> &mut Option<KernelTypes<'static>> {
        &mut rows(&mut self.plan().values)[index].val
    }

    /// A value that is a tensor.
    pub fn tensor(&mut self, index: usize) -> &mut Tensor<'static> {
        match self.value(index) {
            Some(KernelTypes::Tensor(tensor)) => tensor,
            other => panic!("value {index} is {other:?}"),
        }
    }

    /// The extra information of a tensor, which is made if it has none.
    pub fn extra(&mut self, index: usize) -> &mut ExtraTensorInfo<'static> {
        self.tensor(index).extra_tensor_info.get_or_insert_default()
    }

    /// The first chain of the first method.
    pub fn chain(&mut self) -> &mut Chain<'static> {
        &mut rows(&mut self.plan().chains)[0]
    }

    /// An instruction of the first chain.
    pub fn instruction(&mut self, index: usize) -> &mut Option<InstructionArguments<'static>> {
        &mut rows(&mut self.chain().instructions)[index].instr_args
    }

    /// A delegate of the first method.
    pub fn delegate(&mut self, index: usize) -> &mut BackendDelegate<'static> {
        &mut rows(&mut self.plan().delegates)[index]
    }

    /// The reference to the payload of a delegate, which is made if it has none.
    pub fn payload(&mut self, index: usize) -> &mut BackendDelegateDataReference {
        self.delegate(index).processed.get_or_insert_default()
    }

    /// A segment's row.
    pub fn segment(&mut self, index: usize) -> &mut DataSegment {
        &mut rows(&mut self.program.segments)[index]
    }

    /// The list of constants.
    pub fn constants(&mut self) -> &mut SubsegmentOffsets<'static> {
        self.program.constant_segment.get_or_insert_default()
    }

    /// The lists of initial values.
    pub fn initial(&mut self) -> &mut Vec<SubsegmentOffsets<'static>> {
        rows(&mut self.program.mutable_data_segments)
    }

    /// The named data.
    pub fn named(&mut self) -> &mut Vec<NamedData<'static>> {
        rows(&mut self.program.named_data)
    }
}

fn rows<'r, T>(rows: &'r mut Option<edgepack_format::row::Rows<'static, T>>) -> &'r mut Vec<T>
where
    T: edgepack_format::row::Table<'static> + Clone,
{
    rows.get_or_insert_default().to_mut().expect("owned rows")
}

/// A float tensor of these sizes without data.
pub fn float(sizes: &[i32]) -> Tensor<'static> {
    Tensor {
        scalar_type: ScalarType::FLOAT,
        sizes: Some(sizes.to_vec().into()),
        dim_order: Some((0..sizes.len() as u8).collect::<Vec<_>>().into()),
        ..Tensor::default()
    }
}

/// A float tensor of these sizes in planned memory 1, at this offset.
pub fn planned(sizes: &[i32], offset: u32) -> Tensor<'static> {
    let allocation = AllocationDetails { memory_id: 1, memory_offset_low: offset, memory_offset_high: 0 };
    Tensor { allocation_info: Some(allocation), ..float(sizes) }
}

fn values(list: Vec<KernelTypes<'static>>) -> Vec<EValue<'static>> {
    list.into_iter().map(|value| EValue { val: Some(value) }).collect()
}

fn code(list: Vec<InstructionArguments<'static>>) -> Chain<'static> {
    let instructions: Vec<_> = list.into_iter().map(|args| Instruction { instr_args: Some(args) }).collect();
    Chain {
        inputs: Some(Vec::new().into()),
        outputs: Some(Vec::new().into()),
        instructions: Some(instructions.into()),
        stacktrace: None,
    }
}

/// `add.out(x, y, alpha)` in planned memory: values 0 and 1 are inputs, 2 is alpha, 3 the output.
pub fn small() -> Rows {
    let x = KernelTypes::Tensor(planned(&[2, 2], 0));
    let y = KernelTypes::Tensor(planned(&[2, 2], 16));
    let out = KernelTypes::Tensor(planned(&[2, 2], 32));
    let add = KernelCall { op_index: 0, args: Some(vec![0, 1, 2, 3, 3].into()) };
    let operator = Operator { name: Some("aten::add".into()), overload: Some("out".into()) };
    let plan = ExecutionPlan {
        name: Some("forward".into()),
        container_meta_type: None,
        values: Some(values(vec![x, y, KernelTypes::Int(Int { int_val: 1 }), out]).into()),
        inputs: Some(vec![0, 1].into()),
        outputs: Some(vec![3].into()),
        chains: Some(vec![code(vec![InstructionArguments::KernelCall(add)])].into()),
        operators: Some(vec![operator].into()),
        delegates: Some(Vec::new().into()),
        non_const_buffer_sizes: Some(vec![0, 48].into()),
        non_const_buffer_device: None,
    };
    let program = Program {
        execution_plan: Some(vec![plan].into()),
        constant_segment: Some(SubsegmentOffsets { segment_index: 0, offsets: Some(vec![0].into()) }),
        segments: Some(vec![DataSegment::default()].into()),
        ..Program::default()
    };
    Rows { program, segments: Vec::new() }
}

/// Something of everything.
///
/// Values: 0 input, 1 constant, 2 output, 3 mutable with an initial value, 4 Int, 5 IntList, 6 TensorList,
/// 7 OptionalTensorList, 8 Bool, 9 String, 10 Double, 11 Null, 12 unplanned tensor, 13 BOOL tensor.
/// Instructions: 0 kernel call, 1 delegate call, 2 move, 3 jump, 4 free.
/// Segments: 0 constants, 1 initial values, 2 payload of delegate 1, 3 named data.
pub fn full() -> Rows {
    let constant = Tensor { data_buffer_idx: 1, ..float(&[2, 2]) };
    let mutable = Tensor { data_buffer_idx: 1, ..planned(&[2], 32) };
    let truth = Tensor { scalar_type: ScalarType::BOOL, ..planned(&[1], 40) };
    let values = values(vec![
        KernelTypes::Tensor(planned(&[2, 2], 0)),
        KernelTypes::Tensor(constant),
        KernelTypes::Tensor(planned(&[2, 2], 16)),
        KernelTypes::Tensor(mutable),
        KernelTypes::Int(Int { int_val: 1 }),
        KernelTypes::IntList(IntList { items: Some(vec![4].into()) }),
        KernelTypes::TensorList(TensorList { items: Some(vec![0, 1].into()) }),
        KernelTypes::OptionalTensorList(OptionalTensorList { items: Some(vec![-1, 0].into()) }),
        KernelTypes::Bool(Bool { bool_val: true }),
        KernelTypes::String(String { string_val: Some("floor".into()) }),
        KernelTypes::Double(Double { double_val: 0.5 }),
        KernelTypes::Null(Null {}),
        KernelTypes::Tensor(float(&[2, 2])),
        KernelTypes::Tensor(truth),
    ]);
    let code = code(vec![
        InstructionArguments::KernelCall(KernelCall { op_index: 0, args: Some(vec![0, 1, 4, 2, 2].into()) }),
        InstructionArguments::DelegateCall(DelegateCall { delegate_index: 0, args: Some(vec![0, 2].into()) }),
        InstructionArguments::MoveCall(MoveCall { move_from: 2, move_to: 12 }),
        InstructionArguments::JumpFalseCall(JumpFalseCall { cond_value_index: 13, destination_instruction: 5 }),
        InstructionArguments::FreeCall(FreeCall { value_index: 12 }),
    ]);
    let delegate = |location, index| BackendDelegate {
        id: Some("Sample".into()),
        processed: Some(BackendDelegateDataReference { location, index }),
        compile_specs: Some(vec![CompileSpec { key: Some("k".into()), value: Some(blob(&[1])) }].into()),
    };
    let segments = vec![vec![1; 16], vec![2; 8], vec![3; 4], vec![4; 4]];
    let mut rows = small();
    *rows.plan() = ExecutionPlan {
        values: Some(values.into()),
        inputs: Some(vec![0].into()),
        outputs: Some(vec![2].into()),
        chains: Some(vec![code].into()),
        delegates: Some(vec![delegate(DataLocation::INLINE, 0), delegate(DataLocation::SEGMENT, 2)].into()),
        ..rows.plan().clone()
    };
    let borrowed: Vec<&[u8]> = segments.iter().map(Vec::as_slice).collect();
    rows.program.segments = Some(raw::segments(&borrowed, &layout()).expect("they fit").into());
    rows.program.backend_delegate_data = Some(vec![BackendDelegateInlineData { data: Some(blob(&[5; 4])) }].into());
    rows.program.mutable_data_segments =
        Some(vec![SubsegmentOffsets { segment_index: 1, offsets: Some(vec![0, 0].into()) }].into());
    rows.program.named_data = Some(vec![NamedData { key: Some("key".into()), segment_index: 3 }].into());
    rows.constants().offsets = Some(vec![0, 0].into());
    rows.segments = segments;
    rows
}

/// A blob that owns these bytes.
pub fn blob(bytes: &[u8]) -> Blob<'static> {
    Blob(bytes.to_vec().into())
}

/// A constant in the flatbuffer.
pub fn buffer(len: usize) -> Buffer<'static> {
    Buffer { storage: Some(blob(&vec![6; len])) }
}
