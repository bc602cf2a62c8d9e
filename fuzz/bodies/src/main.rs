//! The runner: campaigns, replays and minimising on a stable toolchain.
//!
//! `smoke` is what CI runs. Exit status: 0 clean, 1 failures, 2 wrong usage.

mod campaign;
mod guard;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use campaign::Budget;
use edgepack_builder::write_file::replace;
use edgepack_fuzz::bodies::{Reached, generated, kernel_seeds, reach};
use edgepack_fuzz::{BODIES, Body, body, export, seeds};
use edgepack_smith::{Rng, mutate};

const USAGE: &str = "usage: edgepack-fuzz list
       edgepack-fuzz smoke [--seconds N] [--seed S]
       edgepack-fuzz run BODY [--executions N] [--seconds N] [--seed S] [--case-seconds N] [--from FOLDER]
       edgepack-fuzz replay BODY FILE…
       edgepack-fuzz minimise BODY FILE
       edgepack-fuzz seeds FOLDER [BODY…]
       edgepack-fuzz assemble INPUT OUT.pte
       edgepack-fuzz reach [--executions N] [--seed S]";

/// A case that takes longer has failed.
const CASE_SECONDS: u64 = 20;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    guard::install();
    match command(&words) {
        Some(Ok(true)) => ExitCode::SUCCESS,
        Some(Ok(false)) => ExitCode::FAILURE,
        Some(Err(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Runs a command and returns whether all is well; `None` if these words are not a command.
fn command(words: &[&str]) -> Option<std::io::Result<bool>> {
    Some(match words {
        ["list"] => {
            BODIES.iter().for_each(|body| println!("{:16} {}", body.name, body.promise));
            Ok(true)
        }
        ["smoke", options @ ..] => {
            let options = Options::read(options)?;
            let time = Duration::from_secs(options.seconds.unwrap_or(60)) / BODIES.len() as u32;
            let budget = Budget { executions: u64::MAX, time };
            // Every body runs, whatever the others said.
            Ok(BODIES.iter().filter(|body| !campaign(body, &[], budget, options.seed)).count() == 0)
        }
        ["run", name, options @ ..] => {
            let options = Options::read(options)?;
            let time = options.seconds.map_or(Duration::MAX, Duration::from_secs);
            let executions = options.executions.unwrap_or(if options.seconds.is_some() { u64::MAX } else { 100_000 });
            let body = body(name)?;
            let more = options.from.as_deref().map(|folder| seeds::below(Path::new(folder), body.extensions));
            guard::allow(options.case_seconds.unwrap_or(CASE_SECONDS));
            Ok(campaign(body, &more.unwrap_or_default(), Budget { executions, time }, options.seed))
        }
        ["replay", name, files @ ..] if !files.is_empty() => replay(body(name)?, files),
        ["minimise", name, file] => minimise(body(name)?, file),
        ["seeds", folder, names @ ..] => {
            let named: Vec<&Body> = names.iter().map(|name| body(name)).collect::<Option<_>>()?;
            let bodies = if named.is_empty() { BODIES.iter().collect() } else { named };
            bodies.iter().try_for_each(|body| export::write(body, Path::new(folder))).map(|()| true)
        }
        ["assemble", input, out] => std::fs::read(input)
            .and_then(|input| replace(out, |file| file.write_all(&generated(&input).bytes)))
            .map(|()| true),
        ["reach", options @ ..] => {
            let options = Options::read(options)?;
            show_reach(options.executions.unwrap_or(100_000), options.seed);
            Ok(true)
        }
        _ => return None,
    })
}

struct Options {
    executions: Option<u64>,
    seconds: Option<u64>,
    case_seconds: Option<u64>,
    seed: u64,
    from: Option<String>,
}

impl Options {
    fn read(words: &[&str]) -> Option<Self> {
        let mut options = Options { executions: None, seconds: None, case_seconds: None, seed: 1, from: None };
        for pair in words.chunks(2) {
            let [name, value] = pair else { return None };
            let number = || value.parse().ok();
            match *name {
                "--executions" => options.executions = Some(number()?),
                "--seconds" => options.seconds = Some(number()?),
                "--case-seconds" => options.case_seconds = Some(number()?),
                "--seed" => options.seed = number()?,
                "--from" => options.from = Some((*value).to_owned()),
                _ => return None,
            }
        }
        Some(options)
    }
}

fn campaign(body: &'static Body, more: &[PathBuf], budget: Budget, seed: u64) -> bool {
    let outcome = campaign::run(body, more, budget, seed);
    let rate = outcome.executions as f64 / outcome.time.as_secs_f64().max(1e-9);
    let failures = outcome.failures.len();
    println!("{:16} {:>10} executions {rate:>9.0}/s {failures:>3} failures", body.name, outcome.executions);
    for (failure, input) in outcome.failures.values() {
        println!("    {}: {} ({} bytes)", failure.place, failure.message, input.len());
    }
    failures == 0
}

fn replay(body: &'static Body, files: &[&str]) -> std::io::Result<bool> {
    let mut clean = true;
    for file in files {
        match guard::run(body, &std::fs::read(file)?) {
            Ok(()) => println!("{file}: fine"),
            Err(failure) => {
                clean = false;
                println!("{file}: {}: {}", failure.place, failure.message);
            }
        }
    }
    Ok(clean)
}

fn minimise(body: &'static Body, file: &str) -> std::io::Result<bool> {
    match campaign::minimise(body, &std::fs::read(file)?) {
        Some((failure, input)) => {
            let path = guard::save(body.name, &input);
            println!("{}: {}\n{} bytes in {}", failure.place, failure.message, input.len(), path.display());
            Ok(false)
        }
        None => {
            println!("{file}: fine");
            Ok(true)
        }
    }
}

/// Prints how far programs of the generator come, operator by operator, to show where its hints should be better.
fn show_reach(executions: u64, seed: u64) {
    let (seeds, mut rng) = (kernel_seeds(), Rng::new(seed));
    let mut counts: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    for _ in 0..executions {
        let mut input = rng.pick(&seeds).cloned().unwrap_or_default();
        mutate::bytes::mutate(&mut input, &[], &[], &mut rng);
        // A failure is for the campaign to report.
        let Ok((called, reached)) = std::panic::catch_unwind(|| reach(&input)) else { continue };
        for name in called {
            counts.entry(name).or_default()[reached as usize] += 1;
        }
    }
    println!("{:60} {:>9} {:>9} {:>9}", "operator", "refused", "loaded", "ran");
    for (name, count) in &counts {
        let [_, refused, loaded, ran] = count;
        println!("{name:60} {refused:>9} {loaded:>9} {ran:>9}");
    }
    let silent = counts.values().filter(|count| count[Reached::Ran as usize] == 0).count();
    println!("{} operators, {silent} never ran", counts.len());
}
