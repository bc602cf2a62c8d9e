/* The two functions of the example, called as generated code is: an array of tensor handles, inputs before outputs. */
#include "tvm/runtime/c_runtime_api.h"

#define TENSOR(i) ((float*)((DLTensor*)((TVMValue*)args)[i].v_handle)->data)

TVM_DLL int32_t tvmgen_tiny_add(void* args, int32_t* codes, int32_t count, void* out, int32_t* out_code, void* resource) {
  for (int i = 0; i < 4; ++i) TENSOR(2)[i] = TENSOR(0)[i] + TENSOR(1)[i];
  return 0;
}

TVM_DLL int32_t tvmgen_tiny_relu(void* args, int32_t* codes, int32_t count, void* out, int32_t* out_code, void* resource) {
  for (int i = 0; i < 4; ++i) TENSOR(1)[i] = TENSOR(0)[i] > 0 ? TENSOR(0)[i] : 0;
  return 0;
}
