//! Payloads of delegates whose backend is known, verified and described in their place in the program.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::Range;

use edgepack_format::finding::Findings;
use edgepack_format::payload::{DataFiles, Description, Holder, PayloadFile, Place, RangeReader, Weight};
use edgepack_format::ptd::{self, Accept, DataRef};
use edgepack_format::wire;
use edgepack_loader::Source;
use serde::Serialize;
use serde_json::Value;

use crate::file::read_range;
use crate::formats::Head;
use crate::formats::fields::{self, Fields};
use crate::session::Session;
use crate::spelling;
use crate::style::{BAD, DIM, NAME, SHAPE, TITLE};
use crate::table::{Align, Cell, Columns};
use crate::units::{self, count};

/// Ranges of a file.
pub struct SourceRanges<'s>(pub &'s dyn Source);

impl RangeReader for SourceRanges<'_> {
    fn read(&self, range: Range<u64>) -> Option<Cow<'_, [u8]>> {
        let bytes = read_range(self.0, range.start, range.end.saturating_sub(range.start)).ok()?;
        Some(Cow::Owned(bytes.to_vec()))
    }
}

/// A payload that was described.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Described {
    /// Path of the payload: `execution_plan[0].delegates[1].processed`.
    pub path: String,
    /// Name of the backend, as programs have it.
    pub backend: String,
    /// Length of the payload in bytes.
    pub bytes: u64,
    /// The place of its first byte in the file.
    pub offset: u64,
    /// Holder of the bytes.
    #[serde(skip)]
    pub holder: Holder,
    /// Description by the decoder.
    #[serde(flatten)]
    pub description: Description,
    /// Number of nodes by operator.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    operators: BTreeMap<String, usize>,
    /// Reason the payload cannot be described.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Every field, if that is asked for and the payload is a flatbuffer.
    #[serde(skip_serializing_if = "Value::is_null")]
    fields: Value,
    /// Fields as lines of text, for people.
    #[serde(skip)]
    field_lines: Vec<u8>,
}

/// Verifies the payloads of a program with their decoders.
///
/// Finds nothing if there is no root table: the program's own rules report that.
pub fn verify(program: wire::Result<PayloadFile<'_>>, session: &Session) -> Findings {
    program.map(|program| session.payloads.verify(&program, &session.limits)).unwrap_or_default()
}

/// Verifies payloads and data files together; reports only findings that need the data files.
pub fn pairing(head: &Head, data: &[&Head], session: &Session) -> Findings {
    let source = SourceRanges(&*head.file.source);
    let files = GivenData::new(data, session);
    let Ok(program) = PayloadFile::new(&head.bytes, &source) else { return Findings::default() };
    let alone = verify(Ok(program), session);
    let together = verify(Ok(program.with_data(&files)), session);
    let mut findings = Findings::new(&session.limits);
    together.iter().filter(|finding| !alone.as_slice().contains(finding)).for_each(|one| findings.push(one.clone()));
    findings
}

/// Data files on the command line.
struct GivenData<'d> {
    files: Vec<(DataRef<'d>, &'d dyn Source)>,
}

impl<'d> GivenData<'d> {
    /// Collects the data files that can be read.
    fn new(heads: &[&'d Head], session: &Session) -> Self {
        let read = |head: &&'d Head| {
            let data = ptd::verify::verify(&head.bytes, head.file.head.extent, &session.limits, Accept::ALL).data?;
            Some((data, &*head.file.source as &dyn Source))
        };
        GivenData { files: heads.iter().filter_map(read).collect() }
    }

    fn find(&self, key: &str) -> Option<(Range<u64>, &'d dyn Source)> {
        self.files.iter().find_map(|(data, source)| Some((data.lookup(key)?.range, *source)))
    }
}

impl DataFiles for GivenData<'_> {
    fn size(&self, key: &str) -> Option<u64> {
        let (range, _) = self.find(key)?;
        Some(range.end.saturating_sub(range.start))
    }

    fn read(&self, key: &str, len: u64) -> Option<Cow<'_, [u8]>> {
        let (range, source) = self.find(key)?;
        Some(Cow::Owned(read_range(source, range.start, len).ok()?.to_vec()))
    }
}

