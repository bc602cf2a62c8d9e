//! Rules for export IR. A the ATen dialect, B every graph, D delegates and backends, E the Edge dialect, L what the
//! specification states but exporters do not enforce, P the program around the graph, T element types, Z the archive.

catalogue! {
    // The ATen dialect.
    NOT_CORE = "EXIR-A01", Warning, None, "Operators of the library are core ones",
        "The graph calls an operator outside the core set and its copying views. Exporters decompose such operators before they ask; one that they cannot decompose they refuse, unless it is kept on purpose.";

    // Every graph.
    NO_META = "EXIR-B02", Error, None, "Every value is described",
        "A node or input makes a value that the document describes nowhere, so its type and sizes are unknown.";
    CALLEE = "EXIR-B03", Error, None, "A node calls an operator, a higher-order operator or arithmetic on sizes",
        "The callee is of another kind, such as a Python function or a module, which no runtime has.";
    MUTATES = "EXIR-B04", Error, None, "Operators change nothing they are given",
        "The schema says that an argument is written to. Functionalise the program; only programs straight out of export may have this.";
    UNKNOWN_OPERATOR = "EXIR-B05", Warning, None, "The operator's schema is known",
        "Nothing can be checked about calls of an operator that is not registered. Register its schema.";
    ARGUMENTS = "EXIR-B06", Error, None, "A call gives what the schema asks for",
        "An argument is missing that has no default, or one is given that the schema does not have.";
    ORDER = "EXIR-B08", Error, None, "A value is made before it is read",
        "A node or output reads a value that no input and no earlier node makes.";
    TWICE = "EXIR-B09", Error, None, "A value is made once",
        "Two nodes or inputs make the same value, so it is unknown which one is meant.";
    SHAPE = "EXIR-B10", Error, None, "Results are described as the operator makes them",
        "The operator's shape function gives another element type, number of dimensions or size than the document says.";
    NO_SHAPE = "EXIR-B11", Info, None, "The operator says what its results look like",
        "It has no shape function, so its results are taken on trust. Register one with the operator.";
    SIZES = "EXIR-B12", Error, None, "Sizes, strides and offsets are not negative",
        "A tensor's description has a size, a stride or an offset below zero: as a number, as the value that a formula had at export, or because the range of a symbol reaches below zero. Such a program is not read.";

    // Delegates and backends.
    NAMESPACE = "EXIR-D01", Error, None, "A backend operator's library is registered",
        "An operator of another library than the usual ones is called after delegation; no backend said that it has it.";
    NO_META_KERNEL = "EXIR-D02", Error, None, "A backend operator says what its results look like",
        "Backends plan with the sizes of results, so an operator without a shape function cannot be lowered.";
    NO_MODULE = "EXIR-D03", Error, None, "A delegate call names a lowered module",
        "The module it names does not exist.";

    // The Edge dialect.
    NOT_EDGE = "EXIR-E02", Error, None, "Operators are those of the Edge dialect",
        "The graph calls an operator as the library registers it; conversion was left out or incomplete.";
    MEMORY_FORMAT = "EXIR-E03", Error, None, "Copies name an order of dimensions",
        "`_to_copy`, `clone` and `empty` name a memory format; in this mode their dim-order twins take their place.";
    DIM_ORDER = "EXIR-E04", Error, None, "Copies name a memory format",
        "Operators of `dim_order_ops` are called although dim orders were turned off.";
    PYTHON = "EXIR-E06", Warning, None, "Arithmetic on sizes is that of operators",
        "`torch.sym_max` and its like are Python functions; programs have operators for none of them.";

    // What the specification states and exporters do not enforce.
    VIEW = "EXIR-L01", Warning, None, "Operators share no memory with their arguments",
        "A view is called where the specification asks for a copy.";
    STRIDES = "EXIR-L02", Warning, None, "Tensors are contiguous or channels-last",
        "Recorded or stored strides are others; programs store tensors densely, in an order of their dimensions, so such a constant is rearranged.";
    SCALAR_INPUT = "EXIR-L03", Warning, None, "Inputs and outputs of the graph are tensors",
        "A number or nothing enters or leaves the graph. Runtimes take a number only if it is the one that was exported.";
    SCALAR_ARGUMENT = "EXIR-L04", Warning, None, "An argument that must be a tensor is one",
        "A number is in the place of a tensor; conversion makes it a constant.";
    UNBOUNDED = "EXIR-L05", Warning, None, "Sizes have upper bounds",
        "Memory is planned for the largest size, so a dimension needs a maximum; the size of the example is none.";

    // The program around the graph.
    INPUT_COUNT = "EXIR-P01", Error, None, "Inputs and their descriptions agree",
        "The signature has more or fewer inputs than the graph, or in another order.";
    PARAMETER = "EXIR-P02", Error, None, "Parameters are among the weights",
        "A parameter has no tensor, or the tensor is not stored as one.";
    BUFFER = "EXIR-P03", Error, None, "Buffers have tensors",
        "A buffer has no tensor among weights and constants.";
    NOT_PERSISTENT = "EXIR-P04", Error, None, "Buffers that are not persistent are no weights",
        "Such a buffer is stored among the weights, where loading would look for a persistent one.";
    CONSTANT = "EXIR-P06", Error, None, "Constants have tensors",
        "A constant has no tensor among the constants.";
    OUTPUT_COUNT = "EXIR-P07", Error, None, "Outputs and their descriptions agree",
        "The signature has more or fewer outputs than the graph, or in another order.";
    MUTATION = "EXIR-P08", Error, None, "New values come first and belong to something",
        "An output that is the new value of a buffer, parameter or input comes after others, or names nothing there is.";
    NESTING = "EXIR-P10", Error, None, "The nesting of arguments and results fits the signature",
        "The pytree text cannot be read, or has more or fewer leaves than the program has arguments or results.";
    TENSOR = "EXIR-P11", Error, None, "Stored tensors look as their inputs do",
        "Element type or sizes of a stored tensor differ from those of the input it belongs to.";

    // Element types.
    DTYPES = "EXIR-T01", Error, None, "Element types go together",
        "No row of the operator's table accepts these element types. Cast the arguments, or use another operator.";

    // The archive.
    ARCHIVE = "EXIR-Z01", Error, None, "The archive can be read",
        "The container, a record or the document is damaged, of another version, or has a pickle that names what files of weights do not.";
}
