//! Tables that are stored inside a package as bytes, level by level.

use edgepack_format::darwinn::{Executable, MultiExecutable, Package, PackageRef};
use edgepack_format::row::{Table as _, TableDesc};
use edgepack_format::wire;

use crate::formats::Root;

/// Adds the roots of the tables stored inside a package.
pub fn add<'a>(package: &PackageRef<'a>, found: &mut Vec<Root<'a>>) {
    add_root(package.multi_executable_bytes(), MultiExecutable::DESC, found);
    for executable in package.executables() {
        add_root(executable.bytes(), Executable::DESC, found);
    }
    for chip in package.chips() {
        add_package(chip, found);
    }
}

/// Adds the root of a package, and of the tables stored inside it.
pub fn add_package<'a>(package: &PackageRef<'a>, found: &mut Vec<Root<'a>>) {
    add_root(package.bytes(), Package::DESC, found);
    add(package, found);
}

fn add_root<'a>(bytes: &'a [u8], desc: &'static TableDesc, found: &mut Vec<Root<'a>>) {
    found.extend(wire::Table::root(bytes).ok().map(|root| (root, desc)));
}
