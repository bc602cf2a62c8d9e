/* Functions by name: those that the code registered when it was loaded, and the symbols of this library. Functions of
   other libraries are not found, whatever they are called. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "edgepack.h"

typedef struct { char* name; void* symbol; } Registered;

static Registered* list;
static size_t count, room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

HIDDEN int TVMBackendRegisterSystemLibSymbol(const char* name, void* symbol) {
  int code = -1;
  pthread_mutex_lock(&lock);
  if (count == room) {
    size_t more = room ? 2 * room : 16;
    Registered* grown = realloc(list, more * sizeof *list);
    if (grown != NULL) list = grown, room = more;
  }
  char* copy = count < room ? strdup(name) : NULL;
  if (copy != NULL) {
    list[count++] = (Registered){copy, symbol};
    code = 0;
  }
  pthread_mutex_unlock(&lock);
  return code;
}

HIDDEN int TVMBackendRegisterEnvCAPI(const char* name, void* symbol) {
  (void)name, (void)symbol;
  return 0;
}

__attribute__((destructor)) static void forget(void) {
  for (size_t i = 0; i < count; ++i) free(list[i].name);
  free(list);
}

TVM_DLL void* edgepack_find(const char* name) {
  void* found = NULL;
  pthread_mutex_lock(&lock);
  for (size_t i = count; i-- > 0 && found == NULL;) {
    if (strcmp(list[i].name, name) == 0) found = list[i].symbol;
  }
  pthread_mutex_unlock(&lock);
  Dl_info own, info;
  if (found != NULL || !dladdr((void*)&edgepack_find, &own)) return found;
  void* self = dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (self == NULL) return NULL;
  found = dlsym(self, name);
  dlclose(self);
  return found != NULL && dladdr(found, &info) && info.dli_fbase == own.dli_fbase ? found : NULL;
}

HIDDEN int TVMBackendGetFuncFromEnv(void* module, const char* name, TVMFunctionHandle* out) {
  (void)module;
  *out = edgepack_find(name);
  if (*out != NULL) return 0;
  char message[EDGEPACK_MESSAGE];
  snprintf(message, sizeof message, "the code asks for the function %s, which is not in the package", name);
  TVMAPISetLastError(message);
  return -1;
}

HIDDEN int TVMFuncCall(TVMFunctionHandle function, TVMValue* args, int* type_codes, int num_args, TVMValue* out_value,
                       int* out_type_code) {
  if (function == NULL) {
    TVMAPISetLastError("the code calls a function that it did not find");
    return -1;
  }
  TVMBackendPackedCFunc call = (TVMBackendPackedCFunc)function;
  return call(args, type_codes, num_args, out_value, out_type_code, NULL);
}
