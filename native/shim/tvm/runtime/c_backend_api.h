/* What generated code calls: scratch memory, parallel loops, other functions. */
#ifndef EDGEPACK_C_BACKEND_API_H_
#define EDGEPACK_C_BACKEND_API_H_
#include "c_runtime_api.h"

typedef struct { void* sync_handle; int32_t num_task; } TVMParallelGroupEnv;
typedef int (*FTVMParallelLambda)(int task_id, TVMParallelGroupEnv* env, void* closure);

void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t bytes, int code_hint, int bits_hint);
int TVMBackendFreeWorkspace(int device_type, int device_id, void* memory);
int TVMBackendParallelLaunch(FTVMParallelLambda body, void* closure, int num_task);
int TVMBackendParallelBarrier(int task_id, TVMParallelGroupEnv* env);
int TVMBackendGetFuncFromEnv(void* module, const char* name, TVMFunctionHandle* out);
int TVMBackendRegisterSystemLibSymbol(const char* name, void* symbol);
int TVMBackendRegisterEnvCAPI(const char* name, void* symbol);
int TVMBackendRunOnce(void** handle, int (*body)(void*), void* closure, int bytes);
#endif
