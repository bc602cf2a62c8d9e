//! Programs that say untrue things of themselves are refused by name.

use edgepack_format::pte::{ExecutionPlan, ProgramRef};
use edgepack_llm::model::Cache;
use edgepack_loader::Program;

use crate::support::{file, load};

fn u16_at(bytes: &[u8], at: usize) -> usize {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()).into()
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// Place of a field of a table.
fn field(bytes: &[u8], table: usize, slot: usize) -> usize {
    let vtable = (table as i64 - i64::from(u32_at(bytes, table) as u32 as i32)) as usize;
    let offset = u16_at(bytes, vtable + 4 + 2 * slot);
    assert_ne!(offset, 0, "the field has its default");
    table + offset
}

/// A program whose metadata method returns something else; `len` is the number of bytes of the value.
fn patched(name: &str, method: &str, index: usize, value: i64, len: usize) -> Vec<u8> {
    let mut bytes = file(&format!("{name}.pte"));
    let program = Program::from_bytes(bytes.clone()).unwrap();
    let view: ProgramRef<'_> = program.view().unwrap();
    let plan: ExecutionPlan<'_> = view.plan(method).unwrap();
    let output = plan.outputs.as_ref().unwrap().iter().nth(index).unwrap() as usize;
    let value_table = plan.values.as_ref().unwrap().tables().position(output).unwrap();
    let payload = field(&bytes, value_table, 1);
    let at = field(&bytes, payload + u32_at(&bytes, payload), 0);
    bytes[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
    bytes
}

#[track_caller]
fn refused(bytes: Vec<u8>, want: &str) {
    match load(bytes) {
        Ok(_) => panic!("not refused: {want}"),
        Err(error) => assert_eq!(error.to_string(), want),
    }
}

#[test]
fn numbers_that_contradict_the_methods_are_refused() {
    let int = |method, value| patched("dynamic_last", method, 0, value, 8);
    refused(int("get_vocab_size", 23), "metadata `get_vocab_size`: 23, `forward` returns logits of 24 tokens");
    refused(int("get_vocab_size", 1 << 40), "metadata `get_vocab_size`: 1099511627776, it can be 1 to 4294967295");
    let custom = patched("custom", "get_max_context_len", 0, 17, 8);
    refused(custom, "metadata `get_max_context_len`: 17, but the caches have room for 16 tokens");
    refused(int("get_max_context_len", 0), "metadata `get_max_context_len`: 0, it can be 1 to 16777216");
    refused(int("get_max_context_len", -1), "metadata `get_max_context_len`: -1, it can be 1 to 16777216");
    refused(
        int("get_max_context_len", 15),
        "metadata `get_max_seq_len`: 16, more than the 15 of `get_max_context_len`",
    );
    refused(int("get_max_seq_len", 14), "metadata `get_max_seq_len`: 14, but a call takes up to 15 tokens");
    refused(int("get_n_layers", 0), "metadata `get_n_layers`: 0, it can be 1 to 16777216");
    refused(int("get_bos_id", 24), "metadata `get_bos_id`: token 24 of a vocabulary of 24");
    refused(int("get_bos_id", -1), "metadata `get_bos_id`: -1 is not a token");
    let second_eos = patched("dynamic_last", "get_eos_ids", 1, 1 << 33, 8);
    refused(second_eos, "metadata `get_eos_ids`: 8589934592 is not a token");
}

/// Places of a cache may be computed, so that it is no lie to have less room than the context; then a session goes back
/// by running its tokens again.
#[test]
fn a_cache_of_computed_places_may_be_a_ring() {
    let model = load(patched("dynamic_last", "get_max_context_len", 0, 17, 8)).unwrap();
    assert_eq!((model.cache(), model.context()), (Cache::Sequential, 17));
    let mut session = model.session().unwrap();
    session.prefill(&[5; 16]).unwrap();
    // This one is no ring: the operator refuses the place.
    let error = session.decode(5).unwrap_err().to_string();
    assert!(error.starts_with("method `forward`: forward chains[0]"), "{error}");
    assert_eq!(session.position(), 16);
    session.rewind(3).unwrap();
    session.decode(5).unwrap();
}

#[test]
fn a_cache_that_is_denied_is_refused() {
    let denied = patched("dynamic_last", "use_kv_cache", 0, 0, 1);
    refused(denied, "metadata `use_kv_cache`: false, but `forward` has state between calls");
}

/// Any byte of the flatbuffer: opened or refused, and what opens can be run or says why not.
#[test]
fn damaged_programs_never_panic() {
    let bytes = file("running.pte");
    let end = Program::from_bytes(bytes.clone()).unwrap().flatbuffer().len();
    let (mut opened, mut refused) = (0, 0);
    for at in (0..end).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at / 3 % 8);
        match load(damaged) {
            Ok(model) => {
                opened += 1;
                if let Ok(mut session) = model.session() {
                    let _ = session.prefill(&[1, 2]);
                    let _ = session.rewind(1);
                    let _ = session.save(std::io::sink());
                }
            }
            Err(_) => refused += 1,
        }
    }
    assert!(opened > 10 && refused > 100, "{opened} opened, {refused} refused");
}
