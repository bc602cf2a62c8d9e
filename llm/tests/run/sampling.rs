//! Sampling against a slow twin that sorts everything, its settings one by one, and its refusals.

use edgepack_llm::sampling::{Constraint, Mask, SampleError, Sampler, Settings};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Transforms of the sampler, by their definitions: the tokens that can be drawn with their weights, in order.
fn twin(settings: &Settings, logits: &[f32], tokens: &[u32]) -> Vec<(u32, f64)> {
    let mut scores = logits.to_vec();
    for &(token, bias) in &settings.logit_bias {
        scores[token as usize] += bias;
    }
    let recent = &tokens[tokens.len().saturating_sub(settings.repetition_window)..];
    for (token, score) in scores.iter_mut().enumerate() {
        if recent.contains(&(token as u32)) {
            *score =
                if *score > 0.0 { *score / settings.repetition_penalty } else { *score * settings.repetition_penalty };
        }
        if settings.banned.contains(&(token as u32)) {
            *score = f32::NEG_INFINITY;
        }
    }
    let mut all: Vec<(u32, f32)> = (0..).zip(scores).filter(|(_, score)| *score > f32::NEG_INFINITY).collect();
    let by_order = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    let Some(best) = all.iter().copied().min_by(by_order) else { return Vec::new() };
    if settings.temperature == 0.0 {
        return vec![(best.0, 1.0)];
    }
    if (1..all.len()).contains(&settings.top_k) {
        all.sort_by(by_order);
        all.truncate(settings.top_k);
    }
    let weight = |score: f32| libm::exp((f64::from(score) - f64::from(best.1)) / f64::from(settings.temperature));
    let total: f64 = all.iter().map(|(_, score)| weight(*score)).sum();
    if settings.top_p < 1.0 {
        all.sort_by(by_order);
        let mut sum = 0.0;
        let enough = all.iter().position(|(_, score)| {
            sum += weight(*score);
            sum >= total * f64::from(settings.top_p)
        });
        all.truncate(enough.map_or(all.len(), |at| at + 1));
    }
    let weights = all.into_iter().map(|(token, score)| (token, weight(score)));
    weights.filter(|(_, weight)| *weight >= f64::from(settings.min_p)).collect()
}

fn settings() -> impl Strategy<Value = Settings> {
    let numbers = (
        prop_oneof![Just(0.0f32), 0.05f32..3.0],
        prop_oneof![Just(0usize), 1usize..400],
        prop_oneof![Just(1.0f32), 0.01f32..1.0],
        prop_oneof![Just(0.0f32), 0.0f32..0.6],
        prop_oneof![Just(1.0f32), 0.5f32..2.0],
    );
    let lists = (
        0usize..20,
        prop::collection::btree_map(0u32..300, -3.0f32..3.0, 0..5),
        prop::collection::vec(0u32..300, 0..20),
        any::<u64>(),
    );
    (numbers, lists).prop_map(
        |((temperature, top_k, top_p, min_p, repetition_penalty), (window, bias, banned, seed))| Settings {
            temperature,
            top_k,
            top_p,
            min_p,
            repetition_penalty,
            repetition_window: window,
            logit_bias: bias.into_iter().collect(),
            banned,
            seed,
        },
    )
}

