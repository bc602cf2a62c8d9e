//! Meaning and usual causes of each ExecuTorch error code.

use edgepack_format::finding::ErrorCode;

/// A code explained.
pub struct Explanation {
    /// Meaning of the code.
    pub meaning: &'static str,
    /// Usual causes, the likeliest first.
    pub causes: &'static [&'static str],
}

/// The explanation of a code.
pub fn explanation(code: ErrorCode) -> Explanation {
    let (meaning, causes): (_, &[_]) = match code {
        ErrorCode::Ok => ("Nothing went wrong.", &["success is a code, too: 0"]),
        ErrorCode::Internal => (
            "The runtime met a state it believes impossible, or a part of the file that it checks late.",
            &[
                "a dim order that is not a permutation, or an instruction of an unknown kind: `edgepack verify` names it",
                "a delegate call whose index is out of range",
                "a backend that failed without saying why",
                "mixed builds: runtime and kernels compiled from different revisions",
            ],
        ),
        ErrorCode::InvalidState => (
            "The call is possible, but not now: the object has to be brought into another state first.",
            &[
                "executing before all inputs are set, or after loading the method failed",
                "a program with weights in a data file, loaded without one: pass the .ptd",
                "a method that is already running on the same memory",
            ],
        ),
        ErrorCode::EndOfMethod => (
            "A method that is stepped through instruction by instruction has no further instruction. Not a failure.",
            &["the stepping loop went on after the last instruction; reset the execution to start over"],
        ),
        ErrorCode::AlreadyLoaded => (
            "The object is loaded once in its life, and that has happened.",
            &["load called twice on the same object, often from two places that both want to be safe"],
        ),
        ErrorCode::NotSupported => (
            "What is asked for exists, but not in this combination, on this platform or in this build.",
            &[
                "an input whose shape is larger than the program was exported for, or of another rank",
                "resizing a tensor that was exported with a fixed shape: export with dynamic shapes",
                "an element type that a kernel does not handle",
                "a data map inside a program asked for what only data files have",
            ],
        ),
        ErrorCode::NotImplemented => (
            "The operation has a place in the interface and no code behind it.",
            &["an optional method of a data loader, backend or allocator that this implementation leaves out"],
        ),
        ErrorCode::InvalidArgument => (
            "A caller passed something that cannot be right.",
            &[
                "an input of another element type, rank or dim order than the method takes",
                "a number as input that differs from the one the program was traced with",
                "a method name or index that the program does not have",
                "a file that is too short, or a read outside of it",
                "a kernel that refuses its arguments: the log names the kernel and the check",
                "the same key in two data files",
            ],
        ),
        ErrorCode::InvalidType => (
            "A value is of another kind than the operation needs.",
            &[
                "an output read as a tensor that is a number, or the reverse",
                "a list that names values of another kind",
                "freeing or jumping on a value that is not a tensor",
            ],
        ),
        ErrorCode::OperatorMissing => (
            "The program calls operators for which no kernel is registered; the log lists them all.",
            &[
                "kernels built selectively for another model: rebuild with this model's operator list (`edgepack ops`)",
                "the library with the kernels is not linked, or the linker dropped its registration: link it whole",
                "custom or quantised operators, which come in libraries of their own",
                "a kernel exists, but not for these element types or dim orders",
                "a program that was not lowered to out variants",
            ],
        ),
        ErrorCode::RegistrationExceedingMaxKernels => (
            "The table of kernels has a fixed size, and it is full.",
            &[
                "several kernel libraries in one process: raise MAX_KERNEL_NUM and rebuild",
                "a table sized for one model's operators and used with another's",
            ],
        ),
        ErrorCode::RegistrationAlreadyRegistered => (
            "A kernel for the same operator and the same types is registered already.",
            &[
                "two libraries that both bring it, such as portable and optimized kernels side by side",
                "one library linked twice, once static and once shared",
            ],
        ),
        ErrorCode::NotFound => (
            "Something is asked for by name or number that is not there.",
            &[
                "a delegate whose backend is not linked, not registered or not available on this device",
                "a key that none of the data files has: the wrong .ptd, or one of another export",
                "an index of a delegate payload or a segment beyond the end of its list",
            ],
        ),
        ErrorCode::MemoryAllocationFailed => (
            "Memory ran out: an arena or pool with a fixed size, or the system.",
            &[
                "a file that asks for more than the limits allow: `--limits`, or `Limits` of the library",
                "a method allocator pool that is too small for the method: enlarge it",
                "planned memory smaller than the method declares (`edgepack inspect` shows how much it needs)",
                "no temporary allocator for a kernel that needs scratch memory",
                "absurd sizes in a damaged file",
            ],
        ),
        ErrorCode::AccessFailed => (
            "A file or device could not be read.",
            &[
                "a path that does not exist, or no permission",
                "a file that was shortened or unmounted while in use",
                "a failing storage device",
            ],
        ),
        ErrorCode::InvalidProgram => (
            "The bytes are no program, or one that breaks the rules of the format.",
            &[
                "a truncated download, a file changed in transit, or text conversion of line ends",
                "a file of another format with the name of a program",
                "an exporter newer or much older than the runtime",
                "a tool that edits programs and makes mistakes: `edgepack verify` says where",
            ],
        ),
        ErrorCode::InvalidExternalData => (
            "A data file breaks the rules of its format, or is not the one the program was exported with.",
            &[
                "a .ptd of another export or another model: `edgepack verify FILE --data D` compares the two",
                "a data file written before June 2025, whose tables have another layout",
                "a truncated or damaged data file",
            ],
        ),
        ErrorCode::OutOfResources => (
            "A limited resource other than memory is used up.",
            &[
                "threads, handles, or queue slots of a device",
                "limits set for files from strangers, met by a large but honest file: raise them",
            ],
        ),
        ErrorCode::DelegateInvalidCompatibility => (
            "A backend refuses its payload: it was compiled for another version or another device.",
            &[
                "program and runtime of different releases: export again with the release that is deployed",
                "a payload compiled ahead of time for another chip",
                "a damaged payload",
            ],
        ),
        ErrorCode::DelegateMemoryAllocationFailed => (
            "A backend could not get the memory it needs.",
            &[
                "a model too large for the device, or for the limits it is given",
                "several models loaded at once",
                "a runtime allocator that is too small for the backend's own structures",
            ],
        ),
        ErrorCode::DelegateInvalidHandle => (
            "A backend was handed a delegate it does not know.",
            &[
                "a delegate used after it was destroyed, or before its init succeeded",
                "a backend that was reset or restarted underneath its delegates",
            ],
        ),
        // The list of codes is open; a code that is new there is explained by its name until it is here.
        _ => ("A code without an explanation.", &[]),
    };
    Explanation { meaning, causes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained() {
        for &code in ErrorCode::ALL {
            assert!(!explanation(code).causes.is_empty(), "{code}");
        }
    }
}
