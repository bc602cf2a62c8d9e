//! Index of the records of the archive that hold tensors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::TensorMeta;

/// `M_weights_config.json` and `M_constants_config.json`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PayloadConfig {
    /// By fully qualified name.
    pub config: BTreeMap<String, PayloadMeta>,
}

/// One parameter, buffer or constant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PayloadMeta {
    /// Name of the record, next to the configuration.
    pub path_name: String,
    /// True if the tensor is a parameter.
    #[serde(default)]
    pub is_param: bool,
    /// True if the record is a pickle: of a tensor that consists of others, or of an object that only Python knows.
    #[serde(default)]
    pub use_pickle: bool,
    /// View of the record's bytes; absent if the record is not a tensor.
    pub tensor_meta: Option<TensorMeta>,
}
