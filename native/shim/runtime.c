/* The functions that generated code calls, linked into every compiled package. Parallel loops run as one task. */
#include <stdio.h>
#include <stdlib.h>
#include "tvm/runtime/c_backend_api.h"

#define HIDDEN __attribute__((visibility("hidden")))
#define ALIGNMENT 128

static _Thread_local char last_error[512];

TVM_DLL void edgepack_clear_error(void) { last_error[0] = 0; }
TVM_DLL const char* edgepack_last_error(void) { return last_error; }

HIDDEN void TVMAPISetLastError(const char* message) { snprintf(last_error, sizeof last_error, "%s", message); }
HIDDEN const char* TVMGetLastError(void) { return last_error; }

HIDDEN void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t bytes, int code_hint, int bits_hint) {
  (void)device_type, (void)device_id, (void)code_hint, (void)bits_hint;
  if (bytes > SIZE_MAX - ALIGNMENT) return NULL;
  size_t whole = ((size_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return aligned_alloc(ALIGNMENT, whole ? whole : ALIGNMENT);
}

HIDDEN int TVMBackendFreeWorkspace(int device_type, int device_id, void* memory) {
  (void)device_type, (void)device_id;
  free(memory);
  return 0;
}

HIDDEN int TVMBackendParallelLaunch(FTVMParallelLambda body, void* closure, int num_task) {
  (void)num_task;
  TVMParallelGroupEnv env = {NULL, 1};
  return body(0, &env, closure);
}

HIDDEN int TVMBackendParallelBarrier(int task_id, TVMParallelGroupEnv* env) {
  (void)task_id, (void)env;
  return 0;
}

HIDDEN int TVMBackendGetFuncFromEnv(void* module, const char* name, TVMFunctionHandle* out) {
  (void)module;
  *out = NULL;
  snprintf(last_error, sizeof last_error, "the code asks for the function %s of another module", name);
  return -1;
}

HIDDEN int TVMFuncCall(TVMFunctionHandle function, TVMValue* args, int* type_codes, int num_args,
                       TVMValue* out_value, int* out_type_code) {
  (void)function, (void)args, (void)type_codes, (void)num_args, (void)out_value, (void)out_type_code;
  TVMAPISetLastError("the code calls a function of another module");
  return -1;
}

HIDDEN int TVMBackendRegisterSystemLibSymbol(const char* name, void* symbol) {
  (void)name, (void)symbol;
  return 0;
}

HIDDEN int TVMBackendRunOnce(void** handle, int (*body)(void*), void* closure, int bytes) {
  (void)bytes;
  if (*handle == NULL) {
    *handle = handle;
    return body(closure);
  }
  return 0;
}
