//! Smaller inputs that still show something: first a program as rows, list by list, then any bytes, block by block.
//!
//! The caller's test decides which inputs count, and is asked for every attempt; the result is always an input that it
//! accepted. Equal inputs and equal answers give equal results.

use edgepack_builder::raw;
use edgepack_format::pte::Program;
use serde_json::Value;

use crate::mutate::{rows_of, segments_of};

/// Attempts a program's rows are given: each list is tried in halves, quarters and so on, again while it helps.
const MAX_ATTEMPTS: usize = 20_000;

/// The smallest input found for which `shows` still answers yes; `None` if it does not for the input itself.
pub fn shrink(input: &[u8], mut shows: impl FnMut(&[u8]) -> bool) -> Option<Vec<u8>> {
    if !shows(input) {
        return None;
    }
    let mut best = rows(input, &mut shows);
    bytes(&mut best, &mut shows);
    Some(best)
}

/// Cuts blocks out of an input that shows what is looked for, then zeroes bytes.
pub fn bytes(best: &mut Vec<u8>, mut shows: impl FnMut(&[u8]) -> bool) {
    let mut block = best.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        while at < best.len() {
            let mut shorter = best.clone();
            shorter.drain(at..(at + block).min(best.len()));
            if shows(&shorter) { *best = shorter } else { at += block }
        }
        if block == 1 {
            break;
        }
        block /= 2;
    }
    for at in 0..best.len() {
        let kept = std::mem::replace(&mut best[at], 0);
        if kept != 0 && !shows(best) {
            best[at] = kept;
        }
    }
}

/// A program with as few rows and as short segments as still show it; the input itself if it is not a sound program.
fn rows(input: &[u8], shows: &mut impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let (Some(rows), Some(segments)) = (rows_of(input), segments_of(input)) else { return input.to_vec() };
    let mut candidate = Candidate { rows, segments, left: MAX_ATTEMPTS };
    let Some(mut best) = candidate.write().filter(|bytes| shows(bytes)) else { return input.to_vec() };
    loop {
        let before = best.len();
        for index in 0..candidate.segments.len() {
            let whole = std::mem::take(&mut candidate.segments[index]);
            if !candidate.keeps(&mut best, shows) {
                candidate.segments[index] = whole;
            }
        }
        let mut paths = Vec::new();
        lists(&candidate.rows, &mut String::new(), &mut paths);
        for path in &paths {
            candidate.shorten(path, &mut best, shows);
        }
        if best.len() >= before || candidate.left == 0 {
            return best;
        }
    }
}

/// A program being taken apart.
struct Candidate {
    rows: Value,
    segments: Vec<Vec<u8>>,
    /// Attempts that may still be made.
    left: usize,
}

impl Candidate {
    fn write(&self) -> Option<Vec<u8>> {
        let mut row: Program<'static> = serde_json::from_value(self.rows.clone()).ok()?;
        let segments: Vec<&[u8]> = self.segments.iter().map(Vec::as_slice).collect();
        if row.segments.is_some() {
            row.segments = Some(raw::segments(&segments, &raw::Options::DEFAULT).ok()?.into());
        }
        raw::program(&row, &segments, &raw::Options::DEFAULT).ok()
    }

    /// Returns whether the candidate as it is now passes the test; then it becomes the best.
    fn keeps(&mut self, best: &mut Vec<u8>, shows: &mut impl FnMut(&[u8]) -> bool) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        match self.write() {
            Some(bytes) if shows(&bytes) => {
                *best = bytes;
                true
            }
            _ => false,
        }
    }

    /// Drops what can be dropped of one list, large pieces first, from its end.
    fn shorten(&mut self, path: &str, best: &mut Vec<u8>, shows: &mut impl FnMut(&[u8]) -> bool) {
        let Some(mut items) = self.list(path).cloned() else { return };
        let mut block = items.len();
        while block > 0 {
            let mut end = items.len();
            while end > 0 {
                let start = end.saturating_sub(block);
                let mut fewer = items.clone();
                fewer.drain(start..end);
                self.replace(path, fewer.clone());
                if self.keeps(best, shows) {
                    items = fewer;
                } else {
                    self.replace(path, items.clone());
                }
                end = start;
            }
            block /= 2;
        }
    }

    fn list(&self, path: &str) -> Option<&Vec<Value>> {
        self.rows.pointer(path)?.as_array()
    }

    fn replace(&mut self, path: &str, items: Vec<Value>) {
        if let Some(node) = self.rows.pointer_mut(path) {
            *node = Value::Array(items);
        }
    }
}

/// The paths of all lists, outer ones first: what goes with an outer one need not be tried inside.
fn lists(node: &Value, path: &mut String, out: &mut Vec<String>) {
    let len = path.len();
    match node {
        Value::Array(items) => {
            out.push(path.clone());
            for (index, item) in items.iter().enumerate().filter(|(_, item)| !item.is_number()) {
                path.push_str(&format!("/{index}"));
                lists(item, path, out);
                path.truncate(len);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                path.push_str(&format!("/{name}"));
                lists(field, path, out);
                path.truncate(len);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Generator;
    use edgepack_format::extent::FileExtent;
    use edgepack_format::limits::Limits;
    use edgepack_format::pte::ProgramRef;

    #[test]
    fn a_program_shrinks_to_what_is_looked_for() {
        let generator =
            Generator::new().operators(["aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)"]);
        let input = generator.unwrap().program_of(2).bytes;
        let calls = |bytes: &[u8]| {
            let Ok(program) = ProgramRef::parse(bytes, FileExtent::of(bytes), &Limits::hostile()) else { return false };
            program.plans().iter().flatten().any(|plan| {
                let operators = plan.operators.unwrap_or_default();
                operators.iter().flatten().any(|operator| operator.name.as_deref() == Some("aten::mm"))
            })
        };
        let small = shrink(&input, calls).unwrap();
        assert!(calls(&small) && small.len() * 3 < input.len() * 2, "{} of {} bytes", small.len(), input.len());
        assert_eq!(shrink(&input, |_| false), None);
    }

    #[test]
    fn any_bytes_shrink() {
        let small = shrink(b"some text with an x in it", |bytes| bytes.contains(&b'x')).unwrap();
        assert_eq!(small, b"x");
    }
}
