/* Errors and scratch memory: functions that generated code calls, linked into every compiled package. */
#include <stdio.h>
#include <stdlib.h>
#include "edgepack.h"

#define ALIGNMENT 128

static _Thread_local char last_error[EDGEPACK_MESSAGE];

TVM_DLL void edgepack_clear_error(void) { last_error[0] = 0; }
TVM_DLL const char* edgepack_last_error(void) { return last_error; }

HIDDEN void TVMAPISetLastError(const char* message) {
  snprintf(last_error, sizeof last_error, "%s", message ? message : "");
}
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

HIDDEN int TVMBackendRunOnce(void** handle, int (*body)(void*), void* closure, int bytes) {
  (void)bytes;
  if (*handle == NULL) {
    *handle = handle;
    return body(closure);
  }
  return 0;
}
