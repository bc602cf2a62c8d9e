/* What the parts of the runtime say to each other, and to the program that loaded it. */
#ifndef EDGEPACK_RUNTIME_H_
#define EDGEPACK_RUNTIME_H_
#include "tvm/runtime/c_backend_api.h"

#define HIDDEN __attribute__((visibility("hidden")))
#define EDGEPACK_MESSAGE 512

/* Forgets the last error of this thread; the message of the last error. */
TVM_DLL void edgepack_clear_error(void);
TVM_DLL const char* edgepack_last_error(void);
/* Tasks of a loop whose code leaves their number open; 1 unless it is set. */
TVM_DLL void edgepack_set_threads(int count);
/* A packed function of this library: by its symbol, or by the name it registered itself under. */
TVM_DLL void* edgepack_find(const char* name);
#endif
