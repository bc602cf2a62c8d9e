//! The headers and the runtime that generated code is compiled against, as text.

/// Paths below the include folder, and their content.
pub(crate) const HEADERS: [(&str, &str); 5] = [
    ("edgepack.h", include_str!("../shim/edgepack.h")),
    ("tvm/runtime/c_runtime_api.h", include_str!("../shim/tvm/runtime/c_runtime_api.h")),
    ("tvm/runtime/c_backend_api.h", include_str!("../shim/tvm/runtime/c_backend_api.h")),
    ("tvm/runtime/metadata_types.h", include_str!("../shim/tvm/runtime/metadata_types.h")),
    ("tvm/runtime/crt/module.h", include_str!("../shim/tvm/runtime/crt/module.h")),
];

/// The runtime itself: names of its files, and their content.
pub(crate) const RUNTIME: [(&str, &str); 5] = [
    ("runtime.c", include_str!("../shim/runtime.c")),
    ("parallel.c", include_str!("../shim/parallel.c")),
    ("lookup.c", include_str!("../shim/lookup.c")),
    ("context.c", include_str!("../shim/context.c")),
    ("half.c", include_str!("../shim/half.c")),
];
