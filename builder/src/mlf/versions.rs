//! From one version of the format to another: what moves, what is renamed, and what would be lost.

use std::borrow::Cow;
use std::collections::BTreeMap;

use edgepack_format::mlf::{Metadata, Module, NEWEST, OLDEST, Style, Targets, place};

use super::parts::LibraryParts;
use crate::build_error::BuildError;

impl<'a> LibraryParts<'a> {
    /// Lists the losses of a conversion to another version; an empty list if that version can hold everything.
    pub fn losses(&self, version: u32) -> Vec<String> {
        let Metadata { version: from, modules } = &self.metadata;
        let mut losses = Vec::new();
        if !(OLDEST..=NEWEST).contains(&version) {
            losses.push(format!("everything: there is no version {version}"));
            return losses;
        }
        if version < 7 && modules.len() > 1 {
            losses.push(format!("all modules but one of {}", modules.len()));
        }
        for module in modules {
            let name = &module.name;
            if version < 4 && module.style == Style::Operator {
                losses.push(format!("{name}: that it is a single operator"));
            }
            match &module.target {
                Targets::ByDevice(pairs) if version > 5 && pairs.iter().any(|(device, _)| device != CPU) => {
                    losses.push(format!("{name}: the types of devices of its targets"));
                }
                Targets::List(list) if version <= 5 && list.len() != 1 => {
                    losses.push(format!("{name}: which of {} targets is for which type of device", list.len()));
                }
                _ => {}
            }
            let memory = &module.memory;
            if version == 1 && (memory.main.is_some() || memory.operators.is_some()) {
                losses.push(format!("{name}: the memory of its functions"));
            }
            if version == 1 && memory.sids.is_none() && module.executors.iter().any(|name| name == "graph") {
                losses.push(format!("{name}: that nothing is said about its storages"));
            }
        }
        let mut renamed = std::collections::BTreeSet::new();
        for path in self.files.keys() {
            if !renamed.insert(self.renamed(path, *from, version)) {
                losses.push(format!("{path}: another file has its name"));
            }
        }
        losses
    }

    /// The same package in another version. Fails if anything would be lost.
    pub fn to_version(&self, version: u32) -> Result<LibraryParts<'a>, BuildError> {
        let losses = self.losses(version);
        if !losses.is_empty() {
            return Err(BuildError::Lost { what: format!("version {version}"), losses });
        }
        let from = self.metadata.version;
        let module = |module: &Module| {
            let target = match (&module.target, version) {
                (Targets::ByDevice(pairs), 6..) => {
                    Targets::List(pairs.iter().map(|(_, target)| target.clone()).collect())
                }
                (Targets::List(list), ..=5) => {
                    Targets::ByDevice(list.iter().map(|target| (CPU.to_owned(), target.clone())).collect())
                }
                (target, _) => target.clone(),
            };
            Module { target, ..module.clone() }
        };
        let files: BTreeMap<String, Cow<'a, [u8]>> =
            self.files.iter().map(|(path, bytes)| (self.renamed(path, from, version), bytes.clone())).collect();
        Ok(LibraryParts {
            metadata: Metadata { version, modules: self.metadata.modules.iter().map(module).collect() },
            modules: self.modules.clone(),
            files,
            layout: None,
        })
    }

    /// The path of a file in another version: since version 3 code has its module's name in front.
    fn renamed(&self, path: &str, from: u32, to: u32) -> String {
        let Some(module) = self.metadata.modules.first().filter(|_| self.metadata.modules.len() == 1) else {
            return path.to_owned();
        };
        let Some((folder, name)) = path.rsplit_once('/').filter(|_| Self::is_code(path)) else {
            return path.to_owned();
        };
        if module.style == Style::Operator {
            return path.to_owned();
        }
        match (from, to) {
            (..=2, 3..) if name.starts_with("lib") => format!("{folder}/{}_{name}", module.name),
            (3.., ..=2) if place::is_code_of(path, &module.name) => {
                let prefix = format!("{}_", module.name);
                format!("{folder}/{}", name.strip_prefix(&prefix).unwrap_or(name))
            }
            _ => path.to_owned(),
        }
    }
}

/// The type of device that a list of targets is for.
const CPU: &str = "1";
