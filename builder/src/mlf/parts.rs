//! A package as its parts, and the archive made of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use edgepack_format::limits::Limits;
use edgepack_format::mlf::place::{self, METADATA};
use edgepack_format::mlf::{ArchiveLayout, Graph, Member, Metadata, Module, Param, Role, Style, package};

use super::graph::graph_text;
use super::params::params_file;
use crate::build_error::BuildError;

/// Parts of a package.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LibraryParts<'a> {
    /// Metadata of the package; modules in the order of [`LibraryParts::modules`].
    pub metadata: Metadata,
    /// Parts of each module, besides code.
    pub modules: Vec<ModuleParts<'a>>,
    /// Code, headers and all other files, by path.
    pub files: BTreeMap<String, Cow<'a, [u8]>>,
    /// Layout of the archive that the parts were read from; without one the archive has our own.
    pub layout: Option<ArchiveLayout>,
}

/// Parts of a module, besides code.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ModuleParts<'a> {
    /// The text of its graph.
    pub graph: Option<Cow<'a, str>>,
    /// Content of the parameter file.
    pub params: Option<Cow<'a, [u8]>>,
    /// The model before it was compiled.
    pub relay: Option<Cow<'a, str>>,
}

impl<'a> LibraryParts<'a> {
    /// A package of this version (1 to 7) without modules.
    pub fn new(version: u32) -> Self {
        LibraryParts { metadata: Metadata { version, modules: Vec::new() }, ..Self::default() }
    }

