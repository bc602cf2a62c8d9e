//! Ceilings for files and methods.

use std::sync::{Mutex, PoisonError};

use edgepack::format::limits::Limits;
use edgepack::loader::machine_limits;

use crate::entry;
use crate::error::{EdgepackCode, EdgepackError};
use crate::failure::Failure;
use crate::handles::{close, get, handle, put};
use crate::pointer::Out;

/// Ceilings of memory and work that a file may ask for. Where limits are wanted, zero stands for those of this machine: a
/// method may have half of the memory that the process can have.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdgepackLimits {
    /// Number of the object; zero for none.
    pub id: u64,
}

handle!(EdgepackLimits, Limits, LimitsObject, "limits");

pub(crate) struct LimitsObject(Mutex<Limits>);

/// Limits to start from.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgepackPreset {
    /// Those of this machine.
    Machine = 0,
    /// For files of strangers: at most 128 MiB for a method and 100 000 instructions of a run.
    Hostile = 1,
}

/// Names of limits.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgepackLimit {
    /// Tables and pieces of 64 bytes visited while verifying.
    Visits = 0,
    /// Findings retained; the rest are counted.
    Findings = 1,
    /// Bytes of all planned memory of one method.
    ArenaBytes = 2,
    /// Bytes of one segment that may be read into memory.
    SegmentBytes = 3,
    /// Bytes of what is allocated for a method beyond planned memory and segments.
    MethodBytes = 4,
    /// Bytes of all of that together.
    MemoryBytes = 5,
    /// Instructions one execution may run.
    Instructions = 6,
}

/// The limits of a handle; those of this machine of zero.
pub(crate) fn limits(handle: EdgepackLimits) -> Result<Limits, Failure> {
    if handle.id == 0 {
        return Ok(machine_limits());
    }
    Ok(*get(handle)?.0.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Makes limits; `preset` is an EdgepackPreset.
///
/// Ownership: the limits are the caller's, who closes them. They are copied wherever they are given to.
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_limits_new(
    preset: u32,
    limits: Out<EdgepackLimits>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        limits.check(1, "limits")?;
        let start = match preset {
            preset if preset == EdgepackPreset::Machine as u32 => machine_limits(),
            preset if preset == EdgepackPreset::Hostile as u32 => Limits::hostile(),
            other => return Err(Failure::missing("preset of limits", other)),
        };
        limits.write(put(LimitsObject(Mutex::new(start))), "limits")
    })
}

/// Sets one of the limits; `limit` is an EdgepackLimit.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_limits_set(
    limits: EdgepackLimits,
    limit: u32,
    value: u64,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let object = get(limits)?;
        let mut limits = object.0.lock().unwrap_or_else(PoisonError::into_inner);
        match limit {
            0 => limits.visits = value,
            1 => limits.findings = usize::try_from(value).unwrap_or(usize::MAX),
            2 => limits.arena_bytes = value,
            3 => limits.segment_bytes = value,
            4 => limits.method_bytes = value,
            5 => limits.memory_bytes = value,
            6 => limits.instructions = value,
            other => return Err(Failure::missing("limit", other)),
        }
        Ok(())
    })
}

/// Returns one of the limits by `value`; `limit` is an EdgepackLimit. Limits of zero are those of this machine.
///
/// Threads: any, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_limits_get(
    limits: EdgepackLimits,
    limit: u32,
    value: Out<u64>,
    error: Out<EdgepackError>,
) -> EdgepackCode {
    entry::call(error, || {
        let limits = self::limits(limits)?;
        let found = match limit {
            0 => limits.visits,
            1 => limits.findings as u64,
            2 => limits.arena_bytes,
            3 => limits.segment_bytes,
            4 => limits.method_bytes,
            5 => limits.memory_bytes,
            6 => limits.instructions,
            other => return Err(Failure::missing("limit", other)),
        };
        value.write(found, "value")
    })
}

/// Closes limits. What was opened or loaded with them is as it was. Zero is closed at any time.
///
/// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if they were closed before.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_limits_close(limits: EdgepackLimits) -> EdgepackCode {
    entry::call(Out::NULL, || close(limits))
}
