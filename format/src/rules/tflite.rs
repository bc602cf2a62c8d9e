//! Rules for TensorFlow Lite models with compiled parts. M model, O custom options, S structure, X the two sides
//! compared, Z the archive behind.

catalogue! {
    // Model.
    IDENTIFIER = "TFL-M01", Error, None, "Bytes 4 to 8 are TFL3",
        "Another identifier means another format.";
    VERSION = "TFL-M02", Warning, None, "The version is 3",
        "Fields of another version may mean something else.";
    NO_OPERATOR = "TFL-M03", Info, None, "The model has compiled parts",
        "No operator is called `edgetpu-custom-op`, so nothing of the model runs on an Edge TPU.";
    OPCODE = "TFL-M04", Error, None, "An operator's code is in the list",
        "`opcode_index` is beyond `operator_codes`, so it is unknown which operator it is.";
    OPTIONS_FORMAT = "TFL-M05", Warning, None, "Custom options are FlexBuffers",
        "`custom_options_format` is another number; they are read as FlexBuffers all the same, as the runtime does.";

    // Custom options.
    OPTIONS = "TFL-O01", Error, None, "A compiled operator has custom options",
        "They are absent or empty, or said to be outside the file; the runtime refuses to prepare the operator.";
    FLEX = "TFL-O02", Error, None, "Custom options are a sound FlexBuffer",
        "An offset, a length or a width is wrong. Nothing of these options is read here.";
    MAP = "TFL-O03", Error, None, "Custom options are a map",
        "The root is of another type.";
    VALUE_TYPE = "TFL-O04", Error, None, "Values of the map have the types their keys ask for",
        "Key 4 is a string (a blob counts as nothing), keys 1 and 5 are numbers, 6 and 7 vectors of numbers and strings.";
    PACKAGE = "TFL-O05", Error, None, "Custom options have a package",
        "Key 4 is absent or its string is empty; the runtime then fails to register the package.";
    CHIPS = "TFL-O06", Error, None, "There is a chip code for every package",
        "Key 6 must have one entry more than key 7; the runtime refuses the options.";
    FURTHER = "TFL-O07", Warning, None, "There is one package",
        "Key 7 lists further ones. The ordinary runtime parses them and then answers that several are not implemented.";
    SEPARATE = "TFL-O08", Warning, None, "Cached parameters are in the package",
        "Key 3 holds an executable apart, as very old wrappers did. The runtime ignores it.";
    WRAPPER_VERSION = "TFL-O09", Info, None, "The wrapper's version is 0",
        "Key 1 has another number. The runtime reads it and compares it with nothing.";
    KEY = "TFL-O10", Info, None, "Keys of custom options are known",
        "The runtime ignores keys other than 1 to 7.";
    BARE = "TFL-O11", Error, None, "Key 4 holds a package",
        "It holds an executable without a package around it, and key 3 the one that loads its parameters: the wrapper of \
         early 2019. Newer runtimes cannot register it; compile the model again.";

    // Structure.
    MALFORMED = "TFL-S01", Error, None, "Tables, vectors and strings lie inside the file",
        "An offset, a vtable, a length or a terminator is wrong. The file is damaged or hostile.";
    MISALIGNED = "TFL-S02", Error, None, "Values are aligned to their size",
        "A number, table or vector starts where its type may not.";
    TEXT = "TFL-S03", Error, None, "Text is UTF-8",
        "The format's text is UTF-8 by definition.";
    LIMITS = "TFL-S04", Error, None, "Reading the file stays within the limits",
        "Shared tables make the file expand beyond what the limits of this reader allow. Raise `visits` if it is trusted.";

    // Both sides.
    INPUT_COUNT = "TFL-X01", Error, None, "The operator has as many inputs as its executable",
        "Inputs are matched by position; the runtime refuses another number.";
    OUTPUT_COUNT = "TFL-X02", Error, None, "The executable has no more outputs than the operator",
        "Outputs whose names end in `_variable_output` do not count. The runtime refuses more.";
    TENSOR = "TFL-X03", Error, None, "The operator's tensors exist",
        "An index of an input or output is in no tensor's place.";
    BYTES = "TFL-X04", Error, None, "A tensor has the bytes of its layer",
        "Elements times their size differ, also with the first dimension taken for a batch. The runtime refuses it.";
    TYPE = "TFL-X05", Error, None, "A tensor has the type of its layer",
        "The pair of types is none that the runtime accepts.";
    NAME = "TFL-X06", Warning, None, "A tensor has the name of its layer",
        "Layers are matched by position, so another name is a hint that the order is another.";
    SCALE = "TFL-X07", Warning, None, "A tensor has the scale of its layer",
        "The executable computes with the layer's, whoever reads the tensor with its own.";
    ZERO_POINT = "TFL-X08", Warning, None, "A tensor has the zero point of its layer",
        "For signed types the layer's is that of the unsigned number: 128 or 32768 more.";
    VARIABLE_ORDER = "TFL-X09", Error, None, "Variable outputs come last",
        "The runtime matches output i of the executable with output i of the operator and does not count the ones before.";

    // The archive.
    ZIP = "TFL-Z01", Warning, None, "The archive behind the model can be read",
        "The end record of a ZIP archive ends the file, but its directory or a member is not where it says. Tools that insert \
         bytes into the model must shift these offsets.";
}
