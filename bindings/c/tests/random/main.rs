//! Random sequences of functions with random arguments: handles that are open, closed, of another kind or made up, pointers
//! that are null, odd or right, files that are damaged. Whatever is called answers with a code.
//!
//! A test program of its own: made-up handles may be those of other tests.
//!
//! `EDGEPACK_C_SECONDS=600 EDGEPACK_C_SEED=7 cargo test --test random` runs as long, from this seed on.

use std::ffi::{CString, c_void};
use std::time::{Duration, Instant};

use edgepack_c::backend::EdgepackBackend;
use edgepack_c::data::*;
use edgepack_c::error::*;
use edgepack_c::findings::*;
use edgepack_c::kernel::EdgepackKernel;
use edgepack_c::limits::*;
use edgepack_c::method::*;
use edgepack_c::options::*;
use edgepack_c::pointer::{In, Out};
use edgepack_c::program::*;
use edgepack_c::report::*;
use edgepack_c::signature::*;
use edgepack_c::text::EdgepackText;
use edgepack_c::value::*;

mod chance;
#[path = "../it/fixtures.rs"]
mod fixtures;
#[path = "../it/support.rs"]
#[expect(dead_code, reason = "shared with the other tests")]
mod support;

use chance::{Random, any_output, chance_of_call, chance_of_delegate, chance_to_make, chance_to_prepare};
use fixtures::{leaky, polynomial};
use support::*;

/// Handles, files and room of a sequence.
struct World {
    random: Random,
    /// Numbers of handles, open or not, with their kinds.
    handles: Vec<(Kind, u64)>,
    files: Vec<Vec<u8>>,
    names: Vec<CString>,
    /// Room for everything that is read or written, eight-byte aligned.
    room: Vec<u64>,
    /// Sizes of tensors; more than any rank.
    sizes: Vec<usize>,
    calls: usize,
    fine: usize,
    /// Runs of methods that were fine.
    runs: usize,
}

/// Kinds of handles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Nothing,
    Program,
    Method,
    Options,
    Signature,
    Data,
    Bytes,
    Findings,
    Limits,
}

/// Bytes of room.
const ROOM: usize = 1 << 16;

impl World {
    fn new(seed: u64) -> World {
        let names = ["forward", "", "my::leaky.out", "net.0.weight", "encode", "shape", "Polynomial", "/", "no\u{e9}"];
        let models = ["mlp_portable", "multimethod_getters_portable", "external_portable"];
        let mut files: Vec<Vec<u8>> = models.into_iter().map(model).collect();
        files.push(file("tests/data/corpus/data/tensors.ptd"));
        files.push(file("tests/data/corpus/models/external_portable._default_external_constant.ptd"));
        files.extend([leaky(), polynomial(), Vec::new()]);
        World {
            random: Random(seed | 1),
            handles: vec![(Kind::Nothing, 0)],
            files,
            names: names.into_iter().map(|name| CString::new(name).unwrap()).collect(),
            room: vec![0; ROOM / 8],
            sizes: vec![0; 32],
            calls: 0,
            fine: 0,
            runs: 0,
        }
    }

    /// A handle that is to be of this kind: mostly the youngest ones are, others are old, of another kind or made up.
    fn handle(&mut self, kind: Kind) -> u64 {
        let any = self.handles[self.random.below(self.handles.len())].1;
        match self.random.below(16) {
            0 => self.random.next(),
            1 => any ^ (1 << self.random.below(40)),
            2 => any,
            _ => {
                let of_kind: Vec<u64> =
                    self.handles.iter().rev().filter(|known| known.0 == kind).map(|known| known.1).take(4).collect();
                if of_kind.is_empty() { 0 } else { self.random.of(&of_kind) }
            }
        }
    }

    fn name(&mut self) -> In<std::ffi::c_char> {
        if self.random.one_in(20) {
            return In::NULL;
        }
        let index = self.random.below(self.names.len());
        text(&self.names[index])
    }

    /// A place for a result: right, null or odd.
    fn place<T>(&mut self) -> Out<T> {
        let at: *mut c_void = match self.random.below(24) {
            0 => std::ptr::null_mut(),
            1 => self.room.as_mut_ptr().cast::<u8>().wrapping_add(1).cast(),
            _ => self.room.as_mut_ptr().cast(),
        };
        // SAFETY: null, not aligned (of bytes: one short of the room, which is longer than what is written), or room for more
        // than any result.
        unsafe { Out::new(at.cast()) }
    }

