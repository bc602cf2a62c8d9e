//! Measures this project next to its peers and prints tables; `README.md` says what each section is.
//!
//! Nothing here asserts a time: figures are medians of lanes that take turns, and what counts is their ratio.

mod clock;
mod idle;
mod live;
mod programs;
mod readers;
mod resident;
mod sections;
mod telling;
mod writers;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: live::Counting = live::Counting;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some((sections::memory::CHILD, of)) = wanted.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return match sections::memory::measure(of) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    if let Some(unknown) = wanted.iter().find(|name| sections::ALL.iter().all(|(known, _)| known != name)) {
        let known: Vec<&str> = sections::ALL.iter().map(|(name, _)| *name).collect();
        eprintln!("no section `{unknown}`; there are {}", known.join(", "));
        return ExitCode::from(2);
    }
    for (name, section) in sections::ALL {
        // Without a choice, everything that needs nothing besides this checkout.
        if wanted.iter().any(|wanted| wanted == name) || (wanted.is_empty() && !sections::WITH_REFERENCE.contains(name))
        {
            section();
        }
    }
    ExitCode::SUCCESS
}
