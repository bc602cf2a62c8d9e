//! Records runs as a trace that the tools of ExecuTorch read: an ETDump, and the debug buffer with what instructions wrote.
//!
//! Events have the names and places that ExecuTorch's own runtime gives them: `native_call_OP` inside of `OPERATOR_CALL`, the
//! parts of a delegate inside of `DELEGATE_CALL`, `Method::execute` around all of it. Values come before the time of the
//! instruction that wrote them. Ticks are nanoseconds.

use std::collections::HashMap;
use std::time::Duration;

use edgepack::builder::BuildError;
use edgepack::builder::trace::{DelegatePlace, Trace, TraceBuilder, TracePlace, TraceValue};
use edgepack_executor::observer::{Event, Observer, Results};
use edgepack_executor::tensor::TensorRef;
use edgepack_executor::{Output, Outputs};
use edgepack_format::tensor::{LayoutError, TensorLayout, TensorView};
use web_time::Instant;

use super::spread::nanos;
use crate::spelling::short;
use crate::status::Failure;
use crate::units::bytes;

/// Records runs.
pub struct Recorder {
    trace: TraceBuilder,
    /// True if values are recorded, too.
    values: bool,
    /// Index that the next run is given.
    index: Option<u32>,
    /// Bytes that values may still take.
    left: u64,
    /// Beginning of the clock, which stands still while events are recorded.
    zero: Instant,
    /// Time for which it stood still.
    paused: Duration,
    began: Instant,
    start: Instant,
    call: Option<DelegateCall>,
    failure: Option<Failure>,
}

/// A call of a delegate whose parts are running.
struct DelegateCall {
    chain: u32,
    instruction: u32,
    start: u64,
    end: u64,
    /// Place in the plan of the part that ran last.
    last: usize,
    /// Names of parts, and how many have them.
    names: HashMap<String, usize>,
}

/// Reason that an event is not recorded.
enum Unrecorded {
    /// The trace cannot hold it.
    Event(BuildError),
    /// A tensor has no layout.
    Layout(LayoutError),
    /// Values take more than they may.
    Room(u64),
}

impl From<BuildError> for Unrecorded {
    fn from(error: BuildError) -> Self {
        Unrecorded::Event(error)
    }
}

impl From<LayoutError> for Unrecorded {
    fn from(error: LayoutError) -> Self {
        Unrecorded::Layout(error)
    }
}

impl From<Unrecorded> for Failure {
    fn from(reason: Unrecorded) -> Self {
        let reason = match reason {
            Unrecorded::Event(error) => error.to_string(),
            Unrecorded::Layout(error) => error.to_string(),
            Unrecorded::Room(limit) => format!("values take more than {}", bytes(limit)),
        };
        Failure::cannot_run(format!("the run cannot be recorded: {reason}"))
    }
}

/// Bytes by which offsets of tensors in the debug buffer are aligned.
const ALIGNMENT: u64 = 64;

impl Recorder {
    /// Starts a trace; values may take that many bytes.
    pub fn new(room: u64) -> Recorder {
        let now = Instant::now();
        Recorder {
            trace: TraceBuilder::new(),
            values: false,
            index: None,
            left: room,
            zero: now,
            paused: Duration::ZERO,
            began: now,
            start: now,
            call: None,
            failure: None,
        }
    }

    /// From the next run on, also records what instructions write, or no more.
    pub fn record_values(&mut self, values: bool) {
        self.values = values;
    }

    /// Returns whether values are recorded.
    pub fn records_values(&self) -> bool {
        self.values
    }

    /// Gives the next run an index: runs with other inputs have another one.
    pub fn next_run(&mut self, index: u64) {
        self.index = u32::try_from(index).ok();
    }

    /// Records that a method was loaded, from `start` until now.
    pub fn loaded(&mut self, start: Instant) {
        let ticks = self.ticks(start)..self.ticks(Instant::now());
        self.trace.block("Default");
        for name in ["Method::init", "Program::load_method"] {
            let recorded = self.trace.profile(name, TracePlace::default(), ticks.clone(), None).map(drop);
            self.note(recorded.map_err(Unrecorded::from));
        }
    }

    /// Records the outputs of the run that was last, if values are recorded.
    pub fn outputs(&mut self, outputs: &Outputs<'_>) {
        if !self.values {
            return;
        }
        for output in outputs.iter() {
            let recorded = self.output(output);
            self.note(recorded);
        }
    }

    /// Returns the trace, or the reason that something is missing in it.
    pub fn finish(mut self) -> Result<Trace, Failure> {
        match self.failure {
            Some(failure) => Err(failure),
            None => self.trace.finish().map_err(|error| Unrecorded::from(error).into()),
        }
    }

    /// Records an instruction that ran from `start` to `end`.
    pub fn ran(&mut self, event: &Event<'_>, [start, end]: [Instant; 2], results: &Results<'_>) {
        if self.failure.is_none() {
            let recorded = self.record(event, self.ticks(start), self.ticks(end), results);
            self.note(recorded);
            self.paused += end.elapsed();
        }
    }

