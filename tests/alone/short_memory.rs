//! Memory that is not there is an error, never an abort: allocations of the size that a file decides fail one after
//! another, and every failure is a typed error of loading or running.
//!
//! This also holds for verifying every format and for reading exported programs, where every table that grows with the
//! file fails once, down to a sixteenth of that size.
//!
//! Allocations that are small and of no file's size (names, boxes, messages) may abort, as `SECURITY.md` says.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use edgepack_builder::args;
use edgepack_builder::pte::{ProgramBuilder, TensorSpec};
use edgepack_builder::xnnpack::{PayloadBuilder, ValueSpec};
use edgepack_compute::threads::Threads;
use edgepack_executor::{LoadError, Method, Options, RunError};
use edgepack_exir::archive::Archive;
use edgepack_format::finding::{ErrorCode, Findings};
use edgepack_format::limits::Limits;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorView;
use edgepack_format::xnnpack::{Datatype, Node1x1, NodeUnion};
use edgepack_format::{FileKind, bundle, darwinn, detect, ptd, pte, tflite, trace, xnnpack};
use edgepack_loader::mlf::Library;
use edgepack_loader::{DataFile, Error, OpenOptions, Program, RegisterError, Source};
use edgepack_tests::assemble::{Assembly, float};
use edgepack_tests::command::edgepack;
use edgepack_tests::programs::{PlainInputs, models};
use edgepack_tests::scale::documents;

/// Allocations above this size are of a size that a file decides.
const LARGE: usize = 64 << 10;

/// While files are verified, allocations above this size fail: few items of a list are enough then.
const TABLE: usize = 4 << 10;

struct Failing;

/// Number of the table to come whose allocation fails, from 1; [`usize::MAX`] while tables are not counted, 0 while
/// they are counted and none fails.
static NEXT: AtomicUsize = AtomicUsize::new(usize::MAX);
static TABLES: AtomicUsize = AtomicUsize::new(0);

/// Returns whether this is the table whose allocation fails.
fn is_missing(size: usize) -> bool {
    let next = NEXT.load(Ordering::Relaxed);
    size > TABLE && next != usize::MAX && TABLES.fetch_add(1, Ordering::Relaxed) + 1 == next
}

/// Bytes of large pieces in use, and how many there may be.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static ROOM: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Bytes in use with each large piece, in order, while nothing failed.
static SEEN: [AtomicUsize; 4096] = [const { AtomicUsize::new(0) }; 4096];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Returns whether there is room for a piece, which then counts.
fn takes(size: usize) -> bool {
    if is_missing(size) {
        return false;
    }
    if size <= LARGE {
        return true;
    }
    let live = LIVE.fetch_add(size, Ordering::Relaxed) + size;
    if live > ROOM.load(Ordering::Relaxed) {
        LIVE.fetch_sub(size, Ordering::Relaxed);
        return false;
    }
    if let Some(seen) = SEEN.get(COUNT.fetch_add(1, Ordering::Relaxed)) {
        seen.store(live, Ordering::Relaxed);
    }
    true
}