    fn file(&mut self) -> (In<c_void>, usize) {
        let index = self.random.below(self.files.len());
        if self.random.one_in(8) && !self.files[index].is_empty() {
            // Damage stays for later calls, until there is too much of it.
            let len = self.files[index].len();
            for _ in 0..self.random.below(4) {
                let at = self.random.below(len);
                self.files[index][at] ^= 1 << self.random.below(8);
            }
        }
        let file = &self.files[index];
        let len = match self.random.below(12) {
            0 => self.random.below(file.len() + 1),
            1 => usize::MAX - self.random.below(100),
            _ => file.len(),
        };
        (bytes(file), len)
    }

    fn whole(&mut self) -> edgepack_c::file::EdgepackFile {
        let (data, len) = self.file();
        let path = if self.random.one_in(5) { self.name() } else { In::NULL };
        edgepack_c::file::EdgepackFile { path, data, len }
    }

    /// A value whose tensors stay in the room, whatever they say.
    fn value(&mut self) -> EdgepackValue {
        if self.random.one_in(2) {
            let sizes: &'static [usize] = self.random.of(&[&[3, 8], &[3, 8], &[3], &[1, 8]]);
            let len = sizes.iter().product::<usize>() * 4;
            let tensor = tensor(EdgepackDtype::Float, sizes, &[]).tensor;
            let tensor = EdgepackTensor { data: In::from_room(&self.room), len, ..tensor };
            return EdgepackValue { kind: EdgepackKind::Tensor as u32, tensor, ..nothing() };
        }
        let rank = match self.random.below(12) {
            0 => self.random.next() as usize,
            1 => 17,
            2 => 16,
            _ => self.random.below(4),
        };
        for size in 0..self.sizes.len() {
            self.sizes[size] = match self.random.below(16) {
                0 => self.random.next() as usize,
                1 => 0,
                _ => self.random.of(&[1, 2, 3, 4, 8]),
            };
        }
        if self.random.one_in(2) {
            self.sizes[0] = 3;
            self.sizes[1] = 8;
        }
        let dtype = if self.random.one_in(6) { self.random.next() as i32 } else { self.random.of(&[6, 6, 6, 4, 11]) };
        let sizes: &[usize] = self.sizes.get(..rank).unwrap_or(&[]);
        let right = sizes.iter().try_fold(edgepack_dtype_size(dtype), |all, size| all.checked_mul(*size));
        // What has as many bytes as its sizes say, and more than the room has, would be the caller's lie.
        let right = right.filter(|&len| len <= ROOM).unwrap_or(ROOM + 1);
        let len = if self.random.one_in(8) { self.random.of(&[0, 1, 95, 97, usize::MAX]) } else { right };
        let len = if len > ROOM { usize::MAX } else { len };
        let kind = if self.random.one_in(6) { self.random.next() as u32 & 15 } else { 5 };
        let name = self.name();
        EdgepackValue {
            kind,
            integer: self.random.below(3) as i64,
            number: 0.5,
            text: EdgepackText { data: name, len: if name.is_null() { self.random.below(2) } else { 0 } },
            tensor: EdgepackTensor {
                dtype,
                rank,
                sizes: if self.random.one_in(20) { In::NULL } else { to(&self.sizes) },
                dim_order: if self.random.one_in(10) { to(&[0; 32]) } else { In::NULL },
                data: if self.random.one_in(20) { In::NULL } else { In::from_room(&self.room) },
                len,
            },
        }
    }

    /// Notes the result of a function; a handle that it wrote is used from then on.
    fn note(&mut self, code: EdgepackCode, error: EdgepackError, made: Kind) {
        self.calls += 1;
        self.fine += usize::from(code == EdgepackCode::Ok);
        if code == EdgepackCode::Ok && made != Kind::Nothing {
            self.handles.push((made, self.room[0]));
        }
        if error.id != 0 && !self.random.one_in(50) {
            let _ = edgepack_error_message(error);
            assert_eq!(edgepack_error_close(error), EdgepackCode::Ok);
        } else {
            self.handles.push((Kind::Nothing, error.id));
        }
        if self.handles.len() > 300 {
            for (_, id) in self.handles.split_off(20) {
                close_as_anything(id);
            }
        }
    }
}

/// Pointers to room.
trait Roomy {
    fn from_room(room: &[u64]) -> Self;
}

impl Roomy for In<c_void> {
    fn from_room(room: &[u64]) -> Self {
        // SAFETY: it leads to all of the room.
        unsafe { In::new(room.as_ptr().cast()) }
    }
}

fn close_as_anything(id: u64) {
    let closed = [
        edgepack_program_close(EdgepackProgram { id }),
        edgepack_method_close(EdgepackMethod { id }),
        edgepack_options_close(EdgepackOptions { id }),
        edgepack_signature_close(EdgepackSignature { id }),
        edgepack_data_close(EdgepackData { id }),
        edgepack_bytes_close(EdgepackBytes { id }),
        edgepack_findings_close(EdgepackFindings { id }),
        edgepack_report_close(EdgepackReport { id }),
        edgepack_limits_close(EdgepackLimits { id }),
        edgepack_error_close(EdgepackError { id }),
    ];
    let fine = closed.iter().filter(|code| **code == EdgepackCode::Ok).count();
    assert!(if id == 0 { fine == 10 } else { fine <= 1 }, "{id:#x} was closed {fine} times");
}

