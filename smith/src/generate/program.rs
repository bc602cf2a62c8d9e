//! Programs of a few calls of operators on arguments of accepted kinds, and of delegates as their backends make them.
//!
//! Whatever the input, the program verifies; whether operators accept their arguments is another question. Shapes follow
//! [`Scene`] hints so that many do. Planned memory of operators overlaps now and then, which the format allows; that of
//! delegates never does.

use std::sync::{Arc, OnceLock};

use arbitrary::{Arbitrary, Unstructured};
use edgepack_builder::raw;
use edgepack_format::operators::{Argument, ArgumentKind, Schema, SchemaError, Trailing, in_programs};
use edgepack_format::pte::{
    AllocationDetails, BackendDelegate, BackendDelegateDataReference, BackendDelegateInlineData, Bool, BoolList, Chain,
    CompileSpec, DataLocation, DelegateCall as DelegateRow, Double, DoubleList, EValue, ExecutionPlan, FreeCall,
    Instruction, InstructionArguments, Int, IntList, JumpFalseCall, KernelCall, KernelTypes, MoveCall, Null, Operator,
    OptionalTensorList, Program, String as Text, SubsegmentOffsets, Tensor, TensorList, TensorShapeDynamism,
};
use edgepack_format::row::Blob;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;

use super::shape_hints::Scene;
use crate::decisions::Decisions;
use crate::rng::Rng;

/// Bytes of input of [`Generator::program_of`].
const INPUT: usize = 256;

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

/// A program that was generated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramFile {
    /// The file: one method, `forward`.
    pub bytes: Vec<u8>,
    /// Full names of the operators it calls, in order.
    pub operators: Vec<String>,
    /// Number of calls of delegates.
    pub delegates: usize,
}

/// Calls any operator that exporters emit; see [`Generator`] for others.
impl<'a> Arbitrary<'a> for ProgramFile {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        static KNOWN: OnceLock<Generator> = OnceLock::new();
        Ok(KNOWN.get_or_init(Generator::with_known_operators).program(u))
    }
}

/// The export side of a backend under test: which payloads it makes, and for which tensors.
pub trait Delegates {
    /// The id of the backend.
    fn id(&self) -> &str;

    /// A call of a delegate. An error leaves the call out.
    fn call(&self, u: &mut Unstructured<'_>) -> arbitrary::Result<DelegateCall>;
}

/// A call of a delegate that does not exist yet.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DelegateCall {
    /// Payload that the backend made of its part of the graph.
    pub payload: Vec<u8>,
    /// Options given at export, in order.
    pub specs: Vec<(String, Vec<u8>)>,
    /// The tensors that go in. Half of the time one is what an earlier call with the same layout gave, otherwise it is an
    /// input of the method.
    pub inputs: Vec<TensorLayout>,
    /// The tensors that come out, which are outputs of the method.
    pub outputs: Vec<TensorLayout>,
}

/// Generates valid programs.
#[derive(Clone, Default)]
pub struct Generator {
    /// Names and schemas.
    operators: Vec<(String, String)>,
    backends: Vec<Arc<dyn Delegates + Send + Sync>>,
}

impl Generator {
    /// A generator of programs that call nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A generator of programs that call any operator that exporters emit.
    pub fn with_known_operators() -> Self {
        // They parse, which a test holds.
        Self::new().operators(in_programs().map(|operator| operator.schema())).unwrap_or_default()
    }

    /// Adds operators by their schemas, as `aten::add.out(Tensor self, Tensor other, …) -> Tensor(a!)`.
    pub fn operators<S: Into<String>>(mut self, schemas: impl IntoIterator<Item = S>) -> Result<Self, SchemaError> {
        for schema in schemas {
            let schema = schema.into();
            let name = Schema::parse(&schema)?.full_name().to_owned();
            self.operators.push((name, schema));
        }
        Ok(self)
    }

    /// Adds a backend. Of a generator with backends and operators, two calls in three are calls of delegates.
    pub fn backend(mut self, backend: impl Delegates + Send + Sync + 'static) -> Self {
        self.backends.push(Arc::new(backend));
        self
    }

