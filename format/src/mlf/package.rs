//! A package as the members of its archive: what each is, whose it is, and whether they fit together.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::c_source::{definitions, has_function_macros};
use super::files::{Member, ModuleFiles};
use super::graph::{COPY, Graph, NOP};
use super::metadata::{Metadata, Module, Style};
use super::params::{self, Param, Params};
use super::place::{self, METADATA, Role};
use super::report::{Report, clip, shown};
use super::storage::StoragePlan;
use super::{interface, read_graph, read_metadata};
use crate::finding::Findings;
use crate::limits::Limits;
use crate::notation::Counted;
use crate::room;
use crate::rules::mlf as rules;

/// A package, taken apart.
#[derive(Clone, PartialEq, Debug)]
pub struct Package<'a> {
    /// Metadata of the package.
    pub metadata: Metadata,
    /// The files of each module, in the order of the metadata.
    pub modules: Vec<ModuleFiles<'a>>,
}

/// Verifies a package. There is one if its metadata can be read, whatever rules it breaks.
pub fn verify<'a>(members: &[Member<'a>], limits: &Limits) -> (Findings, Option<Package<'a>>) {
    let mut report = Report::new(limits);
    let by_path = room::map(members.iter().map(|member| (member.path, *member)));
    let Some(text) = by_path.get(METADATA) else {
        report.add(&rules::NO_METADATA, METADATA, None, "absent".to_string());
        return (report.findings, None);
    };
    report.about("metadata", text.at);
    let metadata = report.json(text.bytes).and_then(|json| read_metadata::metadata(&json, &mut report));
    let Some(metadata) = metadata else { return (report.findings, None) };
    let files = Files { by_path: &by_path, metadata: &metadata, limits };
    let mut modules: Vec<ModuleFiles<'a>> = Vec::new();
    for module in &metadata.modules {
        let files = files.module(module, &mut report);
        if !report.push(&mut modules, files) {
            return (report.findings, None);
        }
    }
    files.placed(&mut report);
    (report.findings, Some(Package { metadata, modules }))
}

struct Files<'f, 'a> {
    by_path: &'f BTreeMap<&'a str, Member<'a>>,
    metadata: &'f Metadata,
    limits: &'f Limits,
}

impl<'a> Files<'_, 'a> {
    fn module(&self, module: &Module, report: &mut Report) -> ModuleFiles<'a> {
        let version = self.metadata.version;
        let mut files = ModuleFiles::default();
        let of_module = |path: &str| self.metadata.modules.len() == 1 || place::is_code_of(path, &module.name);
        for member in self.by_path.values().filter(|member| of_module(member.path)) {
            let list = match Role::of(member.path) {
                Role::Source => &mut files.sources,
                Role::Object => &mut files.objects,
                _ => continue,
            };
            if !report.push(list, *member) {
                return files;
            }
        }
        let headers = self.by_path.values().filter(|member| Role::of(member.path) == Role::Header).copied();
        files.headers = report.roomy(room::collect(headers)).unwrap_or_default();
        let name = clip(&module.name).to_string();
        if module.style == Style::FullModel {
            if module.is_run_by("graph") {
                let path = place::graph(version, &module.name);
                match self.by_path.get(path.as_str()) {
                    Some(member) => {
                        report.about(format!("{name}.graph"), member.at);
                        files.graph = read_graph::read(member.bytes, report);
                    }
                    None => {
                        report.about("", 0);
                        report.add(&rules::GRAPH_FILE, clip(&path), None, "absent".to_string());
                    }
                }
            }
            let path = place::params(&module.name);
            match self.by_path.get(path.as_str()) {
                Some(member) => {
                    report.about(format!("{name}.params"), member.at);
                    files.params = params::read(member.bytes, report);
                }
                None => {
                    report.about("", 0);
                    report.add(&rules::PARAMS_FILE, clip(&path), None, "absent".to_string());
                }
            }
            let path = place::relay(version, &module.name);
            report.about("", 0);
            match self.by_path.get(path.as_str()) {
                Some(member) => match core::str::from_utf8(member.bytes) {
                    Ok(text) => files.relay = Some(text),
                    Err(_) => report.add(&rules::RELAY_FILE, clip(&path), None, "it is not UTF-8".to_string()),
                },
                None => report.add(&rules::RELAY_FILE, clip(&path), None, "absent".to_string()),
            }
        }
        report.about(&*name, 0);
        code(module, &files, report);
        interface::verify(module, &files, report);
        if let Some(graph) = &files.graph {
            if let Some(params) = &files.params {
                parameters(module, graph, params, report);
            }
            storages(module, graph, self.limits, report);
        }
        files
    }

    /// Reports files at places where this version has none, and files of unknown kinds.
    fn placed(&self, report: &mut Report) {
        report.about("", 0);
        let version = self.metadata.version;
        let modules = &self.metadata.modules;
        let graphs = room::set(modules.iter().map(|module| place::graph(version, &module.name)));
        let relays = room::set(modules.iter().map(|module| place::relay(version, &module.name)));
        let names = room::set(modules.iter().map(|module| module.name.as_str()));
        for member in self.by_path.values() {
            let wants = match Role::of(member.path) {
                Role::Graph if !graphs.contains(member.path) => "the graph",
                Role::Relay if !relays.contains(member.path) => "the model's text",
                Role::Params(name) if !names.contains(name) => "the parameters of a module",
                Role::Other => {
                    let message = "no part of the format".to_string();
                    report.add(&rules::UNKNOWN_FILE, clip(member.path), None, message);
                    continue;
                }
                Role::Source | Role::Object if modules.len() > 1 => {
                    let mut owners = modules.iter().filter(|module| place::is_code_of(member.path, &module.name));
                    if owners.next().is_none() {
                        let message = "its name says no module".to_string();
                        report.add(&rules::OWNERLESS, clip(member.path), None, message);
                    }
                    continue;
                }
                _ => continue,
            };
            let message = format!("version {version} has {wants} elsewhere");
            report.add(&rules::MISPLACED, clip(member.path), None, message);
        }
    }
}