/// The payloads of a program, described; with `all` every field of those that are flatbuffers.
pub fn describe(program: wire::Result<PayloadFile<'_>>, all: bool, session: &Session) -> Vec<Described> {
    let mut list = Vec::new();
    let Ok(program) = program else { return list };
    session.payloads.visit(&program, &session.limits, &mut |found, path, out| {
        let bytes = found.payload.bytes.len() as u64;
        let (mut description, error) = match found.format.describe(&found.payload, out.budget()) {
            Ok(description) => (description, None),
            Err(error) => (Description::default(), Some(error.to_string())),
        };
        for weight in &mut description.weights {
            if let Place::Key(key) = &weight.place
                && found.payload.named_data.size(key).is_none()
            {
                weight.place = Place::DataFile(key.clone());
            }
        }
        let mut operators = BTreeMap::new();
        description.nodes.iter().for_each(|node| *operators.entry(spelling::name(&node.operator)).or_default() += 1);
        let (mut fields, mut field_lines) = (Value::Null, Vec::new());
        if let Some((table, desc)) = found.format.root(&found.payload).filter(|_| all) {
            let budget = || fields::budget(&session.limits, bytes);
            fields = serde_json::to_value(Fields::new(table, desc, &budget())).unwrap_or_default();
            // A list of bytes takes everything.
            let _ = Fields::new(table, desc, &budget()).print(2, &mut field_lines);
        }
        list.push(Described {
            path: path.to_string(),
            backend: spelling::name(found.format.backend()),
            bytes,
            offset: found.offset,
            holder: found.holder,
            description,
            operators,
            error,
            fields,
            field_lines,
        });
    });
    list
}

/// Nodes and weights of a payload that are shown if not all are.
const SHOWN: usize = 12;

/// Prints payloads; with `all` everything that is known of them.
pub fn print(payloads: &[Described], all: bool, out: &mut dyn Write) -> io::Result<()> {
    payloads.iter().try_for_each(|payload| payload.print(all, out))
}

impl Described {
    fn print(&self, all: bool, out: &mut dyn Write) -> io::Result<()> {
        let Described { path, backend, bytes, offset, .. } = self;
        let Description { about, values, nodes, weights } = &self.description;
        writeln!(out, "\n{TITLE}{path}{TITLE:#}  {NAME}{backend}{NAME:#}, {} at {offset:#x}", units::bytes(*bytes))?;
        if let Some(error) = &self.error {
            return writeln!(out, "  {BAD}unreadable{BAD:#}: {error}");
        }
        let counts = [count(values.len(), "value"), count(nodes.len(), "node"), count(weights.len(), "weight")];
        let about = if about.is_empty() { String::new() } else { format!("{}, ", spelling::name(about)) };
        writeln!(out, "  {DIM}{about}{}{DIM:#}", counts.join(", "))?;
        let shown = |len: usize| if all { len } else { len.min(SHOWN) };
        let more = |len: usize, out: &mut dyn Write| match len - shown(len) {
            0 => Ok(()),
            more => writeln!(out, "    {DIM}and {more} more{DIM:#}"),
        };
        if all && !values.is_empty() {
            writeln!(out, "  {TITLE}values{TITLE:#}")?;
            let mut columns = Columns::new(4, &[Align::Left, Align::Left, Align::Left]);
            for value in values {
                let (name, kind) = (spelling::name(&value.name), spelling::name(&value.kind));
                columns.row([
                    Cell::new(name, NAME),
                    Cell::new(kind, SHAPE),
                    Cell::new(spelling::name(&value.role), DIM),
                ]);
            }
            columns.print(out)?;
        }
        if !nodes.is_empty() {
            let counts: Vec<String> = self.operators.iter().map(|(name, count)| format!("{name} {count}")).collect();
            writeln!(out, "  {TITLE}nodes{TITLE:#}  {DIM}{}{DIM:#}", counts.join(", "))?;
            let width = nodes.len().saturating_sub(1).to_string().len();
            for (index, node) in nodes.iter().take(shown(nodes.len())).enumerate() {
                writeln!(out, "    {DIM}{index:>width$}{DIM:#}  {}", spelling::name(&node.text))?;
            }
            more(nodes.len(), out)?;
        }
        if !weights.is_empty() {
            writeln!(out, "  {TITLE}weights{TITLE:#}")?;
            let mut columns = Columns::new(4, &[Align::Left, Align::Left, Align::Right, Align::Left]);
            for weight in weights.iter().take(shown(weights.len())) {
                let place = place(&weight.place);
                columns.row([
                    Cell::new(spelling::name(&weight.name), NAME),
                    Cell::new(spelling::name(&weight.kind), SHAPE),
                    units::bytes(weight.bytes).into(),
                    Cell::new(place, DIM),
                ]);
            }
            columns.print(out)?;
            more(weights.len(), out)?;
        }
        if !self.field_lines.is_empty() {
            writeln!(out, "  {TITLE}every field{TITLE:#}")?;
            out.write_all(&self.field_lines)?;
        }
        Ok(())
    }

