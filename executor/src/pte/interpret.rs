//! Runs a frozen plan.

use std::cell::Cell;

use edgepack_format::finding::ErrorCode;

use crate::api::context::KernelContext;
use crate::api::error::KernelError;
use crate::api::state::{ResizeError, State, Value, ValueId};
use crate::pte::error::{Place, RunError};
use crate::pte::freeze::{Call, Plan, PlannedAction, PlannedInstruction};
use crate::pte::method::Method;
use crate::pte::observer::{Event, Observer, Results, Watcher};

/// Position of the run.
#[derive(Clone, Copy)]
struct Position {
    chain: usize,
    instruction: usize,
}

impl Method {
    /// Runs all chains. The caller has checked inputs and holds the arenas.
    pub(crate) fn interpret(&mut self, mut observer: Watcher<'_, '_>) -> Result<(), RunError> {
        let mut spent = 0;
        let mut watched = 0..0;
        if let Some(observer) = observer.as_deref_mut() {
            observer.started();
            watched = observer.places();
        }
        // Place of the first instruction of the chain.
        let mut start = 0;
        for chain in 0..self.frozen.chains.len() {
            let mut at = Position { chain, instruction: 0 };
            while at.instruction < self.frozen.chains[chain].len() {
                spent += 1;
                if spent > self.instruction_limit {
                    return Err(RunError::Budget { place: Box::new(self.place(at)), limit: self.instruction_limit });
                }
                let seen = |_: &&mut _| watched.contains(&(start + at.instruction));
                match self.step(at, observer.as_deref_mut().filter(seen)) {
                    Ok(next) => at.instruction = next,
                    Err(error) => return Err(RunError::Instruction { place: Box::new(self.place(at)), error }),
                }
            }
            start += self.frozen.chains[chain].len();
        }
        if let Some(observer) = observer {
            observer.finished();
        }
        Ok(())
    }

    /// Runs one instruction and says which is next.
    #[inline]
    fn step(&mut self, at: Position, observer: Watcher<'_, '_>) -> Result<usize, KernelError> {
        let next = at.instruction + 1;
        let state = &mut self.state;
        let call = match &self.frozen.chains[at.chain][at.instruction].action {
            PlannedAction::Kernel { call, .. } | PlannedAction::Delegate { call, .. } => *call,
            PlannedAction::JumpFalse { condition, target } => {
                return condition_holds(state, *condition).map(|holds| if holds { next } else { *target as usize });
            }
            PlannedAction::MoveNumber { from, to } => {
                state.values[*to as usize] = state.values[*from as usize];
                return Ok(next);
            }
            PlannedAction::MoveTensor { from, to } => return move_tensor(state, *from, *to).map(|()| next),
            PlannedAction::Free { tensor } => {
                state.tensors[*tensor as usize].freed = true;
                return Ok(next);
            }
            PlannedAction::Nop => return Ok(next),
        };
        match observer {
            None => self.call(at, call)?,
            Some(observer) => self.call_observed(at, call, observer)?,
        }
        Ok(next)
    }

    /// Runs a kernel or a delegate.
    #[inline]
    fn call(&mut self, at: Position, call: Call) -> Result<(), KernelError> {
        let Method { state, args, frozen, may_retain, .. } = self;
        call_kernel(state, args, frozen, may_retain, at, call, |_| ())
    }

