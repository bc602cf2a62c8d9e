//! Checks that the executables of a package belong together.

use alloc::format;

use crate::check::{Checker, Path};
use crate::darwinn::{ExecutableType, PackageRef};
use crate::room;
use crate::rules::darwinn as rule;

/// Checks kinds and tokens.
pub fn check(package: &PackageRef<'_>, path: &Path<'_>, out: &mut Checker) {
    let path = path.field("serialized_executables");
    let kinds = package.executables().iter().map(|executable| executable.row().kind);
    let Some(kinds) = out.roomy(&path, room::collect(kinds)) else { return };
    let count = |wanted: ExecutableType| kinds.iter().filter(|kind| **kind == wanted).count();
    let running = count(ExecutableType::EXECUTION_ONLY);
    // One that caches and several that run with what it caches.
    let several =
        running > 1 && running.saturating_add(1) == kinds.len() && count(ExecutableType::PARAMETER_CACHING) == 1;
    if several {
        let message = format!("{running} run with the parameters of one");
        out.report(&rule::RUNNING_SEVERAL, &path, None, message);
    }
    for (index, kind) in kinds.iter().enumerate() {
        if kind.name().is_none() {
            out.report(&rule::KIND, &path.index(index).field("type"), None, format!("{kind}"));
        }
        let is_one_of = several && *kind == ExecutableType::EXECUTION_ONLY;
        if let Some(earlier) = kinds.iter().take(index).position(|other| other == kind).filter(|_| !is_one_of) {
            let message = format!("executable {earlier} is {kind}, too");
            out.report(&rule::KIND_DUPLICATE, &path.index(index).field("type"), None, message);
            return;
        }
    }
    let find = |kind| kinds.iter().position(|found| *found == kind);
    let caching = find(ExecutableType::PARAMETER_CACHING);
    let running = find(ExecutableType::EXECUTION_ONLY);
    match (kinds.len(), caching, running) {
        (1, Some(index), _) => {
            let message = format!("the only executable is {}", ExecutableType::PARAMETER_CACHING);
            out.report(&rule::CACHING_ALONE, &path.index(index), None, message);
        }
        (1 | 3, ..) | (2, Some(_), Some(_)) => {}
        _ if several => {}
        (count, ..) => out.report(&rule::COMBINATION, &path, None, format!("{count} executables: {kinds:?}")),
    }
    let Some(caching) = caching else { return };
    let token = |index: usize| package.executables().get(index).map_or(0, |one| one.row().parameter_caching_token);
    let ours = token(caching);
    let path = path.index(caching);
    let running = kinds.iter().enumerate().filter(|(_, kind)| **kind == ExecutableType::EXECUTION_ONLY);
    for (running, _) in running {
        let theirs = token(running);
        if ours == 0 {
            out.report(&rule::TOKEN, &path.field("parameter_caching_token"), None, format!("{ours}"));
            return;
        } else if ours != theirs {
            let message = format!("{ours:#018x}, that of executable {running} is {theirs:#018x}");
            out.report(&rule::TOKENS, &path.field("parameter_caching_token"), None, message);
        }
    }
}