    /// The full names of the operators, in the order in which they were added.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.operators.iter().map(|(name, _)| name.as_str())
    }

    /// A program as the input decides. Any input will do, and a shorter one is a smaller program.
    pub fn program(&self, u: &mut Unstructured<'_>) -> ProgramFile {
        let mut smith = Smith::new(u);
        let mut operators = Vec::new();
        let mut delegates = 0;
        let calls = 1 + smith.u.below(6).saturating_sub(3);
        for _ in 0..calls {
            if !self.backends.is_empty() && (self.operators.is_empty() || !smith.u.one_in(3)) {
                let backend = &self.backends[smith.u.below(self.backends.len())];
                if let Ok(call) = backend.call(smith.u) {
                    smith.delegate(backend.id(), call);
                    delegates += 1;
                }
                continue;
            }
            if self.operators.is_empty() {
                break;
            }
            // Always two bytes, so that an input means much the same with a few operators more.
            let (name, schema) = &self.operators[smith.u.below(self.operators.len().max(257)) % self.operators.len()];
            // Parsed before, when it was added.
            let Ok(schema) = Schema::parse(schema) else { continue };
            smith.call(&schema);
            operators.push(name.clone());
            smith.extra();
        }
        ProgramFile { bytes: smith.finish(), operators, delegates }
    }

    /// The program of a number: the same number is the same program.
    pub fn program_of(&self, seed: u64) -> ProgramFile {
        let mut rng = Rng::new(seed);
        let input: Vec<u8> = (0..INPUT).map(|_| rng.below(256) as u8).collect();
        self.program(&mut Unstructured::new(&input))
    }
}

struct Smith<'s, 't> {
    u: &'s mut Unstructured<'t>,
    values: Vec<EValue<'static>>,
    /// Tensors so far.
    tensors: Vec<i32>,
    inputs: Vec<i32>,
    outputs: Vec<i32>,
    operators: Vec<Operator<'static>>,
    delegates: Vec<BackendDelegate<'static>>,
    payloads: Vec<BackendDelegateInlineData<'static>>,
    /// Values that delegates wrote.
    results: Vec<(i32, TensorLayout)>,
    instructions: Vec<Instruction<'static>>,
    constants: Vec<u8>,
    offsets: Vec<u64>,
    planned: u64,
}

impl<'s, 't> Smith<'s, 't> {
    fn new(u: &'s mut Unstructured<'t>) -> Self {
        Smith {
            u,
            values: Vec::new(),
            tensors: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            operators: Vec::new(),
            delegates: Vec::new(),
            payloads: Vec::new(),
            results: Vec::new(),
            instructions: Vec::new(),
            constants: Vec::new(),
            offsets: Vec::new(),
            planned: 0,
        }
    }

    fn delegate(&mut self, id: &str, call: DelegateCall) {
        let mut args = Vec::new();
        for layout in &call.inputs {
            let earlier: Vec<i32> =
                self.results.iter().filter(|(_, have)| have == layout).map(|(value, _)| *value).collect();
            let id = match !earlier.is_empty() && self.u.one_in(2) {
                true => self.u.pick(&earlier),
                false => {
                    let id = self.laid_out(layout);
                    self.inputs.push(id);
                    id
                }
            };
            args.push(id);
        }
        for layout in call.outputs {
            let id = self.laid_out(&layout);
            self.outputs.push(id);
            self.results.push((id, layout));
            args.push(id);
        }
        let specs = call.specs.into_iter();
        let specs: Vec<_> =
            specs.map(|(key, value)| CompileSpec { key: Some(key.into()), value: Some(Blob(value.into())) }).collect();
        let processed =
            BackendDelegateDataReference { location: DataLocation::INLINE, index: self.payloads.len() as u32 };
        self.payloads.push(BackendDelegateInlineData { data: Some(Blob(call.payload.into())) });
        self.delegates.push(BackendDelegate {
            id: Some(id.to_owned().into()),
            processed: Some(processed),
            compile_specs: Some(specs.into()),
        });
        let delegate_index = self.delegates.len() as i32 - 1;
        self.push(InstructionArguments::DelegateCall(DelegateRow { delegate_index, args: Some(args.into()) }));
    }

