//! Mutations that know nothing of the bytes: flips, numbers, blocks, words of a dictionary, splices.

use crate::rng::Rng;

/// Longest input that mutation makes.
pub const MAX_LEN: usize = 64 << 10;

/// Changes an input one to eight times. `other` is another input of the corpus, to splice with.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], dictionary: &[Vec<u8>], rng: &mut Rng) {
    for _ in 0..1 << rng.below(4) {
        once(input, other, dictionary, rng);
    }
    input.truncate(MAX_LEN);
}

fn once(input: &mut Vec<u8>, other: &[u8], dictionary: &[Vec<u8>], rng: &mut Rng) {
    let len = input.len();
    if len == 0 {
        let count = 1 + rng.below(16);
        input.extend((0..count).map(|_| rng.word() as u8));
        return;
    }
    let at = rng.below(len);
    match rng.below(12) {
        0 => input[at] ^= 1 << rng.below(8),
        1 => input[at] = rng.word() as u8,
        2 => input[at] = input[at].wrapping_add(rng.below(9) as u8).wrapping_sub(4),
        3 | 4 => {
            let size = 2 << rng.below(3);
            // Numbers in files are aligned more often than not.
            let at = if rng.one_in(3) { at } else { at / size * size };
            write(input, at, &rng.edge().to_le_bytes()[..size]);
        }
        5 => {
            let end = (at + 1 + rng.below(64)).min(len);
            input.drain(at..end);
        }
        6 => {
            let end = (at + 1 + rng.below(64)).min(len);
            let block = input[at..end].to_vec();
            let to = rng.below(len);
            write(input, to, &block);
        }
        7 => {
            let block: Vec<u8> = match rng.one_in(2) {
                true => (0..1 + rng.below(8)).map(|_| rng.word() as u8).collect(),
                false => input[at..(at + 1 + rng.below(32)).min(len)].to_vec(),
            };
            let to = rng.below(len + 1);
            input.splice(to..to, block);
        }
        8 => {
            if let Some(word) = rng.pick(dictionary) {
                match rng.one_in(2) {
                    true => write(input, at, word),
                    false => drop(input.splice(at..at, word.iter().copied())),
                }
            }
        }
        9 if !other.is_empty() => {
            let from = rng.below(other.len());
            let end = (from + 1 + rng.below(256)).min(other.len());
            write(input, at, &other[from..end]);
        }
        9 => input.truncate(at),
        10 => input[at..].fill_with(|| rng.word() as u8),
        _ if !other.is_empty() && rng.one_in(4) => {
            input.truncate(at);
            input.extend(&other[rng.below(other.len())..]);
        }
        _ => input.truncate(len - rng.below(len.min(64) + 1)),
    }
}

fn write(input: &mut [u8], at: usize, bytes: &[u8]) {
    for (to, from) in input.iter_mut().skip(at).zip(bytes) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_input() {
        let make = || {
            let (mut input, mut rng) = (vec![7; 100], Rng::new(1));
            (0..100).for_each(|_| mutate(&mut input, &[1, 2, 3], &[b"word".to_vec()], &mut rng));
            input
        };
        assert_eq!(make(), make());
    }
}