    /// The parts of a package that was read.
    pub fn of(metadata: Metadata, members: &[Member<'a>]) -> Self {
        let mut files: BTreeMap<String, Cow<'a, [u8]>> =
            members.iter().map(|member| (member.path.to_owned(), Cow::Borrowed(member.bytes))).collect();
        files.remove(METADATA);
        let mut text = |path: String| match files.get(&path) {
            Some(Cow::Borrowed(bytes)) => {
                let text = std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
                text.inspect(|_| drop(files.remove(&path)))
            }
            _ => None,
        };
        let version = metadata.version;
        let whole = |module: &&Module| module.style == Style::FullModel;
        let mut modules: Vec<ModuleParts<'a>> = Vec::new();
        for module in &metadata.modules {
            let parts = match whole(&module) {
                true => ModuleParts {
                    graph: text(place::graph(version, &module.name)),
                    params: None,
                    relay: text(place::relay(version, &module.name)),
                },
                false => ModuleParts::default(),
            };
            modules.push(parts);
        }
        for (module, parts) in metadata.modules.iter().zip(&mut modules).filter(|(module, _)| whole(module)) {
            parts.params = files.remove(&place::params(&module.name));
        }
        LibraryParts { metadata, modules, files, layout: None }
    }

    /// With the layout that the archive had. Texts that would be written otherwise are recorded in it.
    pub fn with_layout(mut self, mut layout: ArchiveLayout, metadata: &str) -> Self {
        if self.metadata.to_text() != metadata {
            layout.texts.insert(METADATA.to_owned(), metadata.to_owned());
        }
        self.layout = Some(layout);
        self
    }

    /// Adds a module of the graph executor.
    pub fn graph_module(
        &mut self,
        module: Module,
        graph: &Graph,
        params: &[Param<'_>],
        relay: Option<&'a str>,
    ) -> Result<(), BuildError> {
        let parts = ModuleParts {
            graph: Some(graph_text(graph).into()),
            params: Some(params_file(params)?.into()),
            relay: relay.map(Cow::Borrowed),
        };
        self.metadata.modules.push(module);
        self.modules.push(parts);
        Ok(())
    }

    /// Adds generated code of a module for a processor, such as `host`. Sources end in `c`, `cc` or `cpp`, objects in `o`.
    /// Returns its path in the package.
    pub fn code(&mut self, module: &str, processor: &str, extension: &str, bytes: impl Into<Cow<'a, [u8]>>) -> String {
        let folder = if extension == "o" { "lib" } else { "src" };
        let style = self.metadata.module(module).map(|module| module.style).unwrap_or_default();
        let path = |index: usize| {
            let name = place::code(self.metadata.version, style, module, index);
            format!("codegen/{processor}/{folder}/{name}.{extension}")
        };
        // Of as many places as there are files, one more is free.
        let mut places = (0..=self.files.len()).map(path);
        let path = places.find(|path| !self.files.contains_key(path)).unwrap_or_default();
        self.files.insert(path.clone(), bytes.into());
        path
    }

    /// The text of the metadata: as it was recorded, if that still says the same.
    fn metadata_text(&self) -> String {
        let recorded = self.layout.as_ref().and_then(|layout| layout.texts.get(METADATA));
        let same = |text: &&String| {
            Metadata::parse(text.as_bytes(), &Limits::DEFAULT).is_ok_and(|recorded| recorded == self.metadata)
        };
        recorded.filter(same).cloned().unwrap_or_else(|| self.metadata.to_text())
    }

    /// Every file, by path.
    pub fn members(&self) -> Result<BTreeMap<String, Cow<'_, [u8]>>, BuildError> {
        let version = self.metadata.version;
        let mut members: BTreeMap<String, Cow<'_, [u8]>> = BTreeMap::new();
        let mut add = |path: String, bytes: Cow<'_, [u8]>| match members.entry(path) {
            std::collections::btree_map::Entry::Occupied(taken) => Err(BuildError::Name {
                what: "a file",
                name: taken.key().clone(),
                why: "another part of the package is there",
            }),
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(bytes.into_owned().into());
                Ok(())
            }
        };
        add(METADATA.to_owned(), self.metadata_text().into_bytes().into())?;
        for (module, parts) in self.metadata.modules.iter().zip(&self.modules) {
            let bytes = |text: &Cow<'a, str>| Cow::Owned(text.as_bytes().to_vec());
            if let Some(graph) = &parts.graph {
                add(place::graph(version, &module.name), bytes(graph))?;
            }
            if let Some(relay) = &parts.relay {
                add(place::relay(version, &module.name), bytes(relay))?;
            }
            if let Some(params) = &parts.params {
                add(place::params(&module.name), params.to_vec().into())?;
            }
        }
        for (path, bytes) in &self.files {
            add(path.clone(), bytes.to_vec().into())?;
        }
        Ok(members)
    }

    /// Writes the archive, and verifies what is in it.
    pub fn finish(&self) -> Result<Vec<u8>, BuildError> {
        let members = self.members()?;
        let list: Vec<Member<'_>> = members.iter().map(|(path, bytes)| Member { path, at: 0, bytes }).collect();
        let (findings, _) = package::verify(&list, &Limits::default());
        if findings.has_errors() {
            return Err(findings.into());
        }
        Ok(self.archive()?.0)
    }

    /// Writes the archive, right or wrong: in the recorded layout, or, with the reason, in our own.
    pub fn archive(&self) -> Result<(Vec<u8>, Option<String>), BuildError> {
        let members = self.members()?;
        let files: BTreeMap<&str, &[u8]> = members.iter().map(|(path, bytes)| (path.as_str(), &**bytes)).collect();
        let unplaced = match self.layout.as_ref().map(|layout| layout.write(&files)) {
            Some(Ok(bytes)) => return Ok((bytes, None)),
            Some(Err(reason)) => Some(reason),
            None => None,
        };
        Ok((archive(files)?, unplaced))
    }

    /// Files of generated code.
    pub(crate) fn is_code(path: &str) -> bool {
        matches!(Role::of(path), Role::Source | Role::Object)
    }
}

/// A tar archive of these files, in this order, as exporters name them: below `./`, with their folders.
pub fn archive<'f>(files: impl IntoIterator<Item = (&'f str, &'f [u8])>) -> Result<Vec<u8>, BuildError> {
    let failed = |path: &str| BuildError::reading(format!("the archive, at {path}"));
    let mut out = tar::Builder::new(Vec::new());
    let mut folders = std::collections::BTreeSet::new();
    let mut append = |path: &str, bytes: &[u8], kind: tar::EntryType, mode: u32| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(bytes.len() as u64);
        header.set_username("root").and_then(|()| header.set_groupname("root")).map_err(failed(path))?;
        out.append_data(&mut header, path, bytes).map_err(failed(path))
    };
    append("./", &[], tar::EntryType::Directory, 0o755)?;
    for (path, bytes) in files {
        for (at, _) in path.match_indices('/') {
            let folder = path.get(..=at).unwrap_or_default();
            if folders.insert(folder.to_owned()) {
                append(&format!("./{folder}"), &[], tar::EntryType::Directory, 0o755)?;
            }
        }
        append(&format!("./{path}"), bytes, tar::EntryType::Regular, 0o644)?;
    }
    let mut bytes = out.into_inner().map_err(failed("the end"))?;
    /// Block size that archives are padded to, in bytes.
    const RECORD: usize = 10_240;
    bytes.resize(bytes.len().next_multiple_of(RECORD), 0);
    Ok(bytes)
}
