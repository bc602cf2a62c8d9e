//! Files that are wrong as bytes: heads, offsets, vtables, alignment; and small files that mean a lot of work.

use edgepack_builder::sink::FlatSink;
use edgepack_format::pte::{Instruction, InstructionArguments, Int, KernelCall, KernelTypes};
use edgepack_format::row::{FieldValue, Sink, Table};
use edgepack_format::rules::pte as rule;
use edgepack_format::wire;

use super::{Case, full, small};

/// Offsets of the fields of the extended header, in bytes.
const LENGTH: usize = 12;
const PROGRAM_SIZE: usize = 16;
const BASE: usize = 24;
const DATA_SIZE: usize = 32;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..][..4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..][..8].try_into().expect("eight bytes"))
}

fn patch(mut bytes: Vec<u8>, at: usize, with: &[u8]) -> Vec<u8> {
    bytes[at..at + with.len()].copy_from_slice(with);
    bytes
}

/// A file with a header in which one number is another.
fn header(at: usize, change: impl FnOnce(u64) -> u64) -> Vec<u8> {
    let bytes = full().write();
    let number = change(u64_at(&bytes, at));
    patch(bytes, at, &number.to_le_bytes())
}

fn position(bytes: &[u8], needle: &[u8]) -> usize {
    bytes.windows(needle.len()).position(|window| window == needle).expect("the needle is in the file")
}

fn heads() -> Vec<Case> {
    let (small, full) = (small().write(), full().write());
    let len = full.len() as u64;
    let case = |id, rule, path, bytes| Case::new(id, rule, path, bytes);
    vec![
        case("empty", &rule::SHORT, "", Vec::new()),
        case("short", &rule::SHORT, "", small[..63].to_vec()),
        case("identifier_et13", &rule::IDENTIFIER, "", patch(small.clone(), 4, b"ET13")),
        case("identifier_other", &rule::IDENTIFIER, "", patch(full.clone(), 4, b"XXXX")),
        case("header_length_0", &rule::HEADER_LENGTH, "", patch(full.clone(), LENGTH, &[0; 4])),
        case("header_length_23", &rule::HEADER_LENGTH, "", patch(full.clone(), LENGTH, &23u32.to_le_bytes())),
        case("header_length_24", &rule::HEADER_OLD, "", patch(full.clone(), LENGTH, &24u32.to_le_bytes())),
        case("program_size_0", &rule::PROGRAM_SIZE, "program_size", header(PROGRAM_SIZE, |_| 0)),
        case("program_size_7", &rule::PROGRAM_SIZE, "program_size", header(PROGRAM_SIZE, |_| 7)),
        case("program_size_huge", &rule::PROGRAM_SIZE, "program_size", header(PROGRAM_SIZE, |_| 1 << 63)),
        case("program_size_half", &rule::MALFORMED, "", header(PROGRAM_SIZE, |_| 64)),
        case("base_0", &rule::BASE, "segment_base_offset", header(BASE, |_| 0)),
        case("base_in_program", &rule::BASE, "segment_base_offset", header(BASE, |base| base - 512)),
        case("base_huge", &rule::BASE, "segment_base_offset", header(BASE, |_| u64::MAX)),
        case("base_end", &rule::TRUNCATED, "segment_data_size", header(BASE, |_| len)),
        case("base_plus_4", &rule::TRUNCATED, "segment_data_size", header(BASE, |base| base + 4)),
        case("data_size_plus_1", &rule::TRUNCATED, "segment_data_size", header(DATA_SIZE, |size| size + 1)),
        case("data_size_wraps", &rule::TRUNCATED, "segment_data_size", header(DATA_SIZE, |_| u64::MAX)),
        case("data_size_minus_1", &rule::SEGMENT_RANGE, "segments[3]", header(DATA_SIZE, |size| size - 1)),
        case("data_size_0", &rule::SEGMENT_RANGE, "segments[0]", header(DATA_SIZE, |_| 0)),
        case("last_byte_missing", &rule::TRUNCATED, "segment_data_size", full[..full.len() - 1].to_vec()),
        case("half_the_file", &rule::PROGRAM_SIZE, "program_size", full[..full.len() / 2].to_vec()),
        case("trailing", &rule::TRAILING, "", [full, vec![0; 3]].concat()),
    ]
}

