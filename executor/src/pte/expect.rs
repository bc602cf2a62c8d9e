//! Pages of a program that are brought into memory while its method is planned: kernels find them there when they pack.

use std::sync::Arc;

use edgepack_compute::threads::aside;
use edgepack_loader::Program;

/// The most bytes of a program that are brought into memory before they are asked for.
const MOST: u64 = 32 << 20;

/// Bytes that are brought in at a time: a few microseconds' work.
const PIECE: u64 = 128 << 10;

/// Has a thread that would only wait tell the program's source what will be read.
pub(crate) fn expect_program(program: &Program) {
    let source = Arc::clone(program.source());
    let (mut at, end) = (0, source.len().min(MOST));
    aside(move || {
        source.expect(at..end.min(at.saturating_add(PIECE)));
        at = at.saturating_add(PIECE);
        at < end
    });
}
