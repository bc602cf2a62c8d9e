//! Report of a comparison: a row for every pair of results, and the first that differs and diverges.

use std::io::{self, Write};

use serde::Serialize;

use super::measure::{Distance, Verdict};
use super::pair::{By, Pair};
use super::seen::Seen;
use crate::spelling;
use crate::style::{BAD, DIM, GOOD, NAME, SHAPE, TITLE, WARN};
use crate::table::{Align, Cell, Columns};
use crate::units::count;

/// Rows that are shown if not all are.
const SHOWN: usize = 20;

/// A comparison of two runs, layer by layer.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Report {
    /// Index in `layers` of the first that differs at all.
    pub first_difference: Option<usize>,
    /// Index in `layers` of the first that differs by more than is allowed.
    pub first_divergence: Option<usize>,
    /// Pairs of results, in order.
    pub layers: Vec<Layer>,
    /// Results of the first run without a partner.
    pub left_only: usize,
    /// Results of the second run without a partner.
    pub right_only: usize,
    /// True if a run had more results than are compared.
    pub cut: bool,
}

/// A pair of results and their distance.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Layer {
    /// In the first run.
    pub left: Origin,
    /// In the second run.
    pub right: Origin,
    /// Way in which they were matched.
    pub matched: By,
    /// Their distance.
    #[serde(flatten)]
    pub distance: Distance,
}

/// Origin of a result.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Origin {
    /// Index of the chain.
    pub chain: usize,
    /// Index of the instruction in its chain.
    pub instruction: usize,
    /// Node of the payload of a delegate; absent for instructions of the program and for copies of arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// Times that the place was reached before.
    pub visit: usize,
    /// Index among the results.
    pub output: usize,
    /// Operator or backend.
    pub operator: String,
    /// Name of the node in the exported program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Line of the model's source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Element type and sizes: `f32[1, 10]`.
    #[serde(rename = "type")]
    pub signature: String,
}

impl Origin {
    fn new(seen: &Seen) -> Self {
        let sizes: Vec<String> = seen.sizes.iter().map(usize::to_string).collect();
        Origin {
            chain: seen.chain,
            instruction: seen.instruction,
            node: seen.node.filter(|node| *node != u32::MAX),
            visit: seen.visit,
            output: seen.output,
            operator: seen.operator.clone(),
            name: seen.name.clone(),
            source: seen.source.clone(),
            signature: format!("{}[{}]", seen.dtype, sizes.join(", ")),
        }
    }

    /// The place in few signs: `3`, `0.12` of a node, `1:3` in a chain that is not the first, `3 x2` at the second visit.
    fn place(&self) -> String {
        let chain = if self.chain == 0 { String::new() } else { format!("{}:", self.chain) };
        let node = self.node.map_or(String::new(), |node| format!(".{node}"));
        let visit = if self.visit == 0 { String::new() } else { format!(" x{}", self.visit + 1) };
        format!("{chain}{}{node}{visit}", self.instruction)
    }

    fn what(&self) -> String {
        let output = if self.output == 0 { String::new() } else { format!(" result {}", self.output) };
        let name = self.name.as_ref().map_or(String::new(), |name| format!(" {}", spelling::name(name)));
        format!("{}{output}{name}", spelling::name(&self.operator))
    }
}

impl Report {
    /// Makes the report of pairs and their distances.
    pub fn new([left, right]: [&[Seen]; 2], pairs: &[Pair], distances: Vec<Distance>, cut: bool) -> Report {
        let row = |(pair, distance): (&Pair, Distance)| Layer {
            left: Origin::new(&left[pair.left]),
            right: Origin::new(&right[pair.right]),
            matched: pair.by,
            distance,
        };
        let layers: Vec<Layer> = pairs.iter().zip(distances).map(row).collect();
        let first = |is: fn(Verdict) -> bool| layers.iter().position(|layer| is(layer.distance.verdict));
        Report {
            first_difference: first(|verdict| verdict != Verdict::Equal),
            first_divergence: first(|verdict| verdict == Verdict::Diverges),
            left_only: left.len() - layers.len(),
            right_only: right.len() - layers.len(),
            layers,
            cut,
        }
    }

    /// Returns whether there was something to compare, and nothing diverges.
    pub fn agrees(&self) -> bool {
        self.first_divergence.is_none() && !self.layers.is_empty()
    }

