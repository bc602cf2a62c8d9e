//! The backend: a payload at load, instructions for every call of it.

use std::ops::Range;
use std::sync::Arc;

use edgepack_executor::delegate::{Backend, Delegate, DelegateInit, Instructions};
use edgepack_executor::kernel::{KernelError, Prepare, Run};
use edgepack_executor::packing::Packer;
use edgepack_format::finding::{ErrorCode, Findings, Severity};
use edgepack_format::limits::Limits;
use edgepack_format::xnnpack::Payload;
use edgepack_format::xnnpack::verify::{Context, with_context};
use edgepack_loader::Bytes;

use crate::constants::Weights;
use crate::lower;

/// The backend that programs name `XnnpackBackend`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Xnnpack;

impl Backend for Xnnpack {
    fn id(&self) -> &str {
        "XnnpackBackend"
    }

    fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
        let payload = parse(&cx.processed)?;
        let inputs = payload.inputs()?.len();
        Ok(Box::new(Graph { processed: cx.processed, place: cx.place, packer: Arc::clone(cx.packer), inputs }))
    }
}

/// A payload and where its weights are.
struct Graph {
    processed: Bytes,
    place: String,
    packer: Arc<Packer>,
    /// Arguments that are read; those behind them are written.
    inputs: usize,
}

impl Delegate for Graph {
    fn outputs(&self, count: usize) -> Range<usize> {
        self.inputs.min(count)..count
    }

    fn instructions(&self, call: &Prepare<'_>) -> Result<Option<Instructions>, KernelError> {
        let payload = parse(&self.processed)?;
        let weights = Weights::of(&payload, &self.processed, &self.place, &self.packer)?;
        let context = Context { constants: Some(&weights), ..Context::default() };
        refuse(with_context(&payload, &context, &Limits::default()))?;
        let instructions = lower::lower(&payload, &weights, call)?;
        weights.release();
        Ok(Some(instructions))
    }

    fn prepare(&self, _: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        Err(KernelError::new(ErrorCode::Internal, "the payload is run as instructions"))
    }
}

fn parse(processed: &Bytes) -> Result<Payload<'_>, KernelError> {
    Payload::parse(processed, &Limits::default()).map_err(invalid)
}

fn refuse(findings: Findings) -> Result<(), KernelError> {
    match findings.has_errors() {
        true => Err(invalid(findings)),
        false => Ok(()),
    }
}

/// The first error among findings.
fn invalid(findings: Findings) -> KernelError {
    let first = findings.iter().find(|finding| finding.rule.severity == Severity::Error);
    let message = first.map_or_else(|| "the payload is not valid".to_owned(), |finding| finding.to_string());
    KernelError::new(ErrorCode::InvalidProgram, message)
}
