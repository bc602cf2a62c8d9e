/*
 * edgepack: on-device model packages, opened, verified, loaded and run.
 *
 * Handles are numbers. Zero stands for none. One that was never given, was closed, or stands for another kind of object is
 * answered with EDGEPACK_CODE_INVALID_ARGUMENT: closing twice and using after closing are errors, not crashes. (After 2^31
 * objects in one place of the table of handles, an old number can stand for a new object.) A call on another thread that uses
 * an object while it is closed is finished first.
 *
 * Functions return EDGEPACK_CODE_OK or the code of an error. Where the last argument is an EdgepackError, it may be null; if
 * it is not, it is zero on success, and otherwise an object that says why, which is the caller's to close. There is no state
 * of threads or of the process to ask for errors.
 *
 * Results are written on success only. Pointers that are null, not aligned to their type, or for more elements than memory
 * can have are answered with an error. That a pointer leads to as many elements as its function says is the caller's promise:
 * the library cannot see it. What the library leads to by pointers is read only, unless it is an EdgepackTensorMut, and is
 * gone as each function says; using it then is the caller's error, which the library cannot see either.
 *
 * Panics of the library end in the function that was called: it returns EDGEPACK_CODE_INTERNAL. A method that panicked answers
 * every later call with EDGEPACK_CODE_INVALID_STATE. Memory that the system does not give for small bookkeeping ends the
 * process, as SECURITY.md says.
 *
 * Every function may be called on any thread, at any time, unless it says otherwise.
 *
 * Made by cbindgen of the crate edgepack-c. Do not edit.
 */

#ifndef EDGEPACK_H
#define EDGEPACK_H

#include <stddef.h>
#include <stdint.h>

// Number of this interface. It is raised where a program that was compiled with an earlier header would not work, and
// edgepack_abi_version returns that of the library.
#define EDGEPACK_ABI_VERSION 1

// Codes of errors; those of the ExecuTorch runtime, by the numbers that it gives them. `edgepack explain CODE` says what
// usually causes one.
enum EdgepackCode
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Success.
    EDGEPACK_CODE_OK = 0,
    // Something in the library is broken, or a callback answered with a number that is no code.
    EDGEPACK_CODE_INTERNAL = 1,
    // The object is not in a state in which this call is possible: it is in use, or it failed before and cannot go on.
    EDGEPACK_CODE_INVALID_STATE = 2,
    // There is no further instruction to step through.
    EDGEPACK_CODE_END_OF_METHOD = 3,
    // The object has been loaded before.
    EDGEPACK_CODE_ALREADY_LOADED = 4,
    // The operation is not supported in this context.
    EDGEPACK_CODE_NOT_SUPPORTED = 16,
    // The operation has not been implemented.
    EDGEPACK_CODE_NOT_IMPLEMENTED = 17,
    // One or more arguments are invalid.
    EDGEPACK_CODE_INVALID_ARGUMENT = 18,
    // A value has another type than expected.
    EDGEPACK_CODE_INVALID_TYPE = 19,
    // An operator of the program has no kernel.
    EDGEPACK_CODE_OPERATOR_MISSING = 20,
    // The kernel table is full.
    EDGEPACK_CODE_REGISTRATION_EXCEEDING_MAX_KERNELS = 21,
    // A kernel is registered already.
    EDGEPACK_CODE_REGISTRATION_ALREADY_REGISTERED = 22,
    // The thing asked for does not exist.
    EDGEPACK_CODE_NOT_FOUND = 32,
    // Memory could not be had, or is more than the limits allow.
    EDGEPACK_CODE_MEMORY_ALLOCATION_FAILED = 33,
    // Data could not be accessed.
    EDGEPACK_CODE_ACCESS_FAILED = 34,
    // The program does not follow the format.
    EDGEPACK_CODE_INVALID_PROGRAM = 35,
    // A data file does not follow the format or does not match the program.
    EDGEPACK_CODE_INVALID_EXTERNAL_DATA = 36,
    // A resource is exhausted.
    EDGEPACK_CODE_OUT_OF_RESOURCES = 37,
    // A delegate payload is of an incompatible version.
    EDGEPACK_CODE_DELEGATE_INVALID_COMPATIBILITY = 48,
    // A delegate could not get memory.
    EDGEPACK_CODE_DELEGATE_MEMORY_ALLOCATION_FAILED = 49,
    // A delegate handle is stale or wrong.
    EDGEPACK_CODE_DELEGATE_INVALID_HANDLE = 50,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum EdgepackCode EdgepackCode;
#else
typedef int32_t EdgepackCode;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Element types, by the numbers that programs have for them.
enum EdgepackDtype
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Unsigned 8-bit integer.
    EDGEPACK_DTYPE_BYTE = 0,
    // Signed 8-bit integer.
    EDGEPACK_DTYPE_CHAR = 1,
    // Signed 16-bit integer.
    EDGEPACK_DTYPE_SHORT = 2,
    // Signed 32-bit integer.
    EDGEPACK_DTYPE_INT = 3,
    // Signed 64-bit integer.
    EDGEPACK_DTYPE_LONG = 4,
    // IEEE 754 half precision.
    EDGEPACK_DTYPE_HALF = 5,
    // IEEE 754 single precision.
    EDGEPACK_DTYPE_FLOAT = 6,
    // IEEE 754 double precision.
    EDGEPACK_DTYPE_DOUBLE = 7,
    // Two halves.
    EDGEPACK_DTYPE_COMPLEX_HALF = 8,
    // Two floats.
    EDGEPACK_DTYPE_COMPLEX_FLOAT = 9,
    // Two doubles.
    EDGEPACK_DTYPE_COMPLEX_DOUBLE = 10,
    // A byte; 0 and 1 are written, every other one reads as true.
    EDGEPACK_DTYPE_BOOL = 11,
    // Quantised signed 8-bit.
    EDGEPACK_DTYPE_Q_INT8 = 12,
    // Quantised unsigned 8-bit.
    EDGEPACK_DTYPE_QU_INT8 = 13,
    // Quantised signed 32-bit.
    EDGEPACK_DTYPE_Q_INT32 = 14,
    // The upper half of a float.
    EDGEPACK_DTYPE_B_FLOAT16 = 15,
    // Unsigned 16-bit integer.
    EDGEPACK_DTYPE_U_INT16 = 27,
    // Unsigned 32-bit integer.
    EDGEPACK_DTYPE_U_INT32 = 28,
    // Unsigned 64-bit integer.
    EDGEPACK_DTYPE_U_INT64 = 29,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum EdgepackDtype EdgepackDtype;
