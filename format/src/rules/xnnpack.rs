//! Rules for payloads of the XNNPACK backend. C constants, F the flatbuffer, G the graph and the call of the delegate,
//! H the head, N nodes, Q quantisation, V values.

use crate::finding::ErrorCode::*;

catalogue! {
    // Constants.
    CONSTANT_INDEX = "XNN-C01", Error, Some(InvalidProgram), "A constant that a value names is in the list",
        "`constant_buffer_idx` or `scale_buffer_idx` is beyond the list of constants: `constant_data` where there is a \
         header, `constant_buffer` where there is none. Caused by tools that drop constants without renumbering.";
    CONSTANT_RANGE = "XNN-C02", Error, Some(InvalidProgram), "A constant without a key is in the region of constants",
        "`offset` and `size` reach beyond what the header calls the region, so the bytes would be those of something else.";
    CONSTANT_LENGTH = "XNN-C03", Error, Some(InvalidProgram), "A constant has as many bytes as the value it belongs to",
        "Dimensions and element type of the value, or the number of its scales, ask for more bytes than the constant has.";
    NAMED = "XNN-C04", Error, Some(InvalidExternalData), "Named data of a constant are there and long enough",
        "Nothing is found under the key in the program and its data files, or fewer bytes than `size`. Caused by a missing or \
         wrong data file, or by tools that rebuild programs without their named data.";
    CONSTANT_PLACE = "XNN-C05", Error, Some(InvalidProgram), "A constant is in one place",
        "It has a key and an offset, or neither, so it cannot be said where its bytes are. With a key the offset is all ones.";
    DIGEST = "XNN-C06", Info, None, "Named data are what their key says",
        "A key of 64 hexadecimal digits is the SHA-256 of the bytes, and so is what follows `scale_`; these bytes have \
         another. The file was edited, or a key is a name that only looks like a digest. Asked on request: it reads all bytes.";
    NAMED_AGREES = "XNN-C07", Warning, None, "Constants of one key have one size",
        "Two entries of `constant_data` share a key and differ in size. Each is read as far as its size says.";

    // The flatbuffer.
    MALFORMED = "XNN-F01", Error, Some(InvalidProgram), "Tables, vectors and strings lie inside the flatbuffer",
        "An offset, a vtable, a length or a terminator is wrong. The payload is damaged, truncated or hostile.";
    MISALIGNED = "XNN-F02", Error, Some(InvalidProgram), "Values are aligned to their size",
        "A number, table or vector starts where its type may not, counted from the start of the flatbuffer.";
    TEXT = "XNN-F03", Error, Some(InvalidProgram), "Keys and the version are UTF-8",
        "The format's text is UTF-8 by definition.";
    LIMITS = "XNN-F04", Error, Some(OutOfResources), "Reading the payload stays within the limits",
        "The payload expands beyond what the limits of this reader allow. Raise `visits` if the file is trusted.";

    // The graph.
    LISTS = "XNN-G01", Error, Some(InvalidProgram), "There are nodes and values",
        "`xnodes` or `xvalues` is absent. An empty list is fine.";
    EXTERNS = "XNN-G02", Error, Some(InvalidProgram), "The number of external values is right",
        "`num_externs` is above 4096, or an external id is not below it.";
    EXTERNAL_IDS = "XNN-G03", Error, Some(InvalidProgram), "External ids count from 0, inputs first",
        "They are positions in the argument list of the delegate call: the inputs and then the outputs, without gaps. A value \
         that comes from outside or goes there has one, another has 4294967295.";
    ARGUMENT_COUNT = "XNN-G04", Error, Some(InvalidArgument), "A delegate call has a tensor for every external value",
        "It has fewer or more arguments, or one that is not a tensor.";
    ARGUMENT_TYPE = "XNN-G05", Error, Some(InvalidArgument), "An argument has the element type of its value",
        "It is of another type, so its bytes would be read as other numbers. The indices of ArgMaxPooling2d may be 64-bit outside.";
    ARGUMENT_SHAPE = "XNN-G06", Error, Some(InvalidArgument), "An argument has the dimensions of its value",
        "Its sizes, in the order in which they lie in memory, are other than the dimensions in the payload, or of another \
         rank. A tensor without dimensions meets a value of one element.";
    ID_LISTS = "XNN-G07", Info, None, "The lists of external values name them",
        "`input_ids` and `output_ids` hold the `id_out` of external inputs and outputs; these lists say something else. No \
         runtime reads them.";
    ARGUMENT_ALIAS = "XNN-G08", Error, Some(InvalidArgument), "Outputs of a delegate call are values of their own",
        "One value is an input and an output of the call, or two outputs.";

    // The head.
    HEADER = "XNN-H01", Error, Some(InvalidArgument), "A payload has a whole header",
        "It has fewer than 30 bytes, or its header says so of itself.";
    FLATBUFFER_RANGE = "XNN-H02", Error, Some(InvalidArgument), "The flatbuffer is in the payload",
        "Offset and size in the header reach beyond the payload, or leave fewer than 8 bytes.";
    CONSTANTS_RANGE = "XNN-H03", Error, Some(InvalidArgument), "The region of constants is behind the flatbuffer",
        "Offset and size in the header reach beyond the payload or into the flatbuffer. Usually a payload that was cut off.";
    FLATBUFFER_ALIGNMENT = "XNN-H04", Error, Some(InvalidArgument), "The flatbuffer starts at a multiple of 4",
        "Its numbers would not be aligned, which a flatbuffer promises.";
    IDENTIFIER = "XNN-H05", Error, Some(DelegateInvalidCompatibility), "The flatbuffer is XN01 or XN00",
        "Bytes 4 to 8 of the flatbuffer are something else: another format, or one that is newer than this reader.";
    FLATBUFFER_PLACE = "XNN-H06", Warning, None, "The flatbuffer starts at a multiple of 16",
        "Exporters place it there. Data inside of it are aligned to as much.";
    PADDING = "XNN-H07", Info, None, "Padding is zero",
        "Bytes between header, flatbuffer and constants are not zero. Nobody reads them.";
    TRAILING = "XNN-H08", Warning, None, "Nothing follows the constants",
        "The payload is longer than its header says. Nobody reads the rest.";

    // Nodes.
    NODE_KIND = "XNN-N01", Error, Some(NotImplemented), "A node is of a known kind",
        "The tag names none, or the table of its fields is absent. The payload is newer than this reader, or damaged.";
    NODE_IDS = "XNN-N02", Error, Some(Internal), "Every id in a node names a value",
        "No value has this `id_out`. Only a bias may be left out, with 4294967295.";
    PRODUCER = "XNN-N03", Error, Some(InvalidProgram), "Every value is made once",
        "A value that is neither an input nor a constant comes out of exactly one node; inputs and constants out of none.";
    CYCLE = "XNN-N04", Error, Some(InvalidProgram), "Nodes can be ordered",
        "A node needs, through others, its own result.";
    OUTPUT = "XNN-N05", Error, Some(InvalidProgram), "Outputs are made",
        "No node makes this output, so the caller would get whatever was there.";
    SIGNATURE = "XNN-N06", Error, Some(InvalidProgram), "Nodes of these element types run",
        "No runtime computes this kind of node with these element types. Caused by hand-made payloads.";
    BOUNDS = "XNN-N07", Error, Some(InvalidProgram), "Bounds of a result are ordered",
        "`output_min` is greater than `output_max`, or one is not a number. An absent number is 0, not infinity.";
    FLAGS = "XNN-N08", Error, Some(InvalidProgram), "Flags of a node are known",
        "A bit is set that nothing is known to mean for this kind of node.";
    DIMENSION_LISTS = "XNN-N09", Error, Some(InvalidProgram), "Lists of dimensions fit the rank",
        "A permutation is none, or a list of paddings, offsets or sizes has another length than the value has dimensions, or \
         an axis is beyond them.";
    SIZES = "XNN-N10", Error, Some(InvalidProgram), "Kernels, strides and groups are positive",
        "A kernel, window, stride, dilation, number of groups or of channels, or an image size is 0, a maximum has strides \
         beyond its window, or channels of a depthwise convolution do not divide.";
    WEIGHTS = "XNN-N11", Error, Some(InvalidProgram), "Weights fit their node",
        "Dimensions of a filter or bias are not those that kernel, groups and channels ask for, the input has other \
         channels, or scales belong to another dimension than that of the channels.";
    RESHAPE = "XNN-N12", Error, Some(InvalidProgram), "A reshape has as many elements as its input",
        "The product of the new dimensions is another, or more than one of them is 0, which stands for what is left.";
    DECLARED = "XNN-N13", Warning, None, "Declared dimensions are those that come out",
        "The node makes a result of other dimensions than its value declares. Dimensions are taken from the arguments of the call, \
         so the declared ones are not used.";
    SCALE_RANGE = "XNN-N14", Error, Some(InvalidProgram), "Scales of integer arithmetic are within its range",
        "Input scales over the output scale: from 2^-10 and below 2^8 for sums, from 2^-16 and below 2^8 for \
         products of two tensors, below 256 for products with weights. Beyond, shifts of the integer forms have no meaning.";
    RESULT_SIZE = "XNN-N15", Error, Some(OutOfResources), "Results and tables of a node are within the limits",
        "A resize, a pad, a broadcast or the windows of a convolution would take more memory than a method may have.";
    ACCUMULATOR = "XNN-N16", Info, None, "Sums of products fit 32 bits",
        "So many products of 8-bit numbers are added that the sum may wrap. It does so alike in every runtime.";
    REFUSED_KIND = "XNN-N17", Warning, Some(NotImplemented), "Runtimes of today run the kind of node",
        "Attention as one node was written up to release 0.6 and is refused since 0.7.";
    SAME_NUMBERS = "XNN-N18", Error, Some(InvalidProgram), "Nodes that move numbers do not change what they mean",
        "Inputs and result have different scales or zero points, though the node copies bytes or takes the greatest.";
    INPUT_SHAPES = "XNN-N19", Error, Some(InvalidProgram), "Inputs of a node fit each other",
        "They cannot be broadcast, put one after another or multiplied, or have another rank than the node takes.";

    // Quantisation.
    SCALE = "XNN-Q01", Error, Some(InvalidProgram), "The scale of a tensor is a positive number",
        "It is 0, negative, infinite, not a number, or too small to be normal.";
    ZERO_POINT = "XNN-Q02", Error, Some(InvalidProgram), "A zero point can be stored",
        "It is outside of -128 to 127 for qint8, of 0 to 255 for quint8, or is not 0 for qint32.";
    CHANNELS = "XNN-Q03", Error, Some(InvalidProgram), "There is a scale for every channel",
        "`channel_dim` names no dimension, or there are more or fewer scales than it has indices. Readers go by the \
         dimensions, so too few are read out of bounds.";
    SCALES = "XNN-Q04", Error, Some(InvalidProgram), "All scales of channels and blocks are positive numbers",
        "One is 0, negative, infinite, not a number, or too small to be normal.";
    GROUPS = "XNN-Q05", Error, Some(InvalidProgram), "Blocks make whole rows",
        "A weight with a scale for each block has two dimensions, rows along the first, and `group_size` divides the second. \
         There is a scale for every block.";
    ROWS = "XNN-Q06", Error, Some(InvalidProgram), "Rows are made of dimensions there are",
        "`num_nonbatch_dims` is negative or above the rank, or the tensor is constant, though its parameters are known only \
         at run time.";
    PARAMETERS = "XNN-Q07", Error, Some(InvalidProgram), "A quantised value says how its numbers are meant",
        "`quant_params` is absent or of an unknown kind, or there are no scales in any of the places for them.";
    DERIVED = "XNN-Q08", Error, Some(InvalidProgram), "Scales that are computed from scales are numbers",
        "Input scale times weight scale over output scale, or one over a scale, is infinite or vanishes.";
    GROUP_SIZE = "XNN-Q09", Warning, None, "Blocks have a multiple of 32 elements",
        "Runtimes of today ask for it when they pack weights.";

    // Values.
    VALUE_KIND = "XNN-V01", Error, Some(NotImplemented), "A value is of a known kind",
        "The tag names none, or a table that makes it up is absent.";
    VALUE_ID = "XNN-V02", Error, Some(InvalidProgram), "Values have ids of their own",
        "Two values share an `id_out`, or one has 4294967295. A node could mean either.";
    RANK = "XNN-V03", Error, Some(InvalidProgram), "A value has up to six dimensions, as many as it says",
        "`num_dims` is above 6 or is not the length of `dims`.";
    VALUE_FLAGS = "XNN-V04", Error, Some(InvalidProgram), "A value is an input, an output or neither",
        "Other bits than 1 and 2 are set, or both, or one of them on a constant.";
    DATATYPE = "XNN-V05", Error, Some(InvalidProgram), "A value has an element type of its kind",
        "The number names none, or one that is packed at run time, or its parameters are those of other types. Only inputs \
         in single precision are quantised when they are read, and only to qint8.";
    VALUE_SIZE = "XNN-V06", Error, Some(OutOfResources), "A value fits memory",
        "The product of its dimensions and element size overflows or is above what a method may have.";
}