/// Logits of few values, so that many are equal, or of many.
fn logits() -> impl Strategy<Value = Vec<f32>> {
    let few = prop_oneof![Just(f32::NEG_INFINITY), Just(-1.0f32), Just(0.0), Just(0.5), Just(4.0)];
    prop_oneof![prop::collection::vec(few, 300), prop::collection::vec(-8.0f32..8.0, 300)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_drawn_is_what_the_twin_draws(
        settings in settings(), logits in logits(), tokens in prop::collection::vec(0u32..320, 0..30)
    ) {
        let mut sampler = Sampler::new(300, settings.clone()).unwrap();
        let mut fractions = fractions(settings.seed);
        let left = twin(&settings, &logits, &tokens);
        for _ in 0..20 {
            let want = if settings.temperature == 0.0 { 0.0 } else { fractions() };
            prop_assert_eq!(sampler.sample(&logits, &tokens).ok(), draw(&left, want));
        }
    }
}

/// Random numbers as the sampler is documented to make them.
fn fractions(seed: u64) -> impl FnMut() -> f64 {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = ChaCha8Rng::from_seed(key);
    move || (random.next_u64() / 2048) as f64 / 9007199254740992.0
}

/// The token at a share of the whole weight.
fn draw(left: &[(u32, f64)], share: f64) -> Option<u32> {
    let mut rest = share * left.iter().map(|(_, weight)| weight).sum::<f64>();
    let found = left.iter().find(|(_, weight)| {
        rest -= weight;
        rest < 0.0
    });
    found.or(left.last()).map(|(token, _)| *token)
}

#[test]
fn frequencies_are_the_twins_probabilities() {
    let logits: Vec<f32> = (0..50).map(|token| ((token * 37 % 50) as f32) / 10.0).collect();
    let tokens = [3, 4, 5, 5, 49];
    for (temperature, top_k, top_p, min_p) in
        [(1.0, 0, 1.0, 0.0), (0.7, 10, 1.0, 0.0), (1.3, 0, 0.6, 0.0), (1.0, 20, 0.8, 0.1), (2.0, 0, 1.0, 0.3)]
    {
        let settings =
            Settings { temperature, top_k, top_p, min_p, repetition_penalty: 1.2, seed: 5, ..Settings::default() };
        let want = twin(&settings, &logits, &tokens);
        let total: f64 = want.iter().map(|(_, weight)| weight).sum();
        let mut sampler = Sampler::new(50, settings).unwrap();
        const DRAWS: usize = 20_000;
        let mut counts = [0usize; 50];
        for _ in 0..DRAWS {
            counts[sampler.sample(&logits, &tokens).unwrap() as usize] += 1;
        }
        for (token, count) in counts.into_iter().enumerate() {
            let weight = want.iter().find(|(known, _)| *known as usize == token).map_or(0.0, |(_, weight)| *weight);
            let (have, want) = (count as f64 / DRAWS as f64, weight / total);
            // Five standard deviations.
            let off = 5.0 * (want * (1.0 - want) / DRAWS as f64).sqrt();
            assert!((have - want).abs() <= off, "token {token}: {have}, the twin has {want}");
        }
    }
}

#[test]
fn tokens_of_a_seed_never_change() {
    let logits: Vec<f32> = (0..1000).map(|token| ((token * 7919 % 1000) as f32) / 250.0).collect();
    let draw = |top_k, top_p, seed| {
        let settings = Settings { temperature: 0.9, top_k, top_p, seed, ..Settings::default() };
        let mut sampler = Sampler::new(1000, settings).unwrap();
        let drawn: Vec<u32> = (0..8).map(|_| sampler.sample(&logits, &[]).unwrap()).collect();
        sampler.reset();
        assert_eq!(sampler.sample(&logits, &[]).unwrap(), drawn[0]);
        drawn
    };
    assert_eq!(draw(0, 1.0, 1), KNOWN[0]);
    assert_eq!(draw(40, 1.0, 1), KNOWN[1]);
    assert_eq!(draw(0, 0.7, 1), KNOWN[2]);
    assert_eq!(draw(100, 0.7, 2), KNOWN[3]);
}

/// Computed apart from this crate, in doubles, with ChaCha as its authors define it.
const KNOWN: [[u32; 8]; 4] = [
    [383, 297, 803, 915, 854, 139, 732, 782],
    [815, 852, 272, 877, 914, 926, 309, 951],
    [149, 692, 101, 867, 842, 383, 360, 817],
    [865, 568, 346, 581, 581, 321, 321, 556],
];

#[test]
fn logits_that_are_no_numbers_are_an_error() {
    let mut sampler = Sampler::new(3, Settings::default()).unwrap();
    for bad in [f32::NAN, f32::INFINITY] {
        let error = sampler.sample(&[0.0, 1.0, bad], &[]).unwrap_err();
        assert!(matches!(error, SampleError::Logit { token: 2, .. }), "{error}");
    }
    assert_eq!(sampler.sample(&[f32::NEG_INFINITY, -5.0, -6.0], &[]).unwrap(), 1);
    let none = sampler.sample(&[f32::NEG_INFINITY; 3], &[]).unwrap_err();
    assert_eq!(none, SampleError::NoCandidate);
    let other = sampler.sample(&[0.0; 4], &[]).unwrap_err();
    assert_eq!(other.to_string(), "4 logits, the sampler is for 3 tokens");
    let warm = Settings { temperature: 1.0, ..Settings::default() };
    let mut sampler = Sampler::new(3, warm).unwrap();
    assert_eq!(sampler.sample(&[f32::NEG_INFINITY; 3], &[]).unwrap_err(), SampleError::NoCandidate);
    assert_eq!(sampler.sample(&[f32::MIN, f32::MAX, 0.0], &[]).unwrap(), 1);
    // A bias that leaves the numbers.
    let far = Settings { logit_bias: vec![(0, f32::MAX)], ..Settings::default() };
    let error = Sampler::new(2, far).unwrap().sample(&[f32::MAX, 0.0], &[]).unwrap_err();
    assert!(matches!(error, SampleError::Logit { token: 0, .. }), "{error}");
}

#[test]
fn settings_out_of_range_are_refused() {
    let refused = |settings: Settings, setting: &str| {
        let error = Sampler::new(10, settings).unwrap_err().to_string();
        assert!(error.starts_with(setting), "{error}");
    };
    let plain = Settings::default;
    for temperature in [-1.0, 1e-6, 101.0, f32::NAN, f32::INFINITY] {
        refused(Settings { temperature, ..plain() }, "temperature is ");
    }
    for top_p in [0.0, -0.5, 1.5, f32::NAN] {
        refused(Settings { top_p, ..plain() }, "top_p is ");
    }
    for min_p in [-0.1, 1.1, f32::NAN] {
        refused(Settings { min_p, ..plain() }, "min_p is ");
    }
    for repetition_penalty in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        refused(Settings { repetition_penalty, ..plain() }, "repetition_penalty is ");
    }
    refused(Settings { banned: vec![10], ..plain() }, "banned is for token 10");
    refused(Settings { logit_bias: vec![(10, 1.0)], ..plain() }, "logit_bias is for token 10");
    refused(Settings { logit_bias: vec![(1, f32::NEG_INFINITY)], ..plain() }, "logit_bias is -inf for token 1");
    refused(
        Settings { logit_bias: vec![(1, 1.0), (2, 0.0), (1, 2.0)], ..plain() },
        "logit_bias is given twice for token 1",
    );
    assert!(Sampler::new(0, plain()).is_err());
}

