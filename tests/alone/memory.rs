//! Loading and running take the memory that the executor says they take: peaks of live heap, compared with the account.
//!
//! Everything that is allocated counts while programs are opened, loaded and run; it is compared with
//! `MemoryBytes::heap`. A temporary copy of weights, or weights that are held twice without being reported, make this
//! fail. Comparing two files takes a small multiple of their tables, whatever they are made of, and none of their
//! segments.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use edgepack::edit::{DiffOptions, Opened, Package, Root, diff};
use edgepack_builder::ptd::{DataFormat, data_file};
use edgepack_builder::pte::{ProgramBuilder, TensorSpec};
use edgepack_builder::{NamedDataStore, args};
use edgepack_compute::fourier::Transform;
use edgepack_compute::threads::Threads;
use edgepack_executor::{LoadError, LoadMethod, MemoryBytes, Method, Options};
use edgepack_format::limits::Limits;
use edgepack_format::pte::{
    self, Buffer, Chain, EValue, ExecutionPlan, Instruction, InstructionArguments, IntList, KernelCall, KernelTypes,
    TensorShapeDynamism,
};
use edgepack_format::row::Blob;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorView;
use edgepack_loader::{OpenOptions, Program, Source};
use edgepack_tests::programs::{PlainInputs, models};

struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

fn change(bytes: isize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

// SAFETY: every call goes to the system allocator unchanged; besides that, only counters are updated.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        change(layout.size() as isize);
        // SAFETY: by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        change(layout.size() as isize);
        // SAFETY: by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        change(-(layout.size() as isize));
        // SAFETY: by the caller.
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        change(size as isize - layout.size() as isize);
        // SAFETY: by the caller.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that a program may take beyond the account: a tenth, and what is the same for small and large ones: names,
/// boxes and lists of the plan, and the block that a thread multiplies matrices with.
fn allowed(memory: &MemoryBytes) -> usize {
    memory.heap() + memory.heap() / 10 + ALLOWANCE
}

const ALLOWANCE: usize = 256 << 10;

/// A file that has to be read: nothing of it is borrowed.
struct Reading(Vec<u8>);

impl Source for Reading {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let from = self.0.get(offset as usize..offset as usize + into.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(from);
        Ok(())
    }
}

/// Opens, loads and runs; gives the most bytes in use at once, what is still in use, and the method.
fn measure(open: impl Fn() -> Program, method: &str, options: &Options) -> Result<(usize, usize, Method), LoadError> {
    let registry = edgepack_kernels::registry();
    let inputs = PlainInputs::of(&open(), method);
    let inputs = inputs.views();
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let mut loaded = open().method(method).unwrap().load(&registry, options)?;
    for _ in 0..4 {
        loaded.run(&inputs).unwrap_or_else(|error| panic!("{method}: {error}"));
    }
    let since = |counter: &AtomicIsize| (counter.load(Ordering::Relaxed) - before) as usize;
    Ok((since(&PEAK), since(&LIVE), loaded))
}

fn weights(sizes: &[usize]) -> TensorView<'static> {
    let count = sizes.iter().product::<usize>();
    // No two tensors alike, which the builder would store once.
    let bytes = (0..count).flat_map(|i| (((i + count) % 17) as f32 * 0.01 + 0.01).to_le_bytes()).collect::<Vec<u8>>();
    TensorView::of::<f32>(sizes, bytes.leak()).unwrap()
}

fn float(sizes: &[usize]) -> TensorSpec {
    TensorSpec::new(ScalarType::FLOAT, sizes)
}

