//! Variants of files, most of them broken where it matters.

pub mod archive;
pub mod bytes;
mod places;
mod program;

use crate::rng::Rng;

pub use places::{Place, mutate, places, root_of_file};
pub use program::edit_program;
pub(crate) use program::{rows_of, segments_of};

/// A variant of a file of any kind: a few places of its flatbuffer changed, or a program edited as rows and laid out again;
/// of a file that is not a flatbuffer, a few bytes.
///
/// The document within an export-IR archive is changed by [`archive::edit`].
pub fn variant(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    if rng.one_in(2)
        && let Some(edited) = edit_program(bytes, rng)
    {
        return edited;
    }
    let mut variant = bytes.to_vec();
    match root_of_file(bytes) {
        Some((root, desc)) => {
            for _ in 0..1 + rng.below(3) {
                mutate(&mut variant, root, desc, rng);
            }
        }
        None => bytes::mutate(&mut variant, &[], &[], rng),
    }
    variant
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Generator;

    #[test]
    fn the_same_number_is_the_same_variant() {
        let bytes = Generator::with_known_operators().program_of(1).bytes;
        let variants = || (0..20).map(|seed| variant(&bytes, &mut Rng::new(seed))).collect::<Vec<_>>();
        assert!(variants() == variants());
        assert!(variants().iter().filter(|variant| **variant != bytes).count() > 12);
    }
}