#else
typedef int32_t EdgepackDtype;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Kinds of values.
enum EdgepackKind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // `None`.
    EDGEPACK_KIND_NONE = 0,
    // An integer, in `integer`.
    EDGEPACK_KIND_INT = 1,
    // A truth value: 0 or 1 in `integer`.
    EDGEPACK_KIND_BOOL = 2,
    // A floating point number, in `number`.
    EDGEPACK_KIND_DOUBLE = 3,
    // Text, in `text`.
    EDGEPACK_KIND_TEXT = 4,
    // A tensor, in `tensor`.
    EDGEPACK_KIND_TENSOR = 5,
    // A list, of which only the kind is told, in `text`: IntList, TensorList and others.
    EDGEPACK_KIND_LIST = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum EdgepackKind EdgepackKind;
#else
typedef uint32_t EdgepackKind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Names of limits.
enum EdgepackLimit
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Tables and pieces of 64 bytes visited while verifying.
    EDGEPACK_LIMIT_VISITS = 0,
    // Findings retained; the rest are counted.
    EDGEPACK_LIMIT_FINDINGS = 1,
    // Bytes of all planned memory of one method.
    EDGEPACK_LIMIT_ARENA_BYTES = 2,
    // Bytes of one segment that may be read into memory.
    EDGEPACK_LIMIT_SEGMENT_BYTES = 3,
    // Bytes of what is allocated for a method beyond planned memory and segments.
    EDGEPACK_LIMIT_METHOD_BYTES = 4,
    // Bytes of all of that together.
    EDGEPACK_LIMIT_MEMORY_BYTES = 5,
    // Instructions one execution may run.
    EDGEPACK_LIMIT_INSTRUCTIONS = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum EdgepackLimit EdgepackLimit;
#else
typedef uint32_t EdgepackLimit;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Limits to start from.
enum EdgepackPreset
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Those of this machine.
    EDGEPACK_PRESET_MACHINE = 0,
    // For files of strangers: at most 128 MiB for a method and 100 000 instructions of a run.
    EDGEPACK_PRESET_HOSTILE = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum EdgepackPreset EdgepackPreset;
#else
typedef uint32_t EdgepackPreset;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Severities of findings.
enum EdgepackSeverity
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Worth knowing; the file is fine.
    EDGEPACK_SEVERITY_INFO = 0,
    // Legal but unusual, or not portable to every runtime.
    EDGEPACK_SEVERITY_WARNING = 1,
    // The file breaks a rule and is refused.
    EDGEPACK_SEVERITY_ERROR = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum EdgepackSeverity EdgepackSeverity;
#else
typedef uint32_t EdgepackSeverity;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A call of an operator or of a delegate, as its callback sees it: valid on the thread of the callback, until that returns.
typedef struct EdgepackCall {
    // Number of the call.
    uint64_t id;
} EdgepackCall;

// A tensor to read: its elements lie one after the other, outermost dimension of the dim order first, little-endian.
typedef struct EdgepackTensor {
    // Element type, an EdgepackDtype.
    int32_t dtype;
    // Number of dimensions, at most 16.
    size_t rank;
    // Elements along each dimension; `rank` of them.
    const size_t *sizes;
    // Dimensions from outermost to innermost in memory; `rank` of them, or null for 0, 1, 2 and so on.
    const uint8_t *dim_order;
    // The bytes of the elements, at any address; null of a tensor of which only the layout is told.
    const void *data;
    // Number of bytes: exactly those of the elements.
    size_t len;
} EdgepackTensor;

// A tensor that is written.
typedef struct EdgepackTensorMut {
    // Element type, an EdgepackDtype.
    int32_t dtype;
    // Number of dimensions.
    size_t rank;
    // Elements along each dimension; `rank` of them.
    const size_t *sizes;
    // Dimensions from outermost to innermost in memory; `rank` of them.
    const uint8_t *dim_order;
    // Memory of the elements.
    void *data;
    // Number of bytes.
    size_t len;
} EdgepackTensorMut;

// Ceilings of memory and work that a file may ask for. Where limits are wanted, zero stands for those of this machine: a
// method may have half of the memory that the process can have.
typedef struct EdgepackLimits {
    // Number of the object; zero for none.
    uint64_t id;
} EdgepackLimits;

// Data by key: a data file (`.ptd` or FlatData), or what is inside of a program.
typedef struct EdgepackData {
    // Number of the object; zero for none.
    uint64_t id;
} EdgepackData;

// An error: why a function failed. Zero stands for none.
typedef struct EdgepackError {
    // Number of the object; zero for none.
    uint64_t id;
} EdgepackError;
// No error.
#define EdgepackError_NONE (EdgepackError){ .id = 0 }

// A function that takes something back; null for none. It may be called on any thread, and must not throw.
typedef void (*EdgepackRelease)(void *user);

// A program (`.pte`), opened and verified.
typedef struct EdgepackProgram {
    // Number of the object; zero for none.
    uint64_t id;
} EdgepackProgram;

// Text in UTF-8. `data` is never null, and `data[len]` is a zero byte; names in files may have zero bytes in them, so
// that `len` is what counts.
//
// It belongs to the handle that it was asked of, and is valid until that handle is closed, or for as long as the function
// says that gave it.
typedef struct EdgepackText {
    // The bytes.
    const char *data;
    // Number of bytes, without the zero byte.
    size_t len;
} EdgepackText;

// Bytes of a key, in memory until they are closed.
typedef struct EdgepackBytes {
    // Number of the object; zero for none.
    uint64_t id;
} EdgepackBytes;

// A file: a path, or bytes in memory. If `path` is not null, `data` and `len` do not count.
typedef struct EdgepackFile {
    // Path, which ends with a zero byte; in UTF-8 where paths are not bytes. Null for bytes in memory.
    const char *path;
    // Bytes of the file.
    const void *data;
    // Number of bytes.
    size_t len;
} EdgepackFile;

// Findings about a file: faults, and what is worth knowing.
typedef struct EdgepackFindings {
    // Number of the object; zero for none.
    uint64_t id;
} EdgepackFindings;

// Numbers of findings.
typedef struct EdgepackFindingCounts {
    // Findings that can be asked for.
    size_t listed;
    // Findings that were counted only.
    size_t more;
    // 1 if the file breaks a rule and is refused, 0 if it is valid.
    uint32_t broken;
} EdgepackFindingCounts;

