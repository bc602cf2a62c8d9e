//! `edgepack shrink`: a smaller file that still shows something.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use edgepack::builder::write_file::Workspace;
use edgepack_smith::shrink::shrink;
use serde::Serialize;

use crate::file::name_of;
use crate::session::Session;
use crate::status::{Failure, Status};

/// Make a file smaller while a command still says yes to it
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The file
    pub file: PathBuf,

    /// A command that exits with 0 where the file shows what is looked for. It is cut into words as by a shell, quotes
    /// included, and run without one; `{}` in a word is the path of the file, which is the last argument if there is no
    /// `{}`. For pipes and the like name a shell: `sh -c 'grep -q x "$1"' sh`
    #[arg(long, value_name = "CMD")]
    pub test: String,

    /// Path for the smaller file
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Shrunk {
    /// Bytes of the file that was written.
    after: usize,
    /// Bytes of the file that was read.
    before: usize,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let words = shell_words::split(&args.test).map_err(|error| Failure::usage(format!("{}: {error}", args.test)))?;
    let Some((program, words)) = words.split_first() else {
        return Err(Failure::usage("--test names no command"));
    };
    let input = session.read_filled(&args.file)?;
    let failed = |error: io::Error| Failure::unreadable(format!("a temporary folder: {error}"));
    let folder = Workspace::new(std::path::absolute(std::env::temp_dir()).map_err(failed)?).map_err(failed)?;
    let attempt = folder.path().join(candidate_name(&args.file));
    let arguments = arguments(words, &attempt);
    let mut refused = None;
    let shrinking = session.progress.work("shrinking");
    let smaller = shrink(&input, |bytes| {
        if refused.is_some() {
            return false;
        }
        let asked = std::fs::write(&attempt, bytes).and_then(|()| silent(program, &arguments).status());
        match asked {
            Ok(status) => status.success(),
            Err(error) => {
                refused = Some(error);
                false
            }
        }
    });
    drop((folder, shrinking));
    if let Some(error) = refused {
        return Err(Failure::unreadable(format!("{}: {error}", args.test)));
    }
    let Some(smaller) = smaller else {
        return Err(Failure::usage(format!(
            "`{}` fails on {} as it is; shrinking keeps a file on which it succeeds",
            args.test,
            name_of(&args.file)
        )));
    };
    session.write_binary(&args.output, &smaller)?;
    if session.json {
        session.document(&Shrunk { after: smaller.len(), before: input.len() })?;
    } else {
        session.write_text(None, &format!("{} bytes of {}\n", smaller.len(), input.len()))?;
    }
    Ok(Status::Fine)
}

/// Returns a file name without characters that a shell interprets; keeps the extension if it is a plain one.
fn candidate_name(file: &Path) -> String {
    let extension = file.extension().and_then(|extension| extension.to_str());
    let plain = |text: &&str| text.len() <= 8 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    format!("candidate.{}", extension.filter(plain).unwrap_or("bin"))
}

/// The words with the path where it is asked for, else behind them.
fn arguments(words: &[String], path: &Path) -> Vec<OsString> {
    let mut found = false;
    let mut arguments: Vec<OsString> = Vec::new();
    for word in words {
        let mut argument = OsString::new();
        for (index, piece) in word.split("{}").enumerate() {
            if index > 0 {
                argument.push(path);
                found = true;
            }
            argument.push(piece);
        }
        arguments.push(argument);
    }
    if !found {
        arguments.push(path.into());
    }
    arguments
}

/// The command without input and output.
fn silent(program: &str, arguments: &[OsString]) -> Command {
    let mut child = Command::new(program);
    child.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    child
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_where_they_are_asked_for() {
        let words = |text: &str| arguments(&shell_words::split(text).unwrap(), Path::new("/t/a b"));
        assert_eq!(words("-q 'x y'"), ["-q", "x y", "/t/a b"]);
        assert_eq!(words("--in={} -c '<{}>'"), ["--in=/t/a b", "-c", "</t/a b>"]);
    }

    #[test]
    fn no_name_means_anything_to_a_shell() {
        for (name, want) in [
            ("a.pte", "candidate.pte"),
            ("a", "candidate.bin"),
            ("a.$(touch x)", "candidate.bin"),
            ("x.pte;reboot", "candidate.bin"),
            ("a.` `", "candidate.bin"),
            ("a.", "candidate."),
        ] {
            assert_eq!(candidate_name(Path::new(name)), want);
        }
    }
}
