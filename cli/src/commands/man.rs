//! `edgepack man`: the manual, as one page or as one per command.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use serde::Serialize;

use crate::session::Session;
use crate::status::{Failure, Status};

/// Print the manual page, or write the page of every command to a folder
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Write `edgepack.1`, `edgepack-inspect.1`, … here
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
}

/// The JSON document.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct Page<'a> {
    /// The page, in the language of `man`.
    page: &'a str,
}

/// Runs the command.
pub fn run(args: &Args, command: Command, session: &mut Session) -> Result<Status, Failure> {
    let Some(folder) = &args.output else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        if session.json {
            session.document(&Page { page: &String::from_utf8_lossy(&page) })?;
        } else {
            session.out.write_all(&page)?;
        }
        return Ok(Status::Fine);
    };
    let failed = |error: io::Error| Failure::unreadable(format!("cannot write to {}: {error}", folder.display()));
    if folder.exists() && !folder.is_dir() {
        return Err(Failure::unreadable(format!("{} is not a folder", folder.display())));
    }
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    pages(command, folder, session)?;
    session.outputs.commit()?;
    Ok(Status::Fine)
}

/// The pages of a command and of those below it.
fn pages(command: Command, folder: &Path, session: &mut Session) -> Result<(), Failure> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages(below.clone(), folder, session)?;
    }
    let page = Man::new(command);
    session.stage(&folder.join(page.get_filename()), |out| Ok(page.render(out)?))
}
