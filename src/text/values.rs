//! Values as text and back.

use edgepack_format::pte::notation::{Dynamism, kind};
use edgepack_format::pte::{
    AllocationDetails, Bool, BoolList, DeviceType, Double, DoubleList, EValue, ExtraTensorInfo, Int, IntList,
    KernelTypes, Null, OptionalTensorList, String as Text, Tensor, TensorDataLocation, TensorList, TensorShapeDynamism,
};
use edgepack_format::scalar::ScalarType;

use super::lexer::{ParseError, Token};
use super::parser::Parser;
use super::spelling::{named, numbers, quoted, references};

/// One value.
pub(super) fn print(value: &EValue<'_>) -> String {
    let Some(val) = &value.val else { return "absent".to_owned() };
    let content = match val {
        KernelTypes::Null(_) => None,
        KernelTypes::Int(row) => Some(row.int_val.to_string()),
        KernelTypes::Bool(row) => Some(row.bool_val.to_string()),
        KernelTypes::Double(row) => Some(double(row.double_val)),
        KernelTypes::Tensor(row) => Some(tensor(row)),
        KernelTypes::String(row) => row.string_val.as_deref().map(quoted),
        KernelTypes::IntList(row) => row.items.as_ref().map(references),
        KernelTypes::DoubleList(row) => row.items.as_ref().map(|items| {
            let items: Vec<String> = items.iter().map(double).collect();
            format!("[{}]", items.join(", "))
        }),
        KernelTypes::BoolList(row) => row.items.as_ref().map(numbers),
        KernelTypes::TensorList(row) => row.items.as_ref().map(references),
        KernelTypes::OptionalTensorList(row) => row.items.as_ref().map(references),
        KernelTypes::Unknown(tag) => return format!("{}#{tag}", kind(val)),
    };
    match content {
        Some(content) => format!("{} {content}", kind(val)),
        None => kind(val).to_owned(),
    }
}

fn double(value: f64) -> String {
    match value {
        value if value.to_bits() == f64::NAN.to_bits() => "nan".to_owned(),
        value if value.is_nan() => format!("nan#{:x}", value.to_bits()),
        value => format!("{value:?}"),
    }
}

fn tensor(row: &Tensor<'_>) -> String {
    let mut out = row.scalar_type.to_string();
    let rank = row.sizes.as_ref().map_or(0, |sizes| sizes.len());
    if let Some(sizes) = &row.sizes {
        out.push_str(&numbers(sizes));
    }
    match &row.dim_order {
        None => out.push_str(" order absent"),
        Some(order) if order.iter().map(usize::from).eq(0..rank) => {}
        Some(order) => out.push_str(&format!(" order {}", numbers(order))),
    }
    match row.shape_dynamism {
        TensorShapeDynamism::STATIC => {}
        other => out.push_str(&format!(" {}", Dynamism(other))),
    }
    if let Some(place) = &row.allocation_info {
        out.push_str(&format!(" at {}:{}", place.memory_id, place.memory_offset()));
    }
    if row.data_buffer_idx != 0 {
        // In planned memory it is an initial value, elsewhere the constant itself.
        let what = if row.allocation_info.is_some() { "mutable" } else { "constant" };
        out.push_str(&format!(" {what} {}", row.data_buffer_idx));
    }
    if row.storage_offset != 0 {
        out.push_str(&format!(" storage_offset {}", row.storage_offset));
    }
    if row.requires_grad {
        out.push_str(" grad");
    }
    if row.layout != 0 {
        out.push_str(&format!(" layout {}", row.layout));
    }
    if let Some(info) = &row.extra_tensor_info {
        extra(info, &mut out);
    }
    out
}

fn extra(info: &ExtraTensorInfo<'_>, out: &mut String) {
    let mut parts = Vec::new();
    match info.location {
        TensorDataLocation::SEGMENT => {}
        TensorDataLocation::EXTERNAL => parts.push("external".to_owned()),
        other => parts.push(format!("location#{}", other.0)),
    }
    parts.extend(info.fully_qualified_name.as_deref().map(|name| format!("name {}", quoted(name))));
    if info.mutable_data_segments_idx != 0 {
        parts.push(format!("list {}", info.mutable_data_segments_idx));
    }
    if info.device_type != DeviceType::CPU {
        parts.push(format!("on {}", named(info.device_type.name(), info.device_type.0)));
    }
    if info.device_index != 0 {
        parts.push(format!("device_index {}", info.device_index));
    }
    match parts.is_empty() {
        true => out.push_str(" { }"),
        false => out.push_str(&format!(" {{ {} }}", parts.join(" "))),
    }
}