    /// Prints the layers that differ, or with `all` every layer, then the first of them in words.
    pub fn print(&self, all: bool, indent: usize, out: &mut dyn Write) -> io::Result<()> {
        let differing = self.layers.iter().filter(|layer| all || layer.distance.verdict != Verdict::Equal);
        let (shown, most) = (differing.clone().count(), if all { usize::MAX } else { SHOWN });
        let right = [Align::Right; 4];
        let mut columns = Columns::new(
            indent,
            &[&[Align::Left; 2][..], &right[..], &[Align::Right; 1][..], &[Align::Left; 2][..]].concat(),
        );
        columns
            .heading(&["layer", "verdict", "max abs", "mean abs", "SQNR dB", "cosine", "elements", "type", "operator"]);
        for layer in differing.take(most) {
            columns.row(layer.cells());
        }
        if shown > 0 {
            columns.print(out)?;
        }
        if shown > most {
            writeln!(out, "{:indent$}{DIM}and {} more, which --all shows{DIM:#}", "", shown - most)?;
        }
        self.conclude(indent, out)
    }

    fn conclude(&self, indent: usize, out: &mut dyn Write) -> io::Result<()> {
        let pad = " ".repeat(indent);
        let equal = self.layers.iter().filter(|layer| layer.distance.verdict == Verdict::Equal).count();
        let alone = match (self.left_only, self.right_only) {
            (0, 0) => String::new(),
            (left, right) => format!("; without a partner: {left} left, {right} right"),
        };
        let layers = count(self.layers.len(), "layer");
        writeln!(out, "{pad}{layers} compared, {equal} equal{alone}")?;
        if self.cut {
            writeln!(out, "{pad}{WARN}only the first results of longer runs were compared{WARN:#}")?;
        }
        let first = |what: &str, at: usize, out: &mut dyn Write| {
            let Some(layer) = self.layers.get(at) else { return Ok(()) };
            let (left, right) = (&layer.left, &layer.right);
            write!(out, "{what} {NAME}{}{NAME:#} {}  {SHAPE}{}{SHAPE:#}", left.place(), left.what(), left.signature)?;
            let alike = is_same(&left.what(), &right.what()) && left.signature == right.signature;
            if !alike || left.place() != right.place() {
                write!(out, " {DIM}and{DIM:#} {} {}  {}", right.place(), right.what(), right.signature)?;
            }
            if let Some(source) = left.source.as_ref().or(right.source.as_ref()) {
                write!(out, "  {DIM}{}{DIM:#}", spelling::name(source))?;
            }
            writeln!(out)
        };
        match (self.first_difference, self.first_divergence) {
            _ if self.layers.is_empty() => writeln!(out, "{pad}{BAD}no results could be matched{BAD:#}"),
            (Some(difference), Some(divergence)) => {
                if difference < divergence {
                    first(&format!("{pad}{WARN}first difference{WARN:#} "), difference, out)?;
                }
                first(&format!("{pad}{BAD}first divergence{BAD:#} "), divergence, out)
            }
            (Some(difference), None) => {
                first(&format!("{pad}{WARN}first difference{WARN:#} "), difference, out)?;
                writeln!(out, "{pad}{GOOD}no layer diverges{GOOD:#}")
            }
            _ => writeln!(out, "{pad}{GOOD}every layer is equal{GOOD:#}"),
        }
    }
}

impl Layer {
    fn cells(&self) -> Vec<Cell> {
        let Layer { left, right, distance, .. } = self;
        let (word, style) = match distance.verdict {
            Verdict::Equal => ("equal", GOOD),
            Verdict::Close => ("close", WARN),
            Verdict::Diverges => ("diverges", BAD),
        };
        let decimals =
            |number: Option<f64>, digits: usize| number.map_or(String::new(), |number| format!("{number:.digits$}"));
        let differing = match distance.different {
            0 => distance.elements.to_string(),
            different => format!("{different} of {}", distance.elements),
        };
        let operator = match is_same(&left.what(), &right.what()) {
            true => left.what(),
            false => format!("{} | {}", left.what(), right.what()),
        };
        vec![
            Cell::new(left.place(), TITLE),
            Cell::new(word, style),
            Cell::from(magnitude(distance.max_abs)),
            Cell::from(magnitude(distance.mean_abs)),
            Cell::from(decimals(distance.sqnr_db, 1)),
            Cell::from(decimals(distance.cosine, 6)),
            Cell::from(differing),
            Cell::new(left.signature.clone(), SHAPE),
            Cell::from(operator),
        ]
    }
}

/// Returns whether two operators are one; traces name them without the namespace.
fn is_same(left: &str, right: &str) -> bool {
    let bare = |name: &str, other: &str| !name.contains("::") && other.rsplit("::").next() == Some(name);
    left == right || bare(left, right) || bare(right, left)
}

fn magnitude(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format!("{value:.1e}") }
}
