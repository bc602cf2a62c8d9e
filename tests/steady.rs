//! A steady run allocates nothing: counted over every program of the corpus that runs here.
//!
//! The first runs may allocate (kernels make their plans then, threads their packing buffers); from the third on not one
//! allocation is allowed, with and without rewrites, inside a pool. Handing work to a pool from outside costs a block of its
//! queue every [`HANDED`] times, and nothing else.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use edgepack_executor::{LoadError, Method, Options};
use edgepack_loader::Program;
use edgepack_tests::programs::{PlainInputs, models};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system allocator unchanged; only a counter is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: by the caller.
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: by the caller.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// As often as work is handed to a pool for one block of its queue.
const HANDED: usize = 63;

/// The fewest allocations that so many runs made once the method had run twice.
fn allocations(program: &Program, method: &str, options: &Options, runs: usize) -> Result<usize, LoadError> {
    let mut loaded = Method::load(program, method, &edgepack_kernels::registry(), options)?;
    let inputs = PlainInputs::of(program, method);
    let inputs = inputs.views();
    for _ in 0..2 {
        loaded.run(&inputs).unwrap_or_else(|error| panic!("{method}: {error}"));
    }
    // With several threads it is chance when each of them meets its first product.
    let rounds = if rayon::current_num_threads() == 1 { 1 } else { 50 };
    let mut least = usize::MAX;
    for _ in 0..rounds {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..runs {
            loaded.run(&inputs).unwrap_or_else(|error| panic!("{method}: {error}"));
        }
        least = least.min(ALLOCATIONS.load(Ordering::Relaxed) - before);
        if least <= runs / HANDED {
            break;
        }
    }
    Ok(least)
}

/// One test, so that nobody else allocates meanwhile.
#[test]
fn steady_runs_do_not_allocate() {
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run_every_program(None, 3, 0));
        // With a pool of its own a method is handed to it once a run.
        run_every_program(Some(threads), HANDED, 1);
    }
}

/// Runs every program so often, and allows so many allocations meanwhile.
fn run_every_program(threads: Option<usize>, runs: usize, most: usize) {
    let (mut methods, mut skipped) = (0, 0);
    for (path, data) in models() {
        let program = Program::open(&path).unwrap();
        for method in program.method_names().unwrap() {
            for no_optimize in [false, true] {
                let options = Options { data: data.clone(), no_optimize, threads, ..Options::default() };
                match allocations(&program, &method, &options, runs) {
                    Ok(count) => assert!(count <= most, "{} {method}: {count} in {runs} runs", path.display()),
                    Err(LoadError::Missing(_)) => {
                        skipped += 1;
                        continue;
                    }
                    Err(error) => panic!("{} {method}: {error}", path.display()),
                }
                methods += 1;
            }
        }
    }
    println!(
        "{methods} methods ran with at most {most} allocations in {runs} runs, {skipped} need what this runtime lacks"
    );
    assert!(methods > 50, "only {methods} methods ran");
}
