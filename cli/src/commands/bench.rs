//! `edgepack bench`: how long opening, loading and running take, and what memory they need.

use std::path::PathBuf;
use std::time::Duration;

use crate::formats::{self, Execution, Measurement};
use crate::options::{Invocation, Native, PackCache, Threads};
use crate::session::Session;
use crate::status::{Failure, Status};

/// Measure opening, loading and running a method
#[derive(clap::Args, Debug)]
#[command(
    mut_arg("method", |arg| arg.help("Name of the method; the only one, or `forward`, if not given")),
    mut_arg("inputs", |arg| arg.help("Inputs, as for `run`; arbitrary numbers if not given"))
)]
pub struct Args {
    /// The program
    pub file: PathBuf,

    /// Method and inputs.
    #[command(flatten)]
    pub invocation: Invocation,

    /// Number of threads.
    #[command(flatten)]
    pub threads: Threads,

    /// Folder of packed weights.
    #[command(flatten)]
    pub pack_cache: PackCache,

    /// Seconds for which steady runs are measured
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub time: Duration,

    /// Also show every instruction next to the limits of this machine
    #[arg(long)]
    pub roofline: bool,

    /// Measure a language model: tokens a second for prompts of several lengths, and behind them
    #[cfg(feature = "llm")]
    #[arg(long, conflicts_with_all = ["method", "inputs", "roofline"])]
    pub llm: bool,

    /// For Model Library Format packages.
    #[command(flatten)]
    pub native: Native,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| "seconds are a number".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    #[cfg(feature = "llm")]
    if args.llm {
        return language_model(args, session);
    }
    let (file, format) = formats::open(&args.file, session)?;
    let Invocation { data, method, inputs } = &args.invocation;
    let how = Execution {
        data: &data.data,
        threads: args.threads.threads,
        pack_cache: args.pack_cache.folder.as_deref(),
        native: &args.native,
        recorder: None,
    };
    let measurement = Measurement { time: args.time, roofline: args.roofline };
    let measured = format.bench(&file, method.as_deref(), inputs, measurement, how, session)?;
    match session.json {
        true => session.document(&measured)?,
        false => measured.print(&mut session.out)?,
    }
    Ok(Status::Fine)
}

/// Measures a language model.
#[cfg(feature = "llm")]
fn language_model(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let model = crate::llm::ModelArgs {
        file: args.file.clone(),
        data: args.invocation.data.clone(),
        threads: args.threads,
        pack_cache: args.pack_cache.clone(),
        context: None,
        prefill_method: None,
        decode_method: None,
        embedding_method: None,
    };
    let (name, threads) = (crate::file::name_of(&args.file), args.threads.threads);
    let measuring = session.progress.work("measuring");
    let rates = crate::llm::rates(&name, threads, args.time, || model.open(session))?;
    drop(measuring);
    match session.json {
        true => session.document(&rates)?,
        false => rates.print(&mut session.out)?,
    }
    Ok(Status::Fine)
}
