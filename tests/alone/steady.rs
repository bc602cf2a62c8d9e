//! A steady run allocates nothing: counted over every program of the corpus that runs here.
//!
//! The first runs may allocate (kernels make their plans then, threads their packing buffers); from the third on not one
//! allocation is allowed, with and without rewrites, on threads of the caller's, of the method's, and of the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use edgepack_compute::threads::{self, Threads};
use edgepack_executor::{LoadError, Method, Options};
use edgepack_loader::Program;
use edgepack_tests::programs::{PlainInputs, models};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system allocator unchanged; besides that, only a counter is updated.
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

/// Runs of a method that are counted together.
const RUNS: usize = 3;

/// The fewest allocations that [`RUNS`] runs made once the method had run twice.
fn allocations(program: &Program, method: &str, options: &Options) -> Result<usize, LoadError> {
    let mut loaded = Method::load(program, method, &edgepack_kernels::registry(), options)?;
    let inputs = PlainInputs::of(program, method);
    let inputs = inputs.views();
    for _ in 0..2 {
        loaded.run(&inputs).unwrap_or_else(|error| panic!("{method}: {error}"));
    }
    // With several threads it is random when each of them meets its first product.
    let rounds = if options.threads.unwrap_or_else(threads::current) == 1 { 1 } else { 50 };
    let mut least = usize::MAX;
    for _ in 0..rounds {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..RUNS {
            loaded.run(&inputs).unwrap_or_else(|error| panic!("{method}: {error}"));
        }
        least = least.min(ALLOCATIONS.load(Ordering::Relaxed) - before);
        if least == 0 {
            break;
        }
    }
    Ok(least)
}

/// One test, so that no other test allocates meanwhile.
#[test]
fn steady_runs_do_not_allocate() {
    for threads in [1, 2] {
        Threads::new(threads).unwrap().run(|| run_every_program(None));
        run_every_program(Some(threads));
    }
    run_every_program(None);
}

/// Runs every program on so many threads of its own, or on those it finds.
fn run_every_program(threads: Option<usize>) {
    let (mut methods, mut skipped) = (0, 0);
    for (path, data) in models() {
        let program = Program::open(&path).unwrap();
        for method in program.method_names().unwrap() {
            for no_optimize in [false, true] {
                let options = Options { data: data.clone(), no_optimize, threads, ..Options::default() };
                match allocations(&program, &method, &options) {
                    Ok(count) => assert_eq!(count, 0, "{} {method}: {count} in {RUNS} runs", path.display()),
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
    println!("{methods} methods ran without an allocation, {skipped} need what this runtime lacks");
    assert!(methods > 50, "only {methods} methods ran");
}
