//! Names of files elsewhere on a command line, and how messages show them: without what may be a secret.

use std::path::Path;

/// Reason for which a name inside of a file of a server leads nowhere: names in files never become requests.
pub const NOT_BESIDE: &str = "files next to one of a server are not looked for; download both";

/// Beginnings of names of files elsewhere.
const SCHEMES: [&str; 5] = ["https://", "http://", "s3://", "gs://", "az://"];

/// Returns the name of a file elsewhere; `None` for a path of this machine. `./https://x` is such a path.
pub fn remote(path: &Path) -> Option<&str> {
    let name = path.to_str()?;
    let starts = |scheme: &&str| name.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    SCHEMES.iter().any(starts).then_some(name)
}

/// Returns a name as messages show it: what is in front of the host, queries and fragments may be secrets.
pub fn shown(name: &str) -> String {
    let Some((scheme, rest)) = name.split_once("://") else { return name.to_owned() };
    let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => authority.to_owned(),
    };
    let path = rest.find(['?', '#']).map_or_else(|| rest.to_owned(), |end| format!("{}?…", &rest[..end]));
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_servers_are_told_from_paths() {
        for name in ["https://x/y", "HTTPS://x", "http://127.0.0.1/", "s3://b/k", "gs://b/k", "az://c/k"] {
            assert_eq!(remote(Path::new(name)), Some(name));
        }
        for path in ["./https://x/y", "https:/x", "x.pte", "-", "", "ftp://x", "é//://"] {
            assert_eq!(remote(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        for (name, want) in [
            ("https://host/a.pte", "https://host/a.pte"),
            ("https://user:pass@host:8/a?sig=x#y", "https://…@host:8/a?…"),
            ("https://a@b@host?x@y/z", "https://…@host?…"),
            ("https://host#secret", "https://host?…"),
            ("https://host\\@x/y", "https://host\\@x/y"),
            ("no url", "no url"),
        ] {
            assert_eq!(shown(name), want);
        }
    }
}