fn gives(size: usize) {
    if size > LARGE {
        LIVE.fetch_sub(size, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system allocator unchanged, or fails.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !takes(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !takes(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        gives(layout.size());
        // SAFETY: by the caller.
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both pieces are there for a moment.
        if !takes(size) {
            return std::ptr::null_mut();
        }
        gives(layout.size());
        // SAFETY: by the caller.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// A file that has to be read: nothing of it is borrowed.
struct Reading(Vec<u8>);

impl Source for Reading {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        let from = self.0.get(offset as usize..offset as usize + into.len());
        into.copy_from_slice(from.ok_or(std::io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

fn weights(sizes: &[usize]) -> TensorView<'static> {
    let count = sizes.iter().product::<usize>();
    let bytes = (0..count).flat_map(|i| (((i + count) % 17) as f32 * 0.01 + 0.01).to_le_bytes()).collect::<Vec<u8>>();
    TensorView::of::<f32>(sizes, bytes.leak()).unwrap()
}

fn spec(sizes: &[usize]) -> TensorSpec {
    TensorSpec::new(ScalarType::FLOAT, sizes)
}

/// Linear layers, transposed and packed at load.
fn linear_layers() -> Vec<u8> {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let mut x = forward.input(spec(&[4, 512])).unwrap();
    for layer in 0..2 {
        let (from, to) = (512 + layer * 128, 640 + layer * 128);
        let weight = forward.constant(&format!("w{layer}"), &weights(&[to, from])).unwrap();
        let bias = forward.constant(&format!("b{layer}"), &weights(&[to])).unwrap();
        let turned = forward.call("aten::permute_copy.out", args![weight, vec![1i64, 0]], spec(&[from, to])).unwrap();
        x = forward.call("aten::addmm.out", args![bias, x, turned], spec(&[4, to])).unwrap();
    }
    forward.output(x).unwrap();
    program.finish().unwrap().to_bytes().unwrap()
}

/// A convolution with a norm that becomes part of the weight.
fn convolution() -> Vec<u8> {
    let mut program = ProgramBuilder::new();
    let mut forward = program.method("forward");
    let x = forward.input(spec(&[1, 64, 24, 24])).unwrap();
    let weight = forward.constant("weight", &weights(&[128, 64, 3, 3])).unwrap();
    let norm = forward.constant("norm", &weights(&[128])).unwrap();
    let (ones, zeros) = (|| vec![1i64; 2], || vec![0i64; 2]);
    let arguments = args![x, weight, (), ones(), ones(), ones(), false, zeros(), 1i64];
    let y = forward.call("aten::convolution.out", arguments, spec(&[1, 128, 24, 24])).unwrap();
    let arguments = args![y, norm, norm, norm, norm, 0.1f64, 1e-5f64];
    let outs = [spec(&[1, 128, 24, 24]), spec(&[0]), spec(&[0])];
    let [y, ..] = forward.call("aten::_native_batch_norm_legit_no_training.out", arguments, outs).unwrap();
    forward.output(y).unwrap();
    program.finish().unwrap().to_bytes().unwrap()
}

/// So many values, arguments and instructions that their tables are large.
fn long_code() -> Vec<u8> {
    let mut assembly = Assembly::new();
    let x = assembly.planned(float(&[2]));
    let alpha = assembly.int(1);
    let mut last = x;
    for _ in 0..6000 {
        let next = assembly.planned(float(&[2]));
        assembly.call("aten::add.out", &[last, x, alpha, next, next]);
        last = next;
    }
    let far = assembly.unplanned(float(&[20_000]));
    assembly.mov(far, far);
    assembly.inputs(&[x]);
    assembly.outputs(&[last]);
    assembly.build()
}

/// Code of the error that opening, loading or running ended in; `None` if nothing failed.
fn attempt(file: &Arc<Reading>, name: &str, options: &Options) -> Option<ErrorCode> {
    let opened = OpenOptions::default().open_source(file.clone());
    let program = match opened {
        Ok(program) => program,
        Err(error) => return Some(error.code()),
    };
    let registry = edgepack_kernels::registry();
    let mut method = match Method::load(&program, name, &registry, options) {
        Ok(method) => method,
        Err(LoadError::Missing(_)) => return None,
        Err(error) => return Some(error.code()),
    };
    let room = ROOM.swap(usize::MAX, Ordering::Relaxed);
    let before = LIVE.load(Ordering::Relaxed);
    let inputs = PlainInputs::of(&program, name);
    let inputs = inputs.views();
    // Memory that the caller brings is not the method's.
    ROOM.store(room.saturating_add(LIVE.load(Ordering::Relaxed) - before), Ordering::Relaxed);
    method.run(&inputs).err().map(|error: RunError| error.code())
}

/// Runs a method in just too little memory for each of its large pieces; how many there are.
fn every_failure(name: &str, file: Vec<u8>, options: &Options) -> usize {
    let file = Arc::new(Reading(file));
    let mut failures = 0;
    for method in Program::from_bytes(file.0.clone()).unwrap().method_names().unwrap() {
        // The library's own blocks are made at the first product, and are of no file's size.
        assert_eq!(attempt(&file, &method, options), None, "{name}");
        COUNT.store(0, Ordering::Relaxed);
        assert_eq!(attempt(&file, &method, options), None, "{name}");
        let count = COUNT.load(Ordering::Relaxed);
        assert!(count <= SEEN.len(), "{name} {method}: {count}");
        let mut rooms: Vec<usize> = SEEN[..count].iter().map(|seen| seen.load(Ordering::Relaxed) - 1).collect();
        rooms.sort_unstable();
        rooms.dedup();
        for room in rooms {
            ROOM.store(room, Ordering::Relaxed);
            let failed = attempt(&file, &method, options);
            ROOM.store(usize::MAX, Ordering::Relaxed);
            match failed {
                Some(code) => assert_eq!(code, ErrorCode::MemoryAllocationFailed, "{name} {method} in {room} bytes"),
                // Rewrites that had no room were left out.
                None => continue,
            }
            failures += 1;
        }
    }
    failures
}

/// One allocator for the whole process, so there is one test.
#[test]
fn memory_that_is_not_there_is_an_error() {
    let pool = Threads::new(1).unwrap();
    pool.run(|| {
        let mut failures = 0;
        for no_optimize in [false, true] {
            for (name, file) in
                [("linear layers", linear_layers()), ("convolution", convolution()), ("long code", long_code())]
            {
                let options = Options { no_optimize, ..Options::default() };
                let count = every_failure(name, file, &options);
                println!("{name}: {count} large allocations");
                assert!(count > 1, "{name}: {count}");
                failures += count;
            }
            for (path, data) in models() {
                let options = Options { data, no_optimize, ..Options::default() };
                failures += every_failure(&path.display().to_string(), std::fs::read(&path).unwrap(), &options);
            }
        }
        println!("{failures} failures, every one told");
        every_table();
        one_account();
        arenas_are_lazy_or_refused();
    });
}

/// Function that reads a file and tells what was wrong: `None` if nothing was, `Some(true)` if it was memory.
type Read = fn(&Arc<Reading>) -> Option<bool>;

fn told(findings: &Findings) -> Option<bool> {
    findings.has_errors().then(|| findings.code() == Some(ErrorCode::MemoryAllocationFailed))
}

/// Verifies a file of any family.
fn verify(file: &Arc<Reading>) -> Option<bool> {
    let bytes = file.0.as_slice();
    let limits = Limits::DEFAULT;
    let findings = match detect(bytes) {
        FileKind::Program => pte::verify::verify_all(bytes, pte::FileExtent::of(bytes), &limits).findings,
        FileKind::Data | FileKind::FlatData => {
            ptd::verify::verify(bytes, pte::FileExtent::of(bytes), &limits, ptd::Accept::ALL).findings
        }
        FileKind::Bundle => bundle::verify::verify(bytes, &limits).findings,
        FileKind::Trace => trace::verify::verify(bytes, &limits).findings,
        FileKind::TfLite => tflite::verify::verify(bytes, &limits, darwinn::Accept::ALL).findings,
        FileKind::DarwinnPackage => darwinn::verify::verify(bytes, &limits, darwinn::Accept::ALL).findings,
        _ => edgepack_loader::mlf::verify(bytes, &limits).findings,
    };
    told(&findings)
}

/// A payload of a delegate with so many values, nodes and constants that their tables are large.
fn long_payload() -> Vec<u8> {
    let mut builder = PayloadBuilder::new();
    let spec = || ValueSpec::new(Datatype::FP32, [2]);
    let mut last = builder.input(spec()).unwrap();
    for index in 0..2000 {
        let constant = builder.named_constant(index.to_string(), 8).unwrap();
        builder.constant_value(spec(), constant).unwrap();
        let next = if index == 1999 { builder.output(spec()) } else { builder.value(spec()) }.unwrap();
        builder.node(NodeUnion::Abs(Node1x1 { input_id: last.id(), output_id: next.id(), flags: 0 }));
        last = next;
    }
    builder.finish().unwrap().bytes
}

/// Verifies a payload, and asks for its constants.
fn payload(file: &Arc<Reading>) -> Option<bool> {
    let payload = match xnnpack::Payload::parse(&file.0, &Limits::DEFAULT) {
        Ok(payload) => payload,
        Err(findings) => return told(&findings),
    };
    let constants = payload.constants(|_| Ok::<_, ()>(Some(&[0u8; 8][..])));
    match constants {
        Ok(constants) => {
            let context = xnnpack::verify::Context { constants: Some(&constants), ..Default::default() };
            told(&xnnpack::verify::with_context(&payload, &context, &Limits::DEFAULT))
        }
        Err(error) => Some(matches!(error, xnnpack::ConstantsError::Memory(_))),
    }
}

/// Reads an exported program.
fn exported(file: &Arc<Reading>) -> Option<bool> {
    let bytes = file.0.as_slice();
    let archive = match Archive::parse(bytes) {
        Ok(archive) => archive,
        Err(error) => return Some(matches!(error, edgepack_exir::Error::Memory(_))),
    };
    let error = archive.program().err()?;
    Some(matches!(error, edgepack_exir::Error::Memory(_)))
}

/// Opens a file of any family with everything the loader makes of it.
fn open(file: &Arc<Reading>) -> Option<bool> {
    let bytes = file.0.as_slice();
    let told = |error: Error| error.code() == ErrorCode::MemoryAllocationFailed;
    let source: Arc<dyn Source> = file.clone();
    let opened = match detect(bytes) {
        FileKind::Program => OpenOptions::default().open_source(source).and_then(|program| {
            program.named_data()?;
            program.method_names()?.iter().try_for_each(|name| program.method_meta(name).map(drop))
        }),
        FileKind::Data | FileKind::FlatData => {
            DataFile::from_source(source, Limits::DEFAULT, ptd::Accept::ALL).map(drop)
        }
        FileKind::DarwinnPackage | FileKind::TfLite => {
            return match edgepack_loader::Registry::new().register(bytes).err()? {
                RegisterError::Invalid(findings) => Some(findings.is_short_of_memory()),
                error => Some(matches!(error, RegisterError::Memory(_))),
            };
        }
        FileKind::Bundle | FileKind::Trace => return None,
        _ => Library::from_source(source, &Limits::DEFAULT)
            .and_then(|library| library.modules().try_for_each(|module| Ok(module.wanted_params().map(drop)?))),
    };
    opened.err().map(told)
}

/// Reads a file without each of its tables in turn; how many there are.
fn without_each_table(name: &str, file: &Arc<Reading>, read: Read) -> usize {
    let said = read(file);
    assert_ne!(said, Some(true), "{name}");
    let attempt = |missing: usize| {
        TABLES.store(0, Ordering::Relaxed);
        NEXT.store(missing, Ordering::Relaxed);
        let told = read(file);
        NEXT.store(usize::MAX, Ordering::Relaxed);
        (told, TABLES.load(Ordering::Relaxed))
    };
    let (_, count) = attempt(0);
    for missing in 1..=count {
        let (told, _) = attempt(missing);
        // A list of findings that has no room for one more counts them.
        assert!(told == Some(true) || told == said, "{name}: without table {missing} of {count}: {told:?}");
    }
    count
}

/// Every list of every family of files, long enough to have tables.
fn every_table() {
    let mut files = 0;
    let mut tables = 0;
    for document in documents() {
        let reads: &[Read] = if document.name.ends_with(".pt2") { &[exported] } else { &[verify, open] };
        let mut of_family = 0;
        for list in document.lists() {
            let more = if document.items < 400 { 300 } else { 4500 };
            for named in [false, true] {
                let Some(file) = document.with(&list, more, named) else { continue };
                let file = Arc::new(Reading(file));
                let name = format!("{} {}", document.name, list.name);
                of_family += reads.iter().map(|read| without_each_table(&name, &file, *read)).sum::<usize>();
                files += 1;
            }
        }
        println!("{}: {of_family} tables", document.name);
        tables += of_family;
    }
    let of_payload = without_each_table("a payload", &Arc::new(Reading(long_payload())), payload);
    println!("a payload: {of_payload} tables");
    assert!(of_payload > 10, "{of_payload}");
    println!("{} files, {} tables, every one missed", files + 1, tables + of_payload);
}

/// A program that plans so many bytes and needs others of its own.
fn asking(planned: u64, own: i32) -> Vec<u8> {
    let mut assembly = Assembly::new();
    let x = assembly.planned_at(float(&[1]), planned - 4);
    let free = assembly.unplanned(float(&[own]));
    let alpha = assembly.int(1);
    let out = assembly.planned_at(float(&[1]), 64);
    assembly.call("aten::add.out", &[x, x, alpha, out, out]);
    assembly.inputs(&[x]);
    assembly.outputs(&[out, free]);
    assembly.build()
}

fn load(file: Vec<u8>, limits: Option<Limits>) -> Result<Method, LoadError> {
    let program = Program::from_bytes(file).unwrap();
    Method::load(&program, "forward", &edgepack_kernels::registry(), &Options { limits, ..Options::default() })
}

/// Planned memory and values of the method's own are charged to one account.
fn one_account() {
    let mut limits = Limits::DEFAULT;
    limits.memory_bytes = 1 << 20;
    assert!(load(asking(700_000, 50_000), Some(limits)).is_ok());
    for (planned, own) in [(700_000, 100_000), (1 << 20, 1), (64 + 4, 262_144)] {
        let error = load(asking(planned, own), Some(limits)).err().expect("more than the account has");
        assert_eq!(error.code(), ErrorCode::MemoryAllocationFailed, "{error}");
    }
}

/// Bytes of this process that are in memory, where the system says.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Checks that memory that a file asks for is refused, or had without touching it.
fn arenas_are_lazy_or_refused() {
    for gigabytes in [1, 7, 60] {
        let file = asking(gigabytes << 30, 1);
        let limits = edgepack_loader::machine_limits();
        let before = resident();
        match load(file.clone(), None) {
            Ok(mut method) => {
                assert!((gigabytes << 30) <= limits.memory_bytes);
                assert_eq!(method.memory_bytes().planned, (gigabytes as usize) << 30);
                method.run(&[TensorView::of::<f32>(&[1], &1f32.to_le_bytes()).unwrap()]).unwrap();
                if let (Some(before), Some(after)) = (before, resident()) {
                    assert!(after < before + (64 << 20), "{gigabytes} GiB: {before} bytes were in memory, now {after}");
                }
            }
            Err(error) => assert_eq!(error.code(), ErrorCode::MemoryAllocationFailed, "{error}"),
        }
        // Nothing but loading asks for it.
        for command in ["inspect", "verify", "size", "ops", "print"] {
            let ran = edgepack(&[command, "-"], file.clone(), false);
            assert!(ran.status <= 1, "{command}: {}", ran.stderr);
        }
        let ran = edgepack(&["run", "-", "--limits", "hostile"], file, false);
        assert!(ran.status != 0 && !ran.stderr.is_empty(), "{}", ran.status);
    }
    assert_eq!(
        load(asking(60 << 30, 1), Some(Limits::DEFAULT)).err().unwrap().code(),
        ErrorCode::MemoryAllocationFailed
    );
    let memory = Error::Memory { what: "a segment".to_owned(), bytes: 5 };
    assert_eq!(memory.code(), ErrorCode::MemoryAllocationFailed);
}