// One finding.
typedef struct EdgepackFinding {
    // An EdgepackSeverity.
    uint32_t severity;
    // Id of the rule, which `edgepack explain` explains.
    struct EdgepackText rule;
    // Place in the structure of the file; empty for the whole file.
    struct EdgepackText path;
    // 1 if `offset` counts, 0 otherwise.
    uint32_t has_offset;
    // Place in the file, in bytes.
    uint64_t offset;
    // The fault, with both sides: what was found and what is wanted.
    struct EdgepackText message;
    // The code that a runtime gives for it, or EDGEPACK_CODE_OK where there is none.
    EdgepackCode code;
} EdgepackFinding;

// A delegate in the making, as its backend's callback sees it: valid on the thread of the callback, until that returns.
typedef struct EdgepackInit {
    // Number of the call.
    uint64_t id;
} EdgepackInit;

// A value: its kind says which of the fields count.
typedef struct EdgepackValue {
    // An EdgepackKind.
    uint32_t kind;
    // The number of an integer, 0 or 1 of a truth value.
    int64_t integer;
    // The number of a floating point number.
    double number;
    // A text; of one that is given to the library, no zero byte is needed behind it.
    struct EdgepackText text;
    // A tensor.
    struct EdgepackTensor tensor;
} EdgepackValue;

// Options of loading methods. Methods take what the options are when they are loaded.
typedef struct EdgepackOptions {
    // Number of the object; zero for none.
    uint64_t id;
} EdgepackOptions;

// A method, ready to run. It holds memory and state of its own, and all that it needs of its program.
typedef struct EdgepackMethod {
    // Number of the object; zero for none.
    uint64_t id;
} EdgepackMethod;

// Bytes of memory of a method, by purpose.
typedef struct EdgepackMemory {
    // Planned by the exporter.
    size_t planned;
    // Values that the program gives no memory.
    size_t private_values;
    // Scratch of kernels.
    size_t scratch;
    // Constants that were read into memory.
    size_t constants;
    // Constants borrowed from the file's bytes.
    size_t borrowed;
    // Packed weights.
    size_t packed;
    // Values and instructions.
    size_t plan;
    // Flatbuffer of the program, which its methods share.
    size_t program;
} EdgepackMemory;

// A callback that looks at a call when its method is loaded. It may put what `run` is to be given into `state`, which is
// null before; if it fails, what it put there is not used.
typedef int32_t (*EdgepackPrepare)(void *user,
                                   struct EdgepackCall call,
                                   void **state);

// A callback that runs a call.
typedef int32_t (*EdgepackRun)(void *user,
                               void *state,
                               struct EdgepackCall call);

// A function that takes back what a callback made; null for none. It must not throw.
typedef void (*EdgepackDrop)(void *user,
                             void *state);

// An operator of the caller's.
//
// Callbacks return an EdgepackCode; edgepack_call_fail gives the reason in words. They are called on the thread that loads or
// runs a method, or on one of the method's own: for one state one at a time, for different methods at the same time. They
// must not throw: an exception that leaves one ends the process. They may call any function of the library; the method that
// is running is in use, and refuses.
typedef struct EdgepackKernel {
    // Name and arguments: `my::leaky.out(Tensor self, float slope, *, Tensor(a!) out) -> Tensor(a!)`.
    const char *schema;
    // 1 if name and arguments determine the result: calls on constants are then made once, when a method is loaded.
    uint32_t pure;
    // Data of the caller's, given to every callback.
    void *user;
    // Looks at a call when a method is loaded; may be null.
    EdgepackPrepare prepare;
    // Runs a call.
    EdgepackRun run;
    // Takes back what `prepare` made; may be null.
    EdgepackDrop drop_state;
    // Takes back `user`; may be null.
    EdgepackRelease release;
} EdgepackKernel;

// A callback that makes a delegate of a payload. It puts what the others are to be given into `delegate`, which is null
// before; if it fails, what it put there is not used.
typedef int32_t (*EdgepackMakeDelegate)(void *user,
                                        struct EdgepackInit init,
                                        void **delegate);

// A callback that says which of the `count` arguments of a call are written: this one and those behind it.
typedef size_t (*EdgepackFirstOutput)(void *user,
                                      void *delegate,
                                      size_t count);

// A callback that looks at a call of a delegate when its method is loaded, as EdgepackPrepare does.
typedef int32_t (*EdgepackPrepareDelegate)(void *user,
                                           void *delegate,
                                           struct EdgepackCall call,
                                           void **state);

// A callback that runs a call of a delegate.
typedef int32_t (*EdgepackRunDelegate)(void *user,
                                       void *delegate,
                                       void *state,
                                       struct EdgepackCall call);

// A backend of the caller's.
//
// Callbacks answer, and are called, as those of EdgepackKernel: for one delegate one at a time.
typedef struct EdgepackBackend {
    // The id that programs name it by.
    const char *id;
    // Data of the caller's, given to every callback.
    void *user;
    // Makes a delegate of a payload, when a method is loaded. A payload is input of strangers: refuse what makes no sense.
    EdgepackMakeDelegate init;
    // Says which arguments are written; null if it is the last one.
    EdgepackFirstOutput first_output;
    // Looks at a call when a method is loaded; may be null.
    EdgepackPrepareDelegate prepare;
    // Runs a call.
    EdgepackRunDelegate run;
    // Takes back what `prepare` made; may be null.
    EdgepackDrop drop_state;
    // Takes back what `init` made, after all states of its calls; may be null.
    EdgepackDrop drop_delegate;
    // Takes back `user`; may be null.
    EdgepackRelease release;
} EdgepackBackend;

// Output of a command.
typedef struct EdgepackReport {
    // Number of the object; zero for none.
    uint64_t id;
} EdgepackReport;

// Inputs, outputs and needs of a method.
typedef struct EdgepackSignature {
    // Number of the object; zero for none.
    uint64_t id;
} EdgepackSignature;

// Numbers of a method.
typedef struct EdgepackCounts {
    // Inputs.
    size_t inputs;
    // Outputs.
    size_t outputs;
    // Delegates, each of which needs a backend.
    size_t backends;
    // Planned memories.
    size_t memories;
    // Instructions in all chains.
    size_t instructions;
} EdgepackCounts;