/// Allows multiples of a number, and remembers what it was shown.
struct Multiples(u32, Vec<usize>);

impl Constraint for Multiples {
    fn mask(&mut self, tokens: &[u32], mask: &mut Mask) {
        self.1.push(tokens.len());
        assert!((0..mask.len() as u32).all(|token| mask.is_allowed(token)) && !mask.is_allowed(mask.len() as u32));
        (0..mask.len() as u32).filter(|token| token % self.0 != 0).for_each(|token| mask.forbid(token));
        mask.forbid(u32::MAX);
        mask.allow(u32::MAX);
    }
}

#[test]
fn constraints_leave_what_they_allow() {
    let logits: Vec<f32> = (0..200).map(|token| token as f32 / 50.0).collect();
    for temperature in [0.0, 1.0] {
        let settings = Settings { temperature, banned: vec![198], ..Settings::default() };
        let mut sampler = Sampler::new(200, settings).unwrap();
        let mut sixes = Multiples(6, Vec::new());
        for at in 0..50 {
            let token = sampler.sample_constrained(&logits, &vec![1; at], &mut sixes).unwrap();
            assert!(token.is_multiple_of(6) && token != 198);
            assert!(temperature > 0.0 || token == 192);
        }
        assert_eq!(sixes.1, (0..50).collect::<Vec<_>>());
        let nothing = sampler.sample_constrained(&[f32::NEG_INFINITY; 200], &[], &mut sixes);
        assert_eq!(nothing.unwrap_err(), SampleError::NoCandidate);
        // Without the constraint all are allowed again.
        assert!(!(0..50).all(|_| sampler.sample(&logits, &[]).unwrap().is_multiple_of(6)));
    }
}
