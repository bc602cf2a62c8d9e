//! Rules for traces. H the file's head, S structure, E events, V recorded values.

use crate::finding::ErrorCode::*;

catalogue! {
    // Events.
    EVENT = "TRC-E01", Error, Some(InvalidArgument), "An event is exactly one of profile, allocation and debug",
        "None or several of the three are set, so it cannot be said what happened.";
    ALLOCATOR = "TRC-E02", Error, Some(InvalidArgument), "An allocation names an allocator of its block",
        "`allocator_id` counts from 1 in the block's list; 0 is reserved. Caused by tools that cut blocks apart.";
    DELEGATE_ID = "TRC-E03", Error, Some(InvalidArgument), "A delegate's place is a number or a text",
        "Both are set. Recorders take one or the other, and refuse both.";
    TIMES = "TRC-E04", Warning, None, "An event ends after it starts",
        "`end_time` is before `start_time`. The clock ran backwards, or the event was never ended.";
    DEBUG_ENTRY = "TRC-E05", Warning, None, "A debug event has a value",
        "`debug_entry` is absent: the event says where, but not what.";

    // Head.
    IDENTIFIER = "TRC-H01", Error, Some(NotSupported), "Bytes 8 to 12 are ED00",
        "Another identifier means another format. At byte 4 it would be a trace without its length in front.";
    LENGTH = "TRC-H02", Error, Some(InvalidArgument), "The length in front is that of the file",
        "The first four bytes say how many follow; the file has fewer. Usually a recording that was cut off.";
    TRAILING = "TRC-H03", Info, None, "Nothing follows the trace",
        "The file is longer than the length in front says. Readers ignore the rest.";
    VERSION = "TRC-H04", Warning, None, "The version is 0",
        "A newer version may mean its fields differently.";

    // Structure.
    MALFORMED = "TRC-S01", Error, Some(InvalidArgument), "Tables, vectors and strings lie inside the file",
        "An offset, a vtable, a length or a terminator is wrong. The file is damaged, truncated or hostile.";
    MISALIGNED = "TRC-S02", Error, Some(InvalidArgument), "Values are aligned to their size",
        "A number, table or vector starts where its type may not, counted from the length in front.";
    TEXT = "TRC-S03", Error, Some(InvalidArgument), "Names are UTF-8",
        "The format's text is UTF-8 by definition.";
    LIMITS = "TRC-S04", Error, Some(OutOfResources), "Reading the file stays within the limits",
        "The file expands beyond what the limits of this reader allow. Raise `visits` if the file is trusted.";

    // Recorded values.
    VALUE = "TRC-V01", Error, Some(InvalidArgument), "A value holds what it says it is",
        "`val` names a kind whose sub-table is absent.";
    VALUE_EXTRA = "TRC-V02", Warning, None, "A value holds nothing else",
        "A sub-table of another kind than `val` is set; readers ignore it.";
    VALUE_KIND = "TRC-V03", Warning, None, "A value is of a known kind",
        "The number names no kind that this schema knows.";
    TENSOR_PARTS = "TRC-V04", Error, Some(InvalidArgument), "A tensor has as many strides as sizes",
        "One of the lists is absent, or they differ in length, so its elements cannot be found.";
    TENSOR = "TRC-V05", Error, Some(InvalidArgument), "Element type, sizes and strides describe a tensor",
        "The element type is unknown, a size or stride is negative, or the byte count overflows.";
    TENSOR_OFFSET = "TRC-V06", Error, Some(InvalidArgument), "A tensor's bytes are in the debug buffer, or it has none",
        "The offset is negative but not -1.";
    TENSOR_ALIGNMENT = "TRC-V07", Info, None, "Bytes in the debug buffer start at multiples of 64",
        "Recorders align every tensor; another offset was made by a tool.";
}