    /// The ranges of the file that weights take, each byte once.
    fn weight_ranges(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for weight in &self.description.weights {
            if let Place::Offset(at) = weight.place {
                let start = at.min(self.bytes);
                let end = start.saturating_add(weight.bytes).min(self.bytes);
                ranges.push(self.offset + start..self.offset + end);
            }
        }
        ranges
    }
}

/// The place of a weight, for people.
pub fn place(place: &Place) -> String {
    match place {
        Place::Offset(offset) => format!("at {offset:#x} of the payload"),
        Place::Key(key) => format!("named {}", spelling::name(key)),
        Place::DataFile(key) => format!("named {}, in a data file that was not given", spelling::name(key)),
    }
}

/// All that is known of payloads as comments of a program's text.
pub fn comments(payloads: &[Described]) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str("// ");
        out.push_str(&text);
        out.push('\n');
    };
    for payload in payloads {
        let Described { path, backend, bytes, description, error, .. } = payload;
        let about =
            error.as_ref().map_or_else(|| spelling::name(&description.about), |error| format!("unreadable: {error}"));
        line(format!("{path}: {backend}, {}, {about}", units::bytes(*bytes)));
        for Weight { name, kind, bytes, place: at } in &description.weights {
            let (name, kind) = (spelling::name(name), spelling::name(kind));
            line(format!("  {name}: {kind}, {}, {}", units::bytes(*bytes), place(at)));
        }
        for value in description.values.iter().filter(|value| !value.role.is_empty()) {
            let [name, kind, role] = [&value.name, &value.kind, &value.role].map(|text| spelling::name(text));
            line(format!("  {name}: {kind} = {role}"));
        }
        description.nodes.iter().for_each(|node| line(format!("  {}", spelling::name(&node.text))));
    }
    out
}

/// Bytes of weights by holder of the payload, each byte once.
pub fn weight_bytes(payloads: &[Described]) -> BTreeMap<Holder, u64> {
    let mut ranges: BTreeMap<Holder, Vec<Range<u64>>> = BTreeMap::new();
    for payload in payloads {
        ranges.entry(payload.holder).or_default().extend(payload.weight_ranges());
    }
    let covered = |mut ranges: Vec<Range<u64>>| {
        ranges.sort_by_key(|range| range.start);
        let (mut end, mut sum) = (0, 0);
        for range in ranges {
            sum += range.end.saturating_sub(range.start.max(end));
            end = end.max(range.end);
        }
        sum
    };
    ranges.into_iter().map(|(holder, ranges)| (holder, covered(ranges))).collect()
}

/// An operator of payloads.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct DelegatedOperator {
    backend: String,
    name: String,
    calls: usize,
    dtypes: BTreeSet<String>,
}

/// The operators of payloads, by backend and name.
pub fn operators(payloads: &[Described]) -> Vec<DelegatedOperator> {
    let mut found: BTreeMap<(&str, &str), DelegatedOperator> = BTreeMap::new();
    for payload in payloads {
        for node in &payload.description.nodes {
            let operator = found.entry((&payload.backend, &node.operator)).or_insert_with(|| DelegatedOperator {
                backend: payload.backend.clone(),
                name: spelling::name(&node.operator),
                calls: 0,
                dtypes: BTreeSet::new(),
            });
            operator.calls += 1;
            operator.dtypes.extend(node.types.iter().cloned());
        }
    }
    found.into_values().collect()
}

/// Prints operators of payloads.
pub fn print_operators(operators: &[DelegatedOperator], out: &mut dyn Write) -> io::Result<()> {
    if operators.is_empty() {
        return Ok(());
    }
    writeln!(out, "{TITLE}inside delegates{TITLE:#}  {}", operators.len())?;
    let mut columns = Columns::new(2, &[Align::Left, Align::Right, Align::Left, Align::Left]);
    for DelegatedOperator { backend, name, calls, dtypes } in operators {
        let dtypes: Vec<&str> = dtypes.iter().map(String::as_str).collect();
        columns.row([
            Cell::new(name, NAME),
            count(*calls, "node").into(),
            Cell::new(spelling::name(&dtypes.join(" ")), SHAPE),
            Cell::new(backend, DIM),
        ]);
    }
    columns.print(out)?;
    writeln!(out)
}