    /// A tensor in planned memory of its own.
    fn laid_out(&mut self, layout: &TensorLayout) -> i32 {
        let offset = self.planned;
        self.planned = (offset + layout.byte_len() as u64).next_multiple_of(16);
        let sizes: Vec<i32> = layout.sizes().iter().map(|&size| i32::try_from(size).unwrap_or(i32::MAX)).collect();
        let row = Tensor {
            scalar_type: layout.scalar_type(),
            sizes: Some(sizes.into()),
            dim_order: Some(layout.dim_order().to_vec().into()),
            allocation_info: Some(AllocationDetails {
                memory_id: 1,
                memory_offset_low: offset as u32,
                memory_offset_high: (offset >> 32) as u32,
            }),
            ..Tensor::default()
        };
        let id = self.value(KernelTypes::Tensor(row));
        self.tensors.push(id);
        id
    }

    fn value(&mut self, value: KernelTypes<'static>) -> i32 {
        self.values.push(EValue { val: Some(value) });
        (self.values.len() - 1) as i32
    }

    fn int(&mut self, int_val: i64) -> i32 {
        self.value(KernelTypes::Int(Int { int_val }))
    }

    fn call(&mut self, schema: &Schema<'_>) {
        let scene = Scene::new(schema.full_name(), self.u);
        let dtype = DTYPES[self.u.below(24) % 17 % DTYPES.len()];
        let dtype = if self.u.one_in(3) { ScalarType::FLOAT } else { dtype };
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
        if arg.optional && !self.u.one_in(if scene.needs(name, arg.name) { 1 } else { 2 }) {
            return self.value(KernelTypes::Null(Null {}));
        }
        if let Some(list) = arg.list {
            return self.list(name, arg, list.len, list.optional_items, scene, dtype);
        }
        match arg.kind {
            ArgumentKind::Tensor => self.tensor(name, arg, scene, dtype),
            ArgumentKind::Scalar => match self.u.below(3) {
                0 => {
                    let value = scene.int(arg.name, self.u);
                    self.int(value)
                }
                1 => self.double(),
                _ => self.bool(),
            },
            ArgumentKind::Float => match self.u.one_in(8) {
                false => self.double(),
                true => self.int(1),
            },
            ArgumentKind::Bool => self.bool(),
            ArgumentKind::Str => {
                let text = match name.contains("moe_ffn") {
                    true => self.u.pick(&["sigmoid", "softmax", "sigmoid", "?"]),
                    false => self.u.pick(&["none", "floor", "trunc", "tanh", "sum", "mean", "nearest", "", "?"]),
                };
                self.value(KernelTypes::String(Text { string_val: Some(text.into()) }))
            }
            ArgumentKind::ScalarType => {
                let dtype = match self.u.below(3) {
                    0 => dtype.0.into(),
                    _ => scene.int("dtype", self.u),
                };
                self.int(dtype)
            }
            ArgumentKind::MemoryFormat | ArgumentKind::Layout => {
                let format = self.u.pick(&[0, 1, 2, 3, -1]);
                self.int(format)
            }
            _ => {
                let value = scene.int(arg.name, self.u);
                self.int(value)
            }
        }
    }

    fn double(&mut self) -> i32 {
        let values = [0.5, 1.0, 0.0, -1.5, 2.0, 1e-5, 3.0, f64::NAN, f64::INFINITY, -1e30, 1e300, 7.0];
        let double_val = self.u.pick(&values);
        self.value(KernelTypes::Double(Double { double_val }))
    }

