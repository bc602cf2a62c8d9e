//! JSON Schema of every document of `--json`, made from the types that commands serialise.
//!
//! A document is one of the bodies of its command, or a failure, with `schema` in front. `docs/json` holds what is made here.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::commands::{
    build, check, completions, convert, diff, digest, explain, extract, join, list, man, merge, parse, patch, run,
    shrink, size, split, verify,
};
use crate::formats::inspection::Inspection;
use crate::formats::{Measured, bundle, darwinn, exir, mlf, ptd, pte, tflite, trace};
use crate::layers::page::Compared;
use crate::profile::Profile;
use crate::session::Failed;
use crate::view::View;

/// Makes a schema by a generator that collects definitions.
type Make = fn(&mut SchemaGenerator) -> Schema;

fn body<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Bodies of the documents of every command that has any.
fn bodies() -> Vec<(&'static str, Vec<Make>)> {
    let mut bodies: Vec<(&'static str, Vec<Make>)> = vec![
        ("bench", vec![body::<Measured>]),
        ("build", vec![body::<build::Built>]),
        ("check", vec![body::<check::Checked<'_>>]),
        ("compare", vec![body::<Compared<'_>>]),
        ("completions", vec![body::<completions::Completions<'_>>]),
        ("convert", vec![body::<convert::Converted>]),
        (
            "darwinn",
            vec![
                body::<darwinn::host::Chunks>,
                body::<darwinn::host::Transfers>,
                body::<darwinn::host::Relaid>,
                body::<darwinn::host::Groups>,
                body::<darwinn::plan::Plan>,
            ],
        ),
        ("diff", vec![body::<diff::Compared<'_>>]),
        ("digest", vec![body::<digest::Digests>]),
        ("explain", vec![body::<explain::RuleText>, body::<explain::CodeText>, body::<explain::Everything>]),
        ("extract", vec![body::<extract::Extracted<'_>>]),
        (
            "inspect",
            vec![
                body::<Inspection<'_, pte::Inspected<'_>>>,
                body::<Inspection<'_, bundle::Inspected<'_>>>,
                body::<Inspection<'_, ptd::summary::DataSummary>>,
                body::<Inspection<'_, trace::summary::TraceSummary>>,
                body::<Inspection<'_, tflite::Inspected<'_, '_>>>,
                body::<Inspection<'_, darwinn::Inspected<'_, '_>>>,
                body::<Inspection<'_, mlf::summary::LibrarySummary>>,
                body::<Inspection<'_, exir::summary::ArchiveSummary>>,
            ],
        ),
        ("join", vec![body::<join::Joined>]),
        ("list", vec![body::<list::List>]),
        ("lower", vec![body::<exir::lower::LoweredProgram<'_>>]),
        ("man", vec![body::<man::Page<'_>>]),
        ("merge", vec![body::<merge::Merged>]),
        (
            "ops",
            vec![
                body::<pte::ops::ProgramNeeds<'_>>,
                body::<pte::releases::Releases<'_>>,
                body::<mlf::ops::LibraryNeeds<'_>>,
                body::<exir::ops::GraphNeeds<'_>>,
            ],
        ),
        ("parse", vec![body::<parse::Parsed>]),
        ("patch", vec![body::<patch::Patched>]),
        ("profile", vec![body::<Profile>]),
        ("run", vec![body::<run::Outcome<'_>>]),
        ("shrink", vec![body::<shrink::Shrunk>]),
        ("size", vec![body::<size::Document<'_>>]),
        ("split", vec![body::<split::Parts<'_>>]),
        ("verify", vec![body::<verify::Results<'_>>, body::<verify::Verified>]),
        ("view", vec![body::<View>]),
    ];
    #[cfg(feature = "llm")]
    {
        use crate::commands::perplexity;
        use crate::llm::Event;

        if let Some((_, bench)) = bodies.first_mut() {
            bench.push(body::<crate::llm::Rates>);
        }
        bodies.push(("chat", vec![body::<Event<'_>>]));
        bodies.push(("generate", vec![body::<Event<'_>>]));
        bodies.push(("perplexity", vec![body::<perplexity::Scored<'_>>]));
    }
    bodies
}

/// Returns the schema of the documents of every command that prints some, by the command's name.
pub fn schemas() -> Vec<(&'static str, Value)> {
    bodies().into_iter().map(|(command, bodies)| (command, schema(command, &bodies))).collect()
}

fn schema(command: &str, bodies: &[Make]) -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut any: Vec<Schema> = bodies.iter().map(|body| body(&mut generator)).collect();
    any.push(generator.subschema_for::<Failed<'_>>());
    // Lines of text that is made while it is printed have it once.
    let lines = ["chat", "generate"].contains(&command);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("edgepack/{command}/1"),
        "title": format!("Documents of edgepack {command} --json"),
        "type": "object",
        "properties": { "schema": { "const": format!("edgepack/{command}/1") } },
        "required": if lines { vec![] } else { vec!["schema"] },
        "anyOf": any,
        "$defs": generator.take_definitions(true),
    })
}
