//! Rules for data files. H header, S structure, G generations, D segments, E entries.

use crate::finding::ErrorCode::*;

catalogue! {
    // Segments.
    SEGMENTS = "PTD-D01", Error, Some(InvalidExternalData), "A data file lists its segments",
        "`segments` is absent. A file without data has an empty list. Caused by hand-made or damaged files.";
    SEGMENT_RANGE = "PTD-D02", Error, Some(InvalidExternalData), "A segment is inside the segment area",
        "Offset and size overflow, or reach beyond what the header declares or the file holds. Caused by truncation or by \
         tools that move segments.";
    SEGMENT_ORDER = "PTD-D03", Error, Some(InvalidExternalData), "Segments are sorted and do not overlap",
        "Two segments would share bytes, so changing one would change the other. Keys with equal data share one segment \
         instead; empty segments may share an offset.";
    SEGMENT_ALIGNMENT = "PTD-D04", Info, None, "Segments start at multiples of 16 of the file",
        "Mapped data would be less aligned than kernels like it; loaders then copy. Caused by a small segment alignment.";
    SEGMENT_UNUSED = "PTD-D05", Info, None, "Every segment is used",
        "No entry refers to this segment: its bytes are dead weight.";

    // Entries.
    ENTRIES = "PTD-E01", Error, Some(InvalidExternalData), "A data file lists its entries",
        "`named_data` is absent. A file without entries has an empty list. Caused by hand-made or damaged files.";
    KEY = "PTD-E02", Error, Some(InvalidExternalData), "An entry has a key",
        "The key is absent, so nothing can ask for the entry. Caused by hand-made or damaged files.";
    KEY_DUPLICATE = "PTD-E03", Error, Some(InvalidExternalData), "Keys are unique",
        "Two entries have the same key. The reference takes the first silently, other readers may take another.";
    ENTRY_SEGMENT = "PTD-E04", Error, Some(InvalidExternalData), "An entry refers to a segment of the file",
        "`segment_index` is beyond `segments`. Caused by tools that drop segments without renumbering.";
    LAYOUT_PARTS = "PTD-E05", Error, Some(InvalidExternalData), "A tensor layout has sizes and a dim order",
        "One of the two lists is absent. A scalar tensor has two empty lists; data that is not a tensor has no layout at all.";
    LAYOUT = "PTD-E06", Error, Some(InvalidArgument), "A tensor layout describes a tensor",
        "The element type is unknown, the dim order is not a permutation as long as the sizes, a size is negative, there are \
         more than 16 dimensions, or the byte count overflows.";
    LAYOUT_LONG = "PTD-E07", Error, Some(InvalidExternalData), "A tensor fits its data",
        "The segment has fewer bytes than sizes and element type ask for. Unchecked it would be an out-of-bounds read.";
    LAYOUT_SHORT = "PTD-E08", Info, None, "A tensor uses all of its data",
        "The segment has more bytes than sizes and element type ask for; the rest is never read as part of the tensor.";
    TENSOR_RANGE = "PTD-E09", Error, Some(InvalidExternalData), "A tensor of an older file is inside its segment",
        "In files from before June 2025 several tensors share a segment. Offset and byte count of this one overflow or reach \
         beyond the segment.";

    // Generations.
    LEGACY_REFUSED = "PTD-G01", Error, Some(InvalidExternalData), "The file is of the current generation",
        "Exporters before June 2025 wrote other fields under the same identifier and version; today's runtimes would take a \
         number for an offset. Re-export the file, or ask for older generations to be read.";
    LEGACY = "PTD-G02", Info, None, "The file is of an older generation",
        "It was written before June 2025 and is read as such because that was asked for. Today's runtimes cannot read it.";
    UNIDENTIFIED = "PTD-G03", Info, None, "The file says that it is FlatData",
        "Bytes 4 to 8 hold no identifier that names a data file. It is read as FlatData because that was asked for.";
    VERSION = "PTD-G04", Error, Some(InvalidExternalData), "The version is 0",
        "A newer version may mean its fields differently, so the file is not read. Update the reader, or export for this one.";

    // Header.
    SHORT = "PTD-H01", Error, Some(InvalidArgument), "A data file has at least 64 bytes",
        "Loaders read the first 64 bytes before anything else. The file is empty, truncated, or no data file.";
    IDENTIFIER = "PTD-H02", Error, Some(InvalidExternalData), "Bytes 4 to 8 are FT01 or FD01",
        "Another identifier means another format.";
    HEADER = "PTD-H03", Error, Some(InvalidExternalData), "A data file has an extended header",
        "`FH01` is not at byte 8, or the header is shorter than its 40 bytes. Files from before 22 January 2025 have none; \
         re-export them.";
    FLATBUFFER_OFFSET = "PTD-H04", Error, Some(InvalidExternalData), "The flatbuffer is shifted by at least the header",
        "`flatbuffer_offset` is smaller than the header that was inserted, so header and flatbuffer would overlap.";
    REGION = "PTD-H05", Error, Some(InvalidExternalData), "The flatbuffer is inside the file",
        "`flatbuffer_offset` and `flatbuffer_size` overflow, reach beyond the file or beyond what a flatbuffer can be \
         (2 GiB), or leave no room for a root table. Usually a truncated download.";
    ROOT = "PTD-H06", Error, Some(InvalidExternalData), "The root table is behind the header",
        "The root offset points into the file's first bytes or at its own header, or outside the flatbuffer.";
    BASE = "PTD-H07", Error, Some(InvalidExternalData), "Segments start behind the flatbuffer",
        "`segment_base_offset` points into the header or the flatbuffer although there is segment data: tensors would be \
         read from the wrong place.";
    TRUNCATED = "PTD-H08", Error, Some(InvalidExternalData), "The file holds all declared segment data",
        "`segment_base_offset` and `segment_data_size` reach beyond the end of the file, or overflow. Usually a truncated \
         download.";
    TRAILING = "PTD-H09", Info, None, "Nothing follows the last segment",
        "There are bytes behind the declared end. Loaders ignore them.";

    // Structure.
    MALFORMED = "PTD-S01", Error, Some(InvalidExternalData), "Tables, vectors and strings lie inside the flatbuffer",
        "An offset, a vtable, a length or a terminator is wrong. Stock runtimes do not verify data files and read out of \
         bounds here. The file is damaged or hostile.";
    MISALIGNED = "PTD-S02", Error, Some(InvalidExternalData), "Values are aligned to their size",
        "A number, table or vector starts where its type may not. Caused by a header whose padding does not keep alignment, \
         or by writers that ignore it.";
    TEXT = "PTD-S03", Error, Some(InvalidExternalData), "Keys are UTF-8",
        "The format's text is UTF-8 by definition.";
    LIMITS = "PTD-S04", Error, Some(OutOfResources), "Reading the file stays within the limits",
        "Shared sub-tables make the file expand beyond what the limits of this reader allow. Raise `visits` if the file is \
         trusted.";

    // A program and its data files.
    PAIR_MISSING = "PTD-X01", Error, Some(NotFound), "A program's external tensors are in its data files",
        "The program looks a tensor up by name and none of the data files given has that key. A data file is missing, or is \
         of another export.";
    PAIR_LAYOUT = "PTD-X02", Error, Some(InvalidExternalData), "An external tensor looks as the program says",
        "Element type, sizes and dim order of the entry and of the tensor are equal. Usually the data file is of another \
         export or of another model.";
    PAIR_DUPLICATE = "PTD-X03", Error, Some(InvalidArgument), "A key is in one place only",
        "Two data files, or a data file and the program, have the same key; which of them counts would be an accident.";
}