// An input or output of a method.
typedef struct EdgepackPort {
    // The kind, the value that the method was traced with, or the layout of a tensor: its data are null, its length is the
    // number of bytes.
    struct EdgepackValue value;
    // 1 if the sizes of a tensor are upper bounds, and smaller ones are taken; 0 otherwise.
    uint32_t dynamic;
    // Name of a tensor, or empty.
    struct EdgepackText name;
} EdgepackPort;

// Every code.
#define EdgepackCode_ALL { EdgepackCode_Ok, EdgepackCode_Internal, EdgepackCode_InvalidState, EdgepackCode_EndOfMethod, EdgepackCode_AlreadyLoaded, EdgepackCode_NotSupported, EdgepackCode_NotImplemented, EdgepackCode_InvalidArgument, EdgepackCode_InvalidType, EdgepackCode_OperatorMissing, EdgepackCode_RegistrationExceedingMaxKernels, EdgepackCode_RegistrationAlreadyRegistered, EdgepackCode_NotFound, EdgepackCode_MemoryAllocationFailed, EdgepackCode_AccessFailed, EdgepackCode_InvalidProgram, EdgepackCode_InvalidExternalData, EdgepackCode_OutOfResources, EdgepackCode_DelegateInvalidCompatibility, EdgepackCode_DelegateMemoryAllocationFailed, EdgepackCode_DelegateInvalidHandle, }

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Gives the reason for which a callback is about to return an error. Without one, the last error of a function that the
// callback called for the same call is the reason.
//
// Ownership: the text is copied. Threads: that of the callback.
EdgepackCode edgepack_call_fail(struct EdgepackCall call,
                                const char *message);

// Returns the number of arguments by `count`: those of the schema, and the result again where programs repeat it.
//
// Threads: that of the callback. Prepare and run.
EdgepackCode edgepack_call_count(struct EdgepackCall call,
                                 size_t *count);

// Returns by `none` whether an argument is `None`, 1 or 0.
//
// Threads: that of the callback. Prepare and run.
EdgepackCode edgepack_call_is_none(struct EdgepackCall call,
                                   size_t arg,
                                   uint32_t *none);

// Returns an integer by `value`. While preparing, EDGEPACK_CODE_NOT_SUPPORTED if it is known only when the call runs.
//
// Threads: that of the callback. Prepare and run.
EdgepackCode edgepack_call_int(struct EdgepackCall call,
                               size_t arg,
                               int64_t *value);

// Returns a floating point number by `value`, to which an integer is converted. While preparing as edgepack_call_int.
//
// Threads: that of the callback. Prepare and run.
EdgepackCode edgepack_call_double(struct EdgepackCall call,
                                  size_t arg,
                                  double *value);

// Returns a truth value by `value`, 1 or 0. While preparing as edgepack_call_int.
//
// Threads: that of the callback. Prepare and run.
EdgepackCode edgepack_call_bool(struct EdgepackCall call,
                                size_t arg,
                                uint32_t *value);

// Copies a list of integers into `values`, which has room for `room` of them, and returns how many there are by `count`,
// also if the room is too small: that is EDGEPACK_CODE_INVALID_ARGUMENT. While preparing as edgepack_call_int.
//
// Threads: that of the callback. Prepare and run.
EdgepackCode edgepack_call_ints(struct EdgepackCall call,
                                size_t arg,
                                int64_t *values,
                                size_t room,
                                size_t *count);

// Returns text by `text`, of `len` bytes. There is no zero byte behind it.
//
// Ownership: the text is the method's, until the callback returns. Threads: that of the callback. Prepare and run.
EdgepackCode edgepack_call_text(struct EdgepackCall call,
                                size_t arg,
                                const char **text,
                                size_t *len);

// Returns the layout of a tensor, an input or an output, by `tensor`: its data are null. While preparing, sizes of dynamic
// tensors are upper bounds, and the data of a constant are there.
//
// Ownership: what it leads to is the method's, until the callback sets sizes or returns.
// Threads: that of the callback. Prepare and run.
EdgepackCode edgepack_call_layout(struct EdgepackCall call,
                                  size_t arg,
                                  struct EdgepackTensor *tensor);

// Asks for scratch memory of so many bytes for the runs of the call.
//
// Threads: that of the callback. Prepare.
EdgepackCode edgepack_call_want_scratch(struct EdgepackCall call,
                                        size_t bytes);

// Gives an output other sizes, within the bounds that the program has for it. Before memory is asked for.
//
// Threads: that of the callback. Run.
EdgepackCode edgepack_call_resize(struct EdgepackCall call,
                                  size_t arg,
                                  const size_t *sizes,
                                  size_t rank);

// Gives an output of a list other sizes, as edgepack_call_resize does.
//
// Threads: that of the callback. Run.
EdgepackCode edgepack_call_resize_item(struct EdgepackCall call,
                                       size_t arg,
                                       size_t item,
                                       const size_t *sizes,
                                       size_t rank);

// Returns an input tensor by `tensor`.
//
// Ownership: what it leads to is the method's, until the callback returns. Threads: that of the callback. Run.
EdgepackCode edgepack_call_tensor(struct EdgepackCall call,
                                  size_t arg,
                                  struct EdgepackTensor *tensor);

// Returns an output tensor by `tensor`, once.
//
// Ownership: what it leads to is the method's, until the callback returns. Threads: that of the callback. Run.
EdgepackCode edgepack_call_output(struct EdgepackCall call,
                                  size_t arg,
                                  struct EdgepackTensorMut *tensor);

// Returns the number of tensors of a list by `count`.
//
// Threads: that of the callback. Prepare and run.
EdgepackCode edgepack_call_list_count(struct EdgepackCall call,
                                      size_t arg,
                                      size_t *count);

// Returns a tensor of a list of inputs by `tensor`; EDGEPACK_CODE_NOT_FOUND if the item is `None`.
//
// Ownership: what it leads to is the method's, until the callback returns. Threads: that of the callback. Run.
EdgepackCode edgepack_call_list_tensor(struct EdgepackCall call,
                                       size_t arg,
                                       size_t item,
                                       struct EdgepackTensor *tensor);

// Returns all tensors of a list of outputs by `tensors`, once; `count` is their number.
//
// Ownership: what they lead to is the method's, until the callback returns. Threads: that of the callback. Run.
EdgepackCode edgepack_call_list_outputs(struct EdgepackCall call,
                                        size_t arg,
                                        struct EdgepackTensorMut *tensors,
                                        size_t count);

