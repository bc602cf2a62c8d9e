//! Instructions as events of `tracing` (feature `tracing`).

use std::time::Instant;

use super::observer::{Event, Observer, Results};

/// An observer that reports every instruction with its place and the microseconds it took, for
/// [`Method::run_observed`](crate::Method::run_observed). The events are inside the span of the run; loading a method and
/// every run are spans by themselves, without an observer.
///
/// ```
/// use edgepack_executor::{Input, Method, RunError, spans::Instructions};
///
/// # fn demo(method: &mut Method, inputs: &[Input<'_>]) -> Result<(), RunError> {
/// method.run_observed(inputs, Some(&mut Instructions::default()))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Instructions {
    began: Option<Instant>,
}

impl Observer for Instructions {
    fn before(&mut self, _event: &Event<'_>) {
        self.began = Some(Instant::now());
    }

    fn after(&mut self, event: &Event<'_>, _results: &Results<'_>) {
        let microseconds = self.began.take().map_or(0, |began| began.elapsed().as_micros() as u64);
        tracing::trace!(
            target: "edgepack",
            chain = event.chain,
            instruction = event.instruction,
            operator = event.name,
            node = event.node,
            microseconds,
            "instruction"
        );
    }
}
