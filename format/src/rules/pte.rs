//! Rules for programs. H header, S structure, P program and plans, D segments and the data in them, V values,
//! T tensors, M planned memory, C code, B delegates, O operators, K kernel calls against schemas.

use crate::finding::ErrorCode::*;

catalogue! {
    // Delegates.
    DELEGATE_ID = "PTE-B01", Error, Some(InvalidProgram), "A delegate names its backend",
        "The id selects the backend at load; without one there is nothing to hand the payload to. Caused by hand-made files.";
    DELEGATE_PROCESSED = "PTE-B02", Error, Some(InvalidProgram), "A delegate says where its payload is",
        "`processed` is absent, so the backend would get nothing. Caused by hand-made or damaged files.";
    DELEGATE_LOCATION = "PTE-B03", Error, Some(Internal), "A payload is inline or in a segment",
        "`processed.location` holds a number that names neither. Either the file is damaged or its schema is newer.";
    DELEGATE_INLINE_INDEX = "PTE-B04", Error, Some(NotFound), "An inline payload exists",
        "`processed.index` is beyond `backend_delegate_data`, or that list is absent. Caused by tools that drop blobs \
         without renumbering.";
    DELEGATE_SEGMENT_INDEX = "PTE-B05", Error, Some(NotFound), "A payload's segment exists",
        "`processed.index` is beyond `segments`, or that list is absent. Caused by tools that drop segments without \
         renumbering.";
    DELEGATE_INLINE_DATA = "PTE-B06", Error, Some(InvalidProgram), "An inline payload has data",
        "The entry that a delegate refers to has no `data`. An empty payload is written as an empty vector.";
    COMPILE_SPEC = "PTE-B07", Error, Some(InvalidProgram), "A compile spec has a key and a value",
        "Backends read both without asking. An option without bytes is written with an empty value.";
    DELEGATE_UNREFERENCED = "PTE-B08", Info, None, "Every inline payload is used",
        "No delegate refers to this blob: it is dead weight, and the reference's own tools refuse to re-serialise the file.";

    // Code.
    CHAINS = "PTE-C01", Error, Some(InvalidProgram), "A plan has a chain",
        "`chains` is absent or empty. Even a method that only returns constants has one chain, with no instructions.";
    INSTRUCTIONS = "PTE-C02", Error, Some(InvalidProgram), "A chain has an instruction list",
        "`instructions` is absent. A chain that does nothing has an empty list.";
    INSTRUCTION_KIND = "PTE-C03", Error, Some(InvalidProgram), "An instruction is of a known kind",
        "The tag is 0 (none) or one that no schema so far defines, or the tag has no table. A newer exporter or damage.";
    OPERATOR_INDEX = "PTE-C04", Error, Some(InvalidProgram), "A kernel call names an operator of the plan",
        "`op_index` is negative or beyond `operators`. Caused by tools that drop operators without renumbering.";
    DELEGATE_INDEX = "PTE-C05", Error, Some(Internal), "A delegate call names a delegate of the plan",
        "`delegate_index` is negative or beyond `delegates`. The reference notices only when the instruction runs.";
    ARGS = "PTE-C06", Error, Some(InvalidProgram), "A call has an argument list",
        "`args` is absent. A call without arguments has an empty list.";
    ARG_INDEX = "PTE-C07", Error, Some(InvalidProgram), "Instructions refer to values of the plan",
        "A value index of an instruction is negative or beyond `values`. Unchecked it would be an arbitrary read or write.";
    JUMP_TARGET = "PTE-C08", Error, Some(InvalidProgram), "A jump lands inside its chain or at its end",
        "The destination is negative or greater than the number of instructions. The reference ends the chain silently.";
    JUMP_CONDITION = "PTE-C09", Error, Some(InvalidProgram), "A jump's condition is a bool",
        "The condition is neither a Bool value nor a tensor of bool, nor a number that a call is given last, which may make a bool of it. The \
         reference fails when it runs.";
    JUMP_SELF = "PTE-C10", Warning, Some(InvalidProgram), "A jump does not target itself",
        "Once the condition is false nothing can make it true again: the method would spin until the instruction limit.";
    FREE_KIND = "PTE-C11", Error, Some(InvalidType), "Only tensors are freed",
        "A FreeCall names a value that is not a tensor. The reference fails when it runs.";
    MOVE_KIND = "PTE-C12", Warning, Some(InvalidType), "A move joins values of one kind",
        "A value's kind is relied upon by lists and kernels, so runtimes may refuse a move that would change it.";
    CHAIN_IO = "PTE-C13", Error, Some(InvalidProgram), "A chain's inputs and outputs are values of the plan",
        "An index in `Chain.inputs` or `Chain.outputs` is out of range. Exporters leave both lists empty.";
    STACKTRACE = "PTE-C14", Warning, None, "There is one stack trace per instruction",
        "`stacktrace` has another length than `instructions`, so frames would be shown for the wrong instruction.";

    // Segments and data.
    SEGMENT_RANGE = "PTE-D01", Error, Some(InvalidProgram), "A segment is inside the segment area",
        "Offset and size overflow, or reach beyond what the header declares or the file holds. Caused by truncation or by \
         tools that move segments.";
    SEGMENT_ORDER = "PTE-D02", Error, Some(InvalidProgram), "Segments are sorted and do not overlap",
        "Two segments would share bytes, so changing one would change the other. Empty segments may share an offset.";
    SEGMENT_BASE = "PTE-D03", Error, Some(InvalidProgram), "Segments need a segment area",
        "The file lists segments with bytes but has no extended header, or one whose base is 0: their bytes would be read \
         from the start of the file.";
    SEGMENT_UNUSED = "PTE-D04", Info, None, "Every segment is used",
        "Nothing in the program refers to this segment. It is dead weight, unless a tool finds it by index.";
    SEGMENT_ALIGNMENT = "PTE-D05", Info, None, "Segments start at multiples of 16 of the file",
        "Mapped data would be less aligned than kernels like it; loaders then copy. Caused by a small segment alignment.";
    CONSTANTS_TWICE = "PTE-D06", Error, Some(InvalidProgram), "Constants are stored in one form",
        "Both `constant_buffer` and `constant_segment` are in use, so an index has two meanings.";
    CONSTANTS_INLINE = "PTE-D07", Warning, Some(InvalidProgram), "Constants are in a segment",
        "The constants are inside the flatbuffer, as exporters before September 2024 wrote them. They are read here; stock \
         builds of the runtime refuse such files. Re-export or convert.";
    SUBSEGMENT_INDEX = "PTE-D08", Error, Some(InvalidProgram), "Offsets name a segment of the program",
        "`segment_index` is beyond `segments`, or that list is absent.";
    SUBSEGMENT_FIRST = "PTE-D09", Error, Some(InvalidProgram), "Entry 0 of a list of offsets is reserved and 0",
        "Index 0 means \"no data\"; a list whose first offset is not 0 was not written by an exporter.";
    SUBSEGMENT_ORDER = "PTE-D10", Error, Some(InvalidProgram), "Offsets ascend",
        "A buffer ends where the next begins, so offsets never decrease. Caused by hand-made files.";
    SUBSEGMENT_RANGE = "PTE-D11", Error, Some(InvalidProgram), "Offsets lie inside their segment",
        "An offset is greater than the size of its segment.";
    MUTABLE_SEGMENTS = "PTE-D12", Warning, None, "There is at most one list of initial values",
        "The reference runtime reads entry 0 of `mutable_data_segments` only, so tensors that mean another entry start with \
         wrong values there. They are honoured here.";
    MUTABLE_SHARED = "PTE-D13", Error, Some(InvalidProgram), "Initial values of different lists are in different segments",
        "Two entries of `mutable_data_segments` name the same segment.";
    NAMED_KEY = "PTE-D14", Error, Some(InvalidProgram), "Named data has a key",
        "`key` is absent, so nothing can ask for it. Caused by hand-made files.";
    NAMED_DUPLICATE = "PTE-D15", Error, Some(InvalidProgram), "Keys of named data are unique",
        "Two entries have the same key; which of them a backend gets is undefined.";
    NAMED_SEGMENT = "PTE-D16", Error, Some(InvalidProgram), "Named data refers to a segment of the program",
        "`segment_index` is beyond `segments`, or that list is absent.";
    CONSTANT_INDEX = "PTE-D17", Error, Some(InvalidProgram), "A constant tensor's data exist",
        "`data_buffer_idx` is beyond the program's constants.";
    CONSTANT_RANGE = "PTE-D18", Error, Some(InvalidProgram), "A constant tensor fits its data",
        "From its offset to the end of the segment there are fewer bytes than sizes and element type ask for. Unchecked it \
         would be an out-of-bounds read.";
    CONSTANT_ALIGNMENT = "PTE-D19", Error, Some(InvalidProgram), "A constant is aligned to its element",
        "The offset is not a multiple of the element size, so the data cannot be used in place. Exporters align to 16.";
    INITIAL_INDEX = "PTE-D20", Error, Some(NotFound), "A tensor's initial value exists",
        "A planned tensor asks for an initial value that its list in `mutable_data_segments` does not have.";
    INITIAL_RANGE = "PTE-D21", Error, Some(InvalidProgram), "An initial value fits its data",
        "From its offset to the end of the segment there are fewer bytes than the tensor has.";
    INITIAL_LIST = "PTE-D22", Warning, None, "Initial values come from entry 0",
        "`mutable_data_segments_idx` is not 0. The reference runtime ignores it and reads entry 0; here it is honoured.";

    // Header.
    SHORT = "PTE-H01", Error, Some(InvalidArgument), "A program has at least 64 bytes",
        "Loaders read the first 64 bytes before anything else. The file is empty, truncated, or no program.";
    IDENTIFIER = "PTE-H02", Error, Some(InvalidProgram), "Bytes 4 to 8 are ET12",
        "Another identifier means another format; `ET` with other digits is a program of an incompatible generation.";
    HEADER_LENGTH = "PTE-H03", Error, Some(InvalidProgram), "The extended header is at least 24 bytes long",
        "`eh00` announces a header whose length is too small to hold its fields. Caused by damage to the first bytes.";
    PROGRAM_SIZE = "PTE-H04", Error, Some(InvalidProgram), "The flatbuffer is inside the file",
        "`program_size` is too small to hold a program, greater than the file, or greater than a flatbuffer can be (2 GiB). \
         Usually a truncated download.";
    BASE = "PTE-H05", Error, Some(InvalidProgram), "Segments start behind the flatbuffer",
        "`segment_base_offset` points into the program, behind the end of the file, or is 0 although the header declares \
         segment data: weights would be read from the wrong place.";
    TRUNCATED = "PTE-H06", Error, Some(InvalidProgram), "The file holds all declared segment data",
        "Base and `segment_data_size` reach beyond the end of the file, or overflow. Usually a truncated download.";
    TRAILING = "PTE-H07", Info, None, "Nothing follows the last segment",
        "There are bytes behind the declared end. Loaders ignore them.";
    HEADER_OLD = "PTE-H08", Info, None, "The header declares the size of the segment data",
        "A header of fewer than 32 bytes, as exporters before September 2025 wrote it, does not say how long the file is; \
         a truncated copy is noticed by its segments only.";

    // Kernel calls against the schemas of their operators.
    CALL_LENGTH = "PTE-K01", Error, Some(InvalidProgram), "A kernel call has the values its operator takes",
        "A call lists every argument of the schema, defaults and outs included, and then what is returned. Caused by an \
         exporter and an operator of different versions.";
    CALL_KIND = "PTE-K02", Error, Some(InvalidType), "The values of a kernel call are of the kinds its operator takes",
        "An argument is, say, a list where the schema has a number. No kernel can make sense of it.";
    CALL_CONSTANT = "PTE-K03", Error, Some(InvalidProgram), "Operators do not write to constants",
        "The operator would write to data of the file or of a data file, which other runs and methods read.";
    OPERATOR_UNKNOWN = "PTE-K04", Info, Some(OperatorMissing), "The operator's schema is known",
        "Calls of this operator cannot be checked. It is a custom one, or newer than this catalogue.";
    OPERATOR_TWICE = "PTE-K05", Info, None, "A plan lists an operator once",
        "Two entries name the same operator. It is resolved twice; nothing else follows from it.";

    // Planned memory.
    ARENA_SIZES = "PTE-M01", Error, Some(InvalidProgram), "A plan lists its planned memory",
        "`non_const_buffer_sizes` is absent. A plan without planned memory has the one reserved entry.";
    ARENA_NEGATIVE = "PTE-M02", Error, Some(InvalidProgram), "Planned memory has no negative size",
        "A size below zero would be taken for an enormous allocation.";
    ARENA_RESERVED = "PTE-M03", Info, None, "Entry 0 of the planned memory is reserved and 0",
        "Runtimes ignore it, whatever it says.";
    ARENA_LIMIT = "PTE-M04", Error, Some(MemoryAllocationFailed), "Planned memory stays within the limits",
        "All planned memory of the method together is more than the limits of this reader allow. Raise `arena_bytes` if the \
         file is trusted.";
    ARENA_ID = "PTE-M05", Error, Some(InvalidArgument), "A planned tensor names an existing memory",
        "`memory_id` is 0, which is reserved, or beyond `non_const_buffer_sizes`.";
    ARENA_RANGE = "PTE-M06", Error, Some(MemoryAllocationFailed), "A planned tensor is inside its memory",
        "Offset and byte count overflow or reach beyond the size of the memory. Unchecked it would be an out-of-bounds write.";
    ARENA_ALIGNMENT = "PTE-M07", Error, Some(InvalidProgram), "A planned tensor is aligned to its element",
        "The offset is not a multiple of the element size. Exporters align to 16; only hand-made plans break this.";
    DEVICE_BUFFER = "PTE-M08", Error, Some(InvalidProgram), "Devices are given for existing memory",
        "`buffer_idx` is 0 or less, or beyond `non_const_buffer_sizes`.";
    DEVICE_DUPLICATE = "PTE-M09", Error, Some(InvalidProgram), "A memory is on one device",
        "Two entries of `non_const_buffer_device` name the same memory.";
    DEVICE_TYPE = "PTE-M10", Warning, Some(NotSupported), "Devices are of a known kind",
        "The number names no device that this schema knows. The program is valid but cannot run here.";

    // Operators.
    OPERATOR_NAME = "PTE-O01", Error, Some(InvalidProgram), "An operator has a name",
        "`name` is absent. The overload may be: it is then empty.";
    OPERATOR_LONG = "PTE-O02", Error, Some(Internal), "An operator's full name has at most 99 bytes",
        "Name, dot and overload do not fit the buffer in which the reference looks kernels up.";

    // Program and plans.
    VERSION = "PTE-P01", Error, Some(InvalidProgram), "The schema version is 0",
        "A higher number announces a change that this reader would misread. The exporter is newer.";
    PLANS = "PTE-P02", Error, Some(InvalidProgram), "A program lists its methods",
        "`execution_plan` is absent. A program without methods has an empty list.";
    PLANS_EMPTY = "PTE-P03", Warning, None, "A program has a method",
        "The list of methods is empty: there is nothing to run.";
    PLAN_NAME = "PTE-P04", Error, Some(InvalidProgram), "A method has a name",
        "`name` is absent, so the method can never be found.";
    PLAN_DUPLICATE = "PTE-P05", Error, Some(InvalidProgram), "Method names are unique",
        "Two methods have the same name. The reference finds the first and never the second.";
    VALUES = "PTE-P06", Error, Some(InvalidProgram), "A plan lists its values",
        "`values` is absent. A method without values has an empty list.";
    INPUTS = "PTE-P07", Error, Some(InvalidProgram), "A plan lists its inputs and outputs",
        "`inputs` or `outputs` is absent. A method without inputs has an empty list.";
    IO_INDEX = "PTE-P08", Error, Some(InvalidProgram), "Inputs and outputs are values of the plan",
        "An index is negative or beyond `values`. Caused by edits that drop values without renumbering.";
    INPUT_CONSTANT = "PTE-P09", Error, Some(InvalidProgram), "An input is not a constant",
        "Setting the input would overwrite the constant for every later run and every other method.";
    INPUT_KIND = "PTE-P10", Warning, Some(InvalidArgument), "An input can be set",
        "The input is a list. Callers can set tensors, numbers, bools and strings only.";
    INPUT_TWICE = "PTE-P11", Warning, None, "Each input is its own value",
        "One value is listed twice; the later argument overwrites the earlier.";
    DELEGATES = "PTE-P12", Error, Some(InvalidProgram), "A plan lists its delegates",
        "`delegates` is absent. A plan without delegates has an empty list.";

    // Structure.
    MALFORMED = "PTE-S01", Error, Some(InvalidProgram), "Tables, vectors and strings lie inside the flatbuffer",
        "An offset, a vtable, a length or a terminator is not what a flatbuffer has at this place. Damage, truncation, or \
         another format under the same identifier.";
    MISALIGNED = "PTE-S02", Error, Some(InvalidProgram), "Numbers, vectors and tables are aligned",
        "Readers that view the bytes in place need every number at a multiple of its size, and blobs at multiples of 16.";
    TEXT = "PTE-S03", Error, Some(InvalidProgram), "Text is UTF-8",
        "A name, key or path holds bytes that are no UTF-8. Damage, or a writer that put data into a string.";
    LIMITS = "PTE-S04", Error, Some(OutOfResources), "The file stays within the reader's limits",
        "Tables that are shared by many parents are visited for each of them, so a small file can mean unbounded work. Raise \
         `visits` if the file is trusted.";
    MANY_TABLES = "PTE-S05", Warning, Some(InvalidProgram), "The flatbuffer has at most a million tables",
        "The reference verifier gives up beyond that, so the program loads there without verification only.";

    // Tensors.
    SCALAR_TYPE = "PTE-T01", Error, Some(InvalidProgram), "A tensor's element type is known",
        "The number names no element type; 0 to 29 do. The exporter is newer, or the file damaged.";
    STORAGE_OFFSET = "PTE-T02", Error, Some(NotSupported), "A tensor has no storage offset",
        "`storage_offset` is not 0. No runtime implements views into another tensor's storage this way.";
    SIZES = "PTE-T03", Error, Some(InvalidProgram), "A tensor has sizes and a dim order",
        "`sizes` or `dim_order` is absent. A scalar tensor has empty ones.";
    RANK = "PTE-T04", Error, Some(InvalidProgram), "A tensor has at most 16 dimensions",
        "Runtimes keep shapes in arrays of 16.";
    DIM_ORDER_LENGTH = "PTE-T05", Error, Some(InvalidProgram), "Sizes and dim order have one length",
        "Each dimension has one size and one place in memory order.";
    DIM_ORDER = "PTE-T06", Error, Some(Internal), "A dim order is a permutation",
        "A dimension is missing, listed twice or out of range, so strides would be undefined.";
    NEGATIVE_SIZE = "PTE-T07", Error, Some(InvalidProgram), "Sizes are not negative",
        "A dynamic dimension is written with its upper bound, not as -1.";
    OVERFLOW = "PTE-T08", Error, Some(InvalidProgram), "A tensor's byte count fits 63 bits",
        "The product of sizes and element size overflows. Inputs of dynamic shape may declare such bounds as long as nothing \
         is stored or planned for them; then the sizes given at run time count.";
    DYNAMISM = "PTE-T09", Error, Some(InvalidProgram), "A tensor's dynamism is known",
        "`shape_dynamism` names none of static, bound and unbound.";
    UNBOUND = "PTE-T10", Warning, Some(NotSupported), "A tensor's shape has a bound",
        "Tensors without an upper bound cannot be planned. They have the memory of the sizes in the file, and larger ones are \
         refused when the program runs.";
    LOCATION = "PTE-T11", Error, Some(InvalidProgram), "A tensor's data are in a segment or external",
        "`location` names neither.";
    EXTERNAL_NAME = "PTE-T12", Error, Some(InvalidExternalData), "An external tensor has a name",
        "The fully qualified name is the key under which the data file is asked.";
    TENSOR_DEVICE = "PTE-T13", Warning, Some(NotSupported), "A tensor's device is known and that of its memory",
        "The number names no known device, or the planned memory of the tensor is on another one.";

    // Values.
    VALUE_KIND = "PTE-V01", Error, Some(InvalidProgram), "A value is of a known kind",
        "The tag is 0 (none) or one that no schema so far defines. `None` is written as Null. A newer exporter or damage.";
    VALUE_PAYLOAD = "PTE-V02", Error, Some(InvalidProgram), "A value has content",
        "The tag has no table, or a string or list has no content. An empty list is written as an empty vector.";
    LIST_INDEX = "PTE-V03", Error, Some(InvalidProgram), "List items are values of the plan",
        "An item is out of range. Only an optional tensor list may hold -1, for None.";
    LIST_KIND = "PTE-V04", Error, Some(InvalidType), "List items are of the list's kind",
        "An integer list refers to Int values, a tensor list to tensors, an optional tensor list to tensors or Null.";
    LIST_FORWARD = "PTE-V05", Error, Some(InvalidType), "Tensor lists refer to earlier values",
        "Runtimes build values in order, so a tensor list can only hold what comes before it.";
}