    fn bool(&mut self) -> i32 {
        let bool_val = self.u.one_in(2);
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
                let count = 1 + self.u.below(3);
                let item = Argument { list: None, optional: false, ..*arg };
                let items: Vec<i32> = (0..count)
                    .map(|_| match optional && self.u.one_in(3) {
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
                let items: Vec<f64> = (0..count).map(|_| self.u.pick(&[1.0, 2.0, 0.5, 0.0, -1.0, 1e9])).collect();
                self.value(KernelTypes::DoubleList(DoubleList { items: Some(items.into()) }))
            }
            ArgumentKind::Bool => {
                let count = len.map_or(2, |len| len as usize);
                let items: Vec<bool> = (0..count).map(|_| self.u.one_in(2)).collect();
                self.value(KernelTypes::BoolList(BoolList { items: Some(items.into()) }))
            }
            _ => {
                let ints = scene.ints(arg.name, len, self.u);
                let items: Vec<i64> = ints.into_iter().map(|item| self.int(item).into()).collect();
                self.value(KernelTypes::IntList(IntList { items: Some(items.into()) }))
            }
        }
    }

    fn tensor(&mut self, operator: &str, arg: &Argument<'_>, scene: &Scene, dtype: ScalarType) -> i32 {
        let writes = arg.mutated;
        // What was there before: chains of calls, and outs that are ins.
        if !self.tensors.is_empty() && self.u.one_in(if writes { 10 } else { 5 }) {
            let id = self.u.pick(&self.tensors);
            // A call must not write a constant.
            if !(writes && self.is_constant(id)) {
                return id;
            }
        }
        let mut sizes = scene.tensor(operator, arg.name, writes, self.u);
        while sizes.iter().map(|&size| i64::from(size)).product::<i64>() > MAX_ELEMENTS {
            sizes.iter_mut().for_each(|size| *size = (*size).min(8) / 2 + 1);
        }
        let dtype = match self.u.below(10) {
            9 => DTYPES[self.u.below(DTYPES.len())],
            8 if writes => self.u.pick(&[ScalarType::BOOL, ScalarType::LONG, ScalarType::FLOAT]),
            _ => scene.element(operator, arg.name, writes).unwrap_or(dtype),
        };
        let order = self.dim_order(sizes.len());
        let bytes = sizes.iter().map(|&size| size as u64).product::<u64>() * dtype.size().unwrap_or(1) as u64;
        let shape_dynamism = match self.u.one_in(if writes { 2 } else { 5 }) {
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
        match self.u.below(4) {
            _ if header.is_some() => {
                row.shape_dynamism = TensorShapeDynamism::STATIC;
                row.data_buffer_idx = self.constant(bytes, dtype);
                self.begin(header.unwrap_or_default());
            }
            3 if !writes => row.data_buffer_idx = self.constant(bytes, dtype),
            2 => {}
            _ => row.allocation_info = Some(self.plan(bytes)),
        }
        let (is_constant, is_input) = (row.data_buffer_idx > 0, self.u.one_in(2));
        let id = self.value(KernelTypes::Tensor(row));
        if !is_constant && !writes && is_input {
            self.inputs.push(id);
        }
        self.tensors.push(id);
        id
    }

    fn is_constant(&self, id: i32) -> bool {
        let value = self.values.get(id as usize).and_then(|row| row.val.as_ref());
        matches!(value, Some(KernelTypes::Tensor(row)) if row.data_buffer_idx > 0)
    }

    fn dim_order(&mut self, rank: usize) -> Vec<u8> {
        let mut order: Vec<u8> = (0..rank as u8).collect();
        match self.u.below(12) {
            // Channels last.
            10 if rank >= 3 => order[1..].rotate_left(1),
            11 if rank >= 2 => {
                let (a, b) = (self.u.below(rank), self.u.below(rank));
                order.swap(a, b);
            }
            _ => {}
        }
        order
    }

    fn constant(&mut self, bytes: u64, dtype: ScalarType) -> u32 {
        self.constants.resize(self.constants.len().next_multiple_of(16), 0);
        self.offsets.push(self.constants.len() as u64);
        let style = self.u.below(4);
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
                _ => self.u.byte(),
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
        let offset = match self.u.one_in(8) {
            true => self.u.below(self.planned as usize / 16 + 1) as u64 * 16,
            false => self.planned,
        };
        self.planned = self.planned.max((offset + bytes).next_multiple_of(16));
        AllocationDetails { memory_id: 1, memory_offset_low: offset as u32, memory_offset_high: 0 }
    }

    /// Adds, now and then, an instruction that is not a kernel.
    fn extra(&mut self) {
        if self.tensors.is_empty() {
            return;
        }
        let (a, b) = (self.u.pick(&self.tensors), self.u.pick(&self.tensors));
        match self.u.below(24) {
            21 => self.push(InstructionArguments::MoveCall(MoveCall { move_from: a, move_to: b })),
            22 => self.push(InstructionArguments::FreeCall(FreeCall { value_index: a })),
            23 => {
                let condition = self.bool();
                let end = self.instructions.len() + 1;
                let destination = self.u.below(end + 1) as i32;
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
            delegates: Some(self.delegates.into()),
            non_const_buffer_sizes: Some(vec![0, self.planned as i64].into()),
            ..ExecutionPlan::default()
        };
        let segments: [&[u8]; 1] = [&self.constants];
        let rows = raw::segments(&segments, &raw::Options::DEFAULT).expect("one small segment");
        let offsets: Vec<u64> = [0].into_iter().chain(self.offsets).collect();
        let program = Program {
            execution_plan: Some(vec![plan].into()),
            constant_buffer: Some(Vec::new().into()),
            backend_delegate_data: Some(self.payloads.into()),
            segments: Some(rows.into()),
            constant_segment: Some(SubsegmentOffsets { segment_index: 0, offsets: Some(offsets.into()) }),
            ..Program::default()
        };
        raw::program(&program, &segments, &raw::Options::DEFAULT).expect("a small program")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_format::extent::FileExtent;
    use edgepack_format::limits::Limits;
    use edgepack_format::pte::ProgramRef;
    use edgepack_format::pte::verify::verify_all;
    use std::collections::BTreeSet;

    fn verified(bytes: &[u8]) {
        let verdict = verify_all(bytes, FileExtent::of(bytes), &Limits::DEFAULT);
        assert!(!verdict.findings.has_errors(), "{}", verdict.findings);
    }

    #[test]
    fn programs_verify_whatever_the_input() {
        let generator = Generator::with_known_operators();
        assert_eq!(generator.names().len(), in_programs().count());
        let mut called = BTreeSet::new();
        for seed in 0..2000 {
            let program = generator.program_of(seed);
            verified(&program.bytes);
            called.extend(program.operators);
        }
        assert!(called.len() * 10 > generator.names().len() * 9, "{} of {}", called.len(), generator.names().len());
        for input in [&[][..], &[0xff; 300]] {
            verified(&generator.program(&mut Unstructured::new(input)).bytes);
            verified(&Generator::new().program(&mut Unstructured::new(input)).bytes);
        }
    }

    struct Same(TensorLayout);

    impl Delegates for Same {
        fn id(&self) -> &str {
            "Same"
        }

        fn call(&self, u: &mut Unstructured<'_>) -> arbitrary::Result<DelegateCall> {
            let specs = vec![("key".to_owned(), vec![u.byte()])];
            let layouts = vec![self.0.clone()];
            Ok(DelegateCall { payload: vec![7], specs, inputs: layouts.clone(), outputs: layouts })
        }
    }

    #[test]
    fn delegates_are_called_on_inputs_and_on_each_other_next_to_operators() {
        let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[2, 3]).unwrap();
        let alone = Generator::new().backend(Same(layout.clone()));
        let both = Generator::with_known_operators().backend(Same(layout));
        let (mut chained, mut mixed) = (0, 0);
        for seed in 0..300 {
            let program = alone.program_of(seed);
            verified(&program.bytes);
            let file = ProgramRef::reopen(&program.bytes).unwrap();
            let plan = file.plans().iter().next().unwrap().unwrap();
            assert_eq!(plan.delegates.map_or(0, |list| list.len()), program.delegates);
            chained += usize::from(plan.inputs.map_or(0, |list| list.len()) < program.delegates);
            let program = both.program_of(seed);
            verified(&program.bytes);
            mixed += usize::from(program.delegates > 0 && !program.operators.is_empty());
        }
        assert!(chained > 10 && mixed > 10, "{chained} chained, {mixed} mixed");
    }
}
