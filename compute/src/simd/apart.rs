//! Parts of computations that are functions of their own.

/// A part of a computation with the instructions of a token `T`. Inlined into a large function, it would not keep its numbers
/// in registers. `run` must be inlined, and so must what it calls.
pub(crate) trait Apart<T> {
    fn run(self, token: T);
}

/// Does something for each row of a block of up to 12, whose number is a constant there. The sums of rows whose number is not
/// known until then would all have to be in memory.
macro_rules! each_row {
    ($row:ident < $rows:expr => $body:block) => {
        $crate::simd::apart::each_row!(@ $row $rows, $body, 0 1 2 3 4 5 6 7 8 9 10 11)
    };
    (@ $row:ident $rows:expr, $body:block, $($index:literal)*) => {
        const { assert!($rows <= [$($index),*].len(), "a row that has no constant") };
        $(if $index < $rows {
            let $row: usize = $index;
            $body
        })*
    };
}

pub(crate) use each_row;
