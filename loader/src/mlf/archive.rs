//! The tar archive around a package, in memory: files and folders only, names that stay inside, each name once.
//!
//! Nothing is copied: a member is a range of the archive. Nothing is written anywhere.

use std::collections::BTreeMap;
use std::ops::Range;

use edgepack_format::finding::{Finding, Findings, Rule};
use edgepack_format::limits::{Budget, Limits};
use edgepack_format::mlf::{Member, place};
use edgepack_format::room;
use edgepack_format::rules::mlf as rules;
use tar::{Entry, EntryType};

/// Members of an archive.
///
/// ```
/// use edgepack_format::limits::Limits;
/// use edgepack_loader::mlf::Archive;
///
/// let mut package = tar::Builder::new(Vec::new());
/// for (path, content) in [("./metadata.json", &b"{}"[..]), ("./parameters/default.params", &[0; 8])] {
///     let mut header = tar::Header::new_ustar();
///     header.set_size(content.len() as u64);
///     package.append_data(&mut header, path, content)?;
/// }
/// let bytes = package.into_inner()?;
///
/// let unpacked = Archive::read(&bytes, &Limits::default());
/// assert!(unpacked.findings.is_empty());
/// let metadata = unpacked.archive.find("metadata.json").unwrap();
/// assert_eq!(&bytes[metadata], b"{}");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Archive {
    /// By path, relative and without `./`.
    members: BTreeMap<String, Range<usize>>,
}

/// Result of taking an archive apart.
#[derive(Debug)]
pub struct Unpacked {
    /// Findings about the archive.
    pub findings: Findings,
    /// Its members, as far as it could be read.
    pub archive: Archive,
}

/// Bytes of a block.
const BLOCK: usize = 512;

impl Archive {
    /// Takes an archive apart. The `metadata.json` of an unpacked package alone counts as an archive of one member.
    pub fn read(bytes: &[u8], limits: &Limits) -> Unpacked {
        let mut walk = Walk {
            bytes,
            findings: Findings::new(limits),
            budget: Budget::new(limits),
            archive: Archive::default(),
            end: 0,
        };
        if bytes.trim_ascii_start().first() == Some(&b'{') {
            walk.archive.members.insert(place::METADATA.to_owned(), 0..bytes.len());
        } else {
            walk.run();
        }
        Unpacked { findings: walk.findings, archive: walk.archive }
    }

    /// Its files, by path; `bytes` is what it was read from.
    pub fn members<'a>(&'a self, bytes: &'a [u8]) -> room::Result<Vec<Member<'a>>> {
        room::collect(self.files(bytes))
    }

    /// Returns the members one after the other.
    pub(super) fn files<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = Member<'a>> {
        self.members.iter().filter_map(move |(path, range)| {
            let bytes = bytes.get(range.clone())?;
            Some(Member { path, at: range.start as u64, bytes })
        })
    }

    /// Paths and where their bytes are.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, Range<usize>)> {
        self.members.iter().map(|(path, range)| (path.as_str(), range.clone()))
    }

    /// Returns the range of the bytes of a file, or `None` if there is no file with this path.
    pub fn find(&self, path: &str) -> Option<Range<usize>> {
        self.members.get(path).cloned()
    }
}

struct Walk<'a> {
    bytes: &'a [u8],
    findings: Findings,
    budget: Budget,
    archive: Archive,
    /// End of the last member seen, its padding included.
    end: usize,
}

