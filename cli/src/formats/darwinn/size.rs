//! Sizes of the parts of packages.

use edgepack_format::darwinn::PackageRef;

use crate::formats::Size;
use crate::readable::sound_rows;

/// Adds weights, instructions and the rest of a package; its length.
pub fn add(index: usize, package: &PackageRef<'_>, size: &mut Size) -> u64 {
    let len = package.bytes().len() as u64;
    let mut rest = len;
    for executable in package.executables() {
        let kind = executable.row().kind;
        let parameters = executable.parameters().len() as u64;
        let chunks = sound_rows(&executable.row().instruction_bitstreams);
        let code: u64 = chunks.iter().filter_map(|chunk| Some(chunk.bitstream.as_ref()?.as_slice().len() as u64)).sum();
        size.part(format!("package {index}: parameters of {kind}"), parameters);
        size.part(format!("package {index}: instructions of {kind}"), code);
        // Levels may share bytes, so the sum can be more than there is.
        rest = rest.saturating_sub(parameters).saturating_sub(code);
    }
    size.part(format!("package {index}: layers, hints and page padding"), rest);
    len
}
