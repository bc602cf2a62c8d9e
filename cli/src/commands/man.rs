//! `edgepack man`: the manual, as one page or as one per command.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::Cli;
use crate::session::Session;
use crate::status::{Failure, Status};

/// Print the manual page, or write the page of every command to a folder
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Write `edgepack.1`, `edgepack-inspect.1`, … here
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let command = Cli::command();
    let Some(folder) = &args.output else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        if session.json {
            session.document(&serde_json::json!({ "page": String::from_utf8_lossy(&page) }))?;
        } else {
            session.out.write_all(&page)?;
        }
        return Ok(Status::Fine);
    };
    let failed = |error: io::Error| Failure::unreadable(format!("cannot write to {}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(command.disable_help_subcommand(true), folder).map_err(failed)?;
    Ok(Status::Fine)
}
