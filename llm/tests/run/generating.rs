//! The loop: how it ends, what it reports, and what it leaves.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use edgepack_llm::error::Error;
use edgepack_llm::generate::{Cancel, End, Options, Statistics, generate, generate_constrained};
use edgepack_llm::sampling::{Constraint, Mask, Sampler, Settings};
use edgepack_llm::session::Session;

use crate::support::{argmax, open};

fn greedy() -> Sampler {
    Sampler::new(24, Settings::default()).unwrap()
}

fn all(session: &mut Session, sampler: &mut Sampler, prompt: &[u32], options: &Options) -> (Vec<u32>, Statistics) {
    let mut tokens = Vec::new();
    let statistics = generate(session, sampler, prompt, options, |token| {
        tokens.push(token);
        ControlFlow::Continue(())
    });
    (tokens, statistics.unwrap())
}

#[test]
fn greedy_tokens_are_the_likeliest_one_by_one() {
    for name in ["dynamic_last", "one", "nocache", "two_methods", "running", "features"] {
        let model = open(name);
        let mut session = model.session().unwrap();
        let mut want = Vec::new();
        let mut logits = session.prefill(&[1, 2, 3]).unwrap().to_vec();
        while session.room() > 0 {
            want.push(argmax(&logits) as u32);
            logits = session.decode(want[want.len() - 1]).unwrap().to_vec();
        }
        want.push(argmax(&logits) as u32);

        let mut session = model.session().unwrap();
        let (tokens, statistics) = all(&mut session, &mut greedy(), &[1, 2, 3], &Options::default());
        assert_eq!(tokens, want, "{name}");
        assert_eq!((statistics.end, statistics.prompt_tokens, statistics.new_tokens), (End::ContextFull, 3, 14));
        assert_eq!(statistics.pending, want.last().copied());
        assert_eq!(session.tokens(), [&[1, 2, 3], &want[..13]].concat());
        assert!(statistics.first_token.unwrap() >= statistics.prefill && statistics.prefill_rate().unwrap() > 0.0);
        assert!(statistics.decode_rate().unwrap() > 0.0);
    }
}

#[test]
fn ends_are_told_apart() {
    let model = open("dynamic_last");
    let (whole, _) = all(&mut model.session().unwrap(), &mut greedy(), &[1, 2, 3], &Options::default());
    let mut session = model.session().unwrap();
    let few = Options { max_new_tokens: Some(4), ..Options::default() };
    let (tokens, statistics) = all(&mut session, &mut greedy(), &[1, 2, 3], &few);
    assert_eq!((&tokens[..], statistics.end, session.position()), (&whole[..4], End::MaxNewTokens, 6));
    // On from there: the token that was not run yet is the prompt.
    let (more, statistics) = all(&mut session, &mut greedy(), &[statistics.pending.unwrap()], &few);
    assert_eq!((&more[..], statistics.end), (&whole[4..8], End::MaxNewTokens));

    let nothing = Options { max_new_tokens: Some(0), ..Options::default() };
    session.reset().unwrap();
    let (none, statistics) = all(&mut session, &mut greedy(), &[1, 2, 3], &nothing);
    assert_eq!((none.len(), statistics.first_token, statistics.decode_rate()), (0, None, None));
    // An empty prompt goes on behind what is there.
    let (tokens, _) = all(&mut session, &mut greedy(), &[], &few);
    assert_eq!(tokens, whole[..4]);

    let stop = whole[2];
    let first = whole.iter().position(|&token| token == stop).unwrap();
    let stops = Options { stop: vec![23, stop], ..Options::default() };
    let (tokens, statistics) = all(&mut model.session().unwrap(), &mut greedy(), &[1, 2, 3], &stops);
    assert!(statistics.end == End::Stop(stop) && tokens == whole[..=first]);

    let mut count = 0;
    let ended = generate(&mut model.session().unwrap(), &mut greedy(), &[1, 2, 3], &Options::default(), |_| {
        count += 1;
        if count == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let ended = ended.unwrap();
    assert_eq!((ended.end, ended.new_tokens), (End::Callback, 3));
}

#[test]
fn another_thread_can_end_it() {
    let model = open("dynamic_last");
    let cancel = Cancel::new();
    let options = Options { cancel: Some(cancel.clone()), ..Options::default() };
    let mut session = model.session().unwrap();
    let ended = generate(&mut session, &mut greedy(), &[1, 2, 3], &options, |_| {
        std::thread::scope(|scope| _ = scope.spawn(|| cancel.cancel()));
        ControlFlow::Continue(())
    });
    let ended = ended.unwrap();
    assert_eq!((ended.end, ended.new_tokens, ended.pending, session.position()), (End::Cancelled, 1, None, 4));
    let before = generate(&mut session, &mut greedy(), &[5], &options, |_| panic!("no token")).unwrap();
    assert_eq!((before.end, before.prompt_tokens, session.position()), (End::Cancelled, 0, 4));
    cancel.clear();
    assert!(!cancel.is_cancelled() && session.decode(5).is_ok());
}

#[test]
fn a_callback_that_panics_leaves_the_session_usable() {
    for name in ["dynamic_last", "running", "nocache"] {
        let model = open(name);
        let (whole, _) = all(&mut model.session().unwrap(), &mut greedy(), &[1, 2, 3], &Options::default());
        let mut session = model.session().unwrap();
        let mut told = 0;
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            generate(&mut session, &mut greedy(), &[1, 2, 3], &Options::default(), |_| {
                told += 1;
                if told == 3 { panic!("the callback") } else { ControlFlow::Continue(()) }
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(session.tokens(), [&[1, 2, 3], &whole[..2]].concat());
        let (rest, _) = all(&mut session, &mut greedy(), &[], &Options::default());
        assert_eq!(rest, whole[2..], "{name}");
    }
}

#[test]
fn prompts_that_do_not_fit_change_nothing() {
    let mut session = open("one").session().unwrap();
    let run = |session: &mut Session, prompt: &[u32]| {
        generate(session, &mut greedy(), prompt, &Options::default(), |_| panic!("no token")).unwrap_err()
    };
    assert!(matches!(run(&mut session, &[]), Error::Empty));
    assert!(matches!(run(&mut session, &[0; 17]), Error::ContextFull { position: 0, more: 17, limit: 16 }));
    assert!(matches!(run(&mut session, &[1, 2, 24]), Error::Token { token: 24, .. }));
    assert_eq!(session.position(), 0);
    let mut other = Sampler::new(25, Settings::default()).unwrap();
    let error = generate(&mut session, &mut other, &[1], &Options::default(), |_| panic!("no token")).unwrap_err();
    assert_eq!(error.to_string(), "24 logits, the sampler is for 25 tokens");
}

/// Only what is greater than the token before.
struct Rising;

impl Constraint for Rising {
    fn mask(&mut self, tokens: &[u32], mask: &mut Mask) {
        (0..=tokens[tokens.len() - 1]).for_each(|token| mask.forbid(token));
    }
}

#[test]
fn constrained_tokens_follow_their_rule() {
    let mut session = open("one").session().unwrap();
    let mut tokens = vec![3];
    let ended = generate_constrained(&mut session, &mut greedy(), &mut Rising, &[3], &Options::default(), |token| {
        tokens.push(token);
        if token == 23 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    ended.unwrap();
    assert!(tokens.len() > 1 && tokens.windows(2).all(|pair| pair[0] < pair[1]), "{tokens:?}");
}
