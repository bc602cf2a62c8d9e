//! Entries of folders of packed weights: what was written comes back, and nothing else does.

use edgepack_executor::packing::entry::{self, Digest, HEADER};

const KEY: Digest = [7; 32];

fn written(content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    entry::write(&mut bytes, &KEY, content).expect("memory takes everything");
    bytes
}

/// The whole input is an entry; and its rest is the content of one that its first bytes damage.
pub(super) fn packed_entry(input: &[u8]) {
    let mut content = vec![0; input.len().saturating_sub(HEADER)];
    if entry::read(&mut &*input, &KEY, &mut content) {
        assert_eq!(input, written(&content), "an entry that no writer makes");
    }
    let Some((&[mode, low, high, by], content)) = input.split_first_chunk() else { return };
    let good = written(content);
    let mut into = vec![0; content.len()];
    assert!(entry::read(&mut &*good, &KEY, &mut into) && into == content, "what was written does not come back");
    let mut bad = good.clone();
    let at = usize::from(u16::from_le_bytes([low, high])) % bad.len();
    match mode % 4 {
        0 => bad[at] ^= by,
        1 => bad.truncate(at),
        2 => bad.insert(at, by),
        _ => bad.rotate_left(at),
    }
    assert_eq!(entry::read(&mut &*bad, &KEY, &mut into), bad == good, "a damaged entry");
    let other = KEY.map(|byte| byte ^ by.max(1));
    assert!(!entry::read(&mut &*good, &other, &mut into), "an entry of other weights");
    into.push(0);
    assert!(!entry::read(&mut &*good, &KEY, &mut into), "an entry that is too short");
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let contents: [&[u8]; 3] = [&[], &[1, 2, 3], &[0; 100]];
    let damaged = [0u8, 1, 2, 3].map(|mode| [&[mode, 60, 0, 4][..], &[5; 40]].concat());
    contents.map(written).into_iter().chain(damaged).collect()
}
