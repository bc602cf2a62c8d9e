//! Rules for Edge TPU packages. E executables, F fields of instructions, H transfer hints, L layers, O output layouts,
//! P package, S structure.

catalogue! {
    // Executables.
    EXECUTABLES = "DWN-E01", Error, None, "A package has executables",
        "The list of executables is absent or empty. The driver answers `No executables provided`.";
    BATCH = "DWN-E02", Error, None, "The batch size is at least 1",
        "`batch_size` is zero, negative or absent; the driver refuses the package.";
    KIND = "DWN-E03", Error, None, "The kind of an executable is known",
        "An executable is complete, caches parameters, or runs with cached ones. The driver takes a single executable of any \
         other kind and runs it as if it were complete.";
    KIND_DUPLICATE = "DWN-E04", Error, None, "Executables of a package are of different kinds",
        "Two executables are of one kind; the driver refuses the package.";
    COMBINATION = "DWN-E05", Error, None, "Executables of a package belong together",
        "A package holds one executable, or a pair of one that caches parameters and one that runs with them, or one of each \
         kind. The driver refuses everything else.";
    CACHING_ALONE = "DWN-E06", Warning, None, "Parameters are cached for an executable",
        "The only executable caches parameters, and none is there to use them. The driver runs it as if it stood alone.";
    TOKEN = "DWN-E07", Error, None, "Cached parameters have a token",
        "`parameter_caching_token` is 0, which means that the parameters cannot stay in on-chip memory. The driver accepts the \
         package and fails when the first request is submitted.";
    TOKENS = "DWN-E08", Error, None, "A pair of executables has one token",
        "The executable that caches parameters has another `parameter_caching_token` than the one that uses them, so they were \
         not made for each other. The driver does not compare them.";
    SCRATCH = "DWN-E09", Error, None, "The scratch size is not negative",
        "`scratch_size_bytes` is negative. No buffer has that size.";
    CHUNKS = "DWN-E10", Error, None, "An executable has instructions",
        "`instruction_bitstreams` is absent or empty; the driver refuses every request.";
    CHUNK = "DWN-E11", Error, None, "An instruction chunk is not empty",
        "The bitstream of a chunk is absent or has no bytes; the driver refuses every request.";
    CHUNK_LENGTH = "DWN-E12", Warning, None, "An instruction chunk is a number of instructions",
        "Instructions have 16 bytes; the chunk has a rest. No compiler writes that.";
    CACHING_LAYERS = "DWN-E13", Warning, None, "What caches parameters has no layers",
        "An executable that only loads parameters has inputs or outputs, which nothing feeds or reads.";
    PAGES = "DWN-E14", Info, None, "Parameters are a number of 64-byte rows at a page",
        "Compilers put parameters at multiples of 4096 bytes and pad them to 64, so that they can be mapped for the device \
         without a copy. The driver works all the same.";
    NARROW_MEMORY = "DWN-E15", Warning, None, "Tile memory is at most that of a tile",
        "`used_narrow_memory_bytes_per_tile` is negative or above the 196608 bytes that each tile of the chip has.";
    RUNNING_SEVERAL = "DWN-E16", Warning, None, "One executable runs with the cached parameters",
        "Several executables run with the parameters that one caches. Each can be taken by its index; the public driver \
         refuses the package.";

    // Fields.
    FIELD_META = "DWN-F01", Error, None, "A field says what goes into it",
        "`meta` is absent, so nothing says which address the bits are to hold.";
    FIELD_DESCRIPTION = "DWN-F02", Error, None, "A field is about a known kind of buffer",
        "`desc` is none of output, input, parameter and scratch. The driver never fills the field in.";
    FIELD_POSITION = "DWN-F03", Error, None, "A field takes the lower or the upper half of an address",
        "`position` is neither 0 nor 1; an address has two halves.";
    FIELD_RANGE = "DWN-F04", Error, None, "A field is inside its chunk",
        "`offset_bit` is negative, or fewer than 32 bits are behind it. Linking would change something else.";
    FIELD_BATCH = "DWN-F05", Error, None, "A field's batch entry exists",
        "`batch` is outside the batch size, or not 0 for scratch, of which there is one.";
    FIELD_NAME = "DWN-F06", Error, None, "A field for an activation has a name",
        "`name` is absent although the field takes the address of an input or output, which are found by name.";
    FIELD_LAYER = "DWN-F07", Error, None, "A field names a layer",
        "No input or output of the executable has the field's name, so it would never be filled in.";
    FIELD_OVERLAP = "DWN-F08", Error, None, "Fields do not overlap",
        "Two fields share bits, so what an instruction says would depend on the order of filling them in.";
    FIELD_PHASE = "DWN-F09", Info, None, "A field is the immediate of an instruction",
        "Compilers write addresses to bits 70 to 101 of an instruction of 128 bits. This field is elsewhere.";
    FIELD_PAIR = "DWN-F10", Info, None, "Fields come in pairs",
        "Both halves of an address are written by neighbouring instructions. This field has no other half.";
    FIELD_PLACEHOLDER = "DWN-F11", Info, None, "Fields are zero in the file",
        "The bits that an address goes into are not zero. The instructions may have been linked before.";

    // Hints.
    HINTS = "DWN-H01", Error, None, "An executable lists its transfers",
        "`dma_hints` or its list is absent. Where transfers are made by hints, as over USB, nothing would be sent.";
    HINT = "DWN-H02", Error, None, "A hint says what happens",
        "The hint is of no known kind, or its value is absent, so the list of transfers has a hole.";
    HINT_META = "DWN-H03", Error, None, "A transfer says which buffer",
        "`meta` is absent, so there is a range but no buffer.";
    HINT_DESCRIPTION = "DWN-H04", Error, None, "A transfer is about a known kind of buffer",
        "`desc` is none of output, input, parameter and scratch. The driver drops the transfer.";
    HINT_LAYER = "DWN-H05", Error, None, "A transfer names a layer",
        "The name is absent, or no input or output of the executable has it.";
    HINT_BATCH = "DWN-H06", Error, None, "A transfer's batch entry exists",
        "`batch` is outside the batch size: there is no such buffer.";
    HINT_RANGE = "DWN-H07", Error, None, "A transfer is inside its buffer",
        "Offset or size is negative, or the range ends behind the padded buffer. Inputs \
         may run to the end of their page.";
    HINT_EMPTY = "DWN-H08", Warning, None, "A transfer has bytes",
        "`size_in_bytes` is 0. No compiler writes that.";
    HINT_CHUNK = "DWN-H09", Error, None, "An instruction transfer names a chunk",
        "`instruction_chunk_index` is outside the list of chunks, so there is nothing to send.";
    HINT_INTERRUPT = "DWN-H10", Error, None, "An interrupt is one of four",
        "The device has interrupts 0 to 3.";
    HINT_SCRATCH = "DWN-H11", Error, None, "Scratch transfers need scratch memory",
        "The executable has no scratch memory, so there is no such buffer.";
    HINT_FENCE = "DWN-H12", Warning, None, "A fence is behind a transfer",
        "A fence comes first or right behind another one. The driver clears a fence when a transfer completes, so it would \
         wait for ever.";
    HINT_END = "DWN-H13", Warning, None, "A complete list of transfers ends in an interrupt",
        "The list is said to be the whole run, but nothing in it tells the host that the run is over.";
    HINT_DIRECTION = "DWN-H14", Warning, None, "A transfer goes where its buffer says",
        "Inputs, parameters and instructions go to the device, outputs come back. The direction counts for scratch only.";
    HINT_PARTIAL = "DWN-H15", Warning, None, "The list of transfers is complete",
        "`fully_deterministic` is false, so the device asks for further transfers itself. Over USB the driver refuses that \
         unless it is told otherwise; over PCIe it does not matter.";
    HINT_COVERAGE = "DWN-H16", Info, None, "Transfers cover outputs and parameters",
        "The ranges of an output, or of the parameters, do not add up to the whole buffer.";

    // Layers.
    LAYER_NAME = "DWN-L01", Error, None, "A layer has a name",
        "`name` is absent, and layers are found by name.";
    LAYER_DUPLICATE = "DWN-L02", Error, None, "Layers have different names",
        "Two inputs, or two outputs, have one name. The driver keeps the last one, with the sizes of another.";
    LAYER_KIND = "DWN-L03", Error, None, "An output says how it is laid out",
        "`any_layer` of an output is absent, is that of an input, or has no value: results could not be read.";
    LAYER_TYPE = "DWN-L04", Error, None, "The element type is known",
        "`data_type` is none of the eight, so the size of an element is unknown.";
    LAYER_DIMENSION = "DWN-L05", Error, None, "Dimensions are at least 1",
        "`y_dim`, `x_dim` or `z_dim` is zero, negative or absent. An image has at least one element.";
    LAYER_LARGE = "DWN-L06", Error, None, "A layer's buffer is below 2 GiB",
        "Elements times their size, or `size_bytes`, times executions reach 2^31, which the format's 32-bit numbers cannot say.";
    LAYER_SIZE = "DWN-L07", Error, None, "A layer's buffer holds its elements",
        "`size_bytes` is negative or less than the elements of one execution have.";
    LAYER_EXECUTIONS = "DWN-L08", Error, None, "A layer is used at least once per inference",
        "`execution_count_per_inference` is below 1. Sizes computed from it are nonsense.";
    LAYER_SHAPE = "DWN-L09", Error, None, "A shape's dimensions are not empty",
        "The shape has no dimension, or one that ends before it starts.";
    LAYER_PRODUCT = "DWN-L10", Error, None, "Shape and dimensions agree",
        "The elements of the shape are no multiple of `y_dim` times `x_dim` times `z_dim`.";
    LAYER_NUMERICS = "DWN-L11", Warning, None, "A layer says what its numbers mean",
        "`numerics` is absent, so scale and zero point are unknown.";
    LAYER_SCALE = "DWN-L12", Warning, None, "The scale of a fixed-point layer is a positive number",
        "`dequantization_factor` is zero, negative, infinite or no number.";
    LAYER_ALIGNMENT = "DWN-L13", Info, None, "Buffers are a multiple of 8 bytes",
        "Compilers round `size_bytes` up to 8, the alignment the device works with.";
    LAYER_UNION = "DWN-L14", Warning, None, "An input says that it is one",
        "`any_layer` of an input is absent or that of an output. Inputs have no layout of their own.";
    LAYER_ZERO = "DWN-L15", Warning, None, "A zero point is a number of its type",
        "Zero points are those of the unsigned number, 0 to 255 for 8 bits and 0 to 65535 for 16 bits. With another, real \
         zero cannot be stored.";

    // Output layouts.
    LAYOUT = "DWN-O01", Error, None, "An image output has tile maps or slices",
        "An output of more than one pixel has neither, so nothing says where its elements are.";
    MAP_LENGTH = "DWN-O02", Error, None, "Tile maps are as long as the dimensions",
        "A map is absent or shorter than `y_dim` or `x_dim`: rows or columns at the end have no place.";
    MAP_TILE = "DWN-O03", Error, None, "Tile numbers are in the list of tiles",
        "The sum of the y and x part is negative or beyond `linearized_tile_byte_offset`: there is no such tile.";
    MAP_PLACE = "DWN-O04", Error, None, "Every element is inside the buffer",
        "The maps lead outside `size_bytes`.";
    MAP_OVERLAP = "DWN-O05", Warning, None, "Elements lie at different places",
        "Two elements of an output share a place in the buffer. No compiler writes that.";
    UNDEFINED = "DWN-O06", Error, None, "The order of several executions is defined",
        "An output of several executions, or of a batch in its shape, has a layout for which the format does not say how they \
         follow each other.";
    SLICE_RANK = "DWN-O07", Error, None, "Slices have the rank of the layer",
        "The layer has no shape or one of more than five dimensions, or a slice has another number of ranges or strides.";
    SLICE_RANGE = "DWN-O08", Error, None, "A slice is inside the shape",
        "A range of the slice is empty or leaves the layer's shape.";
    SLICE_STRIDE = "DWN-O09", Error, None, "Strides pass over what is inside",
        "A stride is less than the elements of the inner dimensions, or the innermost is not 1.";
    SLICE_OFFSET = "DWN-O10", Error, None, "Every slice has an aligned offset",
        "There are fewer or more offsets than slices, or one is negative or no multiple of the element size.";
    SLICE_BOUNDS = "DWN-O11", Error, None, "A slice's elements lie inside the buffer",
        "The slice ends behind `size_bytes`.";
    SLICE_COVER = "DWN-O12", Error, None, "Slices cover the shape once",
        "There are no slices, two of them share coordinates, or some coordinates are in none.";

    // Package.
    SHORT = "DWN-P01", Error, None, "A package has at least 8 bytes",
        "There is no room for the identifier.";
    IDENTIFIER = "DWN-P02", Error, None, "Bytes 4 to 8 are DWN1",
        "Another identifier means another format. The driver only warns; ask for such packages to be read if you want that, too.";
    UNIDENTIFIED = "DWN-P03", Warning, None, "The package says what it is",
        "Bytes 4 to 8 are not `DWN1`. It is read all the same because that was asked for.";
    RUNTIME_NEW = "DWN-P04", Error, None, "The runtime is new enough",
        "`min_runtime_version` is above 14, that of the last public runtime, which refuses the package.";
    RUNTIME_OLD = "DWN-P05", Warning, None, "The runtime version is known",
        "`min_runtime_version` is below 10, the lowest that is known. The driver warns and goes on.";
    MULTI_CHIP = "DWN-P06", Warning, None, "The package is for one chip",
        "`virtual_chip_id` is -1: the executables are in packages inside, one per chip. The public driver cannot register it.";
    NO_EXECUTABLES = "DWN-P07", Error, None, "A package for one chip has a multi-executable",
        "`serialized_multi_executable` is absent or empty. The driver answers `No executables to register`.";
    NO_PACKAGES = "DWN-P08", Error, None, "A package for several chips has packages",
        "`virtual_chip_id` is -1 and `multi_chip_package` is absent or empty, or one of its entries is.";
    DEPTH = "DWN-P09", Error, None, "Packages are nested at most eight deep",
        "A package inside a package is itself one for several chips, and so on.";
    SIGNATURE = "DWN-P10", Warning, None, "A signature is one",
        "`signature` has bytes, but not those of two integers in DER. No key can confirm it.";
    PAGE_LAYOUT = "DWN-P11", Info, None, "Package and executables are whole pages",
        "Compilers make lengths multiples of 4096 and put inner parts at such multiples, so that a package at a page has all \
         its parameters at pages.";

    // Structure.
    MALFORMED = "DWN-S01", Error, None, "Tables, vectors and strings lie inside their flatbuffer",
        "An offset, a vtable, a length or a terminator is wrong, at one of the three levels. The driver refuses the package.";
    MISALIGNED = "DWN-S02", Error, None, "Values are aligned to their size",
        "A number, table or vector starts where its type may not. The driver refuses the package.";
    TEXT = "DWN-S03", Error, None, "Text is UTF-8",
        "A name or version is not UTF-8, as the format's text is by definition.";
    LIMITS = "DWN-S04", Error, None, "Reading the package stays within the limits",
        "Shared tables, many tiles or many slices make the package expand beyond what the limits of this reader allow. Raise \
         `visits` if the file is trusted.";
}