    /// Runs a kernel or a delegate between what an observer is told; the event is made once for both.
    fn call_observed(
        &mut self,
        at: Position,
        call: Call,
        observer: &mut (dyn Observer + Send + '_),
    ) -> Result<(), KernelError> {
        let Method { state, args, frozen, delegates, operators, may_retain, .. } = self;
        let event = event(at, frozen, &frozen.chains[at.chain][at.instruction], operators, delegates);
        observer.before(&event);
        call_kernel(state, args, frozen, may_retain, at, call, |cx| observer.after(&event, &Results::of(cx)))
    }

    fn place(&self, at: Position) -> Place {
        let step = &self.frozen.chains[at.chain][at.instruction];
        let unnamed = event(at, &self.frozen, step, &self.operators, &self.delegates).place(&self.name);
        let view = self.program.view();
        match view.ok().and_then(|view| view.plan(&self.name)) {
            Some(plan) => {
                Place { source: crate::pte::place::frame(&plan, unnamed.chain, unnamed.instruction), ..unnamed }
            }
            None => unnamed,
        }
    }
}

/// Runs a kernel or a delegate, and shows its arguments when it has run.
#[inline]
fn call_kernel(
    state: &mut State,
    args: &[ValueId],
    frozen: &mut Plan,
    may_retain: &mut u64,
    at: Position,
    call: Call,
    show: impl FnOnce(&KernelContext<'_>),
) -> Result<(), KernelError> {
    let rerouted = &frozen.rerouted[call.rerouted.range()];
    for reroute in rerouted {
        let region = state.tensors[reroute.tensor as usize].region;
        // SAFETY: the method is exclusively borrowed and no view is alive between instructions; the copy is in
        // scratch, which no tensor shares.
        unsafe { reroute.copy.copy_from(&region) };
    }
    let args = &args[call.args.range()];
    let (access, scratch, retained) = (call.access, frozen.kernel_scratch, Cell::new(*may_retain));
    let mut cx = KernelContext { state, args, access, rerouted, scratch, retained: &retained };
    match &mut frozen.chains[at.chain][at.instruction].action {
        PlannedAction::Kernel { run, .. } | PlannedAction::Delegate { run, .. } => run.run(&mut cx)?,
        _ => {}
    }
    *may_retain = retained.get();
    if frozen.frees {
        cx.take_back();
    }
    show(&cx);
    Ok(())
}

/// Returns the event that observers and errors get for an instruction.
fn event<'m>(
    at: Position,
    plan: &Plan,
    planned: &PlannedInstruction,
    operators: &'m [std::sync::Arc<str>],
    delegates: &'m [String],
) -> Event<'m> {
    let name = match &planned.action {
        PlannedAction::Kernel { operator, .. } => &*operators[*operator as usize],
        PlannedAction::Delegate { delegate, .. } => delegates[*delegate as usize].as_str(),
        PlannedAction::MoveTensor { .. } | PlannedAction::MoveNumber { .. } => "MoveCall",
        PlannedAction::JumpFalse { .. } => "JumpFalseCall",
        PlannedAction::Free { .. } => "FreeCall",
        PlannedAction::Nop => "nothing",
    };
    let delegate = match &planned.action {
        PlannedAction::Delegate { delegate, .. } => Some(*delegate as usize),
        _ => planned.node.map(|node| node.delegate as usize),
    };
    let node = planned.node.map(|node| node.node);
    let Position { chain, instruction } = at;
    Event {
        chain,
        instruction: planned.origin as usize,
        position: plan.start_of(chain) + instruction,
        name,
        delegate,
        node,
    }
}

/// A bool, a number that was computed and is not zero, or a BOOL tensor none of whose elements is false.
fn condition_holds(state: &State, condition: ValueId) -> Result<bool, KernelError> {
    match &state.values[condition as usize] {
        Value::Bool(value) => Ok(*value),
        Value::Int(value) => Ok(*value != 0),
        Value::Double(value) => Ok(*value != 0.0),
        Value::Tensor(tensor) => {
            let tensor = &state.tensors[*tensor as usize];
            if tensor.freed {
                return Err(KernelError::new(ErrorCode::InvalidState, "the condition was freed"));
            }
            let meta = state.meta(tensor);
            // SAFETY: the method is exclusively borrowed by the run, and no output is in use between instructions.
            let bytes = unsafe { tensor.region.prefix(meta.byte_len()).bytes() };
            Ok(bytes.iter().all(|&byte| byte != 0))
        }
        other => {
            let message = format!("the condition is a {}, no bool", other.kind());
            Err(KernelError::new(ErrorCode::InvalidProgram, message))
        }
    }
}

/// Gives a tensor the sizes and bytes of another. It keeps its own storage.
fn move_tensor(state: &mut State, from: u32, to: u32) -> Result<(), KernelError> {
    let source = state.tensors[from as usize];
    if source.freed {
        return Err(KernelError::new(ErrorCode::InvalidState, "the source was freed"));
    }
    let sizes = edgepack_format::tensor::Dims::from_slice(state.sizes(&source)).unwrap_or_default();
    state.resize(to, &sizes).map_err(|error| {
        let why = match error {
            ResizeError::Rank(rank) => format!("{rank} dimensions onto another number"),
            ResizeError::Static => "the destination is static with other sizes".to_owned(),
            ResizeError::Bound => "the destination has no room".to_owned(),
        };
        KernelError::unsupported(format!("sizes {:?}: {why}", &*sizes))
    })?;
    let target = &mut state.tensors[to as usize];
    target.freed = false;
    let target = *target;
    let bytes = state.meta(&target).byte_len();
    // SAFETY: the method is exclusively borrowed by the run and no view is alive between instructions.
    unsafe { target.region.prefix(bytes).copy_from(&source.region.prefix(bytes)) };
    Ok(())
}
