//! Valid programs from any bytes: a few calls of operators on arguments of accepted kinds.
//!
//! Whatever the tape says, the program verifies; whether operators accept their arguments is another question. Shapes
//! follow [`Scene`] hints so that many do. Planned memory overlaps now and then, which the format allows.

use edgepack_builder::raw;
use edgepack_format::operator::{Argument, ArgumentKind, Schema, Trailing};
use edgepack_format::pte::{
    AllocationDetails, Bool, BoolList, Chain, Double, DoubleList, EValue, ExecutionPlan, FreeCall, Instruction,
    InstructionArguments, Int, IntList, JumpFalseCall, KernelCall, KernelTypes, MoveCall, Null, Operator,
    OptionalTensorList, Program, String as Text, SubsegmentOffsets, Tensor, TensorList, TensorShapeDynamism,
};
use edgepack_format::scalar::ScalarType;

use crate::shapes::Scene;
use crate::tape::Tape;

/// Most elements of a tensor.
const MAX_ELEMENTS: i64 = 4096;

const DTYPES: [ScalarType; 14] = [
    ScalarType::FLOAT,
    ScalarType::LONG,
    ScalarType::BOOL,
    ScalarType::INT,
    ScalarType::DOUBLE,
    ScalarType::HALF,
    ScalarType::BYTE,
    ScalarType::CHAR,
    ScalarType::SHORT,
    ScalarType::BFLOAT16,
    ScalarType::UINT16,
    ScalarType::COMPLEX_FLOAT,
    ScalarType::UINT32,
    ScalarType::UINT64,
];

/// An operator to call: its name, and its schema as text.
pub type Callable = (String, String);

/// A program file with one method, `forward`, and the names of the operators it calls.
pub fn program<'o>(bytes: &[u8], operators: &'o [Callable]) -> (Vec<u8>, Vec<&'o str>) {
    let mut smith = Smith { tape: Tape::new(bytes), ..Smith::default() };
    let mut called = Vec::new();
    let calls = 1 + smith.tape.below(6).saturating_sub(3);
    for _ in 0..calls {
        let (name, schema) = &operators[smith.tape.below(operators.len().max(257)) % operators.len()];
        let schema = Schema::parse(schema).expect("schemas of registered operators parse");
        smith.call(&schema);
        called.push(name.as_str());
        smith.extra();
    }
    (smith.finish(), called)
}

#[derive(Default)]
struct Smith<'t> {
    tape: Tape<'t>,
    values: Vec<EValue<'static>>,
    /// Tensors so far, with their sizes.
    tensors: Vec<i32>,
    inputs: Vec<i32>,
    outputs: Vec<i32>,
    operators: Vec<Operator<'static>>,
    instructions: Vec<Instruction<'static>>,
    constants: Vec<u8>,
    offsets: Vec<u64>,
    planned: u64,
}