// Returns the scratch memory that was asked for by `data`, and its length by `len`, once. It has any content.
//
// Ownership: it is the method's, until the callback returns. Threads: that of the callback. Run.
EdgepackCode edgepack_call_scratch(struct EdgepackCall call,
                                   void **data,
                                   size_t *len);

// Writes a result that is an integer.
//
// Threads: that of the callback. Run.
EdgepackCode edgepack_call_set_int(struct EdgepackCall call,
                                   size_t arg,
                                   int64_t value);

// Writes a result that is a floating point number.
//
// Threads: that of the callback. Run.
EdgepackCode edgepack_call_set_double(struct EdgepackCall call,
                                      size_t arg,
                                      double value);

// Writes a result that is a truth value, false for 0.
//
// Threads: that of the callback. Run.
EdgepackCode edgepack_call_set_bool(struct EdgepackCall call,
                                    size_t arg,
                                    uint32_t value);

// Opens a data file, which is verified. Data are read when they are asked for; the file has to stay as it is meanwhile.
//
// Ownership: the data are the caller's, who closes them; options and methods that were given them keep what they need.
// Threads: any, at any time; data may be used on several threads.
EdgepackCode edgepack_data_open(const char *path,
                                struct EdgepackLimits limits,
                                struct EdgepackData *data,
                                struct EdgepackError *error);

// Opens a data file that is in memory, of which a copy is made.
//
// Ownership and threads: as of edgepack_data_open.
EdgepackCode edgepack_data_open_copy(const void *bytes,
                                     size_t len,
                                     struct EdgepackLimits limits,
                                     struct EdgepackData *data,
                                     struct EdgepackError *error);

// Opens a data file that is in memory, and stays there, as edgepack_program_open_borrowed does with a program: `bytes` are
// neither changed nor freed until `release` is called with `user`.
//
// Ownership and threads: as of edgepack_data_open.
EdgepackCode edgepack_data_open_borrowed(const void *bytes,
                                         size_t len,
                                         EdgepackRelease release,
                                         void *user,
                                         struct EdgepackLimits limits,
                                         struct EdgepackData *data,
                                         struct EdgepackError *error);

// Returns the named data inside of a program, without reading them.
//
// Ownership: the data are the caller's, who closes them; the program may be closed before. Threads: any, at any time.
EdgepackCode edgepack_data_of_program(struct EdgepackProgram program,
                                      struct EdgepackData *data,
                                      struct EdgepackError *error);

// Returns the number of keys by `count`.
//
// Threads: any, at any time.
EdgepackCode edgepack_data_count(struct EdgepackData data,
                                 size_t *count,
                                 struct EdgepackError *error);

// Returns a key by `key`.
//
// Ownership: the text is that of the data, until they are closed. Threads: any, at any time.
EdgepackCode edgepack_data_key(struct EdgepackData data,
                               size_t index,
                               struct EdgepackText *key,
                               struct EdgepackError *error);

// Returns the index of a key by `index`; EDGEPACK_CODE_NOT_FOUND if there is none.
//
// Threads: any, at any time.
EdgepackCode edgepack_data_find(struct EdgepackData data,
                                const char *key,
                                size_t *index,
                                struct EdgepackError *error);

// Returns the layout of a tensor by `tensor`, whose data are null and whose length is the number of bytes;
// EDGEPACK_CODE_INVALID_TYPE if it is no tensor.
//
// Ownership: what it leads to is that of the data, until they are closed. Threads: any, at any time.
EdgepackCode edgepack_data_layout(struct EdgepackData data,
                                  size_t index,
                                  struct EdgepackTensor *tensor,
                                  struct EdgepackError *error);

// Reads the data of a key, of which there have to be `len` bytes. If that fails, what `into` has is not specified.
//
// Threads: any, at any time.
EdgepackCode edgepack_data_read(struct EdgepackData data,
                                size_t index,
                                void *into,
                                size_t len,
                                struct EdgepackError *error);

// Returns the data of a key as bytes that stay in memory until they are closed; borrowed where the file is in memory, else
// read now.
//
// Ownership: the bytes are the caller's, who closes them; the data may be closed before. Threads: any, at any time.
EdgepackCode edgepack_data_bytes(struct EdgepackData data,
                                 size_t index,
                                 struct EdgepackBytes *bytes,
                                 struct EdgepackError *error);

// Returns where bytes are by `data`, and how many by `len`.
//
// Ownership: they are those of the handle, until it is closed. Threads: any, at any time.
EdgepackCode edgepack_bytes_view(struct EdgepackBytes bytes,
                                 const void **data,
                                 size_t *len,
                                 struct EdgepackError *error);

// Closes bytes. Zero is closed at any time.
//
// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if they were closed before.
EdgepackCode edgepack_bytes_close(struct EdgepackBytes bytes);

// Closes named data. Options and methods that were given them keep what they need. Zero is closed at any time.
//
// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if they were closed before.
EdgepackCode edgepack_data_close(struct EdgepackData data);

// Returns the code of an error; EDGEPACK_CODE_OK for zero, EDGEPACK_CODE_INVALID_ARGUMENT for what is no open error.
//
// Threads: any, at any time.
EdgepackCode edgepack_error_code(struct EdgepackError error);

// Returns the message of an error, with both sides: what was found and what is wanted. Empty for zero and for what is no
// open error.
//
// Ownership: the text is the error's, until it is closed. Threads: any, at any time.
struct EdgepackText edgepack_error_message(struct EdgepackError error);

// Returns the id of the rule that a file breaks, such as PTE-HEAD-001; empty if the error is about no rule.
//
// Ownership: the text is the error's, until it is closed. Threads: any, at any time.
struct EdgepackText edgepack_error_rule(struct EdgepackError error);

// Returns the place in the structure of a file, or among the arguments: `execution_plan[0].values[17].sizes`, `inputs[0]`.
// Empty if there is none.
//
// Ownership: the text is the error's, until it is closed. Threads: any, at any time.
struct EdgepackText edgepack_error_path(struct EdgepackError error);

// Writes the offset in the file that an error is about, and returns 1; returns 0 and writes nothing if there is none.
//
// Threads: any, at any time.
uint32_t edgepack_error_offset(struct EdgepackError error,
                               uint64_t *offset);

// Closes an error, whose texts are gone then. Zero is closed at any time.
//
// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if it was closed before.
EdgepackCode edgepack_error_close(struct EdgepackError error);

