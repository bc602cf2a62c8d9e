//! `edgepack shrink`: a smaller file that still shows something.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use edgepack_fuzz::shrink::shrink;

use crate::session::Session;
use crate::status::{Failure, Status};

/// Make a file smaller while a command still says yes to it
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The file
    pub file: PathBuf,

    /// A shell command that exits with 0 where the file shows what is looked for; `{}` in it is the file's path
    #[arg(long, value_name = "CMD")]
    pub test: String,

    /// Where the smaller file goes
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let input = session.read(&args.file)?;
    let extension = args.file.extension().map(|extension| extension.to_string_lossy().into_owned());
    let name = format!("edgepack-shrink-{}.{}", std::process::id(), extension.as_deref().unwrap_or("bin"));
    let attempt = std::env::temp_dir().join(name);
    let command = args.test.replace("{}", &attempt.display().to_string());
    let mut refused = None;
    let smaller = shrink(&input, |bytes| {
        if refused.is_some() {
            return false;
        }
        let asked = std::fs::write(&attempt, bytes).and_then(|()| shell(&command).status());
        match asked {
            Ok(status) => status.success(),
            Err(error) => {
                refused = Some(error);
                false
            }
        }
    });
    // Where nothing was written there is nothing to remove.
    let _ = std::fs::remove_file(&attempt);
    if let Some(error) = refused {
        return Err(Failure::unreadable(format!("{}: {error}", args.test)));
    }
    let Some(smaller) = smaller else {
        return Err(Failure::usage(format!("{} says no to {} as it is", args.test, args.file.display())));
    };
    session.write_binary(&args.output, &smaller)?;
    if session.json {
        session.document(&serde_json::json!({ "before": input.len(), "after": smaller.len() }))?;
    } else {
        session.write_text(None, &format!("{} bytes of {}\n", smaller.len(), input.len()))?;
    }
    Ok(Status::Fine)
}

/// The command, silent, in the shell of the system.
fn shell(command: &str) -> Command {
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut child = Command::new(shell);
    child.args([flag, command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    child
}