impl Smith<'_> {
    fn value(&mut self, value: KernelTypes<'static>) -> i32 {
        self.values.push(EValue { val: Some(value) });
        (self.values.len() - 1) as i32
    }

    fn int(&mut self, int_val: i64) -> i32 {
        self.value(KernelTypes::Int(Int { int_val }))
    }

    fn call(&mut self, schema: &Schema<'_>) {
        let scene = Scene::new(schema.full_name(), &mut self.tape);
        let dtype = DTYPES[self.tape.below(24) % 17 % DTYPES.len()];
        let dtype = if self.tape.one_in(3) { ScalarType::FLOAT } else { dtype };
        let mut args: Vec<i32> = Vec::new();
        for arg in schema.args() {
            let id = self.argument(schema, arg, &scene, dtype);
            args.push(id);
        }
        let outs: Vec<i32> = schema.outs().map(|index| args[index]).collect();
        match schema.trailing() {
            Trailing::Nothing => {}
            Trailing::Again(index) => args.push(args[index]),
            Trailing::List => {
                let list = KernelTypes::TensorList(TensorList { items: Some(outs.clone().into()) });
                let id = self.value(list);
                args.push(id);
            }
            Trailing::Result => {
                let returned = schema.returns()[0];
                let id = self.argument(schema, &returned, &scene, dtype);
                args.push(id);
                self.outputs.push(id);
            }
        }
        self.outputs.extend(outs);
        let row = Operator {
            name: Some(schema.name().to_owned().into()),
            overload: Some(schema.overload().to_owned().into()),
        };
        self.operators.push(row);
        let op_index = self.operators.len() as i32 - 1;
        self.push(InstructionArguments::KernelCall(KernelCall { op_index, args: Some(args.into()) }));
    }

    fn push(&mut self, args: InstructionArguments<'static>) {
        self.instructions.push(Instruction { instr_args: Some(args) });
    }

    fn argument(&mut self, schema: &Schema<'_>, arg: &Argument<'_>, scene: &Scene, dtype: ScalarType) -> i32 {
        let name = schema.full_name();
        if arg.optional && !self.tape.one_in(if scene.needs(name, arg.name) { 1 } else { 2 }) {
            return self.value(KernelTypes::Null(Null {}));
        }
        if let Some(list) = arg.list {
            return self.list(name, arg, list.len, list.optional_items, scene, dtype);
        }
        match arg.kind {
            ArgumentKind::Tensor => self.tensor(name, arg, scene, dtype),
            ArgumentKind::Scalar => match self.tape.below(3) {
                0 => {
                    let value = scene.int(arg.name, &mut self.tape);
                    self.int(value)
                }
                1 => self.double(),
                _ => self.bool(),
            },
            ArgumentKind::Float => match self.tape.one_in(8) {
                false => self.double(),
                true => self.int(1),
            },
            ArgumentKind::Bool => self.bool(),
            ArgumentKind::Str => {
                let text = match name.contains("moe_ffn") {
                    true => self.tape.pick(&["sigmoid", "softmax", "sigmoid", "?"]),
                    false => self.tape.pick(&["none", "floor", "trunc", "tanh", "sum", "mean", "nearest", "", "?"]),
                };
                self.value(KernelTypes::String(Text { string_val: Some(text.into()) }))
            }
            ArgumentKind::ScalarType => {
                let dtype = match self.tape.below(3) {
                    0 => dtype.0.into(),
                    _ => scene.int("dtype", &mut self.tape),
                };
                self.int(dtype)
            }
            ArgumentKind::MemoryFormat | ArgumentKind::Layout => {
                let format = self.tape.pick(&[0, 1, 2, 3, -1]);
                self.int(format)
            }
            _ => {
                let value = scene.int(arg.name, &mut self.tape);
                self.int(value)
            }
        }
    }

    fn double(&mut self) -> i32 {
        let values = [0.5, 1.0, 0.0, -1.5, 2.0, 1e-5, 3.0, f64::NAN, f64::INFINITY, -1e30, 1e300, 7.0];
        let double_val = self.tape.pick(&values);
        self.value(KernelTypes::Double(Double { double_val }))
    }

    fn bool(&mut self) -> i32 {
        let bool_val = self.tape.one_in(2);
        self.value(KernelTypes::Bool(Bool { bool_val }))
    }

    fn list(
        &mut self,
        operator: &str,
        arg: &Argument<'_>,
        len: Option<u32>,
        optional: bool,
        scene: &Scene,
        dtype: ScalarType,
    ) -> i32 {
        match arg.kind {
            ArgumentKind::Tensor => {
                let count = 1 + self.tape.below(3);
                let item = Argument { list: None, optional: false, ..*arg };
                let items: Vec<i32> = (0..count)
                    .map(|_| match optional && self.tape.one_in(3) {
                        true => -1,
                        false => self.tensor(operator, &item, scene, dtype),
                    })
                    .collect();
                match optional {
                    true => {
                        self.value(KernelTypes::OptionalTensorList(OptionalTensorList { items: Some(items.into()) }))
                    }
                    false => {
                        if arg.is_out() {
                            self.outputs.extend(&items);
                        }
                        self.value(KernelTypes::TensorList(TensorList { items: Some(items.into()) }))
                    }
                }
            }
            ArgumentKind::Float => {
                let count = len.map_or(2, |len| len as usize);
                let items: Vec<f64> = (0..count).map(|_| self.tape.pick(&[1.0, 2.0, 0.5, 0.0, -1.0, 1e9])).collect();
                self.value(KernelTypes::DoubleList(DoubleList { items: Some(items.into()) }))
            }
            ArgumentKind::Bool => {
                let count = len.map_or(2, |len| len as usize);
                let items: Vec<bool> = (0..count).map(|_| self.tape.one_in(2)).collect();
                self.value(KernelTypes::BoolList(BoolList { items: Some(items.into()) }))
            }
            _ => {
                let ints = scene.ints(arg.name, len, &mut self.tape);
                let items: Vec<i64> = ints.into_iter().map(|item| self.int(item).into()).collect();
                self.value(KernelTypes::IntList(IntList { items: Some(items.into()) }))
            }
        }
    }

    fn tensor(&mut self, operator: &str, arg: &Argument<'_>, scene: &Scene, dtype: ScalarType) -> i32 {
        let writes = arg.mutated;
        // What was there before: chains of calls, and outs that are ins.
        if !self.tensors.is_empty() && self.tape.one_in(if writes { 10 } else { 5 }) {
            return self.tape.pick(&self.tensors);
        }
        let mut sizes = scene.tensor(operator, arg.name, writes, &mut self.tape);
        while sizes.iter().map(|&size| i64::from(size)).product::<i64>() > MAX_ELEMENTS {
            sizes.iter_mut().for_each(|size| *size = (*size).min(8) / 2 + 1);
        }
        let dtype = match self.tape.below(10) {
            9 => DTYPES[self.tape.below(DTYPES.len())],
            8 if writes => self.tape.pick(&[ScalarType::BOOL, ScalarType::LONG, ScalarType::FLOAT]),
            _ => scene.element(operator, arg.name, writes).unwrap_or(dtype),
        };
        let order = self.dim_order(sizes.len());
        let bytes = sizes.iter().map(|&size| size as u64).product::<u64>() * dtype.size().unwrap_or(1) as u64;
        let shape_dynamism = match self.tape.one_in(if writes { 2 } else { 5 }) {
            true => TensorShapeDynamism::DYNAMIC_BOUND,
            false => TensorShapeDynamism::STATIC,
        };
        let mut row = Tensor {
            scalar_type: dtype,
            sizes: Some(sizes.into()),
            dim_order: Some(order.into()),
            shape_dynamism,
            ..Tensor::default()
        };
        let header = scene.header(operator, arg.name);
        match self.tape.below(4) {
            _ if header.is_some() => {
                row.shape_dynamism = TensorShapeDynamism::STATIC;
                row.data_buffer_idx = self.constant(bytes, dtype);
                self.begin(header.unwrap_or_default());
            }
            3 if !writes => row.data_buffer_idx = self.constant(bytes, dtype),
            2 => {}
            _ => row.allocation_info = Some(self.plan(bytes)),
        }
        let (is_constant, is_input) = (row.data_buffer_idx > 0, self.tape.one_in(2));
        let id = self.value(KernelTypes::Tensor(row));
        if !is_constant && !writes && is_input {
            self.inputs.push(id);
        }
        self.tensors.push(id);
        id
    }

    fn dim_order(&mut self, rank: usize) -> Vec<u8> {
        let mut order: Vec<u8> = (0..rank as u8).collect();
        match self.tape.below(12) {
            // Channels last.
            10 if rank >= 3 => order[1..].rotate_left(1),
            11 if rank >= 2 => {
                let (a, b) = (self.tape.below(rank), self.tape.below(rank));
                order.swap(a, b);
            }
            _ => {}
        }
        order
    }

    fn constant(&mut self, bytes: u64, dtype: ScalarType) -> u32 {
        self.constants.resize(self.constants.len().next_multiple_of(16), 0);
        self.offsets.push(self.constants.len() as u64);
        let style = self.tape.below(4);
        for index in 0..bytes {
            let byte = match (style, dtype) {
                // Small integers, so that indices are in range and floats are tiny.
                (0, _) => {
                    if index % dtype.size().unwrap_or(1) as u64 == 0 {
                        (index % 3) as u8
                    } else {
                        0
                    }
                }
                (1, ScalarType::FLOAT) => 1.5f32.to_le_bytes()[index as usize % 4],
                (1, ScalarType::DOUBLE) => (-2.5f64).to_le_bytes()[index as usize % 8],
                (2, _) => 0xff,
                _ => self.tape.byte(),
            };
            self.constants.push(byte);
        }
        self.offsets.len() as u32
    }

    /// Lets the newest constant begin, and go on every so often where a second one may be, with these words.
    fn begin(&mut self, words: [i32; 8]) {
        let start = self.offsets.last().copied().unwrap_or(0) as usize;
        let header: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        for at in (start..self.constants.len()).step_by(64) {
            if let Some(to) = self.constants.get_mut(at..at + header.len()) {
                to.copy_from_slice(&header);
            }
        }
    }

    fn plan(&mut self, bytes: u64) -> AllocationDetails {
        let offset = match self.tape.one_in(8) {
            true => self.tape.below(self.planned as usize / 16 + 1) as u64 * 16,
            false => self.planned,
        };
        self.planned = self.planned.max((offset + bytes).next_multiple_of(16));
        AllocationDetails { memory_id: 1, memory_offset_low: offset as u32, memory_offset_high: 0 }
    }

    /// Now and then an instruction that is no kernel.
    fn extra(&mut self) {
        if self.tensors.is_empty() {
            return;
        }
        let (a, b) = (self.tape.pick(&self.tensors), self.tape.pick(&self.tensors));
        match self.tape.below(24) {
            21 => self.push(InstructionArguments::MoveCall(MoveCall { move_from: a, move_to: b })),
            22 => self.push(InstructionArguments::FreeCall(FreeCall { value_index: a })),
            23 => {
                let condition = self.bool();
                let end = self.instructions.len() + 1;
                let destination = self.tape.below(end + 1) as i32;
                self.push(InstructionArguments::JumpFalseCall(JumpFalseCall {
                    cond_value_index: condition,
                    destination_instruction: destination,
                }));
            }
            _ => {}
        }
    }

    fn finish(self) -> Vec<u8> {
        let mut inputs = self.inputs;
        inputs.sort_unstable();
        inputs.dedup();
        let chain = Chain {
            inputs: Some(Vec::new().into()),
            outputs: Some(Vec::new().into()),
            instructions: Some(self.instructions.into()),
            stacktrace: None,
        };
        let plan = ExecutionPlan {
            name: Some("forward".into()),
            values: Some(self.values.into()),
            inputs: Some(inputs.into()),
            outputs: Some(self.outputs.into()),
            chains: Some(vec![chain].into()),
            operators: Some(self.operators.into()),
            delegates: Some(Vec::new().into()),
            non_const_buffer_sizes: Some(vec![0, self.planned as i64].into()),
            ..ExecutionPlan::default()
        };
        let segments: [&[u8]; 1] = [&self.constants];
        let rows = raw::segments(&segments, &raw::Options::DEFAULT).expect("one small segment");
        let offsets: Vec<u64> = [0].into_iter().chain(self.offsets).collect();
        let program = Program {
            execution_plan: Some(vec![plan].into()),
            constant_buffer: Some(Vec::new().into()),
            backend_delegate_data: Some(Vec::new().into()),
            segments: Some(rows.into()),
            constant_segment: Some(SubsegmentOffsets { segment_index: 0, offsets: Some(offsets.into()) }),
            ..Program::default()
        };
        raw::program(&program, &segments, &raw::Options::DEFAULT).expect("a small program")
    }
}
