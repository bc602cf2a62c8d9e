//! Names that a pickle may use. All denote data; none of them is looked up or called.

/// Names by module.
const KNOWN: [(&str, &[&str]); 17] = [
    ("collections", &["OrderedDict"]),
    (
        "torch._utils",
        &[
            "_rebuild_tensor_v2",
            "_rebuild_tensor_v3",
            "_rebuild_parameter",
            "_rebuild_parameter_with_state",
            "_rebuild_wrapper_subclass",
        ],
    ),
    ("torch._tensor", &["_rebuild_from_type_v2"]),
    ("torch.serialization", &["_get_layout"]),
    ("torch.storage", &["UntypedStorage"]),
    ("torch", &["device", "Size", "Tensor"]),
    ("torch", &DTYPES),
    ("torch", &STORAGES),
    ("torchao.quantization", &["Int8Tensor", "IntxUnpackedToInt8Tensor", "Float8Tensor"]),
    ("torchao.quantization.quantize_.workflows.int8.int8_tensor", &["Int8Tensor", "QuantizeTensorToInt8Kwargs"]),
    (
        "torchao.quantization.quantize_.workflows.intx.intx_unpacked_to_int8_tensor",
        &["IntxUnpackedToInt8Tensor", "IntxUnpackedToInt8TensorActivationQuantization"],
    ),
    (
        "torchao.quantization.quantize_.workflows.float8.float8_tensor",
        &["Float8Tensor", "QuantizeTensorToFloat8Kwargs"],
    ),
    ("torchao.quantization.quantize_.common.kernel_preference", &["KernelPreference"]),
    ("torchao.quantization.granularity", &["PerRow", "PerTensor", "PerAxis", "PerGroup", "PerBlock", "PerToken"]),
    ("torchao.quantization.quant_primitives", &["MappingType", "ZeroPointDomain"]),
    ("torchao.float8.inference", &["Float8MMConfig"]),
    ("torch.nn.parameter", &["Parameter", "Buffer"]),
];

/// Element types.
const DTYPES: [&str; 30] = [
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex32",
    "complex64",
    "complex128",
    "bool",
    "bfloat16",
    "uint16",
    "uint32",
    "uint64",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "int1",
    "int2",
    "int3",
    "int4",
    "int5",
    "int6",
    "int7",
    "uint1",
    "uint2",
    "uint4",
];

/// Storages, by the type of their elements.
const STORAGES: [&str; 13] = [
    "ByteStorage",
    "CharStorage",
    "ShortStorage",
    "IntStorage",
    "LongStorage",
    "HalfStorage",
    "FloatStorage",
    "DoubleStorage",
    "BoolStorage",
    "BFloat16Storage",
    "ComplexFloatStorage",
    "ComplexDoubleStorage",
    "UntypedStorage",
];

/// Returns whether a pickle may use a name.
pub(super) fn is_known(module: &str, name: &str) -> bool {
    KNOWN.iter().any(|(known, names)| *known == module && names.contains(&name))
}
