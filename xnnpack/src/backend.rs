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

/// The name of the backend in programs.
pub(crate) const ID: &str = "XnnpackBackend";

/// The backend that programs name `XnnpackBackend`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Xnnpack;

impl Backend for Xnnpack {
    fn id(&self) -> &str {
        ID
    }

    fn init(&self, cx: DelegateInit<'_>) -> Result<Box<dyn Delegate>, KernelError> {
        let payload = parse(&cx.processed, &cx.limits)?;
        let weights = Weights::of(&payload, &cx.processed, &cx.place, cx.packer)?;
        sound(&payload, &weights, &cx.limits)?;
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

/// Checks a payload against its constants.
pub(crate) fn sound(payload: &Payload<'_>, weights: &Weights, limits: &Limits) -> Result<(), KernelError> {
    let context = Context { constants: Some(weights), ..Context::default() };
    let findings = with_context(payload, &context, limits);
    match findings.has_errors() {
        true => Err(invalid(findings)),
        false => Ok(()),
    }
}

/// Parses a payload.
pub(crate) fn parse<'p>(processed: &'p Bytes, limits: &Limits) -> Result<Payload<'p>, KernelError> {
    Payload::parse(processed, limits).map_err(invalid)
}

/// The first error among findings.
fn invalid(findings: Findings) -> KernelError {
    let first = findings.iter().find(|finding| finding.rule.severity == Severity::Error);
    let message = first.map_or_else(|| "the payload is not valid".to_owned(), |finding| finding.to_string());
    KernelError::new(ErrorCode::InvalidProgram, message)
}
