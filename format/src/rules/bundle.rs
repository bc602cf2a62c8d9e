//! Rules for bundled programs. B the file, S structure, M suites, C cases, T tensors.

use crate::finding::ErrorCode::*;

catalogue! {
    // The file.
    IDENTIFIER = "BND-B01", Error, Some(NotSupported), "Bytes 4 to 8 are BP08",
        "Another identifier means another format; `BP` with other digits is a bundle of an incompatible generation from 2023.";
    VERSION = "BND-B02", Warning, None, "The version is 2",
        "Exporters write 2 and readers do not look. A newer version may mean its fields differently.";
    PROGRAM = "BND-B03", Error, Some(InvalidProgram), "A bundle holds a program",
        "`program` is absent or empty, so there is nothing to run. Caused by hand-made or damaged files.";

    // Cases.
    INPUT_COUNT = "BND-C01", Error, Some(InvalidArgument), "A case has one value per input of its method",
        "Missing inputs leave the method unready, superfluous ones have no place.";
    OUTPUT_COUNT = "BND-C02", Error, Some(InvalidArgument), "A case expects one value per output of its method, or none",
        "Superfluous expectations have no value to be compared with. Caused by a bundle made for another version.";
    VALUE = "BND-C03", Error, Some(NotSupported), "A value is a tensor, an integer, a bool or a double",
        "The tag is 0 (none) or one that no schema so far defines, or the tag has no table.";
    INPUT_KIND = "BND-C04", Error, Some(InvalidArgument), "An input is of the kind its method takes",
        "The method's value at this place is of another kind. Caused by a bundle made for another version of the program.";
    OUTPUT_KIND = "BND-C05", Error, Some(NotFound), "An expected output is of the kind its method gives",
        "The method's value at this place is of another kind. Caused by a bundle made for another version of the program.";
    OUTPUT_SCALAR = "BND-C06", Warning, Some(NotSupported), "Expected outputs are tensors",
        "Stock runtimes compare tensors only and give up on this case. It is compared here.";
    NO_EXPECTATION = "BND-C07", Info, Some(NotSupported), "A case expects outputs",
        "The list is absent or empty: the case can be run but not checked.";

    // Suites.
    METHOD_NAME = "BND-M01", Error, Some(InvalidArgument), "A suite names its method",
        "`method_name` is absent, so no lookup can find the suite.";
    METHOD_UNKNOWN = "BND-M02", Error, Some(InvalidArgument), "A suite's method is one of the program",
        "The program has no method of this name. Caused by a bundle made for another program.";
    METHOD_DUPLICATE = "BND-M03", Error, Some(InvalidArgument), "There is one suite per method",
        "Two suites have the same name; only the first of them is ever found.";
    METHOD_ORDER = "BND-M04", Warning, None, "Suites are sorted by method name",
        "Exporters sort them; readers that search by bisection miss a suite out of place.";

    // Structure.
    MALFORMED = "BND-S01", Error, Some(InvalidProgram), "Tables, vectors and strings lie inside the file",
        "An offset, a vtable, a length or a terminator is wrong. The file is damaged, truncated or hostile.";
    MISALIGNED = "BND-S02", Error, Some(InvalidProgram), "Values are aligned to their size",
        "A number, table or vector starts where its type may not. Tensor data ask for 16, the embedded program for 32, so \
         that both can be used in place.";
    TEXT = "BND-S03", Error, Some(InvalidProgram), "Names are UTF-8",
        "The format's text is UTF-8 by definition.";
    LIMITS = "BND-S04", Error, Some(OutOfResources), "Reading the file stays within the limits",
        "Shared sub-tables make the file, or the program in it, expand beyond what the limits of this reader allow. Raise \
         `visits` if the file is trusted.";

    // Tensors.
    TENSOR_PARTS = "BND-T01", Error, Some(InvalidArgument), "A tensor has sizes, a dim order and data",
        "One of the lists is absent. A tensor without elements has empty data.";
    LAYOUT = "BND-T02", Error, Some(InvalidArgument), "Element type, sizes and dim order describe a tensor",
        "The element type is unknown, the dim order is not a permutation as long as the sizes, a size is negative, there are \
         more than 16 dimensions, or the byte count overflows.";
    DATA_SHORT = "BND-T03", Error, Some(InvalidArgument), "A tensor's data cover its sizes",
        "There are fewer bytes than sizes and element type ask for. Unchecked it would be an out-of-bounds read.";
    DATA_LONG = "BND-T04", Warning, None, "A tensor has no more data than its sizes ask for",
        "The rest is ignored. Caused by tools that change sizes without the data.";
    DTYPE = "BND-T05", Error, Some(InvalidArgument), "A tensor has the element type its method declares",
        "Runtimes refuse the input, and every comparison of such an output fails.";
    SHAPE = "BND-T06", Error, Some(NotSupported), "A tensor has a shape its method allows",
        "The number of dimensions differs, a size of a static tensor differs, or there are more elements than the bound of a \
         dynamic tensor.";
    DIM_ORDER = "BND-T07", Warning, None, "A tensor has the dim order its method declares",
        "Runtimes take the bytes in storage order without converting them, so the values land in other places.";
}
