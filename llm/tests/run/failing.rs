//! Runs that fail or panic in the middle: the session stays usable, and what it computes afterwards is what it would have.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use edgepack_executor::Registry;
use edgepack_executor::kernel::{Alias, KernelContext, KernelError, Operator, Prepare, Run};
use edgepack_llm::model::Model;
use edgepack_llm::session::Session;
use edgepack_loader::Program;

use crate::support::{options, path, reference, registry};

/// Calls until one fails; none fails at zero.
#[derive(Clone, Default)]
struct Fuse(Arc<AtomicUsize>);

impl Fuse {
    fn set(&self, calls: usize) {
        self.0.store(calls, Ordering::Relaxed);
    }

    fn burn(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) == Ok(1)
    }
}

/// An operator of the library that fails, or panics, when its fuse has burnt down.
struct Fused {
    name: &'static str,
    library: Registry,
    fuse: Fuse,
    panics: bool,
}

impl Operator for Fused {
    fn name(&self) -> &str {
        self.name
    }

    fn schema(&self) -> &str {
        self.library.find(self.name).unwrap().schema()
    }

    fn alias(&self) -> Alias {
        self.library.find(self.name).unwrap().alias()
    }

    fn prepare(&self, args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        let mut run = self.library.find(self.name).unwrap().prepare(args)?;
        let (fuse, panics) = (self.fuse.clone(), self.panics);
        Ok(Box::new(move |cx: &mut KernelContext<'_>| {
            if fuse.burn() {
                assert!(!panics, "the fuse");
                return Err(KernelError::argument("the fuse"));
            }
            run.run(cx)
        }))
    }
}

/// Adds tokens; `false` if that failed or panicked.
fn add(session: &mut Session, tokens: &[u32]) -> bool {
    matches!(catch_unwind(AssertUnwindSafe(|| session.prefill(tokens).map(|_| ()))), Ok(Ok(())))
}

#[test]
fn sessions_go_on_behind_runs_that_failed() {
    let (tokens, _) = reference();
    let mut failed = 0;
    for name in ["dynamic_last", "one", "nocache", "two_methods", "running"] {
        for operator in ["aten::embedding.out", "aten::addmm.out", "aten::tanh.out"] {
            for panics in [false, true] {
                let fuse = Fuse::default();
                let fused = Fused { name: operator, library: registry(), fuse: fuse.clone(), panics };
                let program = Program::open(path(&format!("{name}.pte"))).unwrap();
                let mut plain = options();
                plain.executor.no_optimize = true;
                let model = Model::load(&program, &registry().with(fused), &plain).unwrap();
                let mut whole = model.session().unwrap();
                let want: Vec<_> = tokens.iter().map(|&token| whole.decode(token).unwrap().to_vec()).collect();
                for calls in 1..12 {
                    let mut session = model.session().unwrap();
                    session.prefill(&tokens[..3]).unwrap();
                    fuse.set(calls);
                    let fine = add(&mut session, &tokens[3..8]);
                    failed += usize::from(!fine);
                    fuse.set(0);
                    let at = session.position();
                    assert_eq!(
                        (session.tokens(), session.logits().is_some()),
                        (&tokens[..at], fine),
                        "{name} {operator}"
                    );
                    assert!(fine == (at == 8) && at >= 3);
                    let after = session.prefill(&tokens[at..]).unwrap().to_vec();
                    let off = crate::support::difference(&after, &want[8]);
                    assert!(off < 1e-5, "{name}, {operator}, call {calls}: off by {off}");
                    session.rewind(4).unwrap();
                    let again = session.prefill(&tokens[4..]).unwrap();
                    assert!(crate::support::difference(again, &want[8]) < 1e-5, "{name}, {operator}");
                }
            }
        }
    }
    assert!(failed > 50, "{failed}");
}
