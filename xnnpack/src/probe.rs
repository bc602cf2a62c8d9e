//! A look at programs that runs nothing: which nodes of their payloads lowering takes, and why it refuses others.
//!
//! [`Probe`] replaces the backend while a method is loaded. It asks lowering about every node of every call, takes
//! a refused node to make what the payload declares, and lets the load go on.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use edgepack_executor::delegate::{Backend, Delegate, DelegateInit, Instructions};
use edgepack_executor::kernel::{KernelContext, KernelError, Prepare, Run};
use edgepack_executor::packing::Packer;
use edgepack_format::finding::ErrorCode;
use edgepack_format::limits::Limits;
use edgepack_format::xnnpack::{Constant, ConstantBytes as _, Payload};
use edgepack_loader::Bytes;

use crate::backend::{ID, parse, sound};
use crate::constants::Weights;
use crate::lower;

/// A backend that says of every node whether it would run.
///
/// Load a method with it, whatever comes of that, and ask for [`nodes`](Probe::nodes).
#[derive(Clone, Default, Debug)]
pub struct Probe {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default, Debug)]
struct Seen {
    payloads: usize,
    nodes: Vec<ProbedNode>,
}

/// A node of a payload, and what becomes of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbedNode {
    /// The payload, by its place among those of the backend in the method.
    pub payload: usize,
    /// The node, by its place in the payload.
    pub node: u32,
    /// The kind of node: `Conv2d`.
    pub kind: String,
    /// The node as a line.
    pub text: String,
    /// The answer to whether the node runs.
    pub answer: Answer,
}

/// The answer to whether a node runs.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Answer {
    /// The node runs.
    Runs,
    /// The node is refused, for this reason.
    Refused(String),
    /// Unknown, since constants are in a data file that was not given.
    Unknown(String),
}

impl Probe {
    /// A probe that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The nodes of all calls so far. Those of a payload that is never called are not among them.
    pub fn nodes(&self) -> Vec<ProbedNode> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).nodes.clone()
    }
}

impl Backend for Probe {
    fn id(&self) -> &str {
        ID
    }

    fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
        let inputs = parse(&cx.processed, &cx.limits)?.inputs()?.len();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let payload = seen.payloads;
        seen.payloads += 1;
        let (place, packer) = (cx.place, Arc::clone(cx.packer));
        let (processed, limits) = (cx.processed, cx.limits);
        Ok(Box::new(Probed { processed, place, packer, limits, inputs, payload, seen: Arc::clone(&self.seen) }))
    }
}

/// A payload that is looked at.
struct Probed {
    processed: Bytes,
    place: String,
    packer: Arc<Packer>,
    limits: Limits,
    inputs: usize,
    payload: usize,
    seen: Arc<Mutex<Seen>>,
}

impl Delegate for Probed {
    fn outputs(&self, count: usize) -> Range<usize> {
        self.inputs.min(count)..count
    }

    fn instructions(&self, call: &Prepare<'_>) -> Result<Option<Instructions>, KernelError> {
        let payload = parse(&self.processed, &self.limits)?;
        let answers = self.answers(&payload, call);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, node) in (0u32..).zip(payload.nodes()) {
            let kind = node.xnode_union.as_ref().and_then(|kind| kind.name()).unwrap_or("unknown");
            seen.nodes.push(ProbedNode {
                payload: self.payload,
                node: index,
                kind: kind.to_owned(),
                text: payload.node_line(node).to_string(),
                answer: answers(index),
            });
        }
        Ok(None)
    }

    fn prepare(&self, _: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        let refused = |_: &mut KernelContext<'_>| {
            Err(KernelError::new(ErrorCode::NotSupported, "the payload was only looked at"))
        };
        Ok(Box::new(refused))
    }
}

impl Probed {
    /// The answer of each node.
    fn answers(&self, payload: &Payload<'_>, call: &Prepare<'_>) -> impl Fn(u32) -> Answer + use<> {
        let asked = self.ask(payload, call);
        move |node| match &asked {
            Ok(refused) => match refused.iter().find(|(index, _)| *index == node) {
                Some((_, why)) => Answer::Refused(why.clone()),
                None => Answer::Runs,
            },
            Err(whole) => whole.clone(),
        }
    }

    /// Refused nodes with reasons, or the answer that is the same for all nodes.
    fn ask(&self, payload: &Payload<'_>, call: &Prepare<'_>) -> Result<Vec<(u32, String)>, Answer> {
        let refused = |error: KernelError| Answer::Refused(error.message.into_owned());
        let weights = Weights::of(payload, &self.processed, &self.place, &self.packer).map_err(refused)?;
        for (index, constant) in (0u32..).zip(payload.constant_list()) {
            if let Constant::Named { key, .. } = constant
                && weights.found(index).is_none()
            {
                let key: String = key.chars().take(96).collect();
                return Err(Answer::Unknown(format!("the constant {key:?} is in a data file that was not given")));
            }
        }
        sound(payload, &weights, &self.limits).map_err(refused)?;
        let nodes = lower::refusals(payload, &weights, call, &self.limits).map_err(refused)?;
        Ok(nodes.into_iter().map(|(node, error)| (node, error.message.into_owned())).collect())
    }
}
