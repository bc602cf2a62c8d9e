//! Language models compared with the reference, one table: prompts of several lengths, single tokens behind them, the time
//! from a file to the first token, and memory, on one and two threads.
//!
//! Every program of the folder that states `get_max_seq_len` and whose `forward` takes tokens and a position is measured. Both sides
//! take the same tokens, and give the logits of the last one.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use edgepack_loader::Program;

use super::memory;
use super::reference::Reference;
use crate::clock::{Figure, Race, bests, geometric_mean, timed};
use crate::programs;
use crate::telling::{FIRST, SINGLE, decode, open, prefill, tokens};

/// Time for which one pair of lanes takes turns.
const BUDGET: Duration = Duration::from_millis(2000);
/// Tokens of a prompt.
const PROMPTS: [usize; 3] = [FIRST, 64, 256];

/// Speed at one length of the prompt: tokens a second, ours and the reference's.
struct Row {
    prompt: usize,
    prefill: [f64; 2],
    decode: [f64; 2],
}

pub fn run() {
    let Some(dir) = programs::models_dir() else {
        return println!("\nlanguage: EDGEPACK_BENCH_MODELS names no folder, nothing is measured");
    };
    let names: Vec<String> = programs::names().into_iter().filter(|name| is_language_model(&dir, name)).collect();
    if names.is_empty() {
        return println!("\nlanguage: no program of the folder is a language model, nothing is measured");
    }
    println!("\nLanguage models beside the reference: best of many; tokens a second, a ratio above 1 is faster\n");
    println!("| model | threads | prompt | prefill | reference | ratio | decode | reference | ratio |");
    println!("| --- | --: | --: | --: | --: | --: | --: | --: | --: |");
    let (mut ratios, mut firsts) = ([Vec::new(), Vec::new()], Vec::new());
    for name in &names {
        for threads in [1, 2] {
            let measured = measure(&dir, name, threads).and_then(|(rows, first)| {
                let memory = if threads == 1 { Some(memory(&dir, name)?) } else { None };
                Ok((rows, first, memory))
            });
            let (rows, first, memory) = match measured {
                Ok(measured) => measured,
                Err(reason) => {
                    println!("{name}, {threads} threads: {reason}");
                    continue;
                }
            };
            for Row { prompt, prefill, decode } in rows {
                let pair = |[ours, theirs]: [f64; 2]| format!("{ours:.1} | {theirs:.1} | {:.2}", ours / theirs);
                println!("| {name} | {threads} | {prompt} | {} | {} |", pair(prefill), pair(decode));
                for (ratios, [ours, theirs]) in ratios.iter_mut().zip([prefill, decode]) {
                    ratios.push(ours / theirs);
                }
            }
            firsts.push((name, threads, first, memory));
        }
    }
    let [prefill, decode] = ratios.map(|ratios| geometric_mean(ratios.into_iter()));
    println!("| geometric mean | | | | | {prefill:.2} | | | {decode:.2} |");

    println!("\nFrom the file to the first token behind {FIRST} tokens, in ms; a ratio below 1 is less\n");
    println!("| model | threads | first token | reference | ratio | MiB | reference | ratio |");
    println!("| --- | --: | --: | --: | --: | --: | --: | --: |");
    for (name, threads, first, memory) in firsts {
        let pair = |[ours, theirs]: [f64; 2], unit: f64| {
            format!("{:.1} | {:.1} | {:.2}", ours / unit, theirs / unit, ours / theirs)
        };
        let memory = memory.map_or(" | | ".to_owned(), |memory| pair(memory, f64::from(1 << 20)));
        println!("| {name} | {threads} | {} | {memory} |", pair(first, 1e6));
    }
}

/// Tells whether a program states what language models state, and is one method that takes tokens.
fn is_language_model(dir: &Path, name: &str) -> bool {
    let program = Program::open(dir.join(name).with_extension("pte"));
    program.is_ok_and(|program| {
        program.method_meta("get_max_seq_len").is_ok()
            && program.method_meta("forward").is_ok_and(|meta| meta.inputs.len() == 2)
    })
}

/// Times prompts and single tokens, and the way from a file to the first token.
fn measure(dir: &Path, name: &str, threads: usize) -> Result<(Vec<Row>, [f64; 2]), String> {
    let reference = RefCell::new(Reference::start(threads)?);
    let path = dir.join(name).with_extension("pte");
    let model = open(&path, threads)?;
    let session = RefCell::new(model.session().map_err(|error| error.to_string())?);
    let vocabulary = model.vocabulary();
    let mut rows = Vec::new();
    for prompt in PROMPTS.into_iter().filter(|prompt| prompt + SINGLE <= model.context()) {
        let tokens = tokens(prompt, vocabulary);
        let ask = |what: &str, count: usize| {
            let (reference, request) = (&reference, format!("{what} {prompt} {count} {vocabulary} {name}"));
            move || reference.borrow_mut().ask(&request)
        };
        reference.borrow_mut().answer(&format!("prompt {prompt} 0 {vocabulary} {name}"))?;
        let mut race = Race::new("");
        race.lane("edgepack", prompt, || timed(|| prefill(&mut session.borrow_mut(), &tokens)));
        race.lane("reference", prompt, ask("prompt", 0));
        let prefilled = rates(&race.run(BUDGET));

        let mut race = Race::new("");
        race.lane("edgepack", SINGLE, || {
            let mut session = session.borrow_mut();
            session.rewind(prompt).expect("a prompt was taken");
            timed(|| tokens.iter().cycle().take(SINGLE).for_each(|&token| decode(&mut session, token)))
        });
        race.lane("reference", SINGLE, ask("single", SINGLE));
        rows.push(Row { prompt, prefill: prefilled, decode: rates(&race.run(BUDGET)) });
    }
    drop((session, model));

    let tokens = tokens(FIRST, vocabulary);
    let request = format!("first {FIRST} 0 {vocabulary} {name}");
    let mut race = Race::new("");
    race.lane("edgepack", 1, || {
        timed(|| {
            let model = open(&path, threads).expect("it was opened before");
            let mut session = model.session().expect("it had a session before");
            prefill(&mut session, &tokens);
            (session, model)
        })
    });
    race.lane("reference", 1, || reference.borrow_mut().ask(&request));
    Ok((rows, bests(&race.run(BUDGET))))
}

/// Bytes that a process has resident at most for opening a model and answering a prompt, besides what it has before.
fn memory(dir: &Path, name: &str) -> Result<[f64; 2], String> {
    let ours = memory::resident_of(&dir.join(name).with_extension("pte"), memory::Of::Language)?;
    let theirs = Reference::start(1)?.answer(&format!("telling {FIRST} {SINGLE} 256 {name}"))?;
    Ok([ours, theirs].map(|bytes| bytes as f64))
}

/// Tokens a second of both lanes.
fn rates(figures: &[Figure]) -> [f64; 2] {
    bests(figures).map(|nanoseconds| 1e9 / nanoseconds)
}
