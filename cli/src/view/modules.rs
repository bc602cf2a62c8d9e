//! Modules that nodes of a graph are in, one in another.

use std::collections::HashMap;

use serde::Serialize;

/// A module.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Module {
    /// Name of the module below the one around it.
    pub name: String,
    /// Index of the module around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<usize>,
}

/// Modules of a graph, each behind the one around it.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Modules {
    list: Vec<Module>,
    #[serde(skip)]
    known: HashMap<(Option<usize>, String), usize>,
    /// Modules around the node before, outermost first.
    #[serde(skip)]
    last: Vec<usize>,
}

/// Modules around a node at most: inner ones are left out.
const DEPTH: usize = 12;

impl Modules {
    /// The module at the end of a path, outermost first; the same path is the same module.
    pub fn at<S: AsRef<str>>(&mut self, path: impl IntoIterator<Item = S>) -> Option<usize> {
        let mut found = None;
        for name in path.into_iter().take(DEPTH) {
            let (parent, name) = (found, name.as_ref());
            let list = &mut self.list;
            found = Some(*self.known.entry((parent, name.to_owned())).or_insert_with(|| {
                list.push(Module { name: name.to_owned(), parent });
                list.len() - 1
            }));
        }
        found
    }

    /// The module of the next node by a path that is not its own: the lines of source that led to it. What is between nodes
    /// of the same path ends a module, and the next one is another.
    pub fn next<S: AsRef<str>>(&mut self, path: impl IntoIterator<Item = S>) -> Option<usize> {
        let (mut found, mut depth) = (None, 0);
        for name in path.into_iter().take(DEPTH) {
            let name = name.as_ref();
            let same =
                self.last.get(depth).copied().filter(|&last| self.list.get(last).is_some_and(|one| one.name == name));
            let module = same.unwrap_or_else(|| {
                self.last.truncate(depth);
                self.list.push(Module { name: name.to_owned(), parent: found });
                self.last.push(self.list.len() - 1);
                self.list.len() - 1
            });
            (found, depth) = (Some(module), depth + 1);
        }
        self.last.truncate(depth);
        found
    }

    /// Modules by their indices.
    pub fn list(&self) -> &[Module] {
        &self.list
    }

    /// Names from the outermost module to this one.
    pub fn path(&self, module: Option<usize>) -> Vec<&str> {
        let mut names = Vec::new();
        let mut next = module;
        while let Some(module) = next.and_then(|index| self.list.get(index)) {
            names.push(module.name.as_str());
            next = module.parent;
        }
        names.reverse();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_path_is_one_module() {
        let mut modules = Modules::default();
        let (a, b) = (modules.at(["net", "a"]), modules.at(["net", "b"]));
        assert_eq!((a, b, modules.at(["net", "a"])), (Some(1), Some(2), a));
        assert_eq!((modules.path(b), modules.path(None)), (vec!["net", "b"], vec![]));
        assert_eq!(modules.at::<&str>([]), None);
        let deep = modules.at(["x"; 100]);
        assert_eq!(modules.path(deep).len(), DEPTH);
    }

    #[test]
    fn lines_of_source_are_modules_as_long_as_nodes_follow_each_other() {
        let mut modules = Modules::default();
        let found = [&["f", "a"][..], &["f", "a"], &["f"], &["f", "a"], &["g", "a"], &[], &["g"]]
            .map(|path| modules.next(path));
        assert_eq!(found, [Some(1), Some(1), Some(0), Some(2), Some(4), None, Some(5)]);
        assert_eq!(modules.path(Some(4)), ["g", "a"]);
    }
}
