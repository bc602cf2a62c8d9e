/* What generated code needs of a runtime: the types it passes around and the functions it calls. */
#ifndef EDGEPACK_C_RUNTIME_API_H_
#define EDGEPACK_C_RUNTIME_API_H_
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef TVM_DLL
#define TVM_DLL __attribute__((visibility("default")))
#endif
#define TVM_WEAK __attribute__((weak))

/* Half precision, where the compiler has it; nothing else uses the name. */
#if defined(__FLT16_MANT_DIG__)
typedef _Float16 half;
#endif

typedef enum { kDLCPU = 1 } DLDeviceType;
typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;

typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} DLTensor;

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
  const char* v_str;
  DLDataType v_type;
  DLDevice v_device;
} TVMValue;

typedef enum {
  kTVMArgInt = 0,
  kTVMArgFloat = 2,
  kTVMOpaqueHandle = 3,
  kTVMNullptr = 4,
  kTVMDataType = 5,
  kDLDevice = 6,
  kTVMDLTensorHandle = 7,
  kTVMStr = 11,
  kTVMNDArrayHandle = 13
} TVMArgTypeCode;

typedef void* TVMFunctionHandle;

typedef int32_t (*TVMBackendPackedCFunc)(TVMValue* args, int32_t* type_codes, int32_t num_args,
                                         TVMValue* out_value, int32_t* out_type_code, void* resource);

void TVMAPISetLastError(const char* message);
const char* TVMGetLastError(void);
int TVMFuncCall(TVMFunctionHandle function, TVMValue* args, int* type_codes, int num_args,
                TVMValue* out_value, int* out_type_code);
#endif
