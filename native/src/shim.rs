//! The headers and the runtime that generated code is compiled against, as text.

/// Paths below the include folder, and their content.
pub(crate) const HEADERS: [(&str, &str); 4] = [
    ("tvm/runtime/c_runtime_api.h", include_str!("../shim/tvm/runtime/c_runtime_api.h")),
    ("tvm/runtime/c_backend_api.h", include_str!("../shim/tvm/runtime/c_backend_api.h")),
    ("tvm/runtime/metadata_types.h", include_str!("../shim/tvm/runtime/metadata_types.h")),
    ("tvm/runtime/crt/module.h", include_str!("../shim/tvm/runtime/crt/module.h")),
];

/// The runtime itself.
pub(crate) const RUNTIME: &str = include_str!("../shim/runtime.c");
