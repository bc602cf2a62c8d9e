//! Allocations: a session that decodes makes none, and a second session of a model none for weights.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::PathBuf;

use edgepack_executor::delegate::Backends;
use edgepack_llm::model::{Model, Options};
use edgepack_llm::sampling::{Sampler, Settings};
use edgepack_llm::session::Session;
use edgepack_loader::Program;

struct Counting;

thread_local! {
    // Of this thread: what runs the tests allocates on another, whenever it likes. Models here compute on one thread.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

fn count(allocations: usize, bytes: isize) {
    ALLOCATIONS.set(ALLOCATIONS.get() + allocations);
    LIVE.set(LIVE.get() + bytes);
}

// SAFETY: every call goes to the system allocator unchanged; besides that, only counters are updated.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as isize);
        // SAFETY: by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(0, -(layout.size() as isize));
        // SAFETY: by the caller.
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as isize - layout.size() as isize);
        // SAFETY: by the caller.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn programs(folder: PathBuf) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("{} is absent", folder.display());
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pte"));
    paths.sort();
    paths
}

fn corpus() -> Vec<PathBuf> {
    let Some(corpus) = std::env::var_os("EDGEPACK_CORPUS") else {
        println!("EDGEPACK_CORPUS is not set: no models of the reference exporter were run");
        return Vec::new();
    };
    programs(PathBuf::from(corpus).join("llm"))
}

fn own() -> Vec<PathBuf> {
    programs(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/programs"))
}

/// The model of a file; `None` if it is one that is refused.
fn model(path: &PathBuf) -> Option<Model> {
    let mut options = Options::default();
    options.executor.backends = Backends::new().with(edgepack_xnnpack::Xnnpack);
    options.executor.threads = Some(1);
    Model::load(&Program::open(path).unwrap(), &edgepack_kernels::registry(), &options).ok()
}

#[test]
fn steady_decoding_allocates_nothing() {
    let mut ran = 0;
    for path in own().iter().chain(&corpus()) {
        let Some(model) = model(path) else { continue };
        let mut session = model.session().unwrap();
        let settings =
            Settings { temperature: 0.8, top_p: 0.9, repetition_penalty: 1.1, seed: 3, ..Settings::default() };
        let mut sampler = Sampler::new(model.vocabulary(), settings).unwrap();
        let mut token = 1;
        let mut step = |session: &mut Session| {
            let logits = session.decode(token).unwrap();
            token = sampler.sample(logits, &[1, 2, 3]).unwrap();
        };
        session.prefill(&[1, 2, 3]).unwrap();
        (0..4).for_each(|_| step(&mut session));
        let before = ALLOCATIONS.get();
        (0..6).for_each(|_| step(&mut session));
        let made = ALLOCATIONS.get() - before;
        assert_eq!(made, 0, "{}", path.display());
        ran += 1;
    }
    assert!(ran > 10, "{ran}");
}

#[test]
fn a_second_session_holds_no_weights() {
    for path in corpus() {
        let model = model(&path).unwrap();
        let session = || {
            let before = LIVE.get();
            let mut session = model.session().unwrap();
            session.prefill(&[1, 2, 3, 4, 5]).unwrap();
            session.decode(6).unwrap();
            (usize::try_from(LIVE.get() - before).unwrap(), session)
        };
        // The first takes what opening the model loaded.
        let (_, first) = session();
        let (second, other) = session();
        let (mut state, mut weights) = (0, 0);
        for (_, bytes) in other.memory_bytes() {
            state += bytes.planned + bytes.private + bytes.scratch + bytes.plan;
            weights += bytes.packed + bytes.constants;
        }
        println!("{}: {second} bytes, {state} of them state and plan; {weights} bytes of weights", path.display());
        assert!(second < state + weights / 2, "{}: {second} of {state}, weights {weights}", path.display());
        drop(first);
    }
}
