//! Needs of a package: the functions its graphs call, and where they are.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use edgepack_format::mlf::interface::Part;
use edgepack_format::mlf::{COPY, NOP, definitions, has_function_macros};
use edgepack_loader::mlf::LibraryModule;
use serde::Serialize;

use super::library::library;
use crate::file::File;
use crate::session::Session;
use crate::status::{Failure, Status};
use crate::style::{BAD, DIM, GOOD, NAME, SHAPE, TITLE};
use crate::table::{Align, Cell, Columns};
use crate::units::count;

/// A function that is called.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Need {
    /// Name of the function.
    name: String,
    /// Number of calls.
    calls: usize,
    /// Element types of its arguments.
    dtypes: BTreeSet<String>,
    /// The source that defines it, `objects`, or nothing.
    place: Option<String>,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct LibraryNeeds<'a> {
    /// The file.
    file: &'a str,
    /// Number of functions that the package does not define.
    missing: usize,
    /// Modules of the package.
    modules: &'a [Module],
}

/// Functions that a module calls.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Module {
    /// Name of the module.
    name: String,
    /// Inputs of the module, if a part of the package lists them.
    inputs: Option<usize>,
    /// Outputs of the module, if a part of the package lists them.
    outputs: Option<usize>,
    /// Functions by name.
    functions: Vec<Need>,
}

/// Lists the functions of all modules.
pub fn list(file: &File, session: &mut Session) -> Result<Status, Failure> {
    let library = library(file, &session.limits)?;
    let modules: Vec<Module> = library.modules().map(|module| needs(&module)).collect::<Result<_, Failure>>()?;
    let missing: usize =
        modules.iter().map(|module| module.functions.iter().filter(|need| need.place.is_none()).count()).sum();
    if session.json {
        session.document(&LibraryNeeds { file: &file.name, missing, modules: &modules })?;
    } else {
        session.title(&file.name)?;
        for module in &modules {
            let out = &mut session.out;
            let io = [(module.inputs, "input"), (module.outputs, "output")];
            let io = io.into_iter().filter_map(|(number, what)| Some(format!(", {}", count(number?, what))));
            let io = io.collect::<String>();
            writeln!(out, "{TITLE}functions of {}{TITLE:#}  {}{io}", module.name, module.functions.len())?;
            let mut columns = Columns::new(2, &[Align::Left, Align::Right, Align::Left, Align::Left]);
            for need in &module.functions {
                let dtypes: Vec<&str> = need.dtypes.iter().map(String::as_str).collect();
                columns.row([
                    Cell::new(&need.name, NAME),
                    count(need.calls, "call").into(),
                    Cell::new(dtypes.join(" "), SHAPE),
                    need.place.as_ref().map_or(Cell::new("missing", BAD), |place| Cell::new(place, DIM)),
                ]);
            }
            columns.print(out)?;
        }
        match missing {
            0 => writeln!(session.out, "{GOOD}the package has all of them{GOOD:#}")?,
            _ => writeln!(session.out, "{BAD}not in the package: {missing}{BAD:#}")?,
        }
    }
    Ok(if missing == 0 { Status::Fine } else { Status::CannotRun })
}

fn needs(module: &LibraryModule) -> Result<Module, Failure> {
    let mut places = BTreeMap::new();
    for source in module.sources() {
        for definition in definitions(source.bytes)
            .map_err(Failure::unreadable)?
            .into_iter()
            .filter(|definition| !definition.is_static)
        {
            places.insert(definition.name, source.path.to_owned());
        }
    }
    let unknown = module.sources().iter().any(|source| has_function_macros(source.bytes));
    let elsewhere = match (module.objects().is_empty(), unknown) {
        (false, _) => Some("objects".to_owned()),
        (true, true) => Some("perhaps a macro".to_owned()),
        (true, false) => None,
    };
    let mut needs: BTreeMap<&str, Need> = BTreeMap::new();
    for (_, node, call) in module.graph().iter().flat_map(|graph| graph.calls()) {
        let name = call.function.as_str();
        let need = needs.entry(name).or_default();
        need.name = name.to_owned();
        need.calls += 1;
        need.place = match name {
            NOP | COPY => Some("the executor".to_owned()),
            _ => places.get(name).cloned().or_else(|| elsewhere.clone()),
        };
        let types = node.inputs.iter().filter_map(|&input| module.graph()?.entry(input));
        need.dtypes.extend(types.map(|entry| entry.data_type.notation()));
    }
    // The model's text has parameters among its inputs.
    let said = module.interfaces().map_err(Failure::unreadable)?;
    let said = said.into_iter().filter(|interface| interface.part != Part::Relay).collect::<Vec<_>>();
    Ok(Module {
        name: module.info().name.clone(),
        inputs: said.first().map(|interface| interface.inputs.len()),
        outputs: said.iter().find_map(|interface| Some(interface.outputs.as_ref()?.len())),
        functions: needs.into_values().collect(),
    })
}
