//! The verifier of the official flatbuffers crate, driven by our table descriptions instead of generated code.
//!
//! The verifier looks at every field a description names, so any official reader can read what it accepts.

use edgepack_format::row::{FieldDesc, FieldKind, ScalarKind, TableDesc, UnionDesc};
use flatbuffers::{ForwardsUOffset, InvalidFlatbuffer, Vector, Verifiable, Verifier, VerifierOptions};

type Result<T> = std::result::Result<T, InvalidFlatbuffer>;

/// Verifies a buffer whose root offset is stored at `root`.
pub fn verify(bytes: &[u8], root: usize, desc: &'static TableDesc) -> Result<()> {
    let options = VerifierOptions::default();
    let mut verifier = Verifier::new(&options, bytes);
    let pos = follow(&mut verifier, root)?;
    table(&mut verifier, pos, desc)
}

fn follow(v: &mut Verifier<'_, '_>, pos: usize) -> Result<usize> {
    Ok(v.get_uoffset(pos)? as usize + pos)
}

fn table(v: &mut Verifier<'_, '_>, pos: usize, desc: &'static TableDesc) -> Result<()> {
    let mut visited = v.visit_table(pos)?;
    for desc in desc.fields {
        if let FieldKind::Union(of) = desc.kind {
            let (tag, value) = (visited.deref(4 + 2 * desc.slot)?, visited.deref(6 + 2 * desc.slot)?);
            union(visited.verifier(), tag, value, of)?;
        } else if let Some(pos) = visited.deref(4 + 2 * desc.slot)? {
            field(visited.verifier(), pos, desc)?;
        }
    }
    visited.finish();
    Ok(())
}

fn union(v: &mut Verifier<'_, '_>, tag: Option<usize>, value: Option<usize>, of: &'static UnionDesc) -> Result<()> {
    match (tag, value) {
        (None, None) => Ok(()),
        (Some(tag), Some(value)) => {
            let tag = v.get_u8(tag)?;
            match of.variants.iter().find(|(number, ..)| *number == tag) {
                Some((.., desc)) => {
                    let pos = follow(v, value)?;
                    table(v, pos, desc)
                }
                // Generated code leaves values of unknown tags alone.
                None => Ok(()),
            }
        }
        _ => InvalidFlatbuffer::new_inconsistent_union(of.name, of.name),
    }
}

fn field(v: &mut Verifier<'_, '_>, pos: usize, desc: &'static FieldDesc) -> Result<()> {
    match desc.kind {
        FieldKind::Scalar(kind) => match kind {
            ScalarKind::Bool | ScalarKind::I8 | ScalarKind::U8 => v.in_buffer::<u8>(pos),
            ScalarKind::I16 | ScalarKind::U16 => v.in_buffer::<u16>(pos),
            ScalarKind::I32 | ScalarKind::U32 | ScalarKind::F32 => v.in_buffer::<u32>(pos),
            ScalarKind::I64 | ScalarKind::U64 | ScalarKind::F64 => v.in_buffer::<u64>(pos),
        },
        FieldKind::Text => ForwardsUOffset::<&str>::run_verifier(v, pos),
        FieldKind::Blob => ForwardsUOffset::<Vector<'_, u8>>::run_verifier(v, pos),
        // Strings of any bytes: the crate's own type for them would ask for UTF-8.
        FieldKind::Blobs => ForwardsUOffset::<Vector<'_, ForwardsUOffset<Vector<'_, u8>>>>::run_verifier(v, pos),
        FieldKind::Structs(desc) => {
            let start = follow(v, pos)?;
            let len = v.get_uoffset(start)? as usize;
            v.range_in_buffer(start + 4, len.saturating_mul(desc.size))
        }
        FieldKind::Scalars(kind) => match kind {
            ScalarKind::Bool | ScalarKind::I8 | ScalarKind::U8 => {
                ForwardsUOffset::<Vector<'_, u8>>::run_verifier(v, pos)
            }
            ScalarKind::I16 | ScalarKind::U16 => ForwardsUOffset::<Vector<'_, u16>>::run_verifier(v, pos),
            ScalarKind::I32 | ScalarKind::U32 | ScalarKind::F32 => {
                ForwardsUOffset::<Vector<'_, u32>>::run_verifier(v, pos)
            }
            ScalarKind::I64 | ScalarKind::U64 | ScalarKind::F64 => {
                ForwardsUOffset::<Vector<'_, u64>>::run_verifier(v, pos)
            }
        },
        FieldKind::Table(desc) => {
            let pos = follow(v, pos)?;
            table(v, pos, desc)
        }
        FieldKind::Rows(desc) => {
            let start = follow(v, pos)?;
            let len = v.get_uoffset(start)? as usize;
            v.range_in_buffer(start + 4, len.saturating_mul(4))?;
            for index in 0..len {
                let pos = follow(v, start + 4 + index * 4)?;
                table(v, pos, desc)?;
            }
            Ok(())
        }
        // Handled with its table, which knows both slots.
        FieldKind::Union(_) => Ok(()),
    }
}
