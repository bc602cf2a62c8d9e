//! Rules for Model Library Format packages. A archive, C code, F files, G graph, J text, M metadata, P parameters,
//! S storage, X parts compared.

catalogue! {
    // Archive.
    TAR = "MLF-A01", Error, None, "The archive is a sound tar",
        "A header has a wrong checksum, a pax record makes no sense, or the archive ends inside a member.";
    NAME = "MLF-A02", Error, None, "Names stay inside the package",
        "A name is absolute, climbs with `..`, is empty or not UTF-8. Extracting such an archive writes to unexpected places.";
    KIND = "MLF-A03", Error, None, "Members are files and folders",
        "A link, a device or a sparse file; exporters never write one.";
    MEMBER_REPEATED = "MLF-A04", Error, None, "A name occurs once",
        "Two members have one name, and tools differ in which of them counts.";
    ARCHIVE_TRAILING = "MLF-A05", Warning, None, "Nothing but zeros follows the end",
        "Behind the two zero blocks that end a tar there is something that most tools never show.";
    ARCHIVE_END = "MLF-A06", Warning, None, "Two zero blocks end the archive",
        "They are missing; the archive may have been cut off at the border of a member.";

    // Code.
    NO_CODE = "MLF-C01", Warning, None, "There is code",
        "Neither sources nor objects: the model can only be run with functions that are brought along.";
    ONLY_OBJECTS = "MLF-C02", Info, None, "Code can be compiled",
        "Only objects, compiled for one processor. They can be linked there, and nowhere else.";
    FUNCTION = "MLF-C03", Error, None, "Functions that the graph calls are defined",
        "No source of the module has a body for this symbol; linking or loading fails. Sources that define macros with arguments \
         are not judged.";
    SYMBOL = "MLF-C04", Error, None, "A symbol is defined once",
        "Two sources of a module define it, so they cannot be linked together.";

    // Files.
    NO_METADATA = "MLF-F01", Error, None, "There is a metadata.json",
        "It is what makes an archive a package: version, modules, memory.";
    GRAPH_FILE = "MLF-F02", Error, None, "A module of the graph executor has a graph",
        "The metadata name the graph executor, and no file is where this version keeps the graph.";
    PARAMS_FILE = "MLF-F03", Error, None, "A whole model has a parameter file",
        "Exporters write one even if all parameters are compiled in; then it is empty.";
    RELAY_FILE = "MLF-F04", Info, None, "A whole model has its text",
        "The model before it was compiled; nothing needs it to run.";
    MISPLACED = "MLF-F05", Error, None, "Files lie where their version has them",
        "The version says where; a file in another version's place means that version or file are wrong, and readers of that \
         version do not find it.";
    UNKNOWN_FILE = "MLF-F06", Info, None, "Files are known",
        "Exporters write no file of this name.";
    OWNERLESS = "MLF-F07", Warning, None, "Code of several modules says whose it is",
        "Names start with the module's; this one belongs to none and is not compiled.";

    // Graph.
    GRAPH_MISSING = "MLF-G01", Error, None, "A graph has all its parts",
        "`nodes`, `arg_nodes`, `heads`, `node_row_ptr` and `attrs` with `storage_id`, `shape` and `dltype`.";
    GRAPH_KEY = "MLF-G02", Error, None, "Keys of a graph are known",
        "Runtimes refuse any other.";
    BEHIND_METADATA = "MLF-G03", Warning, None, "Nothing follows the key `metadata`",
        "Runtimes stop reading there, and so miss what follows.";
    GRAPH_TYPE = "MLF-G04", Error, None, "Values of a graph are of their type",
        "A list, a string or a number that is not negative belongs here.";
    NODE_MISSING = "MLF-G05", Error, None, "A node has op, name and inputs",
        "And attributes, if it is a call.";
    NODE_KEY = "MLF-G06", Error, None, "Keys of a node are known",
        "Runtimes refuse any other.";
    NODE_OP = "MLF-G07", Error, None, "A node is an argument or a call",
        "`op` is `null` or `tvm_op`; nothing else can be executed.";
    NODE_ATTR = "MLF-G08", Error, None, "Attributes of a call are strings, and complete",
        "`func_name`, `num_inputs`, `num_outputs` and `flatten_data`, all spelled as strings, numbers too.";
    NUM_INPUTS = "MLF-G09", Error, None, "num_inputs is the number of inputs",
        "Runtimes go by the inputs, whatever the attribute says; one of the two is wrong.";
    ROW_PTR = "MLF-G10", Error, None, "Row pointers count the entries of the nodes before",
        "They start at 0 and grow by 1 for an argument and by `num_outputs` for a call. Runtimes use them without a look.";
    REFERENCE = "MLF-G11", Error, None, "References are to nodes and outputs that exist",
        "A runtime reads memory that is not its own here.";
    ORDER = "MLF-G12", Error, None, "Nodes read what ran before",
        "Nodes run in their order. A reference to a later one (or itself) reads whatever was in memory.";
    ARG_NODES = "MLF-G13", Error, None, "arg_nodes are the nodes that call nothing",
        "One that is left out can never be set, and the model computes with whatever was in memory.";
    ARG_NAME = "MLF-G14", Error, None, "Names of arguments are unique",
        "Arguments are set by name.";
    ARG_INPUTS = "MLF-G15", Error, None, "An argument reads nothing",
        "Only calls have inputs.";
    ATTR_TAG = "MLF-G16", Error, None, "Graph attributes have their type tags",
        "`storage_id` and `device_index` are `list_int`, `shape` is `list_shape`, `dltype` and `storage_scope` are `list_str`.";
    ATTR_LENGTH = "MLF-G17", Error, None, "Graph attributes have one element per entry",
        "As many as the nodes have outputs. Runtimes read past the end of a shorter list.";
    ATTR_OTHER = "MLF-G18", Info, None, "Graph attributes are known",
        "Runtimes skip integers under other names.";
    DATA_TYPE = "MLF-G19", Error, None, "Element types have a size",
        "A class, its bits and perhaps lanes, such as `float32`, `uint1` or `int8x4`; together a number of whole bytes, or 1 or 4 \
         bits.";
    SHAPE = "MLF-G20", Error, None, "Shapes have a size",
        "A size is negative, or the bytes of a tensor do not fit 63 bits.";
    CONTROL = "MLF-G21", Info, None, "Nodes have no control dependencies",
        "Runtimes ignore them, and the one for microcontrollers refuses the graph.";
    FLATTEN = "MLF-G22", Warning, None, "Functions see the shapes of their arguments",
        "`flatten_data` is set: arguments are passed in one dimension. No exporter sets it.";
    HEAD_REPEATED = "MLF-G23", Info, None, "Outputs are different entries",
        "An entry is an output twice; that is legal.";
    NO_HEADS = "MLF-G24", Warning, None, "A graph has outputs",
        "Nothing of what it computes can be had.";

    // Text.
    JSON = "MLF-J01", Error, None, "Text files are JSON",
        "Not UTF-8, malformed, nested too deep, or more than one value.";
    REPEATED = "MLF-J02", Error, None, "A key occurs once",
        "Readers differ in which of the two counts.";
    LIMITS = "MLF-J03", Error, None, "Reading the package stays within the limits",
        "More values, names or source than the limits of this reader allow. Raise `visits` if it is trusted.";

    // Metadata.
    METADATA_TYPE = "MLF-M01", Error, None, "Values of the metadata are of their type",
        "An object, a list, a string or a number that is not negative belongs here.";
    VERSION = "MLF-M02", Error, None, "The version is 1 to 7",
        "An integer. It says where everything else is; other versions are not known.";
    METADATA_MISSING = "MLF-M03", Error, None, "Metadata have all their keys",
        "Name, time, memory, target and executors of each module, and from version 4 on its style.";
    METADATA_KEY = "MLF-M04", Info, None, "Keys of the metadata are known",
        "Exporters write no such key.";
    SPELLING = "MLF-M05", Error, None, "Keys are spelled as of the version",
        "Up to version 4 the executors are called `runtimes`.";
    MODULES = "MLF-M06", Error, None, "Version 7 lists modules, others have one",
        "Keys of a module are under `modules` from version 7 on, and at the top before; a single operator's always at the top.";
    MODULE_NAME = "MLF-M07", Error, None, "A module has the name of its key",
        "Files are looked up by one of them and symbols by the other.";
    MODULE_IDENTIFIER = "MLF-M08", Warning, None, "A module's name is letters, digits and underscores",
        "It is a part of symbols and macros; others cannot be compiled.";
    EXECUTOR = "MLF-M09", Error, None, "A model has one executor, a single operator none",
        "`graph` or `aot`.";
    STYLE = "MLF-M10", Error, None, "The style is known",
        "`full-model` or `operator`.";
    DATETIME = "MLF-M11", Warning, None, "The time of export is a time",
        "`YYYY-MM-DD HH:MM:SSZ`; nothing depends on it.";

    OPERATOR = "MLF-M12", Warning, None, "Functions with figures of memory are defined",
        "The metadata list the memory of a function that no source of the module has a body for. Sources that define macros with \
         arguments are not judged.";

    // Parameters.
    PARAMS_MAGIC = "MLF-P01", Error, None, "Parameter files and their tensors start with their magic",
        "Another number means another format, or that a size before it was wrong.";
    PARAMS_RESERVED = "MLF-P02", Warning, None, "Reserved words of parameters are zero",
        "Readers ignore them.";
    PARAMS_SHORT = "MLF-P03", Error, None, "Parameter files are complete",
        "The file ends early. TVM takes missing bytes of a tensor for good and computes with whatever was in memory.";
    PARAMS_COUNT = "MLF-P04", Error, None, "There are as many names as tensors",
        "They are matched by position.";
    PARAMS_NAME = "MLF-P05", Error, None, "Names of parameters are UTF-8",
        "The graph's names are.";
    PARAMS_REPEATED = "MLF-P06", Error, None, "Names of parameters are unique",
        "In TVM the last one wins.";
    PARAMS_DEVICE = "MLF-P07", Error, None, "Parameters are stored for the CPU",
        "Runtimes refuse any other type of device.";
    PARAMS_SHAPE = "MLF-P08", Error, None, "Parameters have a shape",
        "The number of dimensions or a size is negative, or more than the file could hold.";
    PARAMS_TYPE = "MLF-P09", Error, None, "Parameters have an element type",
        "Class, bits and lanes name no type.";
    PARAMS_SIZE = "MLF-P10", Error, None, "Parameters have the bytes of their shape",
        "The size field is another number than elements times bytes.";
    PARAMS_TRAILING = "MLF-P11", Warning, None, "Nothing follows the last tensor",
        "Readers ignore it.";

    // Storage.
    STORAGE_ID = "MLF-S01", Error, None, "Storages have a number",
        "It is negative.";
    STORAGE_DEVICE = "MLF-S02", Error, None, "A storage is on one device",
        "Entries that share it name different types of devices.";
    STORAGE_SPARSE = "MLF-S03", Warning, None, "Storages are numbered without gaps",
        "Runtimes make one for every number up to the highest.";
    OVERWRITTEN = "MLF-S04", Error, None, "What is read is still there",
        "The storage was written again, or never, before this entry is read: the model computes with something else.";
    ARG_STORAGE = "MLF-S05", Error, None, "Inputs and parameters have storages of their own",
        "Setting one would change the other.";
    ARG_WRITTEN = "MLF-S06", Error, None, "Inputs and parameters are not overwritten",
        "A call writes to their storage, so a second run would start from something else.";
    OVERLAP = "MLF-S07", Error, None, "A call writes to storages of their own",
        "A result shares its storage with an argument or another result of the same call; generated code expects neither.";
    RESERVED = "MLF-S08", Error, None, "`__nop` and `__copy` keep the bytes",
        "Both have one input and one output of equally many bytes; of `__nop` they share a storage.";
    SIDS = "MLF-S09", Warning, None, "The metadata know the sizes of storages",
        "`memory.sids` says another size than the graph asks for. Exporters look sizes up under the wrong number, so genuine \
         packages have this; do not size buffers from it.";
    MEMORY_LIMIT = "MLF-S10", Error, None, "Storages stay within the limits",
        "More memory than the limits of this reader allow. Raise `arena_bytes` if the package is trusted.";

    // Parts compared.
    PARAM_MISSING = "MLF-X01", Error, None, "Every parameter is in the file",
        "An argument that is not an input has no tensor. TVM computes with whatever was in memory.";
    PARAM_TYPE = "MLF-X02", Error, None, "Parameters are as the graph has them",
        "Element type or shape differ; TVM takes any tensor of equally many bytes.";
    PARAM_UNUSED = "MLF-X03", Warning, None, "The graph has every parameter",
        "No argument has this name; runtimes skip it.";
    INTERFACE = "MLF-X04", Error, None, "Parts agree on inputs and outputs",
        "The graph, the table in the code, the generated header or the metadata say different things about what goes in and \
         out. Who believes the wrong one calls the module with other tensors than it was compiled for.";
    RELAY = "MLF-X05", Warning, None, "The model's text has the inputs",
        "The signature in the text differs from what was compiled from it: the text is of another model. Nothing reads it to \
         run the module.";
}
