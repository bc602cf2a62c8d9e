//! Cost of writing: one value of a flatbuffer, and the bytes of segments that stream through.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use edgepack::edit::{Opened, SplitOptions, join, split};
use edgepack_builder::content::Data;
use edgepack_builder::pte::ProgramBuilder;
use edgepack_builder::raw;
use edgepack_builder::sink::FlatSink;
use edgepack_format::pte::IDENTIFIER;
use edgepack_format::row::Table as _;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;

use super::BUDGET;
use crate::clock::{Race, timed};
use crate::{programs, writers};

/// Bytes of the constants that stream.
const BYTES: usize = 256 << 20;
/// In so many tensors.
const TENSORS: usize = 8;

pub fn run() {
    values();
    let folder = std::env::temp_dir().join(format!("edgepack-bench-{}", std::process::id()));
    if let Err(error) = fs::create_dir_all(&folder).and_then(|()| segments(&folder)) {
        println!("\nsegments: {}: {error}", folder.display());
    }
    // Remains of the folder do no harm.
    let _ = fs::remove_dir_all(&folder);
}

fn values() {
    let calls = 5_000;
    let rows = programs::rows(calls);
    let sample = programs::synthetic(calls);
    let owned = writers::planus::owned(&sample.bytes);
    let units = 6 * calls + 1;
    let mut race = Race::new(format!("write a flatbuffer of {}", sample.name));
    race.lane("edgepack", units, || {
        timed(|| {
            let mut sink = FlatSink::new();
            let root = rows.encode(&mut sink).expect("rows that can be written");
            sink.finish(root, IDENTIFIER).expect("a small flatbuffer")
        })
    });
    race.lane("edgepack, with header and segments", units, || {
        timed(|| raw::program(&rows, &[&[0; 1024]], &raw::Options::DEFAULT).expect("rows that can be written"))
    });
    race.lane("flatbuffers", units, || timed(|| writers::official::write(&rows)));
    race.lane("planus", units, || timed(|| writers::planus::write(&owned)));
    race.print("ns/value", BUDGET);
}

/// Every lane ends when its bytes are on the disk.
fn segments(folder: &Path) -> std::io::Result<()> {
    let path = |name: &str| folder.join(name);
    let (whole, small, data) = (path("whole.pte"), path("small.pte"), path("small.ptd"));
    for index in 0..TENSORS {
        let mut file = File::create(path(&format!("{index}.bin")))?;
        let word = [index as u8; 1 << 16];
        (0..BYTES / TENSORS / word.len()).try_for_each(|_| file.write_all(&word))?;
    }
    let build = || {
        let mut program = ProgramBuilder::new();
        let sizes = [BYTES / TENSORS / 4];
        let constants: Vec<_> = (0..TENSORS)
            .map(|index| {
                let source = Data::file(path(&format!("{index}.bin")), 0, (BYTES / TENSORS) as u64);
                let layout = TensorLayout::contiguous(ScalarType::FLOAT, &sizes).expect("a small tensor");
                program.constant_from(&format!("w{index}"), layout, source).expect("as long as its tensor")
            })
            .collect();
        let mut forward = program.method("forward");
        for constant in constants {
            forward.output(constant).expect("a constant of this program");
        }
        program.finish().expect("a valid program").write_to_path(&whole).expect("room on the disk");
    };
    build();
    let opened = Opened::open(&whole).expect("it was just written");
    let take_apart = || {
        let parts = split(opened.package().expect("readable"), &SplitOptions::default()).expect("it can be split");
        parts.data.write_to_path(&data).expect("room on the disk");
        parts.program.write_to_path(&small).expect("room on the disk");
    };
    take_apart();
    let (program, weights) = (Opened::open(&small), Opened::open(&data));
    let (program, weights) = (program.expect("it was just written"), weights.expect("it was just written"));

    let mut race = Race::new(format!("{} MiB of segments, onto the disk", BYTES >> 20));
    race.lane("copy and sync", 1000, || synced(&path("copy.pte"), |to| fs::copy(&whole, to).map(drop)));
    race.lane("build from files", 1000, || timed(build));
    race.lane("split", 1000, || timed(take_apart));
    race.lane("join", 1000, || {
        timed(|| {
            let program = program.package().expect("readable");
            let joined = join(program, &[weights.package().expect("readable")]).expect("they belong together");
            joined.write_to_path(path("joined.pte")).expect("room on the disk");
        })
    });
    race.print("us", 4 * BUDGET);
    Ok(())
}

fn synced(path: &Path, write: impl FnOnce(&Path) -> std::io::Result<()>) -> Duration {
    let start = Instant::now();
    write(path).and_then(|()| File::open(path)?.sync_all()).expect("room on the disk");
    start.elapsed()
}
