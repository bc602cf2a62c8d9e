//! The backend: a payload at load, instructions for every call of it.
//!
//! A payload is verified once, when its delegate is made, and its constants are asked for once; calls read it again.

use std::ops::Range;

use edgepack_executor::delegate::{Backend, Delegate, DelegateInit, Instructions};
use edgepack_executor::kernel::{KernelError, Prepare, Run};
use edgepack_format::finding::{ErrorCode, Findings, Severity};
use edgepack_format::limits::Limits;
use edgepack_format::xnnpack::Payload;
use edgepack_format::xnnpack::verify::{Context, Verified, with_context};
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
        let payload = Payload::parse(&cx.processed, &cx.limits).map_err(invalid)?;
        let weights = Weights::of(&payload, &cx.processed, &*cx.named_data)?;
        let context = Context { constants: Some(&weights), ..Context::default() };
        refuse(with_context(&payload, &context, &cx.limits))?;
        let (verified, inputs) = (payload.verified(), payload.inputs()?.len());
        Ok(Box::new(Graph { processed: cx.processed, limits: cx.limits, verified, weights, inputs }))
    }
}

/// A payload that was verified, and its weights, each of which was asked for once.
struct Graph {
    processed: Bytes,
    limits: Limits,
    verified: Verified,
    weights: Weights,
    /// Arguments that are read; those behind them are written.
    inputs: usize,
}

impl Delegate for Graph {
    fn outputs(&self, count: usize) -> Range<usize> {
        self.inputs.min(count)..count
    }

    fn instructions(&self, call: &Prepare<'_>) -> Result<Option<Instructions>, KernelError> {
        let payload = self.verified.read(&self.processed, &self.limits);
        let payload = payload.ok_or_else(|| KernelError::new(ErrorCode::Internal, "the payload is another one"))?;
        lower::lower(&payload, &self.weights, call, &self.limits).map(Some)
    }

    fn prepare(&self, _: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        Err(KernelError::new(ErrorCode::Internal, "the payload is run as instructions"))
    }
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