    fn note(&mut self, recorded: Result<(), Unrecorded>) {
        if let Err(reason) = recorded {
            self.failure.get_or_insert(reason.into());
        }
    }

    fn ticks(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.zero).saturating_sub(self.paused))
    }

    fn record(&mut self, event: &Event<'_>, start: u64, end: u64, results: &Results<'_>) -> Result<(), Unrecorded> {
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let (chain, instruction) = (number(event.chain), number(event.instruction));
        let place = TracePlace::instruction(chain, instruction);
        let Some(node) = event.node else {
            self.end_call()?;
            self.written(place, results)?;
            match event.delegate {
                Some(_) => self.trace.profile("DELEGATE_CALL", place, start..end, None)?,
                None => {
                    let name = format!("native_call_{}", short(without_namespace(event.name)));
                    self.trace.profile(&name, place, start..end, None)?;
                    self.trace.profile("OPERATOR_CALL", place, start..end, None)?
                }
            };
            return Ok(());
        };
        let same =
            |call: &DelegateCall| call.chain == chain && call.instruction == instruction && call.last < event.position;
        if !self.call.as_ref().is_some_and(same) {
            self.end_call()?;
        }
        let new = || DelegateCall { chain, instruction, start, end, last: 0, names: HashMap::new() };
        let call = self.call.get_or_insert_with(new);
        (call.end, call.last) = (end, event.position);
        // Readers tell the parts of a call by their texts.
        let mut name = match node {
            u32::MAX => format!("{} (copy)", short(event.name)),
            node => format!("{} (node {node})", short(event.name)),
        };
        let count = call.names.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            name = format!("{name} #{count}");
        }
        let place = TracePlace { delegate: DelegatePlace::Text(&name), ..place };
        self.written(place, results)?;
        self.trace.profile("", place, start..end, None)?;
        Ok(())
    }

    /// Records the call of a delegate whose parts are over.
    fn end_call(&mut self) -> Result<(), Unrecorded> {
        if let Some(DelegateCall { chain, instruction, start, end, .. }) = self.call.take() {
            self.trace.profile("DELEGATE_CALL", TracePlace::instruction(chain, instruction), start..end, None)?;
        }
        Ok(())
    }

    /// Records what an instruction wrote, if values are recorded.
    fn written(&mut self, place: TracePlace<'_>, results: &Results<'_>) -> Result<(), Unrecorded> {
        if !self.values {
            return Ok(());
        }
        let mut next = 0;
        let tensors = results.tensors();
        let lists = results.lists().iter().cloned().chain(std::iter::once(tensors.len()..tensors.len()));
        for list in lists {
            for tensor in &tensors[next..list.start] {
                let value = TraceValue::Tensor(self.tensor(tensor)?);
                self.trace.value(None, place, &value, false)?;
            }
            next = list.end;
            if !list.is_empty() {
                let views = tensors[list].iter().map(|tensor| self.tensor(tensor)).collect::<Result<_, _>>()?;
                self.trace.value(None, place, &TraceValue::Tensors(views), false)?;
            }
        }
        Ok(())
    }

    fn output(&mut self, output: Output<'_>) -> Result<(), Unrecorded> {
        let value = match output {
            Output::Int(number) => TraceValue::Int(number),
            Output::Bool(truth) => TraceValue::Bool(truth),
            Output::Double(number) => TraceValue::Double(number),
            Output::Tensor(tensor) => TraceValue::Tensor(self.tensor(&tensor)?),
            // A trace has no place for text and lists.
            _ => TraceValue::Null,
        };
        self.trace.value(None, TracePlace::default(), &value, true)?;
        Ok(())
    }

    /// A tensor to record, if there is room for it.
    fn tensor<'a>(&mut self, tensor: &TensorRef<'a>) -> Result<TensorView<'a>, Unrecorded> {
        let layout = TensorLayout::new(tensor.dtype, tensor.sizes, tensor.dim_order)?;
        let room = (tensor.bytes().len() as u64).saturating_add(ALIGNMENT);
        self.left = self.left.checked_sub(room).ok_or(Unrecorded::Room(self.left))?;
        Ok(TensorView::new(layout, tensor.bytes())?)
    }
}

/// `add.out` of `aten::add.out`.
fn without_namespace(name: &str) -> &str {
    name.split_once("::").map_or(name, |(_, rest)| rest)
}

impl Observer for Recorder {
    fn started(&mut self) {
        self.call = None;
        self.trace.block("Execute");
        if let Some(index) = self.index.take() {
            let recorded = self.trace.bundled_input(index).map(drop);
            self.note(recorded.map_err(Unrecorded::from));
        }
        self.began = Instant::now();
    }

    fn before(&mut self, _: &Event<'_>) {
        self.start = Instant::now();
    }

    fn after(&mut self, event: &Event<'_>, results: &Results<'_>) {
        let end = Instant::now();
        self.ran(event, [self.start, end], results);
    }

    fn finished(&mut self) {
        let ticks = self.ticks(self.began)..self.ticks(Instant::now());
        let ended = self
            .end_call()
            .and_then(|()| Ok(self.trace.profile("Method::execute", TracePlace::default(), ticks, None).map(drop)?));
        self.note(ended);
    }
}