/// Linear layers as exporters write them: the weight is transposed in every run. Nothing is so large that it is in pages of
/// its own, which the allocator does not see.
fn linear_layers(rows: usize) -> Vec<u8> {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let mut x = forward.input(float(&[rows, 128])).unwrap();
    for layer in 0..3 {
        let (from, to) = (128 + layer * 128, 256 + layer * 128);
        let weight = forward.constant(&format!("w{layer}"), &weights(&[to, from])).unwrap();
        let bias = forward.constant(&format!("b{layer}"), &weights(&[to])).unwrap();
        let turned = forward.call("aten::permute_copy.out", args![weight, vec![1i64, 0]], float(&[from, to])).unwrap();
        x = forward.call("aten::addmm.out", args![bias, x, turned], float(&[rows, to])).unwrap();
    }
    forward.output(x).unwrap();
    program.finish().unwrap().to_bytes().unwrap()
}

/// A sum with a constant that is turned first.
fn turned_constant() -> Vec<u8> {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let x = forward.input(float(&[256, 512])).unwrap();
    let constant = forward.constant("constant", &weights(&[512, 256])).unwrap();
    let turned = forward.call("aten::permute_copy.out", args![constant, vec![1i64, 0]], float(&[256, 512])).unwrap();
    let y = forward.call("aten::add.out", args![x, turned, 1i64], float(&[256, 512])).unwrap();
    forward.output(y).unwrap();
    program.finish().unwrap().to_bytes().unwrap()
}

/// A convolution with a batch norm behind it, which becomes part of the weight.
fn normed_convolution() -> Vec<u8> {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let x = forward.input(float(&[1, 64, 8, 8])).unwrap();
    let weight = forward.constant("weight", &weights(&[128, 64, 3, 3])).unwrap();
    let norm = forward.constant("norm", &weights(&[128])).unwrap();
    let (ones, zeros) = (|| vec![1i64; 2], || vec![0i64; 2]);
    let arguments = args![x, weight, (), ones(), ones(), ones(), false, zeros(), 1i64];
    let y = forward.call("aten::convolution.out", arguments, float(&[1, 128, 8, 8])).unwrap();
    let arguments = args![y, norm, norm, norm, norm, 0.1f64, 1e-5f64];
    let outs = [float(&[1, 128, 8, 8]), float(&[0]), float(&[0])];
    let [y, ..] = forward.call("aten::_native_batch_norm_legit_no_training.out", arguments, outs).unwrap();
    forward.output(y).unwrap();
    program.finish().unwrap().to_bytes().unwrap()
}

fn floats(method: &Method) -> Vec<f32> {
    method.outputs().get(0).and_then(|output| output.tensor()).unwrap().as_slice::<f32>().unwrap().to_vec()
}

/// Everything counts for the whole process, so there is one test.
#[test]
fn peaks_stay_within_what_is_said() {
    let pool = Threads::new(1).unwrap();
    pool.run(|| {
        corpus();
        linear_layers_keep_their_weights_once();
        what_nobody_reads_is_given_back();
        weights_take_the_factors_of_norms_without_a_copy();
        tables_and_working_memory_are_charged();
        differences_take_little_more_than_the_files();
        values_in_another_order_take_little_more_than_the_files();
    });
}

fn corpus() {
    let mut methods = 0;
    for (path, data) in models() {
        let options = Options { data, ..Options::default() };
        let open = || Program::open(&path).unwrap();
        for name in open().method_names().unwrap() {
            match measure(open, &name, &options) {
                Ok((peak, _, method)) => {
                    let memory = method.memory_bytes();
                    assert!(peak <= allowed(&memory), "{} {name}: {peak} bytes, said {memory:?}", path.display());
                    methods += 1;
                }
                Err(LoadError::Missing(_)) => {}
                Err(error) => panic!("{} {name}: {error}", path.display()),
            }
        }
    }
    assert!(methods > 30, "only {methods} methods ran");
}

fn read(file: &[u8]) -> impl Fn() -> Program + use<> {
    let source = Arc::new(Reading(file.to_vec()));
    move || OpenOptions::default().open_source(source.clone()).unwrap()
}