/// Checks that there is code, and in it every function the graph calls, once.
fn code(module: &Module, files: &ModuleFiles<'_>, report: &mut Report) {
    if files.sources.is_empty() {
        let (rule, what) = match files.objects.is_empty() {
            true => (&rules::NO_CODE, "neither sources nor objects"),
            false => (&rules::ONLY_OBJECTS, "objects, no sources"),
        };
        report.add(rule, "", None, format!("the module has {what}"));
    }
    let mut defined: BTreeMap<String, &str> = BTreeMap::new();
    let mut statics: BTreeSet<String> = BTreeSet::new();
    let mut known = true;
    for source in &files.sources {
        if report.budget.charge_bytes(source.bytes.len(), 0).is_err() {
            report.add(&rules::LIMITS, clip(source.path), None, "more source than the limits allow".to_string());
            return;
        }
        if has_function_macros(source.bytes) {
            known = false;
            continue;
        }
        let Some(found) = report.roomy(definitions(source.bytes)) else { return };
        for definition in found {
            if definition.is_static {
                statics.insert(definition.name);
                continue;
            }
            // Within a file the two may be for different compilers.
            if let Some(first) =
                defined.insert(definition.name.clone(), source.path).filter(|path| *path != source.path)
            {
                let name = clip(&definition.name);
                let message = format!("{name} is defined here and in {}", clip(first));
                report.add(&rules::SYMBOL, clip(source.path), None, message);
            }
        }
    }
    let known = known && files.objects.is_empty() && !files.sources.is_empty();
    for (index, operator) in module.memory.operators.iter().flatten().enumerate().filter(|_| known) {
        if !defined.contains_key(&operator.function_name) && !statics.contains(&operator.function_name) {
            let message = format!("no source defines {}", clip(&operator.function_name));
            report.add(&rules::OPERATOR, format_args!("memory.operator_functions[{index}]"), None, message);
        }
    }
    let Some(graph) = files.graph.as_ref().filter(|_| known) else { return };
    let mut told = BTreeSet::new();
    for (id, _, call) in graph.calls() {
        let function = call.function.as_str();
        if function != NOP && function != COPY && !defined.contains_key(function) && told.insert(function) {
            let message = format!("no source defines {}", clip(function));
            report.add(&rules::FUNCTION, format_args!("graph.nodes[{id}]"), None, message);
        }
    }
}

/// Inputs, as far as the exporter says which arguments they are.
fn inputs(module: &Module) -> Option<BTreeSet<&str>> {
    let main = module.memory.main.as_ref()?.first()?;
    Some(room::set(main.inputs.as_ref()?.iter().map(|buffer| buffer.name.as_str())))
}

/// `p` and a number: how exporters name parameters.
fn is_parameter_name(name: &str) -> bool {
    name.strip_prefix('p').is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Checks that every parameter of the graph is in the file, as the graph has it.
fn parameters(module: &Module, graph: &Graph, params: &Params<'_>, report: &mut Report) {
    let stored: BTreeMap<&str, (usize, &Param<'_>)> =
        room::map(params.entries.iter().enumerate().map(|(index, param)| (param.name, (index, param))));
    let inputs = inputs(module);
    let mut used = BTreeSet::new();
    for (id, name, entry) in graph.args() {
        let Some((index, param)) = stored.get(name) else {
            let is_input = inputs.as_ref().map_or(!is_parameter_name(name), |inputs| inputs.contains(name));
            if !is_input {
                let message = format!("{:?} is not in the parameter file, and no input", clip(name));
                report.add(&rules::PARAM_MISSING, format_args!("graph.nodes[{id}]"), None, message);
            }
            continue;
        };
        used.insert(name);
        if param.data_type != entry.data_type || param.shape != entry.shape {
            let message = format!(
                "{} of shape {}, the graph has {} of {}",
                param.data_type,
                shown(&param.shape),
                entry.data_type,
                shown(&entry.shape)
            );
            report.add(&rules::PARAM_TYPE, format_args!("params[{index}]"), None, message);
        }
    }
    for (index, param) in params.entries.iter().enumerate().filter(|(_, param)| !used.contains(param.name)) {
        let message = format!("the graph has no argument {:?}", clip(param.name));
        report.add(&rules::PARAM_UNUSED, format_args!("params[{index}]"), None, message);
    }
}

/// Checks the metadata's storages against those the graph needs.
fn storages(module: &Module, graph: &Graph, limits: &Limits, report: &mut Report) {
    let Some(plan) = report.roomy(StoragePlan::of(graph)) else { return };
    if plan.bytes() > limits.arena_bytes {
        let message = format!("{} bytes of storage, the limits allow {}", plan.bytes(), limits.arena_bytes);
        report.add(&rules::MEMORY_LIMIT, "graph", None, message);
    }
    let Some(sids) = &module.memory.sids else { return };
    let needed = room::map(plan.storages.iter().map(|storage| (u64::from(storage.id), storage.bytes)));
    for (index, sid) in sids.iter().enumerate() {
        let message = match needed.get(&sid.storage_id) {
            Some(bytes) if *bytes == sid.size_bytes => continue,
            Some(bytes) => {
                format!("storage {} has {}, the graph needs {bytes}", sid.storage_id, Counted(sid.size_bytes, "byte"))
            }
            None => format!("the graph has no storage {}", sid.storage_id),
        };
        report.add(&rules::SIDS, format_args!("memory.sids[{index}]"), None, message);
    }
}