// Verifies a file of any format, by every rule of its format; `preset` is an EdgepackPreset, the limits. A broken file is no
// error of this function, one that cannot be read or is of no known kind is.
//
// Ownership: the findings are the caller's, who closes them; bytes of the file are copied. Threads: any, at any time.
EdgepackCode edgepack_verify(const struct EdgepackFile *file,
                             uint32_t preset,
                             struct EdgepackFindings *findings,
                             struct EdgepackError *error);

// Returns the numbers of findings by `counts`.
//
// Threads: any, at any time.
EdgepackCode edgepack_findings_counts(struct EdgepackFindings findings,
                                      struct EdgepackFindingCounts *counts,
                                      struct EdgepackError *error);

// Returns the kind of the file by `kind`: program, data, mlf and others.
//
// Ownership: the text is that of the findings, until they are closed. Threads: any, at any time.
EdgepackCode edgepack_findings_kind(struct EdgepackFindings findings,
                                    struct EdgepackText *kind,
                                    struct EdgepackError *error);

// Returns one finding by `finding`, in the order of the file.
//
// Ownership: its texts are those of the findings, until they are closed. Threads: any, at any time.
EdgepackCode edgepack_findings_at(struct EdgepackFindings findings,
                                  size_t index,
                                  struct EdgepackFinding *finding,
                                  struct EdgepackError *error);

// Closes findings. Zero is closed at any time.
//
// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if they were closed before.
EdgepackCode edgepack_findings_close(struct EdgepackFindings findings);

// Gives the reason for which a callback is about to return an error.
//
// Ownership: the text is copied. Threads: that of the callback.
EdgepackCode edgepack_init_fail(struct EdgepackInit init,
                                const char *message);

// Returns the payload: the bytes that were made for the backend at export.
//
// Ownership: they are there until the delegate is dropped. Threads: that of the callback.
EdgepackCode edgepack_init_payload(struct EdgepackInit init,
                                   const void **data,
                                   size_t *len);

// Returns the number of compile specs by `count`: options that were given at export.
//
// Threads: that of the callback.
EdgepackCode edgepack_init_spec_count(struct EdgepackInit init,
                                      size_t *count);

// Returns a compile spec: its key and its bytes.
//
// Ownership: they are there until the callback returns. Threads: that of the callback.
EdgepackCode edgepack_init_spec(struct EdgepackInit init,
                                size_t index,
                                struct EdgepackText *key,
                                const void **data,
                                size_t *len);

// Returns named data of the program, or of the data files that its method is loaded with; EDGEPACK_CODE_NOT_FOUND if there is
// no such key.
//
// Ownership: they are there until the delegate is dropped. Threads: that of the callback.
EdgepackCode edgepack_init_named_data(struct EdgepackInit init,
                                      const char *key,
                                      const void **data,
                                      size_t *len);

// Returns an option that was set for the backend by `value`; EDGEPACK_CODE_NOT_FOUND if it was not set.
//
// Ownership: a text is there until the callback returns. Threads: that of the callback.
EdgepackCode edgepack_init_option(struct EdgepackInit init,
                                  const char *name,
                                  struct EdgepackValue *value);

// Returns the name of the method that is loaded by `name`.
//
// Ownership: the text is there until the callback returns. Threads: that of the callback.
EdgepackCode edgepack_init_method(struct EdgepackInit init,
                                  struct EdgepackText *name);

// Makes limits; `preset` is an EdgepackPreset.
//
// Ownership: the limits are the caller's, who closes them. They are copied wherever they are given to.
// Threads: any, at any time.
EdgepackCode edgepack_limits_new(uint32_t preset,
                                 struct EdgepackLimits *limits,
                                 struct EdgepackError *error);

// Sets one of the limits; `limit` is an EdgepackLimit.
//
// Threads: any, at any time.
EdgepackCode edgepack_limits_set(struct EdgepackLimits limits,
                                 uint32_t limit,
                                 uint64_t value,
                                 struct EdgepackError *error);

// Returns one of the limits by `value`; `limit` is an EdgepackLimit. Limits of zero are those of this machine.
//
// Threads: any, at any time.
EdgepackCode edgepack_limits_get(struct EdgepackLimits limits,
                                 uint32_t limit,
                                 uint64_t *value,
                                 struct EdgepackError *error);

// Closes limits. What was opened or loaded with them is as it was. Zero is closed at any time.
//
// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if they were closed before.
EdgepackCode edgepack_limits_close(struct EdgepackLimits limits);

// Loads a method: its operators and backends are found, its memory is laid out, its weights are read. Options of zero are
// the operators and backends of the library, and no others.
//
// Ownership: the method is the caller's, who closes it; program and options may be closed before.
// Threads: any, at any time.
EdgepackCode edgepack_method_load(struct EdgepackProgram program,
                                  const char *name,
                                  struct EdgepackOptions options,
                                  struct EdgepackMethod *method,
                                  struct EdgepackError *error);

// Runs a method on `input_count` inputs, all of them, in order, and returns its first `output_count` outputs, which may be
// fewer than it has; `outputs` may be null for none. Inputs are read during the call only; an output of this method may be
// an input of its next run. If a run fails, `outputs` is not written.
//
// Ownership: what the outputs lead to is the method's, until it is run, reset or closed.
// Threads: any, one call at a time: another one is refused with EDGEPACK_CODE_INVALID_STATE.
EdgepackCode edgepack_method_run(struct EdgepackMethod method,
                                 const struct EdgepackValue *inputs,
                                 size_t input_count,
                                 struct EdgepackValue *outputs,
                                 size_t output_count,
                                 struct EdgepackError *error);

// Sets one input, which is copied. It stays set until a run uses its memory for something else, as most programs do.
//
// Threads: any, one call at a time.
EdgepackCode edgepack_method_set_input(struct EdgepackMethod method,
                                       size_t index,
                                       const struct EdgepackValue *value,
                                       struct EdgepackError *error);

// Runs a method on the inputs that were set before.
//
// Threads: any, one call at a time.
EdgepackCode edgepack_method_execute(struct EdgepackMethod method,
                                     struct EdgepackError *error);

// Takes a method back to its state after loading: mutable buffers have their initial values, inputs are not set.
//
// Threads: any, one call at a time.
EdgepackCode edgepack_method_reset(struct EdgepackMethod method,
                                   struct EdgepackError *error);

