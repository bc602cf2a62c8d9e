//! Opening: large files, segments that come and go, bytes at any address, maps of named data.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use edgepack_builder::args;
use edgepack_builder::pte::{ProgramBuilder, TensorSpec};
use edgepack_executor::{Input, Method, Options, Output};
use edgepack_format::header::ProgramHeader;
use edgepack_format::pte::{DataSegment, NamedData, Program as ProgramRow};
use edgepack_format::scalar::ScalarType;
use edgepack_loader::{
    Bytes, DataFile, Error, FileSource, MappedFile, NamedDataMap, OpenOptions, Program, Source, ValueMeta,
};
use edgepack_tests::assemble::{Assembly, float, write};
use edgepack_tests::command::edgepack;
use edgepack_tests::operators::registry;

fn addition() -> Assembly {
    let mut a = Assembly::new();
    let c = a.constant(float(&[2]), bytemuck::cast_slice(&[10.0f32, 20.0]));
    let y = a.planned(float(&[2]));
    a.call("t::add.out", &[c, c, y, y]);
    a.outputs(&[y]);
    a
}

fn sum(program: &Program) -> Vec<f32> {
    let mut method = Method::load(program, "forward", &registry(), &Options::default()).unwrap();
    let none: [Input<'_>; 0] = [];
    match method.run(&none).unwrap().get(0) {
        Some(Output::Tensor(tensor)) => tensor.as_slice::<f32>().unwrap().to_vec(),
        other => panic!("{other:?}"),
    }
}

fn scratch_file(name: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("loader-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

/// A program whose constants are stored behind five gigabytes of nothing.
#[test]
fn files_over_four_gigabytes_open_at_the_cost_of_their_flatbuffer() {
    const FAR: u64 = 5 << 30;
    let (mut program, segments) = addition().program();
    let size = segments[0].len() as u64;
    program.segments = Some(vec![DataSegment { offset: FAR, size }].into());
    let mut head = write(&program, &segments);
    let near = ProgramHeader::read(&head).unwrap();
    head.truncate(near.segment_base_offset as usize);
    let header = ProgramHeader { segment_data_size: Some(FAR + size), ..near };
    head[8..40].copy_from_slice(&header.to_bytes());

    let path = scratch_file("far.pte");
    let mut file = File::create(&path).unwrap();
    file.write_all(&head).unwrap();
    file.seek(SeekFrom::Start(near.segment_base_offset + FAR)).unwrap();
    file.write_all(&segments[0]).unwrap();
    drop(file);

    assert_eq!(sum(&Program::open(&path).unwrap()), [40.0, 20.0]);
    // SAFETY: no one else knows the file.
    let mapped = unsafe { MappedFile::open(&path) }.unwrap();
    assert_eq!(sum(&OpenOptions::default().open_source(Arc::new(mapped)).unwrap()), [40.0, 20.0]);
    std::fs::remove_file(path).unwrap();
}

/// Counts what is read from it.
struct Counted {
    inner: FileSource,
    read: AtomicUsize,
}

impl Source for Counted {
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.read.fetch_add(into.len(), Ordering::Relaxed);
        self.inner.read_at(offset, into)
    }
}

#[test]
fn segments_are_read_when_asked_for_and_released_when_dropped() {
    let mut a = addition();
    let big = vec![7u8; 1 << 20];
    a.constant(float(&[1 << 18]), &big);
    let path = scratch_file("lazy.pte");
    std::fs::write(&path, a.build()).unwrap();
    let source = Arc::new(Counted { inner: FileSource::open(&path).unwrap(), read: AtomicUsize::new(0) });
    let program = OpenOptions::default().open_source(source.clone()).unwrap();
    let after_open = source.read.load(Ordering::Relaxed);
    assert!(after_open < 10_000, "{after_open} bytes were read to open");

    let segment = program.segment(0).unwrap();
    assert!(segment.is_heap() && segment.len() > big.len());
    assert!(segment.as_ptr().addr().is_multiple_of(64));
    drop(segment);
    // Not retained: asking again reads again.
    let before = source.read.load(Ordering::Relaxed);
    drop(program.segment(0).unwrap());
    assert!(source.read.load(Ordering::Relaxed) - before >= big.len());
    assert!(matches!(program.segment(1), Err(Error::NotFound { .. })));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn bytes_at_any_address_run() {
    let file = addition().build();
    for shift in 0..9 {
        let mut shifted = vec![0u8; shift];
        shifted.extend(&file);
        let source = Shifted { bytes: shifted.into(), shift };
        assert_eq!(sum(&OpenOptions::default().open_source(Arc::new(source)).unwrap()), [40.0, 20.0], "shift {shift}");
    }
}

/// A source whose bytes can be borrowed, at an address of our choice.
struct Shifted {
    bytes: Arc<[u8]>,
    shift: usize,
}

impl Source for Shifted {
    fn len(&self) -> u64 {
        (self.bytes.len() - self.shift) as u64
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let start = self.shift + offset as usize;
        into.copy_from_slice(self.bytes.get(start..start + into.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
    fn borrow(&self, range: Range<u64>) -> Option<&[u8]> {
        self.bytes.get(self.shift + range.start as usize..self.shift + range.end as usize)
    }
}

/// Bytes that are told which ranges of them will hardly be read again.
struct Told(Vec<u8>, Mutex<Vec<Range<u64>>>);

impl Source for Told {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn borrow(&self, range: Range<u64>) -> Option<&[u8]> {
        self.0.get(range.start as usize..range.end as usize)
    }
    fn release(&self, range: Range<u64>) {
        self.1.lock().unwrap().push(range);
    }
}

#[test]
fn neighbours_in_a_source_are_released_at_once() {
    let sources = [1, 2].map(|_| Arc::new(Told(vec![0; 100_000], Mutex::default())));
    let lent = |source: usize, range: Range<u64>| Bytes::lent(sources[source].clone(), range).unwrap();
    let all = [
        lent(0, 50_000..60_000),
        lent(0, 0..100),
        lent(1, 10..20),
        lent(1, 30_000..30_010),
        lent(0, 4_000..9_000),
        Bytes::from([0; 8]),
        lent(0, 50_000..60_000),
        lent(0, 100..200),
        lent(0, 52_000..53_000),
        lent(0, 59_000..61_000),
    ];
    Bytes::release_all(all.iter());
    let told = |source: usize| std::mem::take(&mut *sources[source].1.lock().unwrap());
    assert_eq!((told(0), told(1)), (vec![0..9_000, 50_000..61_000], vec![10..20, 30_000..30_010]));
}

#[test]
fn expecting_and_releasing_change_no_byte() {
    let path = scratch_file("expected");
    let bytes: Vec<u8> = (0..200_000u32).map(|at| (at / 7) as u8).collect();
    std::fs::write(&path, &bytes).unwrap();
    // SAFETY: the file is this test's own, which does not change it.
    let file = unsafe { MappedFile::open(&path).unwrap() };
    for range in [0..200_000, 0..0, 5..70_001, 150_000..900_000, u64::MAX - 1..u64::MAX] {
        file.expect(range.clone());
        assert!(file.borrow(0..200_000).unwrap() == bytes);
        file.release(range);
        assert!(file.borrow(0..200_000).unwrap() == bytes);
    }
}

/// A mapped file, of which nothing says that it gives memory back.
struct Kept(MappedFile);

impl Source for Kept {
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, into)
    }
    fn borrow(&self, range: Range<u64>) -> Option<&[u8]> {
        self.0.borrow(range)
    }
}

#[test]
fn small_constants_are_copied_where_memory_is_given_back() {
    const LARGE: usize = 5_000;
    let mut a = addition();
    let ones = [1.0f32; LARGE];
    let large = a.constant(float(&[LARGE as i32]), bytemuck::cast_slice(&ones));
    let twice = a.planned(float(&[LARGE as i32]));
    a.call("t::add.out", &[large, large, twice, twice]);
    let path = scratch_file("small.pte");
    std::fs::write(&path, a.build()).unwrap();
    // SAFETY: the file is this test's own, which does not change it.
    let map = || unsafe { MappedFile::open(&path).unwrap() };
    let private = |source: Arc<dyn Source>, options: &Options| {
        let program = OpenOptions::default().open_source(source).unwrap();
        assert_eq!(sum(&program), [40.0, 20.0]);
        Method::load(&program, "forward", &registry(), options).unwrap().memory_bytes().private
    };
    let copied = |options: &Options| {
        let [mapped, kept] = [private(Arc::new(map()), options), private(Arc::new(Kept(map())), options)];
        mapped - kept
    };
    assert_eq!(copied(&Options::default()), if cfg!(target_os = "linux") { 8 } else { 0 });
    // Loading that changes nothing copies nothing, and without memory for a copy there is none.
    assert_eq!(copied(&Options { no_optimize: true, ..Options::default() }), 0);
    let mut limits = *Program::open(&path).unwrap().limits();
    limits.method_bytes = 7;
    assert_eq!(copied(&Options { limits: Some(limits), ..Options::default() }), 0);
}

#[test]
fn a_file_that_shrinks_is_an_error_not_a_crash() {
    let path = scratch_file("shrinks.pte");
    let bytes = addition().build();
    std::fs::write(&path, &bytes).unwrap();
    let program = Program::open(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert!(matches!(program.segment(0), Err(Error::Io { .. })));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn invalid_files_come_with_their_findings() {
    let mut bytes = addition().build();
    bytes[4..8].copy_from_slice(b"XXXX");
    match Program::from_bytes(bytes) {
        Err(Error::Invalid(findings)) => assert!(findings.has_errors()),
        other => panic!("{other:?}"),
    }
    assert!(Program::from_bytes(Vec::new()).is_err());
}

#[test]
fn named_data_of_a_program_is_found_by_key() {
    let (program, mut segments) = addition().program();
    segments.push(b"first".to_vec());
    segments.push(b"second".to_vec());
    let slices: Vec<&[u8]> = segments.iter().map(Vec::as_slice).collect();
    let rows = edgepack_builder::raw::segments(&slices, &edgepack_builder::raw::Options::DEFAULT).unwrap();
    let named =
        [("b", 2), ("a", 1), ("c", 1)].map(|(key, segment_index)| NamedData { key: Some(key.into()), segment_index });
    let program = ProgramRow { segments: Some(rows.into()), named_data: Some(named.to_vec().into()), ..program };
    let map = Program::from_bytes(write(&program, &segments)).unwrap().named_data().unwrap();
    assert_eq!((0..map.len()).map(|index| map.key(index).unwrap()).collect::<Vec<_>>(), ["b", "a", "c"]);
    assert_eq!(&*map.data("a").unwrap().unwrap(), b"first");
    assert_eq!(&*map.data("b").unwrap().unwrap(), b"second");
    assert_eq!(&*map.data("c").unwrap().unwrap(), b"first");
    assert!(map.data("d").unwrap().is_none() && !map.contains("d"));
}

#[test]
fn a_real_data_file_is_a_map() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus/data/tensors.ptd");
    let map = DataFile::open(path).unwrap();
    assert!(map.len() >= 8);
    let tensors = (0..map.len()).filter_map(|index| map.key(index)).filter(|key| map.layout(key).unwrap().is_some());
    for key in tensors {
        let layout = map.layout(key).unwrap().unwrap();
        assert!(map.data(key).unwrap().unwrap().len() >= layout.byte_len(), "{key}");
    }
}

#[test]
fn metadata_is_what_constant_methods_and_named_data_say() {
    let mut program = ProgramBuilder::new();
    program.getter("get_vocab_size", args![32_000i64]).unwrap();
    program.getter("get_eos_ids", args![2i64, "</s>"]).unwrap();
    program.named_data("metadata.tokenizer", b"bpe", 1, None).unwrap();
    program.named_data("weights", vec![0; 64], 16, None).unwrap();
    let mut forward = program.method("forward");
    let x = forward.input(TensorSpec::new(ScalarType::FLOAT, [2])).unwrap();
    forward.output(x).unwrap();
    let bytes = program.finish().unwrap().to_bytes().unwrap();

    let metadata = Program::from_bytes(bytes.clone()).unwrap().metadata().unwrap();
    assert_eq!(metadata.value("get_vocab_size"), Some(&ValueMeta::Int(32_000)));
    // Two values are not a value, and a method that takes an input is not a setting.
    assert_eq!((metadata.value("get_eos_ids"), metadata.value("forward")), (None, None));
    let names: Vec<&str> = metadata.constant_methods.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["get_vocab_size", "get_eos_ids"]);
    assert_eq!(metadata.bytes("tokenizer"), Some(&b"bpe"[..]));
    assert_eq!(metadata.named_data.len(), 1);

    let shown = String::from_utf8(edgepack(&["inspect", "-"], bytes, false).stdout).unwrap();
    let section = shown.split("\nmetadata\n").nth(1).expect("a section of metadata");
    let lines: Vec<Vec<&str>> = section.lines().take(3).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        lines,
        [vec!["get_vocab_size", "32000"], vec!["get_eos_ids", "2,", "\"</s>\""], vec!["metadata.tokenizer", "\"bpe\""]]
    );
}