/// Calls one function with any arguments.
fn step(world: &mut World, hostile: EdgepackLimits) {
    let mut error = EdgepackError::NONE;
    let at = if world.random.one_in(30) { Out::NULL } else { out(&mut error) };
    let index = world.random.index();
    let limits = if world.random.one_in(10) { EdgepackLimits { id: world.handle(Kind::Limits) } } else { hostile };
    let choice = world.random.below(46);
    let made = match choice {
        0..=2 => Kind::Program,
        5 => Kind::Signature,
        11..=14 => Kind::Method,
        26 => Kind::Options,
        33 | 34 => Kind::Data,
        40 => Kind::Bytes,
        42 => Kind::Findings,
        _ => Kind::Nothing,
    };
    let code = match choice {
        0 | 1 => {
            let (data, len) = world.file();
            edgepack_program_open_copy(data, len, limits, world.place(), at)
        }
        2 => edgepack_program_open(world.name(), limits, world.place(), at),
        3 => edgepack_program_method_count(EdgepackProgram { id: world.handle(Kind::Program) }, world.place(), at),
        4 => {
            edgepack_program_method_name(EdgepackProgram { id: world.handle(Kind::Program) }, index, world.place(), at)
        }
        5 => {
            edgepack_signature_of(EdgepackProgram { id: world.handle(Kind::Program) }, world.name(), world.place(), at)
        }
        6 => edgepack_signature_counts(EdgepackSignature { id: world.handle(Kind::Signature) }, world.place(), at),
        7 => {
            edgepack_signature_input(EdgepackSignature { id: world.handle(Kind::Signature) }, index, world.place(), at)
        }
        8 => {
            edgepack_signature_output(EdgepackSignature { id: world.handle(Kind::Signature) }, index, world.place(), at)
        }
        9 => edgepack_signature_backend(
            EdgepackSignature { id: world.handle(Kind::Signature) },
            index,
            world.place(),
            at,
        ),
        10 => {
            edgepack_signature_memory(EdgepackSignature { id: world.handle(Kind::Signature) }, index, world.place(), at)
        }
        11..=14 => {
            let options = EdgepackOptions { id: if world.random.one_in(3) { 0 } else { world.handle(Kind::Options) } };
            let forward = text(c"forward");
            let name = if world.random.one_in(3) { world.name() } else { forward };
            edgepack_method_load(EdgepackProgram { id: world.handle(Kind::Program) }, name, options, world.place(), at)
        }
        15..=18 => {
            let values = [world.value(), world.value()];
            let count = if world.random.one_in(10) { usize::MAX } else { world.random.of(&[1, 1, 1, 0, 2]) };
            let place = world.place();
            let wanted = if world.random.one_in(10) { usize::MAX } else { world.random.below(3) };
            edgepack_method_run(
                EdgepackMethod { id: world.handle(Kind::Method) },
                to(&values),
                count,
                place,
                wanted,
                at,
            )
        }
        19 => {
            let value = world.value();
            edgepack_method_set_input(EdgepackMethod { id: world.handle(Kind::Method) }, index, to(&[value]), at)
        }
        20 => edgepack_method_execute(EdgepackMethod { id: world.handle(Kind::Method) }, at),
        21 => edgepack_method_reset(EdgepackMethod { id: world.handle(Kind::Method) }, at),
        22 => {
            edgepack_method_counts(EdgepackMethod { id: world.handle(Kind::Method) }, world.place(), world.place(), at)
        }
        23 => edgepack_method_output(EdgepackMethod { id: world.handle(Kind::Method) }, index, world.place(), at),
        24 => {
            let len = world.random.of(&[0, 4, 12, 48, ROOM - 8, usize::MAX]);
            edgepack_method_copy_output(
                EdgepackMethod { id: world.handle(Kind::Method) },
                index,
                world.place(),
                len,
                at,
            )
        }
        25 => edgepack_method_memory(EdgepackMethod { id: world.handle(Kind::Method) }, world.place(), at),
        26 => edgepack_options_new(world.place(), at),
        27 => {
            edgepack_options_set_threads(EdgepackOptions { id: world.handle(Kind::Options) }, world.random.below(4), at)
        }
        28 => edgepack_options_set_limits(EdgepackOptions { id: world.handle(Kind::Options) }, limits, at),
        29 => edgepack_options_add_data(
            EdgepackOptions { id: world.handle(Kind::Options) },
            EdgepackData { id: world.handle(Kind::Data) },
            at,
        ),
        30 | 31 => {
            let prepare = world.random.one_in(2).then_some(chance_to_prepare as _);
            let kernel = EdgepackKernel {
                schema: text(c"my::leaky.out(Tensor self, float slope, *, Tensor(a!) out) -> Tensor(a!)"),
                pure: world.random.below(2) as u32,
                user: Out::NULL,
                prepare,
                run: (!world.random.one_in(20)).then_some(chance_of_call as _),
                drop_state: None,
                release: None,
            };
            edgepack_options_add_kernel(EdgepackOptions { id: world.handle(Kind::Options) }, to(&[kernel]), at)
        }
        32 => {
            let backend = EdgepackBackend {
                id: text(c"Polynomial"),
                user: Out::NULL,
                init: Some(chance_to_make),
                first_output: world.random.one_in(2).then_some(any_output as _),
                prepare: None,
                run: Some(chance_of_delegate),
                drop_state: None,
                drop_delegate: None,
                release: None,
            };
            edgepack_options_add_backend(EdgepackOptions { id: world.handle(Kind::Options) }, to(&[backend]), at)
        }
        33 => {
            let (data, len) = world.file();
            edgepack_data_open_copy(data, len, limits, world.place(), at)
        }
        34 => edgepack_data_of_program(EdgepackProgram { id: world.handle(Kind::Program) }, world.place(), at),
        35 => edgepack_data_count(EdgepackData { id: world.handle(Kind::Data) }, world.place(), at),
        36 => edgepack_data_key(EdgepackData { id: world.handle(Kind::Data) }, index, world.place(), at),
        37 => edgepack_data_find(EdgepackData { id: world.handle(Kind::Data) }, world.name(), world.place(), at),
        38 => edgepack_data_layout(EdgepackData { id: world.handle(Kind::Data) }, index, world.place(), at),
        39 => {
            let len = world.random.of(&[0, 4, 48, ROOM - 8, usize::MAX]);
            edgepack_data_read(EdgepackData { id: world.handle(Kind::Data) }, index, world.place(), len, at)
        }
        40 => edgepack_data_bytes(EdgepackData { id: world.handle(Kind::Data) }, index, world.place(), at),
        41 => edgepack_bytes_view(EdgepackBytes { id: world.handle(Kind::Bytes) }, world.place(), world.place(), at),
        42 => {
            let file = world.whole();
            edgepack_verify(to(&[file]), world.random.of(&[1, 1, 1, 2]), world.place(), at)
        }
        43 => {
            let (file, preset) = (world.whole(), world.random.of(&[1, 1, 1, 2]));
            let functions = [edgepack_inspect as extern "C" fn(_, _, _, _) -> _, edgepack_ops, edgepack_size];
            world.random.of(&functions)(to(&[file]), preset, world.place(), at)
        }
        44 => edgepack_findings_at(EdgepackFindings { id: world.handle(Kind::Findings) }, index, world.place(), at),
        _ => {
            let id = world.handle(Kind::Method);
            close_as_anything(id);
            EdgepackCode::Ok
        }
    };
    world.runs += usize::from((15..=18).contains(&choice) && code == EdgepackCode::Ok);
    world.note(code, error, made);
}