impl Walk<'_> {
    fn report(&mut self, rule: &'static Rule, path: &str, offset: usize, message: impl Into<String>) {
        let path: String = path.chars().take(120).collect();
        self.findings.push(Finding { rule, path, offset: Some(offset as u64), message: message.into() });
    }

    /// Notes where a header or a member ends: behind an archive that is cut short.
    fn announce(&mut self, end: usize) {
        self.findings.announce(self.bytes.len() as u64, Some(end as u64));
    }

    fn run(&mut self) {
        let mut archive = tar::Archive::new(self.bytes);
        let entries = match archive.entries() {
            Ok(entries) => entries,
            Err(error) => return self.report(&rules::TAR, "", 0, error.to_string()),
        };
        let mut seen = std::collections::BTreeSet::new();
        for entry in entries {
            if self.budget.charge(1, 0).is_err() {
                return self.report(&rules::LIMITS, "", self.end, "more members than the limits allow");
            }
            let mut entry = match entry {
                Ok(entry) => entry,
                // Where the next member would be is not known after a bad header.
                Err(error) => {
                    // A header has a block.
                    self.announce(self.end.saturating_add(BLOCK));
                    return self.report(&rules::TAR, "", self.end, error.to_string());
                }
            };
            if !self.member(&mut entry, &mut seen) {
                return;
            }
        }
        self.behind();
    }

    /// Notes one member; whether the next one can be found.
    fn member(&mut self, entry: &mut Entry<'_, &[u8]>, seen: &mut std::collections::BTreeSet<String>) -> bool {
        let header = usize::try_from(entry.raw_header_position()).unwrap_or(usize::MAX);
        let start = usize::try_from(entry.raw_file_position()).unwrap_or(usize::MAX);
        let name = entry.path_bytes().into_owned();
        let name = String::from_utf8(name).map_err(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let shown = name.clone().unwrap_or_else(|lossy| lossy);
        if let Ok(Some(extensions)) = entry.pax_extensions()
            && extensions.into_iter().any(|extension| extension.is_err())
        {
            self.report(&rules::TAR, &shown, header, "a pax record has another length than it says");
            return false;
        }
        let kind = entry.header().entry_type();
        let len = match kind {
            // Links and folders have no content, whatever their size says.
            EntryType::Directory => 0,
            _ => usize::try_from(entry.size()).unwrap_or(usize::MAX),
        };
        let Some(end) = start.checked_add(len).filter(|end| *end <= self.bytes.len()) else {
            let left = self.bytes.len().saturating_sub(start);
            self.announce(start.saturating_add(len));
            self.report(&rules::TAR, &shown, header, format!("{len} bytes, the archive has {left} left"));
            return false;
        };
        self.end = end.checked_next_multiple_of(BLOCK).unwrap_or(end);
        // A header for all that follow; its times and owners are of no interest.
        if kind == EntryType::XGlobalHeader {
            return true;
        }
        if !matches!(kind, EntryType::Regular | EntryType::Continuous | EntryType::Directory) {
            self.report(&rules::KIND, &shown, header, format!("it is {}", name_of(kind)));
            return true;
        }
        let path = match name.as_deref().ok().map(normal) {
            Some(Ok(path)) => path,
            Some(Err(what)) => {
                self.report(&rules::NAME, &shown, header, what);
                return true;
            }
            None => {
                self.report(&rules::NAME, &shown, header, "the name is not UTF-8");
                return true;
            }
        };
        // The root itself.
        if path.is_empty() && kind == EntryType::Directory {
            return true;
        }
        if path.is_empty() {
            self.report(&rules::NAME, &shown, header, "a file without a name");
        } else if !seen.insert(path.clone()) {
            self.report(&rules::MEMBER_REPEATED, &path, header, "an earlier member has this name");
        } else if kind != EntryType::Directory {
            self.archive.members.insert(path, start..end);
        }
        true
    }

    /// Two blocks of zeros, and then nothing but zeros.
    fn behind(&mut self) {
        let rest = self.bytes.get(self.end..).unwrap_or_default();
        if rest.len() < BLOCK.saturating_mul(2) {
            let message = format!("{} bytes follow the last member", rest.len());
            self.report(&rules::ARCHIVE_END, "", self.end, message);
        }
        if let Some(at) = rest.iter().position(|byte| *byte != 0) {
            let message = format!("{} bytes are not shown by most tools", rest.len().saturating_sub(at));
            self.report(&rules::ARCHIVE_TRAILING, "", self.end.saturating_add(at), message);
        }
    }
}

fn name_of(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Symlink => "a symbolic link",
        EntryType::Link => "a hard link",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a pipe",
        EntryType::GNUSparse => "a sparse file",
        _ => "of an unknown kind",
    }
}

/// A path in its shortest form, or why it is none.
fn normal(name: &str) -> Result<String, &'static str> {
    if name.starts_with('/') || name.contains('\\') || name.contains(':') && name.get(1..2) == Some(":") {
        return Err("the name is absolute, or one of another system");
    }
    if name.contains('\0') {
        return Err("the name has a zero byte");
    }
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    match parts.contains(&"..") {
        true => Err("the name climbs"),
        false => Ok(parts.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, content) in members {
            let mut header = tar::Header::new_ustar();
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, *content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn rules_of(bytes: &[u8]) -> Vec<&'static str> {
        Archive::read(bytes, &Limits::hostile()).findings.iter().map(|finding| finding.rule.id).collect()
    }

    #[test]
    fn members_are_found_by_their_shortest_name() {
        let bytes = archive(&[("./a//b", b"one"), ("c", b"two")]);
        let unpacked = Archive::read(&bytes, &Limits::hostile());
        assert!(unpacked.findings.is_empty(), "{}", unpacked.findings);
        let members: Vec<_> = unpacked.archive.files(&bytes).map(|member| (member.path, member.bytes)).collect();
        assert_eq!(members, [("a/b", &b"one"[..]), ("c", b"two")]);
    }

    #[test]
    fn names_that_leave_the_package_are_refused() {
        for name in ["/etc/passwd", "a/../../b", "..", "a\\b", "C:x"] {
            assert_eq!(rules_of(&archive(&[(name, b"x")])), ["MLF-A02"], "{name}");
        }
        assert_eq!(rules_of(&archive(&[("a", b"x"), ("./a", b"y")])), ["MLF-A04"]);
    }

    #[test]
    fn archives_that_are_cut_off_are_told() {
        let bytes = archive(&[("a", &[1; 700]), ("b", b"x")]);
        assert!((1..bytes.len()).all(|len| !rules_of(&bytes[..len]).is_empty()));
        assert_eq!(rules_of(&[bytes, vec![1]].concat()), ["MLF-A05"]);
    }
}
