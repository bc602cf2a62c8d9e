//! Backends that programs are exported for and that run in no runtime but their own: what their ids stand for.
//!
//! Invariant: the ids are those that exporters write into `BackendDelegate.id`; none is in the table twice.

use core::fmt;

/// A backend of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownBackend {
    /// Id of the backend in programs.
    pub id: &'static str,
    /// Name under which people know it.
    pub name: &'static str,
    /// Hardware or system that its payloads are for.
    pub target: &'static str,
}

/// Reads `Core ML, for Apple devices`.
impl fmt::Display for KnownBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, for {}", self.name, self.target)
    }
}

/// Advice for who has such a program and another runtime.
pub const ADVICE: &str = "export the model again with XnnpackPartitioner, or without a partitioner";

/// All of them, by id.
pub const KNOWN: &[KnownBackend] = &[
    known("AotiBackend", "AOTInductor", "CPUs and GPUs that the exporter compiled for"),
    known("ArmBackend", "Ethos-U, of early releases", "Arm microcontrollers with an Ethos-U processor"),
    known("CadenceExecutorchBackend", "Cadence", "Xtensa processors"),
    known("CoreAIBackend", "Core AI", "Apple devices"),
    known("CoreMLBackend", "Core ML", "Apple devices"),
    known("CudaBackend", "CUDA", "NVIDIA GPUs"),
    known("EnnBackend", "Exynos AI LiteCore", "Samsung Exynos processors"),
    known("EthosUBackend", "Ethos-U", "Arm microcontrollers with an Ethos-U processor"),
    known("MLXBackend", "MLX", "Apple computers"),
    known("MPSBackend", "Metal Performance Shaders", "Apple GPUs"),
    known("MetalBackend", "Metal", "Apple GPUs"),
    known("NeuropilotBackend", "NeuroPilot", "MediaTek processors"),
    known("NeutronBackend", "Neutron", "NXP microcontrollers with a Neutron processor"),
    known("OpenvinoBackend", "OpenVINO", "Intel processors"),
    known("QnnBackend", "Qualcomm AI Engine Direct", "Qualcomm Snapdragon processors"),
    known("TOSABackend", "TOSA", "compilers of Arm processors"),
    known("TensorRTBackend", "TensorRT", "NVIDIA GPUs"),
    known("VgfBackend", "VGF", "GPUs with the ML extensions for Vulkan"),
    known("VulkanBackend", "Vulkan", "GPUs with a Vulkan driver"),
];

const fn known(id: &'static str, name: &'static str, target: &'static str) -> KnownBackend {
    KnownBackend { id, name, target }
}

/// Finds a backend by the id that programs name it by.
pub fn known_backend(id: &str) -> Option<&'static KnownBackend> {
    KNOWN.iter().find(|backend| backend.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_order() {
        assert!(KNOWN.is_sorted_by_key(|backend| backend.id));
        assert!(KNOWN.windows(2).all(|pair| pair[0].id != pair[1].id));
        assert!(known_backend("XnnpackBackend").is_none());
        assert_eq!(known_backend("CoreMLBackend").unwrap().target, "Apple devices");
    }
}