/// The value after `%N =`.
pub(super) fn parse(parser: &mut Parser<'_, '_>) -> Result<EValue<'static>, ParseError> {
    let place = parser.lexer.place();
    let kind = parser.name("a kind of value")?;
    let val = match kind {
        "absent" => return Ok(EValue { val: None }),
        "none" => KernelTypes::Null(Null {}),
        "int" => KernelTypes::Int(Int { int_val: parser.number()? }),
        "bool" => KernelTypes::Bool(Bool { bool_val: parser.boolean()? }),
        "double" => KernelTypes::Double(Double { double_val: parse_double(parser)? }),
        "tensor" => KernelTypes::Tensor(parse_tensor(parser)?),
        "text" => {
            let string_val = match parser.lexer.peek() {
                Token::Text(_) => Some(parser.text()?.into()),
                _ => None,
            };
            KernelTypes::String(Text { string_val })
        }
        "ints" => KernelTypes::IntList(IntList { items: parser.maybe_list(Parser::value)? }),
        "doubles" => KernelTypes::DoubleList(DoubleList { items: parser.maybe_list(parse_double)? }),
        "bools" => KernelTypes::BoolList(BoolList { items: parser.maybe_list(Parser::boolean)? }),
        "tensors" => KernelTypes::TensorList(TensorList { items: parser.maybe_list(Parser::value)? }),
        "optional_tensors" => {
            KernelTypes::OptionalTensorList(OptionalTensorList { items: parser.maybe_list(Parser::value)? })
        }
        "unknown" => KernelTypes::Unknown(parser.hash()?),
        other => return Err(parser.lexer.error_at(place, format!("expected a kind of value, found `{other}`"))),
    };
    Ok(EValue { val: Some(val) })
}

fn parse_double(parser: &mut Parser<'_, '_>) -> Result<f64, ParseError> {
    let place = parser.lexer.place();
    match parser.lexer.take()? {
        Token::Float(value) => Ok(value),
        Token::Int(value) => Ok(value as f64),
        Token::Name("inf") => Ok(f64::INFINITY),
        Token::Name("nan") => {
            let Token::Hash(digits) = *parser.lexer.peek() else { return Ok(f64::NAN) };
            let value = u64::from_str_radix(digits, 16).map(f64::from_bits).ok().filter(|value| value.is_nan());
            let value = value.ok_or_else(|| parser.lexer.expected("the bits of a NaN"))?;
            parser.lexer.take()?;
            Ok(value)
        }
        other => Err(parser.lexer.error_at(place, format!("expected a double, found {other}"))),
    }
}

fn parse_tensor(parser: &mut Parser<'_, '_>) -> Result<Tensor<'static>, ParseError> {
    let place = parser.lexer.place();
    let scalar_type = match parser.name("an element type")? {
        "type" => ScalarType(parser.hash()?),
        name => {
            let unknown = || parser.lexer.error_at(place, format!("expected an element type, found `{name}`"));
            ScalarType::from_text(name).ok_or_else(unknown)?
        }
    };
    let mut row = Tensor { scalar_type, sizes: parser.maybe_list(Parser::number)?, ..Tensor::default() };
    let rank = row.sizes.as_ref().map_or(0, |sizes| sizes.len());
    // What is written without an order is contiguous; a rank that no order can have states its own or `absent`.
    row.dim_order = (rank <= 256).then(|| (0..rank).map(|dim| dim as u8).collect::<Vec<_>>().into());
    while let Token::Name(word) = *parser.lexer.peek() {
        match word {
            "order" => {
                parser.lexer.take()?;
                row.dim_order = match parser.lexer.peek() {
                    Token::Name("absent") => {
                        parser.lexer.take()?;
                        None
                    }
                    _ => Some(parser.list(Parser::number)?.into()),
                };
            }
            "bounded" => row.shape_dynamism = parser.word(TensorShapeDynamism::DYNAMIC_BOUND)?,
            "unbounded" => row.shape_dynamism = parser.word(TensorShapeDynamism::DYNAMIC_UNBOUND)?,
            "dynamism" => {
                parser.lexer.take()?;
                row.shape_dynamism = TensorShapeDynamism(parser.hash()?);
            }
            "at" => {
                parser.lexer.take()?;
                let memory_id = parser.number()?;
                parser.mark(':')?;
                let offset: u64 = parser.number()?;
                row.allocation_info = Some(AllocationDetails {
                    memory_id,
                    memory_offset_low: offset as u32,
                    memory_offset_high: (offset >> 32) as u32,
                });
            }
            "constant" | "mutable" => {
                parser.lexer.take()?;
                row.data_buffer_idx = parser.number()?;
            }
            "storage_offset" => {
                parser.lexer.take()?;
                row.storage_offset = parser.number()?;
            }
            "grad" => row.requires_grad = parser.word(true)?,
            "layout" => {
                parser.lexer.take()?;
                row.layout = parser.number()?;
            }
            _ => return Err(parser.lexer.expected("something about the tensor, or the next value")),
        }
    }
    if *parser.lexer.peek() == Token::Mark('{') {
        parser.lexer.take()?;
        row.extra_tensor_info = Some(parse_extra(parser)?);
    }
    Ok(row)
}

fn parse_extra(parser: &mut Parser<'_, '_>) -> Result<ExtraTensorInfo<'static>, ParseError> {
    let mut info = ExtraTensorInfo::default();
    while *parser.lexer.peek() != Token::Mark('}') {
        let place = parser.lexer.place();
        match parser.name("`}` or something about the tensor")? {
            "external" => info.location = TensorDataLocation::EXTERNAL,
            "location" => info.location = TensorDataLocation(parser.hash()?),
            "name" => info.fully_qualified_name = Some(parser.text()?.into()),
            "list" => info.mutable_data_segments_idx = parser.number()?,
            "on" => info.device_type = DeviceType(parser.named(|name| DeviceType::from_name(name).map(|kind| kind.0))?),
            "device_index" => info.device_index = parser.number()?,
            other => {
                let message = format!("expected `}}` or something about the tensor, found `{other}`");
                return Err(parser.lexer.error_at(place, message));
            }
        }
    }
    parser.mark('}')?;
    Ok(info)
}
