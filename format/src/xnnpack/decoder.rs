//! The decoder of payloads in their programs: verified with the calls of their delegates and with the named data at hand.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::constants::{Constant, ConstantBytes};
use super::describe::describe;
use super::header::Header;
use super::payload::Payload as Parsed;
use super::tables::{Graph, QuantParams};
use super::verify::{self, Argument, Context, verify_at, with_context_at};
use crate::check::{Checker, Path, StructureRules};
use crate::limits::Budget;
use crate::payload::{Call, Description, NamedEntries, Payload, PayloadFormat};
use crate::pte::KernelTypes;
use crate::room;
use crate::row::{Table as _, TableDesc};
use crate::scalar::ScalarType;
use crate::wire;

/// Decodes the payloads of delegates whose backend is XNNPACK.
#[derive(Clone, Copy, Default, Debug)]
pub struct XnnpackFormat;

impl PayloadFormat for XnnpackFormat {
    fn backend(&self) -> &str {
        "XnnpackBackend"
    }

    fn rules(&self) -> StructureRules {
        verify::STRUCTURE
    }

    fn verify(&self, payload: &Payload<'_>, path: &Path<'_>, out: &mut Checker) {
        let before = out.findings.errors();
        let Some(parsed) = verify_at(payload.bytes, path, out) else { return };
        if out.findings.errors() > before {
            return;
        }
        match AtHand::of(&parsed, payload.named_data, out.budget()) {
            Ok(constants) => {
                let elsewhere = !payload.named_data.is_complete();
                let context = Context { constants: Some(&constants), elsewhere, ..Context::default() };
                with_context_at(&parsed, &context, path, out);
            }
            Err(error) => out.unreadable(path, error),
        }
        for call in payload.calls {
            let checked = out.budget().charge(call.args.len() as u64, 0).map(|()| tensors(call));
            match checked {
                Ok(tensors) => {
                    let arguments: Vec<_> = tensors.iter().map(argument).collect();
                    let context = Context { arguments: Some(&arguments), ..Context::default() };
                    with_context_at(&parsed, &context, path, out);
                }
                Err(error) => return out.unreadable(path, error),
            }
        }
    }

    fn describe(&self, payload: &Payload<'_>, budget: &mut Budget) -> wire::Result<Description> {
        describe(payload.bytes, budget)
    }

    fn root<'p>(&self, payload: &Payload<'p>) -> Option<(wire::Table<'p>, &'static TableDesc)> {
        let header = Header::read(payload.bytes).ok()?;
        let start = header.map_or(0, |header| header.flatbuffer_offset);
        let root = wire::Table::root(payload.bytes.get(usize::try_from(start).ok()?..)?).ok()?;
        Some((root, Graph::DESC))
    }
}

/// Constants as far as they are at hand: of named data all lengths, and the bytes of scales.
struct AtHand<'p> {
    payload: &'p Parsed<'p>,
    lens: Vec<Option<u64>>,
    scales: BTreeMap<u32, Vec<u8>>,
}

impl<'p> AtHand<'p> {
    fn of(payload: &'p Parsed<'p>, named: &NamedEntries<'_>, budget: &mut Budget) -> wire::Result<Self> {
        let list = payload.constant_list();
        let mut lens = room::with_room(list.len())?;
        for constant in list {
            lens.push(match constant {
                Constant::Named { key, .. } => named.size(key),
                _ => None,
            });
        }
        let mut scales = BTreeMap::new();
        for value in payload.values() {
            let index = match value.quant_params() {
                Some(QuantParams::PerChannelQuant(params)) => params.scale_buffer_idx,
                Some(QuantParams::PerChannelGroupQuant(params)) => params.scale_buffer_idx,
                _ => 0,
            };
            let constant = usize::try_from(index).ok().and_then(|index| list.get(index));
            let Some(Constant::Named { key, size }) = constant else { continue };
            let len = named.size(key).unwrap_or(0).min(*size);
            if scales.contains_key(&index) || len < *size {
                continue;
            }
            budget.charge_bytes(usize::try_from(len).unwrap_or(usize::MAX), 0)?;
            if let Some(bytes) = named.read(key, len) {
                scales.insert(index, room::copy_of(&bytes)?);
            }
        }
        Ok(AtHand { payload, lens, scales })
    }
}

impl ConstantBytes for AtHand<'_> {
    fn bytes(&self, index: u32) -> Option<&[u8]> {
        match self.payload.constant_list().get(usize::try_from(index).ok()?)? {
            Constant::Inline(bytes) => Some(bytes),
            _ => self.found(index),
        }
    }

    fn found(&self, index: u32) -> Option<&[u8]> {
        self.scales.get(&index).map(Vec::as_slice)
    }

    fn found_len(&self, index: u32) -> Option<u64> {
        *self.lens.get(usize::try_from(index).ok()?)?
    }
}

/// A tensor among the arguments of a call: its number, element type, sizes and dim order.
type Tensor = (u32, ScalarType, Vec<i32>, Vec<u8>);

fn tensors(call: &Call<'_>) -> Vec<Option<Tensor>> {
    let tensor = |(value, argument): (&i32, &Option<KernelTypes<'_>>)| {
        let Some(KernelTypes::Tensor(tensor)) = argument else { return None };
        let sizes: Vec<i32> = tensor.sizes.iter().flat_map(|sizes| sizes.iter()).collect();
        let dim_order = tensor.dim_order.iter().flat_map(|order| order.iter()).collect();
        Some((u32::try_from(*value).ok()?, tensor.scalar_type, sizes, dim_order))
    };
    call.values.iter().zip(&call.args).map(tensor).collect()
}

fn argument(tensor: &Option<Tensor>) -> Argument<'_> {
    match tensor {
        Some((value, scalar_type, sizes, dim_order)) => {
            Argument::Tensor { value: *value, scalar_type: *scalar_type, sizes, dim_order }
        }
        None => Argument::Other,
    }
}