fn structure() -> Vec<Case> {
    let bytes = small().write();
    let root = u32_at(&bytes, 0);
    let table = wire::Table::root(&bytes).expect("a good file");
    let vtable = |table: &wire::Table<'_>| {
        let at = table.offset();
        at.wrapping_sub(u32_at(&bytes, at as usize)) as usize
    };
    let plan = table.tables(1).ok().flatten().expect("plans").get(0).expect("a plan");
    let name = plan.field(0, 4).ok().flatten().expect("a name");
    let text = position(&bytes, b"forward\0");
    let operator = position(&bytes, b"aten::add\0");
    let shifted = [&(root + 4).to_le_bytes()[..], &bytes[4..8], &[0; 4], &bytes[8..]].concat();
    let case = |id, rule, path, bytes| Case::new(id, rule, path, bytes);
    let root_at = |root: u32| patch(bytes.clone(), 0, &root.to_le_bytes());
    vec![
        case("root_0", &rule::MALFORMED, "", root_at(0)),
        case("root_4", &rule::MALFORMED, "", root_at(4)),
        case("root_beyond", &rule::MALFORMED, "", root_at(bytes.len() as u32)),
        case("root_huge", &rule::MALFORMED, "", root_at(u32::MAX)),
        case("vtable_odd", &rule::MALFORMED, "", patch(bytes.clone(), vtable(&table), &[19, 0])),
        case("vtable_short", &rule::MALFORMED, "", patch(bytes.clone(), vtable(&table), &[2, 0])),
        case("vtable_wild", &rule::MALFORMED, "", patch(bytes.clone(), root as usize, &i32::MIN.to_le_bytes())),
        case("name_at_itself", &rule::MALFORMED, "execution_plan[0].name", patch(bytes.clone(), name, &[0; 4])),
        case("name_beyond", &rule::MALFORMED, "execution_plan[0].name", patch(bytes.clone(), name, &[0xff; 4])),
        case("name_long", &rule::MALFORMED, "execution_plan[0].name", patch(bytes.clone(), text - 4, &[0xff; 4])),
        case("name_unterminated", &rule::MALFORMED, "execution_plan[0].name", patch(bytes.clone(), text + 7, b"!")),
        case("name_not_utf8", &rule::TEXT, "execution_plan[0].name", patch(bytes.clone(), text, &[0xff])),
        case("operator_not_utf8", &rule::TEXT, "execution_plan[0].operators[0].name", {
            patch(bytes.clone(), operator, &[0xc0])
        }),
        case("shifted_by_4", &rule::MISALIGNED, "execution_plan[0].values[2].val.int_val", shifted),
        case("budget", &rule::LIMITS, "execution_plan[0].chains[0].instructions[0].instr_args", bytes.clone())
            .visits(40),
        case("many_tables", &rule::MANY_TABLES, "", aliased(1_000, 1_000)).visits(10_000_000),
        case(
            "aliased",
            &rule::LIMITS,
            "execution_plan[0].chains[12].instructions[4307].instr_args.args",
            aliased(1_000, 10_000),
        ),
    ]
}

type Reference = <FlatSink as Sink>::Ref;

/// The fields of a method that no rule complains about, around these.
fn plan(
    sink: &mut FlatSink,
    name: Reference,
    values: Option<Reference>,
    chains: Option<Reference>,
) -> Result<Reference, <FlatSink as Sink>::Error> {
    let none = sink.refs(&[])?;
    let scalars = sink.scalars(4, 4, &[])?;
    let sizes = sink.scalars(8, 8, &[0; 8])?;
    let chains = match chains {
        Some(chains) => chains,
        None => {
            let chain = sink.table(&[(2, FieldValue::Ref(none))])?;
            sink.refs(&[chain])?
        }
    };
    let operator = sink.table(&[(0, FieldValue::Ref(name))])?;
    let operators = sink.refs(&[operator])?;
    let fields = [
        (0, name),
        (2, values.unwrap_or(none)),
        (3, scalars),
        (4, scalars),
        (5, chains),
        (6, operators),
        (7, none),
        (8, sizes),
    ];
    sink.table(&fields.map(|(slot, value)| (slot, FieldValue::Ref(value))))
}

fn finish(mut sink: FlatSink, plans: &[Reference]) -> Result<Vec<u8>, <FlatSink as Sink>::Error> {
    let plans = sink.refs(plans)?;
    let offsets = sink.scalars(8, 8, &[0; 8])?;
    let constants = sink.table(&[(1, FieldValue::Ref(offsets))])?;
    let root = sink.table(&[(1, FieldValue::Ref(plans)), (5, FieldValue::Ref(constants))])?;
    sink.finish(root, *b"ET12")
}

/// A program of which every chain is the same and every instruction in it: little to store, much to visit.
pub fn aliased(chains: usize, instructions: usize) -> Vec<u8> {
    let write = || {
        let mut sink = FlatSink::new();
        let name = sink.string("forward")?;
        let call = KernelCall { op_index: 0, args: Some(Vec::new().into()) };
        let call = Instruction { instr_args: Some(InstructionArguments::KernelCall(call)) }.encode(&mut sink)?;
        let list = sink.refs(&vec![call; instructions])?;
        let chain = sink.table(&[(2, FieldValue::Ref(list))])?;
        let chains = sink.refs(&vec![chain; chains])?;
        let plan = plan(&mut sink, name, None, Some(chains))?;
        finish(sink, &[plan])
    };
    write().expect("a flatbuffer")
}

/// A program with one method of this many values, no two of which share a table.
pub fn many_values(count: usize) -> Vec<u8> {
    let write = || {
        let mut sink = FlatSink::new();
        let name = sink.string("forward")?;
        let mut values = Vec::with_capacity(count);
        for value in 0..count as i64 {
            let value = Some(KernelTypes::Int(Int { int_val: value }));
            values.push(edgepack_format::pte::EValue { val: value }.encode(&mut sink)?);
        }
        let values = sink.refs(&values)?;
        let plan = plan(&mut sink, name, Some(values), None)?;
        finish(sink, &[plan])
    };
    write().expect("a flatbuffer")
}

/// A program with this many methods.
pub fn many_plans(count: usize) -> Vec<u8> {
    let write = || {
        let mut sink = FlatSink::new();
        let mut plans = Vec::with_capacity(count);
        for index in 0..count {
            let name = sink.string(&format!("method_{index}"))?;
            plans.push(plan(&mut sink, name, None, None)?);
        }
        finish(sink, &plans)
    };
    write().expect("a flatbuffer")
}

pub fn cases() -> Vec<Case> {
    [heads(), structure()].into_iter().flatten().collect()
}
