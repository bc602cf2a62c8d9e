/* Pointers that compiled objects call the runtime through. Such an object has a weak null pointer of each name; what loads
   it stores the function there. Here the same is done when the library is loaded, before anything in it is called. An
   object that needs none of them is linked all the same. */
#include "edgepack.h"

#define POINTER __attribute__((weak)) void*

POINTER __TVMFuncCall;
POINTER __TVMAPISetLastError;
POINTER __TVMBackendGetFuncFromEnv;
POINTER __TVMBackendAllocWorkspace;
POINTER __TVMBackendFreeWorkspace;
POINTER __TVMBackendParallelLaunch;
POINTER __TVMBackendParallelBarrier;
POINTER __tvm_module_ctx;

/* The module that lookups are made in; there is one in a library. */
static int module;

__attribute__((constructor)) static void store(void) {
  __TVMFuncCall = (void*)TVMFuncCall;
  __TVMAPISetLastError = (void*)TVMAPISetLastError;
  __TVMBackendGetFuncFromEnv = (void*)TVMBackendGetFuncFromEnv;
  __TVMBackendAllocWorkspace = (void*)TVMBackendAllocWorkspace;
  __TVMBackendFreeWorkspace = (void*)TVMBackendFreeWorkspace;
  __TVMBackendParallelLaunch = (void*)TVMBackendParallelLaunch;
  __TVMBackendParallelBarrier = (void*)TVMBackendParallelBarrier;
  __tvm_module_ctx = &module;
}