// Returns the number of inputs and of outputs; each of the pointers may be null.
//
// Threads: any, one call at a time.
EdgepackCode edgepack_method_counts(struct EdgepackMethod method,
                                    size_t *inputs,
                                    size_t *outputs,
                                    struct EdgepackError *error);

// Returns an output of the last run by `value`; before the first run, what the file has there.
//
// Ownership: what it leads to is the method's, until it is run, reset or closed. Threads: any, one call at a time.
EdgepackCode edgepack_method_output(struct EdgepackMethod method,
                                    size_t index,
                                    struct EdgepackValue *value,
                                    struct EdgepackError *error);

// Copies the bytes of an output tensor of the last run, of which there have to be `len`.
//
// Threads: any, one call at a time.
EdgepackCode edgepack_method_copy_output(struct EdgepackMethod method,
                                         size_t index,
                                         void *data,
                                         size_t len,
                                         struct EdgepackError *error);

// Returns the memory of a method by `memory`. Kernels may pack weights in the first run: before it the numbers can be lower.
//
// Threads: any, one call at a time.
EdgepackCode edgepack_method_memory(struct EdgepackMethod method,
                                    struct EdgepackMemory *memory,
                                    struct EdgepackError *error);

// Closes a method. One that runs on another thread is gone when that run is over. Zero is closed at any time.
//
// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if it was closed before.
EdgepackCode edgepack_method_close(struct EdgepackMethod method);

// Makes options: the operators and backends of the library, threads as the machine has them.
//
// Ownership: the options are the caller's, who closes them; methods that were loaded with them keep what they need.
// Threads: any, at any time.
EdgepackCode edgepack_options_new(struct EdgepackOptions *options,
                                  struct EdgepackError *error);

// Sets the number of threads that a method has to itself; 0 for those of the process. Results do not depend on it.
//
// Threads: any, at any time.
EdgepackCode edgepack_options_set_threads(struct EdgepackOptions options,
                                          size_t threads,
                                          struct EdgepackError *error);

// Sets whether methods are made faster when they are loaded, as they are unless `optimize` is 0.
//
// Threads: any, at any time.
EdgepackCode edgepack_options_set_optimize(struct EdgepackOptions options,
                                           uint32_t optimize,
                                           struct EdgepackError *error);

// Sets the ceilings of methods. Without them, those that their program was opened with are theirs.
//
// Threads: any, at any time.
EdgepackCode edgepack_options_set_limits(struct EdgepackOptions options,
                                         struct EdgepackLimits limits,
                                         struct EdgepackError *error);

// Adds named data in which weights are found, besides those inside of the program.
//
// Ownership: the data may be closed before the options. Threads: any, at any time.
EdgepackCode edgepack_options_add_data(struct EdgepackOptions options,
                                       struct EdgepackData data,
                                       struct EdgepackError *error);

// Stores packed weights in a folder, where later loads find them. The folder is made if it does not exist; one of another
// user, or that others may write to, is refused.
//
// Threads: any, at any time.
EdgepackCode edgepack_options_set_pack_folder(struct EdgepackOptions options,
                                              const char *folder,
                                              struct EdgepackError *error);

// Adds an operator of the caller's; one of the same name is replaced in these options.
//
// Ownership: the struct and its texts are copied. `kernel->release` is called with `user` when neither these options nor any
// method that was loaded with them needs the operator; if this function fails, it is not called.
// Threads: any, at any time; those of the callbacks are said where the struct is.
EdgepackCode edgepack_options_add_kernel(struct EdgepackOptions options,
                                         const struct EdgepackKernel *kernel,
                                         struct EdgepackError *error);

// Adds a backend of the caller's; it goes before an earlier one of the same id.
//
// Ownership: the struct and its texts are copied. `backend->release` is called with `user` when neither these options nor
// any method that was loaded with them needs the backend; if this function fails, it is not called.
// Threads: any, at any time; those of the callbacks are said where the struct is.
EdgepackCode edgepack_options_add_backend(struct EdgepackOptions options,
                                          const struct EdgepackBackend *backend,
                                          struct EdgepackError *error);

// Gives a backend an option that is a number.
//
// Threads: any, at any time.
EdgepackCode edgepack_options_set_backend_int(struct EdgepackOptions options,
                                              const char *backend,
                                              const char *name,
                                              int64_t value,
                                              struct EdgepackError *error);

// Gives a backend an option that is true, or false for 0.
//
// Threads: any, at any time.
EdgepackCode edgepack_options_set_backend_bool(struct EdgepackOptions options,
                                               const char *backend,
                                               const char *name,
                                               uint32_t value,
                                               struct EdgepackError *error);

// Gives a backend an option that is text.
//
// Threads: any, at any time.
EdgepackCode edgepack_options_set_backend_text(struct EdgepackOptions options,
                                               const char *backend,
                                               const char *name,
                                               const char *value,
                                               struct EdgepackError *error);

// Closes options. Methods that were loaded with them keep what they need. Zero is closed at any time.
//
// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if they were closed before.
EdgepackCode edgepack_options_close(struct EdgepackOptions options);

// Opens a program file. Its head is read and verified; weights are read when a method is loaded. The file has to stay as it
// is meanwhile; if it does not, what is read is an error or other numbers.
//
// Ownership: the program is the caller's, who closes it; methods that were loaded from it keep what they need of it.
// Threads: any, at any time; a program may be used on several threads.
EdgepackCode edgepack_program_open(const char *path,
                                   struct EdgepackLimits limits,
                                   struct EdgepackProgram *program,
                                   struct EdgepackError *error);

// Opens a program that is in memory, of which a copy is made: `data` is the caller's again when the function returns.
//
// Ownership and threads: as of edgepack_program_open.
EdgepackCode edgepack_program_open_copy(const void *data,
                                        size_t len,
                                        struct EdgepackLimits limits,
                                        struct EdgepackProgram *program,
                                        struct EdgepackError *error);

// Opens a program that is in memory, and stays there: weights are read where they are. `data` is neither changed nor freed
// until `release` is called with `user`, once, when the program, its methods and its data are all closed, and on whichever
// thread closes the last of them. If this function fails, it is not called; and it may be null for memory that is there for
// as long as the process.
//
// Ownership and threads: as of edgepack_program_open.
EdgepackCode edgepack_program_open_borrowed(const void *data,
                                            size_t len,
                                            EdgepackRelease release,
                                            void *user,
                                            struct EdgepackLimits limits,
                                            struct EdgepackProgram *program,
                                            struct EdgepackError *error);

