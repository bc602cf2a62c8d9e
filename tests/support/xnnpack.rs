//! Payloads of the XNNPACK backend with their context, as the manifest of bad files says it.

use std::collections::BTreeMap;

use edgepack_format::finding::Findings;
use edgepack_format::limits::Limits;
use edgepack_format::scalar::ScalarType;
use edgepack_format::xnnpack::Payload;
use edgepack_format::xnnpack::verify::{Argument, Context, verify, with_context};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Verifies a payload. `line` may have the arguments of a call (`call`: `null`, or value, element type,
/// sizes and order) and named data (`named`: bytes by key, in hexadecimal digits).
pub fn findings(bytes: &[u8], limits: &Limits, line: &Value) -> Findings {
    let mut findings = verify(bytes, limits).findings;
    let Ok(payload) = Payload::parse(bytes, limits) else { return findings };
    let tensors: Option<Vec<_>> = line["call"].as_array().map(|call| call.iter().map(tensor).collect());
    let arguments: Option<Vec<_>> =
        tensors.as_ref().map(|tensors| tensors.iter().map(|tensor| argument(tensor.as_ref())).collect());
    let named: Option<BTreeMap<_, _>> =
        line["named"].as_object().map(|named| named.iter().map(|(key, bytes)| (key.as_str(), unhex(bytes))).collect());
    let constants = named.as_ref().map(|named| {
        let found = payload.constants(|key| Ok::<_, ()>(named.get(key).map(Vec::as_slice)));
        found.expect("this lookup does not fail")
    });
    let context = Context {
        arguments: arguments.as_deref(),
        constants: constants.as_ref().map(|constants| constants as _),
        digest: Some(|bytes| Sha256::digest(bytes).into()),
        ..Context::default()
    };
    findings.extend(with_context(&payload, &context, limits));
    findings
}

type Tensor = (u32, ScalarType, Vec<i32>, Vec<u8>);

fn tensor(value: &Value) -> Option<Tensor> {
    serde_json::from_value(value.clone()).expect("null, or value, type, sizes, order")
}

fn argument(tensor: Option<&Tensor>) -> Argument<'_> {
    match tensor {
        Some((value, scalar_type, sizes, dim_order)) => {
            Argument::Tensor { value: *value, scalar_type: *scalar_type, sizes, dim_order }
        }
        None => Argument::Other,
    }
}

fn unhex(text: &Value) -> Vec<u8> {
    let digits = text.as_str().expect("digits").as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("digits");
    digits.chunks(2).map(byte).collect()
}

/// Bytes as a manifest has them.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
