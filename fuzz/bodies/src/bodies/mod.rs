//! The fuzz bodies: each holds one promise against any bytes, and panics if it is broken.

mod body;
mod build;
mod compiled;
mod data;
mod delegated;
mod differential;
mod edit;
mod execute;
mod exported;
mod header;
mod language;
mod library;
mod operators;
mod packages;
mod packed;
mod payload;
mod payload_run;
mod program;
mod rows;
mod schema;
mod session;
mod structs;

use edgepack_format::limits::Limits;
use edgepack_smith::dictionary::{
    ARCHIVE, BUNDLE, CHAT_TEMPLATE, COMPILED, DATA, ELEMENT_TYPES, FLATBUFFERS, LIBRARY, OPERATOR_SCHEMA, PAYLOAD,
    PICKLE, PROGRAM, TOKENIZER, TRACE,
};
use edgepack_smith::mutate;

use crate::archives;
use body::{no_edit, no_root, no_seeds};

pub use body::Body;
pub use execute::{Reached, execute, generated, kernel_seeds, kernels, reach, run};

/// Every body.
pub const BODIES: &[Body] = &[
    Body {
        name: "header",
        promise: "any bytes are of some kind, and extended headers read, write and read again",
        run: header::header,
        extensions: &["pte", "ptd", "bpte", "etdp"],
        seeds: no_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[FLATBUFFERS, PROGRAM, DATA, BUNDLE, TRACE],
    },
    Body {
        name: "pte",
        promise: "an accepted program is readable to its last leaf and its segments lie in the file",
        run: program::program,
        extensions: &["pte"],
        seeds: no_seeds,
        root: mutate::root_of_file,
        edit: mutate::edit_program,
        dictionary: &[FLATBUFFERS, PROGRAM],
    },
    Body {
        name: "run",
        promise: "an accepted program loads and runs, or is refused; the same each time, optimised or not",
        run,
        extensions: &["pte"],
        seeds: no_seeds,
        root: mutate::root_of_file,
        edit: mutate::edit_program,
        dictionary: &[FLATBUFFERS, PROGRAM],
    },
    Body {
        name: "kernels",
        promise: "valid programs of any operators on any arguments verify, and run or are refused",
        run: kernels,
        extensions: &[],
        seeds: kernel_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[],
    },
    Body {
        name: "operators",
        promise: "every operator on any arguments of its schema answers or refuses",
        run: operators::operators,
        extensions: &[],
        seeds: operators::operator_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[],
    },
    Body {
        name: "ptd",
        promise: "an accepted data file has an entry for every key, inside the file and as long as its layout",
        run: data::data,
        extensions: &["ptd"],
        seeds: no_seeds,
        root: mutate::root_of_file,
        edit: mutate::edit_program,
        dictionary: &[FLATBUFFERS, DATA],
    },
    Body {
        name: "flat_data",
        promise: "the same for FlatData, whatever the identifier",
        run: data::flat_data,
        extensions: &["ptd"],
        seeds: no_seeds,
        root: mutate::root_of_file,
        edit: mutate::edit_program,
        dictionary: &[FLATBUFFERS, DATA],
    },
    Body {
        name: "bundle",
        promise: "an accepted bundle has a readable program and readable cases",
        run: data::bundle,
        extensions: &["bpte"],
        seeds: no_seeds,
        root: mutate::root_of_file,
        edit: mutate::edit_program,
        dictionary: &[FLATBUFFERS, PROGRAM, BUNDLE],
    },
    Body {
        name: "trace",
        promise: "an accepted trace is readable to its last leaf",
        run: data::trace,
        extensions: &["etdp"],
        seeds: no_seeds,
        root: mutate::root_of_file,
        edit: mutate::edit_program,
        dictionary: &[FLATBUFFERS, TRACE],
    },
    Body {
        name: "package",
        promise: "an accepted Edge TPU package links, lists its transfers and converts its tensors",
        run: compiled::package,
        extensions: &["dwn"],
        seeds: no_seeds,
        root: mutate::root_of_file,
        edit: mutate::edit_program,
        dictionary: &[FLATBUFFERS, COMPILED],
    },
    Body {
        name: "model",
        promise: "an accepted model has its packages where it says, and takes others",
        run: compiled::model,
        extensions: &["tflite"],
        seeds: no_seeds,
        root: mutate::root_of_file,
        edit: mutate::edit_program,
        dictionary: &[FLATBUFFERS, COMPILED],
    },
    Body {
        name: "early_wrapper",
        promise: "executables without a package are told from packages, and their model comes back byte for byte",
        run: compiled::early_wrapper,
        extensions: &[],
        seeds: compiled::early_seeds,
        root: mutate::root_of_file,
        edit: mutate::edit_program,
        dictionary: &[FLATBUFFERS, COMPILED],
    },
    Body {
        name: "options",
        promise: "custom options that are read are written and read the same",
        run: compiled::options,
        extensions: &[],
        seeds: compiled::option_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[FLATBUFFERS, COMPILED],
    },
    Body {
        name: "named_data",
        promise: "a struct of tensors loads from any map or says why not; what loads is stored and loads the same",
        run: structs::named_data,
        extensions: &[],
        seeds: structs::named_data_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[],
    },
    Body {
        name: "compile_specs",
        promise: "a struct of options is read from any specs or says why not; what is read is written and read the same",
        run: structs::compile_specs,
        extensions: &[],
        seeds: structs::compile_spec_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[],
    },
    Body {
        name: "library",
        promise: "an accepted library package is written the same, and its graphs run as planned",
        run: library::library,
        extensions: &["tar"],
        seeds: no_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[LIBRARY],
    },
    Body {
        name: "graph",
        promise: "an accepted graph is written and read the same, and computes what it would with nothing shared",
        run: library::graphs,
        extensions: &[],
        seeds: library::graph_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[LIBRARY],
    },
    Body {
        name: "params",
        promise: "an accepted parameter file has the bytes of every shape, and is written to the byte",
        run: library::parameters,
        extensions: &[],
        seeds: library::params_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[LIBRARY],
    },
    Body {
        name: "gzip",
        promise: "a package in gzip is inflated within the limits, and is then a package like any other",
        run: packages::gzip,
        extensions: &[],
        seeds: packages::gzip_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[LIBRARY],
    },
    Body {
        name: "child_answers",
        promise: "a child process that says anything gives the outputs that were asked for, or is refused",
        run: packages::child_answers,
        extensions: &[],
        seeds: packages::answer_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[],
    },
    Body {
        name: "operator_schema",
        promise: "a schema parses or is refused at a place in it, and its calling convention is consistent",
        run: schema::schema,
        extensions: &[],
        seeds: schema::known_schemas,
        root: no_root,
        edit: no_edit,
        dictionary: &[OPERATOR_SCHEMA],
    },
    Body {
        name: "differential",
        promise: "what we accept the official verifier accepts, and planus reads the same rows",
        run: differential::differential,
        extensions: &["pte", "ptd", "bpte", "etdp"],
        seeds: no_seeds,
        root: mutate::root_of_file,
        edit: mutate::edit_program,
        dictionary: &[FLATBUFFERS, PROGRAM, DATA, BUNDLE, TRACE],
    },
    Body {
        name: "roundtrip",
        promise: "rows that were read are written, read and equal",
        run: rows::roundtrip,
        extensions: &["pte", "ptd", "bpte", "etdp"],
        seeds: no_seeds,
        root: mutate::root_of_file,
        edit: mutate::edit_program,
        dictionary: &[FLATBUFFERS, PROGRAM, DATA, BUNDLE, TRACE],
    },
    Body {
        name: "json",
        promise: "rows survive JSON",
        run: rows::json,
        extensions: &["pte", "ptd", "bpte", "etdp"],
        seeds: no_seeds,
        root: mutate::root_of_file,
        edit: mutate::edit_program,
        dictionary: &[FLATBUFFERS, PROGRAM, DATA, BUNDLE, TRACE],
    },
    Body {
        name: "builder",
        promise: "what is built verifies, is the same twice, shares what is equal, and survives JSON and text",
        run: build::build,
        extensions: &[],
        seeds: build::build_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[],
    },
    Body {
        name: "edit",
        promise: "a file taken apart is written, dumped and built, printed and parsed, the same",
        run: edit::edit,
        extensions: &["pte", "ptd", "bpte", "dwn", "tflite"],
        seeds: no_seeds,
        root: mutate::root_of_file,
        edit: mutate::edit_program,
        dictionary: &[FLATBUFFERS, PROGRAM, BUNDLE, COMPILED],
    },
    Body {
        name: "text",
        promise: "a text parses or is refused at a place in it, and what parsed prints and parses again",
        run: edit::text,
        extensions: &[],
        seeds: edit::texts,
        root: no_root,
        edit: no_edit,
        dictionary: &[PROGRAM, OPERATOR_SCHEMA],
    },
    Body {
        name: "pt2",
        promise: "an archive of export IR is verified, written and lowered, or refused; what was lowered opens",
        run: exported::archive,
        extensions: &["pt2", "etrecord"],
        seeds: no_seeds,
        root: no_root,
        edit: archives::edit,
        dictionary: &[ARCHIVE, PICKLE],
    },
    Body {
        name: "pickle",
        promise: "a pickle is read as data or refused; nothing that it names is called, and it makes no more values than bytes",
        run: exported::pickle,
        extensions: &[],
        seeds: exported::pickles,
        root: no_root,
        edit: no_edit,
        dictionary: &[PICKLE],
    },
    Body {
        name: "exir_text",
        promise: "a table of element types and a formula over sizes are read or refused at a place in them",
        run: exported::text,
        extensions: &[],
        seeds: exported::texts,
        root: no_root,
        edit: no_edit,
        dictionary: &[ELEMENT_TYPES],
    },
    Body {
        name: "xnnpack",
        promise: "an accepted XNNPACK payload has an order of nodes, prints, and is written and read the same",
        run: payload::payload,
        extensions: &["xnn"],
        seeds: payload::payload_seeds,
        root: payload::payload_root,
        edit: no_edit,
        dictionary: &[FLATBUFFERS, PAYLOAD],
    },
    Body {
        name: "xnnpack_run",
        promise: "graphs of XNNPACK nodes run or are refused by node; the same on one thread and two, optimised or not",
        run: payload_run::payload_run,
        extensions: &[],
        seeds: payload_run::payload_run_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[],
    },
    Body {
        name: "xnnpack_lower",
        promise: "programs lowered to XNNPACK compute what their portable form computes, within a bound that is known before",
        run: delegated::delegated,
        extensions: &[],
        seeds: delegated::delegated_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[],
    },
    Body {
        name: "packed_entry",
        promise: "an entry of packed weights comes back as it was written, and a damaged or foreign one does not",
        run: packed::packed_entry,
        extensions: &[],
        seeds: packed::seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[],
    },
    Body {
        name: "tokenizer_json",
        promise: "a tokenizer.json is refused, or translates any text, in pieces as at once",
        run: language::hugging_face,
        extensions: &[],
        seeds: language::hugging_face_seeds,
        root: no_root,
        edit: language::edit_json,
        dictionary: &[TOKENIZER],
    },
    Body {
        name: "tiktoken",
        promise: "ranks are refused, or translate any text, in pieces as at once",
        run: language::tiktoken,
        extensions: &[],
        seeds: language::tiktoken_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[],
    },
    Body {
        name: "sentencepiece",
        promise: "a SentencePiece model is refused, or translates any text, in pieces as at once",
        run: language::sentencepiece,
        extensions: &[],
        seeds: language::sentencepiece_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[],
    },
    Body {
        name: "llama2c",
        promise: "a tokenizer of llama2.c is refused, or translates any text, in pieces as at once",
        run: language::llama2c,
        extensions: &[],
        seeds: language::llama2c_seeds,
        root: no_root,
        edit: no_edit,
        dictionary: &[],
    },
    Body {
        name: "chat_template",
        promise: "a chat template is refused, or renders or refuses any conversation within its bounds",
        run: language::template,
        extensions: &[],
        seeds: language::template_seeds,
        root: no_root,
        edit: language::edit_json,
        dictionary: &[CHAT_TEMPLATE],
    },
    Body {
        name: "saved_session",
        promise: "a saved session is refused, or becomes one that goes on and is saved as it was",
        run: session::saved_session,
        extensions: &[],
        seeds: session::sessions,
        root: no_root,
        edit: no_edit,
        dictionary: &[],
    },
];

/// The body of this name.
pub fn body(name: &str) -> Option<&'static Body> {
    BODIES.iter().find(|body| body.name == name)
}

/// Limits under which everything a file shares can be written out: tables may share blobs, so what a file expands to
/// is at most visits times length.
pub(crate) fn small_limits(bytes: &[u8]) -> Limits {
    const EXPANDED: u64 = 8 << 20;
    let mut limits = Limits::hostile();
    limits.visits = (EXPANDED / (bytes.len() as u64).max(1)).clamp(200, 20_000);
    limits
}