#[test]
fn anything_is_answered() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let time = number("EDGEPACK_C_SECONDS").map(Duration::from_secs);
    let (start, mut seed) = (Instant::now(), number("EDGEPACK_C_SEED").unwrap_or(1));
    let mut hostile = EdgepackLimits { id: 0 };
    call(|error| edgepack_limits_new(EdgepackPreset::Hostile as u32, out(&mut hostile), error)).unwrap();
    let (mut worlds, mut calls, mut fine, mut runs) = (0, 0, 0, 0);
    loop {
        let mut world = World::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        // One that runs, so that not everything depends on chance.
        let program = open(&world.files[0]).unwrap();
        let method = load(program, "forward", PLAIN).unwrap();
        world.handles.extend([(Kind::Program, program.id), (Kind::Method, method.id)]);
        for _ in 0..500 {
            step(&mut world, hostile);
        }
        for (_, id) in world.handles.drain(..) {
            if id != hostile.id {
                close_as_anything(id);
            }
        }
        (worlds, calls, fine) = (worlds + 1, calls + world.calls, fine + world.fine);
        runs += world.runs;
        seed += 1;
        let over = time.map_or(worlds == 10, |time| start.elapsed() > time);
        if over {
            break;
        }
    }
    edgepack_limits_close(hostile);
    println!("{calls} calls in {worlds} sequences, {fine} of them fine, {runs} of these runs, {:?}", start.elapsed());
    assert!(runs > 0 && fine > calls / 8, "{fine} of {calls} calls are fine, {runs} runs");
}
