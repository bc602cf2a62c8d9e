//! Export IR: archives, documents and tables of element types.

use edgepack_exir::archive::{Archive, records};
use edgepack_exir::backends::xnnpack::{self, Scheme};
use edgepack_exir::dtype::Table;
use edgepack_exir::graph::{Dialect, ExportedProgram, Expr};
use edgepack_exir::language;
use edgepack_exir::lower::{ByName, InitialState, Options as Lowering, ProgramManager, lower, to_edge};
use edgepack_exir::operators::Operators;
use edgepack_exir::pickle::{self, Value};
use edgepack_exir::verify::{Options, verify, verify_archive};

use crate::seeds;

/// A program that is read survives writing, verifying, printing and lowering; one that verifies clean after conversion
/// was converted without a panic, whatever it says.
pub fn archive(bytes: &[u8]) {
    let findings = verify_archive(bytes);
    let Ok(archive) = Archive::parse(bytes) else {
        assert!(findings.has_errors(), "an archive that cannot be read has nothing against it");
        return;
    };
    let Ok(program) = archive.program() else { return };
    assert!(!program.to_string().is_empty());
    let mut written = Vec::new();
    if program.save(&mut written).is_ok() {
        let again = Archive::parse(&written).and_then(|archive| archive.program());
        let again = again.expect("what was written is read");
        // As text, since a number that is none differs from itself.
        let text = |program: &ExportedProgram<'_>| serde_json::to_string(&program.to_document()).ok();
        assert_eq!(text(&again), text(&program), "what was written says something else");
    }
    delegated(&program);
    let operators = Operators::new();
    for like_reference in [false, true] {
        let lowering = Lowering {
            like_reference,
            external_weights: if like_reference { ByName::all("weights".to_owned()) } else { ByName::default() },
            initial_state: if like_reference { InitialState::All } else { InitialState::NonZero },
            ..Lowering::default()
        };
        if let Ok(edge) = to_edge(program.clone(), &lowering) {
            let _ = verify(&edge, &Options::new(&operators).dialect(Dialect::Edge)).has_errors();
        }
        let Ok(built) = lower(vec![("forward".to_owned(), program.clone())], &lowering) else { continue };
        let Ok(bytes) = built.to_bytes() else { continue };
        let program = edgepack_loader::Program::from_bytes(bytes.as_slice()).expect("what was lowered opens");
        assert_eq!(program.method_names().expect("its methods are listed").len(), 1);
        for (_, file) in built.data_files() {
            let _ = file.write_to(&mut std::io::sink());
        }
    }
}

/// A program that is lowered with a backend, rounded weights and attention of language models is one that opens.
fn delegated(program: &ExportedProgram<'_>) {
    let mut manager = ProgramManager::new(Lowering::default());
    manager.keep_whole(xnnpack::whole_operators()).keep_whole(language::WHOLE);
    if manager.add("forward", program.clone()).is_err() || manager.change(language::recognise).is_err() {
        return;
    }
    let rounded =
        [Scheme::Blocks(32), Scheme::Embeddings].map(|scheme| xnnpack::quantise(&mut manager, scheme).is_ok());
    if rounded != [true; 2] || xnnpack::delegate(&mut manager, &ByName::default()).is_err() {
        return;
    }
    let Ok(bytes) = manager.finish().and_then(|built| Ok(built.to_bytes()?)) else { return };
    let program = edgepack_loader::Program::from_bytes(bytes).expect("what was lowered opens");
    assert_eq!(program.method_names().expect("its methods are listed").len(), 1);
}

/// Pickles: any bytes are read or refused, and what is read can be walked.
pub fn pickle(bytes: &[u8]) {
    let Ok(read) = pickle::read(bytes) else { return };
    let mut left = vec![read.root()];
    let mut seen = std::collections::BTreeSet::new();
    while let Some(id) = left.pop() {
        if !seen.insert(id) {
            continue;
        }
        let _ = (read.text(id), read.size(id), read.sizes(id), read.entries(id), read.made(id));
        match read.value(id) {
            Value::Tuple(items) | Value::List(items) => left.extend(items),
            Value::Dict(entries) => left.extend(entries.iter().flat_map(|(key, value)| [*key, *value])),
            Value::Made { by, arguments, state } => left.extend([*by, *arguments].into_iter().chain(*state)),
            Value::Kept(key) => left.push(*key),
            _ => {}
        }
    }
    assert!(seen.len() <= bytes.len(), "{} values of {} bytes", seen.len(), bytes.len());
}

/// The pickles of the archives to start from.
pub fn pickles() -> Vec<Vec<u8>> {
    let archives = seeds::corpus(&["pt2", "etrecord"]).into_iter().filter_map(|path| std::fs::read(path).ok());
    let mut found: Vec<Vec<u8>> = Vec::new();
    for archive in archives {
        for (_, content) in records(&archive).unwrap_or_default() {
            let inner = records(content).unwrap_or_default();
            found.extend(
                inner.into_iter().filter(|(name, _)| name.ends_with("data.pkl")).map(|(_, pickle)| pickle.to_vec()),
            );
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Tables, declared operators and formulas: any text is read or refused.
pub fn text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(table) = Table::parse(text) {
        for (name, constraint) in table.operators() {
            assert!(constraint.rows() > 0, "{name} has no row");
            for column in constraint.names() {
                assert!(constraint.allowed_types(column).len() <= 13);
            }
        }
    }
    let _ = Operators::new().declare(text).is_ok();
    if let Ok(formula) = Expr::parse(text) {
        let again = Expr::parse(&formula.to_string()).expect("what was printed is read");
        assert_eq!(again, formula);
    }
}

/// Texts to start from.
pub fn texts() -> Vec<Vec<u8>> {
    let table = "- func: aten::abs\n  namespace: edge\n  inherits: aten::abs\n  type_alias:\n    T0: [Float, Double]\n  \
                 type_constraint:\n  - self: T0\n    __ret_0: T0\n";
    let formulas = [
        "Mul(Integer(2), Symbol('s0', integer=True))",
        "Max(Integer(1), FloorDiv(Symbol('s1'), Integer(4)))",
        "2*s0//3 - u1**2",
    ];
    [table].iter().chain(&formulas).map(|text| text.as_bytes().to_vec()).collect()
}