// Closes a program. Methods and data that were made of it live on. Zero is closed at any time.
//
// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if it was closed before.
EdgepackCode edgepack_program_close(struct EdgepackProgram program);

// Returns the number of methods of a program by `count`.
//
// Threads: any, at any time.
EdgepackCode edgepack_program_method_count(struct EdgepackProgram program,
                                           size_t *count,
                                           struct EdgepackError *error);

// Returns the name of a method by `name`.
//
// Ownership: the text is the program's, until it is closed. Threads: any, at any time.
EdgepackCode edgepack_program_method_name(struct EdgepackProgram program,
                                          size_t index,
                                          struct EdgepackText *name,
                                          struct EdgepackError *error);

// Says what is inside of a file of any format, as JSON: the document of `edgepack inspect --json`. What a broken file still
// says is in it, too. `preset` is an EdgepackPreset, the limits.
//
// Ownership: the report is the caller's, who closes it; bytes of the file are copied. Threads: any, at any time.
EdgepackCode edgepack_inspect(const struct EdgepackFile *file,
                              uint32_t preset,
                              struct EdgepackReport *report,
                              struct EdgepackError *error);

// Lists the operators and delegates that a file needs, as JSON, and which of them this library has: the document of
// `edgepack ops --json`. `preset` is an EdgepackPreset, the limits.
//
// Ownership: the report is the caller's, who closes it; bytes of the file are copied. Threads: any, at any time.
EdgepackCode edgepack_ops(const struct EdgepackFile *file,
                          uint32_t preset,
                          struct EdgepackReport *report,
                          struct EdgepackError *error);

// Says where the bytes of a file go, as JSON: the document of `edgepack size --json`. `preset` is an
// EdgepackPreset, the limits.
//
// Ownership: the report is the caller's, who closes it; bytes of the file are copied. Threads: any, at any time.
EdgepackCode edgepack_size(const struct EdgepackFile *file,
                           uint32_t preset,
                           struct EdgepackReport *report,
                           struct EdgepackError *error);

// Runs the command `edgepack` with `count` arguments, the name of the program not among them; `input` is what `-` reads.
// Commands read and write the files that they are told to, and `run --allow-native-code` runs the code of a package in this
// process: arguments are as trusted as a caller is. No connections are made. That a command fails is no error of this
// function; its status says so.
//
// Ownership: the report is the caller's, who closes it; arguments and input are copied. Threads: any, at any time.
EdgepackCode edgepack_command(const char *const *args,
                              size_t count,
                              const void *input,
                              size_t input_len,
                              struct EdgepackReport *report,
                              struct EdgepackError *error);

// Returns the exit status of a command by `status`: 0 fine, 1 findings or a difference, 2 wrong usage, 3 unreadable, 4 valid
// but cannot run here.
//
// Threads: any, at any time.
EdgepackCode edgepack_report_status(struct EdgepackReport report,
                                    uint32_t *status,
                                    struct EdgepackError *error);

// Returns what a command printed by `text`. Some commands print other things than text.
//
// Ownership: it is that of the report, until it is closed. Threads: any, at any time.
EdgepackCode edgepack_report_output(struct EdgepackReport report,
                                    struct EdgepackText *text,
                                    struct EdgepackError *error);

// Returns what a command complained of by `text`.
//
// Ownership: it is that of the report, until it is closed. Threads: any, at any time.
EdgepackCode edgepack_report_complaints(struct EdgepackReport report,
                                        struct EdgepackText *text,
                                        struct EdgepackError *error);

// Closes a report. Zero is closed at any time.
//
// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if it was closed before.
EdgepackCode edgepack_report_close(struct EdgepackReport report);

// Looks at a method without loading it.
//
// Ownership: the signature is the caller's, who closes it; it needs the program no more.
// Threads: any, at any time.
EdgepackCode edgepack_signature_of(struct EdgepackProgram program,
                                   const char *method,
                                   struct EdgepackSignature *signature,
                                   struct EdgepackError *error);

// Returns the numbers of a method by `counts`.
//
// Threads: any, at any time.
EdgepackCode edgepack_signature_counts(struct EdgepackSignature signature,
                                       struct EdgepackCounts *counts,
                                       struct EdgepackError *error);

// Returns an input of the method by `port`.
//
// Ownership: what it leads to is the signature's, until it is closed. Threads: any, at any time.
EdgepackCode edgepack_signature_input(struct EdgepackSignature signature,
                                      size_t index,
                                      struct EdgepackPort *port,
                                      struct EdgepackError *error);

// Returns an output of the method by `port`.
//
// Ownership: what it leads to is the signature's, until it is closed. Threads: any, at any time.
EdgepackCode edgepack_signature_output(struct EdgepackSignature signature,
                                       size_t index,
                                       struct EdgepackPort *port,
                                       struct EdgepackError *error);

// Returns the name of the backend of a delegate by `id`.
//
// Ownership: the text is the signature's, until it is closed. Threads: any, at any time.
EdgepackCode edgepack_signature_backend(struct EdgepackSignature signature,
                                        size_t delegate,
                                        struct EdgepackText *id,
                                        struct EdgepackError *error);

// Returns the bytes of a planned memory by `bytes`; the first is 0.
//
// Threads: any, at any time.
EdgepackCode edgepack_signature_memory(struct EdgepackSignature signature,
                                       size_t index,
                                       uint64_t *bytes,
                                       struct EdgepackError *error);

// Closes a signature. Zero is closed at any time.
//
// Threads: any, at any time. Returns EDGEPACK_CODE_INVALID_ARGUMENT if it was closed before.
EdgepackCode edgepack_signature_close(struct EdgepackSignature signature);

// Returns the bytes of an element of this type, an EdgepackDtype; 0 if there is no such type.
//
// Threads: any, at any time.
size_t edgepack_dtype_size(int32_t dtype);

// Returns the number of the interface of the library that is linked: EDGEPACK_ABI_VERSION of its header.
//
// Threads: any, at any time.
uint32_t edgepack_abi_version(void);

// Returns the version of the library: `0.1.0`.
//
// Ownership: the text is there for as long as the process. Threads: any, at any time.
const char *edgepack_version(void);

// Returns the number of handles that are open in the process, of all kinds: for tests of programs that close what they
// open.
//
// Threads: any, at any time.
size_t edgepack_open_handles(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* EDGEPACK_H */
