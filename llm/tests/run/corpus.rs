//! Models of the reference exporter with recorded runs: `llm/NAME.pte` and `llm/NAME.safetensors` of `EDGEPACK_CORPUS`.

use std::path::{Path, PathBuf};

use edgepack_executor::MemoryBytes;
use edgepack_llm::model::{Cache, Model};
use edgepack_llm::session::Session;
use edgepack_loader::Program;
use safetensors::SafeTensors;

use crate::support::{argmax, difference, numbers, options, registry};

/// Every model of the corpus, by name; none if there is no corpus.
fn models() -> Vec<(String, PathBuf)> {
    let Some(folder) = std::env::var_os("EDGEPACK_CORPUS").map(|corpus| PathBuf::from(corpus).join("llm")) else {
        println!("EDGEPACK_CORPUS is not set: no models of the reference exporter were run");
        return Vec::new();
    };
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("{} is absent: no models of the reference exporter were run", folder.display());
        return Vec::new();
    };
    let mut found: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "pte"));
    found.sort();
    let named = found.into_iter().map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), path));
    named.collect()
}

fn open(path: &Path) -> Model {
    let program = Program::open(path).unwrap();
    Model::load(&program, &registry(), &options()).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Tokens of the recorded runs, and the logits after each run.
fn runs(path: &Path) -> Vec<(Vec<u32>, Vec<f32>)> {
    let Ok(bytes) = std::fs::read(path.with_extension("safetensors")) else { return Vec::new() };
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let run = |run: usize| {
        let tokens = tensors.tensor(&format!("forward.{run}.in.0")).ok()?;
        let logits = tensors.tensor(&format!("forward.{run}.out.0")).unwrap();
        let tokens = numbers(tokens.data(), i64::from_le_bytes);
        let logits = numbers(logits.data(), f32::from_le_bytes);
        Some((tokens.into_iter().map(|token| token as u32).collect(), logits))
    };
    (0..).map_while(run).collect()
}

/// The largest difference of a logit, of the largest logit. An activation that lies on the border of two bytes can land on
/// the other one, and a cache remembers it.
const FLIPPED: f32 = 3e-2;

/// Distance of the first choice from the second, over the largest logit.
fn margin(logits: &[f32]) -> f32 {
    let first = argmax(logits);
    let others = logits.iter().enumerate().filter(|(index, _)| *index != first).map(|(_, x)| *x);
    let largest = logits.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
    (logits[first] - others.fold(f32::NEG_INFINITY, f32::max)) / largest
}

#[test]
fn recorded_runs_are_what_sessions_compute() {
    let (mut ran, mut close, mut worst) = (0, 0, 0.0f32);
    for (name, path) in models() {
        let model = open(&path);
        let mut session = model.session().unwrap();
        for (index, (tokens, want)) in runs(&path).iter().enumerate() {
            // Without a cache every recorded run is a text of its own.
            if model.cache() == Cache::Absent {
                session.reset().unwrap();
            }
            let have = session.prefill(tokens).unwrap();
            let want = &want[want.len() - have.len()..];
            let off = difference(have, want);
            assert!(off < FLIPPED, "{name}, run {index}: off by {off}");
            let same = argmax(have) == argmax(want);
            assert!(same || margin(want) < FLIPPED, "{name}, run {index}: {} is first", argmax(have));
            worst = worst.max(off);
            close += usize::from(off <= 1e-6);
            ran += 1;
        }
    }
    println!("{ran} recorded runs, {close} within 1e-6; the largest difference is {worst:e} of the largest logit");
    assert!(close * 10 >= ran * 9, "{close} of {ran} runs are within 1e-6");
}

fn follow(session: &mut Session, tokens: &[u32]) -> Vec<Vec<f32>> {
    tokens.iter().map(|&token| session.decode(token).unwrap().to_vec()).collect()
}

#[test]
fn tokens_one_by_one_are_tokens_at_once() {
    let (mut ran, mut worst) = (0, 0.0f32);
    for (name, path) in models() {
        let model = open(&path);
        let text: Vec<u32> = (0..20).map(|at| at * 37 % 250).collect();
        let mut single = model.session().unwrap();
        let each = follow(&mut single, &text);
        let mut whole = model.session().unwrap();
        let at_once = whole.prefill(&text).unwrap().to_vec();
        let off = difference(&each[19], &at_once);
        assert!(off < TOLERANCE, "{name}: off by {off}");
        assert_eq!(argmax(&each[19]), argmax(&at_once), "{name}");
        worst = worst.max(off);

        single.rewind(7).unwrap();
        assert_eq!(follow(&mut single, &text[7..]), each[7..], "{name}, after going back");
        let mut image = Vec::new();
        single.rewind(10).unwrap();
        single.decode(text[10]).unwrap();
        single.save(&mut image).unwrap();
        whole.restore(&image[..]).unwrap();
        assert_eq!(follow(&mut whole, &text[11..]), each[11..], "{name}, restored");
        println!("{name}: {} bytes saved at 11 of {} tokens, {:?}", image.len(), model.context(), model.cache());
        ran += 1;
    }
    println!("{ran} models; the largest difference is {worst:e} of the largest logit");
}

/// Rounding of sums in another order; where activations are rounded to bytes, one of them can land on the next.
const TOLERANCE: f32 = 1e-5;

#[test]
fn a_second_session_shares_weights() {
    for (name, path) in models() {
        let options = options();
        let model = Model::load(&Program::open(&path).unwrap(), &registry(), &options).unwrap();
        let total = |session: &Session| {
            let all = session.memory_bytes().map(|(_, bytes)| bytes);
            all.fold(MemoryBytes::default(), |mut sum, bytes| {
                sum.packed += bytes.packed;
                sum.constants += bytes.constants;
                sum.planned += bytes.planned;
                sum.private += bytes.private;
                sum
            })
        };
        let mut first = model.session().unwrap();
        first.prefill(&[1, 2, 3]).unwrap();
        first.decode(4).unwrap();
        let packings = options.executor.cache.packings();
        let mut second = model.session().unwrap();
        second.prefill(&[1, 2, 3]).unwrap();
        second.decode(4).unwrap();
        assert_eq!(options.executor.cache.packings(), packings, "{name}: the second session packed weights again");
        println!("{name}: {:?}", total(&first));
        assert_eq!(total(&first), total(&second), "{name}");
    }
}
