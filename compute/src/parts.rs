//! Partial results that do not wait for each other, and the order in which they become one.

/// Independent partial results, so that rows vectorise.
pub const PARTS: usize = 16;

/// Partial results as one: of those eight apart, then four, two and one.
///
/// ```
/// use edgepack_compute::parts::{PARTS, joined};
///
/// assert_eq!(joined([3; PARTS], |a, b| a + b), 3 * PARTS);
/// ```
#[inline(always)]
pub fn joined<C: Copy>(mut parts: [C; PARTS], f: impl Fn(C, C) -> C) -> C {
    for half in [8, 4, 2, 1] {
        for part in 0..half {
            parts[part] = f(parts[part], parts[part + half]);
        }
    }
    parts[0]
}
