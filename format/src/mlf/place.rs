//! Paths of a package's files, by version.

use alloc::format;
use alloc::string::String;

use super::metadata::Style;

/// The file that makes an archive a package.
pub const METADATA: &str = "metadata.json";

/// Role of a member of a package.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Role<'p> {
    /// `metadata.json`.
    Metadata,
    /// A graph; newer versions name it after its module.
    Graph,
    /// Parameters of this module.
    Params(&'p str),
    /// The model before it was compiled.
    Relay,
    /// The operator before it was compiled.
    Tir,
    /// C or C++ for some processor.
    Source,
    /// Compiled code.
    Object,
    /// A header for callers.
    Header,
    /// A part of TVM's runtime, or a template for its configuration.
    Runtime,
    /// Nothing the format knows.
    Other,
}

impl<'p> Role<'p> {
    /// Of a path in a package of any version.
    pub fn of(path: &'p str) -> Role<'p> {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        let mut parts = path.split('/');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(METADATA), None, ..) => Role::Metadata,
            (Some("relay.txt"), None, ..) => Role::Relay,
            (Some("src"), Some(_), None, _) if extension == "relay" || path == "src/relay.txt" => Role::Relay,
            (Some("src"), Some(name), None, _) if name.starts_with("tir-") => Role::Tir,
            (Some("parameters"), Some(name), None, _) => name.strip_suffix(".params").map_or(Role::Other, Role::Params),
            (Some("runtime-config" | "executor-config"), Some("graph"), Some(_), None) => Role::Graph,
            (Some("codegen"), Some(_), Some("src"), Some(_)) if matches!(extension, "c" | "cc" | "cpp") => Role::Source,
            (Some("codegen"), Some(_), Some("lib"), Some(_)) if extension == "o" => Role::Object,
            (Some("codegen"), Some(_), Some("include"), Some(_)) if extension == "h" => Role::Header,
            (Some("codegen"), Some(_), Some("src"), Some(_)) if extension == "h" => Role::Header,
            (Some("runtime" | "templates"), Some(_), ..) => Role::Runtime,
            _ => Role::Other,
        }
    }
}

/// Returns the path of a module's graph.
pub fn graph(version: u32, module: &str) -> String {
    match version {
        1..=4 => "runtime-config/graph/graph.json".into(),
        5 | 6 => "executor-config/graph/graph.json".into(),
        _ => format!("executor-config/graph/{module}.graph"),
    }
}

/// Returns the path of a module's model.
pub fn relay(version: u32, module: &str) -> String {
    match version {
        1..=3 => "relay.txt".into(),
        4..=6 => "src/relay.txt".into(),
        _ => format!("src/{module}.relay"),
    }
}

/// Returns the path of a module's parameters.
pub fn params(module: &str) -> String {
    format!("parameters/{module}.params")
}

/// Returns the start of the name of generated file number `index`, without its extension.
pub fn code(version: u32, style: Style, module: &str, index: usize) -> String {
    match (version, style) {
        (1 | 2, _) | (_, Style::Operator) => format!("lib{index}"),
        _ => format!("{module}_lib{index}"),
    }
}

/// Returns whether a generated file is of this module, by its name; of several modules only one can own a file.
pub fn is_code_of(path: &str, module: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let rest = name.strip_prefix(module).and_then(|rest| rest.strip_prefix("_lib"));
    let digits = rest.and_then(|rest| rest.split('.').next());
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_roles() {
        for version in 1..=7 {
            assert_eq!(Role::of(&graph(version, "m")), Role::Graph, "version {version}");
            assert_eq!(Role::of(&relay(version, "m")), Role::Relay, "version {version}");
            assert_eq!(Role::of(&params("m")), Role::Params("m"));
            let source = format!("codegen/host/src/{}.c", code(version, Style::FullModel, "m", 3));
            assert_eq!(Role::of(&source), Role::Source);
            assert_eq!(is_code_of(&source, "m"), version > 2);
        }
        for (path, role) in [
            ("metadata.json", Role::Metadata),
            ("a/metadata.json", Role::Other),
            ("src/tir-1.txt", Role::Tir),
            ("codegen/host/lib/m_lib0.o", Role::Object),
            ("codegen/host/include/tvmgen_m.h", Role::Header),
            ("runtime/src/crt.c", Role::Runtime),
            ("codegen/host/src/readme.txt", Role::Other),
            ("", Role::Other),
        ] {
            assert_eq!(Role::of(path), role, "{path}");
        }
        assert!(!is_code_of("codegen/host/src/m_libx.c", "m"));
    }
}