fn linear_layers_keep_their_weights_once() {
    for rows in [1, 4] {
        let file = linear_layers(rows);
        let open = read(&file);
        let (peak, kept, method) = measure(&open, "forward", &Options::default()).unwrap();
        let memory = method.memory_bytes();
        assert!(peak <= allowed(&memory), "{rows} rows: {peak} bytes, said {memory:?}");
        assert!(kept <= allowed(&memory) && kept + ALLOWANCE >= memory.heap(), "{kept} bytes, said {memory:?}");
        // Transposed weights are views of those in the file; several rows are worth packing them.
        let once = memory.packed.abs_diff(memory.constants) < memory.constants / 8;
        assert!(memory.private < ALLOWANCE, "{memory:?}");
        assert!(if rows == 1 { memory.packed == 0 } else { once }, "{memory:?}");

        let plain = Options { no_optimize: true, ..Options::default() };
        let (_, _, plain) = measure(&open, "forward", &plain).unwrap();
        for (have, want) in floats(&method).iter().zip(floats(&plain)) {
            assert!((have - want).abs() <= 1e-4 * want.abs(), "{have} is not {want}");
        }
    }
}

fn what_nobody_reads_is_given_back() {
    let file = turned_constant();
    let open = read(&file);
    let (_, _, method) = measure(&open, "forward", &Options::default()).unwrap();
    let plain = Options { no_optimize: true, ..Options::default() };
    let (_, _, plain) = measure(&open, "forward", &plain).unwrap();
    let (memory, before) = (method.memory_bytes(), plain.memory_bytes());
    // The constant that was turned at load took the place of the one in the file.
    assert_eq!(memory.constants, 0, "{memory:?}");
    assert!(before.constants > 1 << 18 && memory.private < before.constants + ALLOWANCE, "{memory:?}, {before:?}");
    assert_eq!(floats(&method), floats(&plain));
    // Constants that are borrowed stay where they are.
    let lent = Program::from_bytes(file).unwrap();
    let (_, _, method) = measure(move || lent.clone(), "forward", &Options::default()).unwrap();
    assert!(method.memory_bytes().lent > 1 << 18);
}

fn weights_take_the_factors_of_norms_without_a_copy() {
    let open = read(&normed_convolution());
    let (peak, _, method) = measure(&open, "forward", &Options::default()).unwrap();
    let plain = Options { no_optimize: true, ..Options::default() };
    let (_, _, plain) = measure(&open, "forward", &plain).unwrap();
    let memory = method.memory_bytes();
    assert!(peak <= allowed(&memory), "{peak} bytes, said {memory:?}");
    assert!(memory.private < ALLOWANCE && memory.packed < memory.constants + ALLOWANCE, "{memory:?}");
    for (have, want) in floats(&method).iter().zip(floats(&plain)) {
        assert!((have - want).abs() <= 1e-3 * want.abs(), "{have} is not {want}");
    }
}

/// The inverse of a matrix, which is computed in memory of its own, and Fourier transforms, whose tables stay; with a bound
/// on the points that is not reached, too.
fn tables_and_working_memory_are_charged() {
    const SIDE: usize = 192;
    const POINTS: usize = 20_011;
    let program = |dynamism: TensorShapeDynamism| {
        let mut program = ProgramBuilder::new();
        let mut forward = program.method("forward");
        let matrix = forward.input(float(&[SIDE, SIDE])).unwrap();
        let outs = [float(&[SIDE, SIDE]), TensorSpec::new(ScalarType::INT, [0usize; 0])];
        let [inverse, _] = forward.call("aten::linalg_inv_ex.inverse", args![matrix, false], outs).unwrap();
        let line = forward.input(float(&[POINTS]).dynamism(dynamism)).unwrap();
        let half = TensorSpec::new(ScalarType::COMPLEX_FLOAT, [POINTS / 2 + 1]).dynamism(dynamism);
        let spectrum = forward.call("aten::_fft_r2c.out", args![line, vec![0i64], 0i64, true], half).unwrap();
        forward.output(inverse).unwrap();
        forward.output(spectrum).unwrap();
        program.finish().unwrap().to_bytes().unwrap()
    };
    let work = (2 * SIDE * SIDE + SIDE) * size_of::<f64>();
    let tables = Transform::bytes_of(POINTS);
    for dynamism in [TensorShapeDynamism::STATIC, TensorShapeDynamism::DYNAMIC_BOUND] {
        let file = program(dynamism);
        let open = read(&file);
        let (peak, left, method) = measure(&open, "forward", &Options::default()).unwrap();
        let memory = method.memory_bytes();
        assert_eq!(memory.packed, work + tables, "{memory:?}");
        assert!(peak <= allowed(&memory) && left <= allowed(&memory), "{peak} and {left} bytes, said {memory:?}");
        // Without memory for what is retained, the method is not loaded.
        let most = memory.heap() + Transform::most_bytes(POINTS) + ALLOWANCE;
        let limited = |bytes: usize| {
            let mut limits = Limits::default();
            limits.method_bytes = bytes as u64;
            measure(&open, "forward", &Options { limits: Some(limits), ..Options::default() })
        };
        assert!(limited(most).is_ok(), "{dynamism:?}: {memory:?}");
        let less = memory.planned + memory.private + memory.packed - tables / 2;
        let refused = limited(less).err().unwrap().to_string();
        assert!(refused.contains("packed weights and tables, the limits leave"), "{dynamism:?}: {refused}");
    }
}

