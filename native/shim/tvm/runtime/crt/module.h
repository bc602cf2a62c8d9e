/* The registry that packages for the C runtime carry: names and functions. */
#ifndef EDGEPACK_CRT_MODULE_H_
#define EDGEPACK_CRT_MODULE_H_
#include "../c_runtime_api.h"

typedef struct { const char* names; const TVMBackendPackedCFunc* funcs; } TVMFuncRegistry;
typedef struct { const TVMFuncRegistry* registry; } TVMModule;
#endif
