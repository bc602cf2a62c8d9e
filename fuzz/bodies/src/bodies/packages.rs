//! Surroundings of library packages: gzip around the archive, and the messages of a child process that runs their code.

use std::io::Write;

use edgepack_executor::mlf::Operand;
use edgepack_format::FileKind;
use edgepack_format::detect::detect;
use edgepack_format::limits::Limits;
use edgepack_loader::MemorySource;
use edgepack_loader::mlf::inflate;
use edgepack_native::child::protocol::{Answer, Expected, read_answer};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::seeds;

/// Memory that an inflated package may take.
const MOST: u64 = 1 << 20;

/// See [`BODIES`](super::BODIES).
pub fn gzip(data: &[u8]) {
    let mut limits = Limits::hostile();
    limits.memory_bytes = MOST;
    let Ok(Some(source)) = inflate(&MemorySource::new(data), &limits) else { return };
    assert!(source.len() <= MOST, "{} bytes", source.len());
    let mut bytes = vec![0; source.len() as usize];
    source.read_at(0, &mut bytes).expect("bytes in memory");
    assert_eq!(detect(&bytes), FileKind::ModelLibrary);
    super::library::library(&bytes);
}

/// Packages of the tests in gzip, whole and in two members.
pub fn gzip_seeds() -> Vec<Vec<u8>> {
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    };
    let mut found = Vec::new();
    for path in seeds::corpus(&["tar"]).into_iter().take(20) {
        let bytes = std::fs::read(path).unwrap_or_default();
        let (first, second) = bytes.split_at(bytes.len() / 2);
        found.extend([gzip(&bytes), [gzip(first), gzip(second)].concat()]);
    }
    found
}

/// Outputs that the parent asked for, by the first byte of an input.
fn asked(first: u8) -> Option<Vec<Operand>> {
    let shapes: &[&[u64]] = match first % 4 {
        0 => return None,
        1 => &[],
        2 => &[&[3]],
        _ => &[&[], &[2, 4], &[0, 7]],
    };
    let operand = |shape: &&[u64]| Operand::new("float32".parse().expect("a type"), shape).expect("a small tensor");
    Some(shapes.iter().map(operand).collect())
}

/// See [`BODIES`](super::BODIES).
pub fn child_answers(data: &[u8]) {
    let Some((first, mut message)) = data.split_first() else { return };
    let asked = asked(*first);
    let expected = asked.as_deref().map_or(Expected::Loaded, Expected::Ran);
    let limits = Limits::hostile();
    while !message.is_empty() {
        let before = message.len();
        match (read_answer(&mut message, expected, &limits), &asked) {
            (Ok(Answer::Loaded(loaded)), None) => {
                let outputs = loaded.outputs.iter().filter_map(|spec| spec.operand.as_ref());
                let total: u64 = outputs.map(|operand| operand.byte_len() as u64).sum();
                assert!(total <= limits.memory_bytes, "{total} bytes of outputs");
                // Every input takes bytes of the message.
                assert!(loaded.inputs.len() + loaded.outputs.len() <= before);
            }
            (Ok(Answer::Ran(outputs)), Some(asked)) => {
                let lengths = asked.iter().map(Operand::byte_len);
                assert!(outputs.iter().map(|output| output.len()).eq(lengths));
            }
            (Ok(Answer::Failed(text)), _) => assert!(text.len() <= 3 * before),
            (Ok(_), _) => panic!("an answer to another question"),
            (Err(_), _) => return,
        }
        assert!(message.len() < before, "nothing was read");
    }
}

/// Answers of each kind.
pub fn answer_seeds() -> Vec<Vec<u8>> {
    let message =
        |first: u8, tag: u8, body: &[u8]| [&[first, tag][..], &(body.len() as u64).to_le_bytes(), body].concat();
    let number = |value: u64| value.to_le_bytes().to_vec();
    // One input `x` of float32[2], one output that nothing is said about.
    let input = [number(1), number(1), b"x".to_vec(), vec![1, 2, 32, 1, 0], number(1), number(2)].concat();
    let output = [number(1), number(0), vec![0]].concat();
    let loaded = [input, output, number(1), number(64)].concat();
    vec![
        message(0, 3, &[0; 32]),
        message(0, 3, &loaded),
        message(2, 4, &[0; 12]),
        message(3, 4, &[0; 36]),
        message(1, 4, &[]),
        message(2, 5, b"there is no such function"),
        [message(2, 4, &[0; 12]), message(2, 5, b"why")[1..].to_vec()].concat(),
    ]
}