/// Programs of many rows, of one long list, of large contents inside and outside the flatbuffer, and a data file of
/// many keys, each compared with one that differs.
fn differences_take_little_more_than_the_files() {
    const MOST: usize = 8;
    let rows = many_rows();
    for (what, [left, right]) in [
        ("rows", [rows.clone(), patched(&rows, b"method_name_to_find", b"method_name_to_fine")]),
        ("list", [long_list(1), long_list(2)]),
        ("constants", [shared_constants(1.0), shared_constants(2.0)]),
        ("keys", [many_keys(1), many_keys(2)]),
    ] {
        assert!(left.len() > 1 << 20, "{what}: {} bytes", left.len());
        let length = left.len() + right.len();
        let (left, right) = (Arc::new(Reading(left)), Arc::new(Reading(right)));
        for options in [DiffOptions::default(), DiffOptions { exact: true, ..DiffOptions::default() }] {
            let before = LIVE.load(Ordering::Relaxed);
            PEAK.store(before, Ordering::Relaxed);
            let open = |source: &Arc<Reading>| Opened::from_source(source.clone(), Limits::default()).unwrap();
            let (left, right) = (open(&left), open(&right));
            let found = diff(&left.package().unwrap(), &right.package().unwrap(), &options).unwrap();
            let peak = (PEAK.load(Ordering::Relaxed) - before) as usize;
            assert_eq!(found.len(), 1, "{what}: {found:?}");
            assert!(peak < MOST * length / 2, "{what}, {options:?}: {peak} bytes for two files of {length}");
        }
    }
}

/// A file with some bytes in place of others of the same length, which it has once.
fn patched(file: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> =
        file.windows(from.len()).enumerate().filter(|(_, at)| *at == from).map(|(at, _)| at).collect();
    let [at] = places[..] else { panic!("{} places", places.len()) };
    let mut file = file.to_vec();
    file[at..at + to.len()].copy_from_slice(to);
    file
}

fn plan<'a>(values: Vec<EValue<'a>>, instructions: Vec<Instruction<'a>>) -> Package<'a> {
    let chain = Chain { instructions: Some(instructions.into()), ..Chain::default() };
    let plan = ExecutionPlan {
        name: Some("method_name_to_find".into()),
        values: Some(values.into()),
        chains: Some(vec![chain].into()),
        ..ExecutionPlan::default()
    };
    Package::new(Root::Program(pte::Program { execution_plan: Some(vec![plan].into()), ..pte::Program::default() }))
}

