//! One walk by four readers: each visits every value and every instruction of every method and adds up what they hold.
//!
//! Each returns the same sum for the same program, which is how it is known that they read the same things: the tag of
//! every value, numbers, sizes, places and constants of tensors, items of lists, operators and arguments of calls.

pub mod floor;
pub mod official;
pub mod ours;
pub mod planus;

/// Adds a signed number to a sum that wraps.
#[inline(always)]
fn add(sum: &mut u64, number: impl Into<i64>) {
    *sum = sum.wrapping_add(number.into() as u64);
}

#[cfg(test)]
mod tests {
    use edgepack_format::limits::Limits;
    use edgepack_format::pte::{FileExtent, ProgramRef};

    #[test]
    fn all_readers_read_the_same() {
        for sample in [crate::programs::synthetic(40), crate::programs::trivial(7), crate::programs::small()] {
            let extent = FileExtent { len: sample.bytes.len() as u64 };
            let head = crate::sections::head(&sample.bytes);
            let program = ProgramRef::parse(&head, extent, &Limits::DEFAULT).unwrap();
            let want = super::ours::walk(&program).unwrap();
            assert!(want > 0);
            assert_eq!(super::floor::walk(&head), want, "{}", sample.name);
            assert_eq!(super::official::walk(&super::official::verified(&head)), want, "{}", sample.name);
            assert_eq!(super::planus::walk(&head).unwrap(), want, "{}", sample.name);
        }
    }
}
