//! Manifests: a line for every file with its SHA-256, as `sha256sum` writes and checks them, and for every named part of a
//! file if that is wanted: `DIGEST  FILE#NAME`.
//!
//! Invariant: a part stands behind the line of its file, so that no name of a file is taken for a part of another.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use edgepack::builder::content::{digest_of, hex};
use edgepack::edit::{Named, Opened, named};
use edgepack_format::FileKind;
use edgepack_loader::Source;
use serde::Serialize;

use crate::file::{File, digest, listed};
use crate::progress::{Unit, Work};
use crate::session::Session;
use crate::status::Failure;

/// A digest in hexadecimal digits.
pub type Hex = String;

/// Digest of all bytes of a source.
pub fn of_source(source: &dyn Source, work: &Work) -> io::Result<Hex> {
    Ok(hex(&digest(source, 0..source.len(), &mut |count| work.advance(count))?))
}

/// Digests of the named parts of a file that has such parts: programs and data files.
pub fn of_parts(file: &File, session: &Session) -> Result<Vec<(String, Hex)>, Failure> {
    if !matches!(file.head.kind, FileKind::Program | FileKind::Data | FileKind::FlatData) {
        return Ok(Vec::new());
    }
    let about = |error: edgepack::edit::Error| Failure::from(error).about(&file.name);
    let opened = Opened::from_source(file.source.clone(), session.limits).map_err(about)?;
    let parts = named(&opened.package().map_err(about)?).map_err(about)?;
    let one = |part: Named| {
        let digest = digest_of(|out| part.content.write_to(out));
        let digest = digest.map_err(|error| Failure::unreadable(error).about(&file.name))?;
        Ok((part.name, hex(&digest)))
    };
    parts.into_iter().map(one).collect()
}

/// Digests of files, as they were.
#[derive(Debug, Default)]
pub struct Manifest {
    /// Files in the order of the manifest.
    pub files: Vec<String>,
    entries: BTreeMap<String, Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    digest: Hex,
    parts: Vec<(String, Hex)>,
}

/// Result of comparing a file with a manifest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Every byte is as it was.
    Intact,
    /// The manifest does not name the file.
    Unlisted,
    /// The bytes differ.
    Altered {
        /// Digest of the file.
        have: Hex,
        /// Digest in the manifest.
        want: Hex,
        /// Parts that differ, are gone, or are new; empty if the manifest names none, or none of them differs.
        parts: Vec<String>,
    },
}

impl Manifest {
    /// Reads a manifest; empty lines do not count.
    pub fn parse(text: &str) -> Result<Manifest, String> {
        let mut manifest = Manifest::default();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let about = |message: &str| format!("line {}: {message}", index + 1);
            // `sha256sum -b` writes a star in place of the second space.
            let split = line.split_once("  ").or_else(|| line.split_once(" *"));
            let (digest, name) = split.ok_or_else(|| about("this is not `DIGEST  FILE`"))?;
            if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(about("a SHA-256 has 64 hexadecimal digits"));
            }
            let (name, digest) = (unescape(name), digest.to_ascii_lowercase());
            let file = manifest.files.last().cloned();
            let part = file.as_ref().and_then(|file| name.strip_prefix(file)?.strip_prefix('#'));
            if let (Some(file), Some(part)) = (&file, part) {
                let parts = manifest.entries.get_mut(file).map(|entry| &mut entry.parts);
                parts.into_iter().for_each(|parts| parts.push((part.to_owned(), digest.clone())));
                continue;
            }
            if manifest.entries.insert(name.clone(), Recorded { digest, parts: Vec::new() }).is_some() {
                return Err(about(&format!("{name:?} is there twice")));
            }
            manifest.files.push(name);
        }
        Ok(manifest)
    }

    /// Compares a file with its line, and if that differs, part by part.
    pub fn compare(&self, path: &Path, file: &File, session: &Session) -> Result<Verdict, Failure> {
        let Some(recorded) = self.entries.get(&listed(path)) else { return Ok(Verdict::Unlisted) };
        let hashing = session.progress.counted(&format!("hashing {}", file.name), file.source.len(), Unit::Bytes);
        let have = of_source(&*file.source, &hashing).map_err(|error| Failure::unreadable(error).about(&file.name))?;
        if have == recorded.digest {
            return Ok(Verdict::Intact);
        }
        let mut parts = Vec::new();
        if !recorded.parts.is_empty() {
            // A file that can no longer be taken apart has no parts that are as they were.
            let now: BTreeMap<String, Hex> = of_parts(file, session).unwrap_or_default().into_iter().collect();
            let before: BTreeMap<&String, &Hex> = recorded.parts.iter().map(|(name, digest)| (name, digest)).collect();
            let differs = |name: &&String| now.get(*name) != before.get(*name).copied();
            parts.extend(before.keys().copied().filter(differs).cloned());
            parts.extend(now.keys().filter(|name| !before.contains_key(name)).cloned());
        }
        Ok(Verdict::Altered { have, want: recorded.digest.clone(), parts })
    }
}

/// A name in one line.
pub fn escape(name: &str) -> String {
    name.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescape(name: &str) -> String {
    let (mut plain, mut chars) = (String::new(), name.chars());
    while let Some(c) = chars.next() {
        match (c, chars.as_str().chars().next()) {
            ('\\', Some(next @ ('\\' | 'n' | 'r'))) => {
                chars.next();
                plain.push(match next {
                    'n' => '\n',
                    'r' => '\r',
                    _ => '\\',
                });
            }
            _ => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_of_other_tools_are_read() {
        let (a, b) = ("a".repeat(64), "B".repeat(64));
        let text = format!("{a}  one.pte\n{b}  one.pte#net.0.weight\n\n{a} *two.pte\n{b}  one.pte#x\n");
        let manifest = Manifest::parse(&text).unwrap();
        // A part behind another file is a file of that name.
        assert_eq!(manifest.files, ["one.pte", "two.pte", "one.pte#x"]);
        assert_eq!(manifest.entries["one.pte"].parts, [("net.0.weight".to_owned(), "b".repeat(64))]);
        for bad in ["x  y", "abc", &format!("{a}  x\n{a}  x"), &a] {
            assert!(Manifest::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_survive_a_line() {
        for name in ["plain", "two\nlines", "back\\slash\\n", "\\"] {
            assert_eq!(unescape(&escape(name)), name);
            assert_eq!(escape(name).lines().count(), 1);
        }
    }
}