fn value(val: KernelTypes<'_>) -> EValue<'_> {
    EValue { val: Some(val) }
}

/// Programs of the same instructions with values numbered from either end: what is what has to be found out.
fn values_in_another_order_take_little_more_than_the_files() {
    const COUNT: i32 = 20_000;
    let program = |number: &dyn Fn(i32) -> i32| {
        let mut values: Vec<_> = (0..COUNT)
            .map(|index| (number(index), value(KernelTypes::Int(pte::Int { int_val: index.into() }))))
            .collect();
        values.sort_by_key(|(index, _)| *index);
        let call = |index: i32| {
            let args = [0, 1, 2, 3].map(|arg| number((index + arg) % COUNT)).to_vec();
            Instruction {
                instr_args: Some(InstructionArguments::KernelCall(KernelCall { op_index: 0, args: Some(args.into()) })),
            }
        };
        plan(values.into_iter().map(|(_, value)| value).collect(), (0..COUNT).map(call).collect()).to_bytes().unwrap()
    };
    let (left, right) = (program(&|index| index), program(&|index| COUNT - 1 - index));
    let length = left.len() + right.len();
    let open = |bytes| Opened::from_source(Arc::new(Reading(bytes)), Limits::default()).unwrap();
    let (left, right) = (open(left), open(right));
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let found = diff(&left.package().unwrap(), &right.package().unwrap(), &DiffOptions::default()).unwrap();
    let peak = (PEAK.load(Ordering::Relaxed) - before) as usize;
    assert_eq!(found, []);
    assert!(peak < 4 * length, "{peak} bytes for two files of {length}");
}

fn many_rows() -> Vec<u8> {
    let tensor = |index: i32| pte::Tensor {
        scalar_type: ScalarType::FLOAT,
        sizes: Some(vec![index, 2].into()),
        dim_order: Some(vec![0, 1].into()),
        ..pte::Tensor::default()
    };
    let call = |index: i32| KernelCall { op_index: 1, args: Some(vec![index, 1, 2, 3].into()) };
    let calls =
        (0..40_000).map(|index| Instruction { instr_args: Some(InstructionArguments::KernelCall(call(index))) });
    plan((0..20_000).map(|index| value(KernelTypes::Tensor(tensor(index)))).collect(), calls.collect())
        .to_bytes()
        .unwrap()
}

fn long_list(last: i64) -> Vec<u8> {
    let items: Vec<i64> = (0..400_000).map(|index| index % 100).chain([last]).collect();
    plan(vec![value(KernelTypes::IntList(IntList { items: Some(items.into()) }))], Vec::new()).to_bytes().unwrap()
}

/// Many tensors of one large constant inside the flatbuffer; a small one differs.
fn shared_constants(last: f32) -> Vec<u8> {
    const LEN: i32 = 300_000;
    let tensor = |index: u32, len: i32| pte::Tensor {
        scalar_type: ScalarType::FLOAT,
        sizes: Some(vec![len].into()),
        dim_order: Some(vec![0].into()),
        data_buffer_idx: index,
        ..pte::Tensor::default()
    };
    let values = (0..200).map(|_| value(KernelTypes::Tensor(tensor(1, LEN))));
    let values = values.chain([value(KernelTypes::Tensor(tensor(2, 1)))]).collect();
    let mut package = plan(values, Vec::new());
    let buffer = |bytes: Vec<u8>| Buffer { storage: Some(Blob(bytes.into())) };
    let buffers = vec![buffer(Vec::new()), buffer(vec![0; LEN as usize * 4]), buffer(last.to_le_bytes().to_vec())];
    package.program_mut().unwrap().constant_buffer = Some(buffers.into());
    package.to_bytes().unwrap()
}

fn many_keys(last: u8) -> Vec<u8> {
    let mut store = NamedDataStore::new();
    for index in 0..20_000u32 {
        let mut bytes = index.to_le_bytes().to_vec();
        bytes.push(if index == 7 { last } else { 0 });
        store.add(&format!("layers.{index}.attention.weight"), bytes, 16, None).unwrap();
    }
    data_file(&store, DataFormat::FlatTensor, 128).unwrap().to_bytes().unwrap()
}
