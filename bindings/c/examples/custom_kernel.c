/* An operator of your own: `my::leaky.out`, which the program calls with a slope.
 *
 *     custom_kernel leaky.pte
 */
#include <stdio.h>
#include <stdlib.h>

#include "edgepack.h"

/* When a method is loaded: what is wrong with the program is refused now, and what runs need is found once. */
static int32_t prepare(void *user, EdgepackCall call, void **state) {
    (void)user;
    EdgepackTensor input;
    double slope;
    EdgepackCode code = edgepack_call_layout(call, 0, &input);
    if (code == EDGEPACK_CODE_OK) code = edgepack_call_double(call, 1, &slope);
    if (code != EDGEPACK_CODE_OK) return code;
    if (input.dtype != EDGEPACK_DTYPE_FLOAT) {
        edgepack_call_fail(call, "leaky takes floats");
        return EDGEPACK_CODE_NOT_SUPPORTED;
    }
    float *prepared = malloc(sizeof *prepared);
    if (!prepared) return EDGEPACK_CODE_MEMORY_ALLOCATION_FAILED;
    *prepared = (float)slope;
    *state = prepared;
    return EDGEPACK_CODE_OK;
}

/* In every run. */
static int32_t run(void *user, void *state, EdgepackCall call) {
    (void)user;
    const float slope = *(const float *)state;
    EdgepackTensor input;
    EdgepackTensorMut output;
    EdgepackCode code = edgepack_call_layout(call, 0, &input);
    if (code == EDGEPACK_CODE_OK) code = edgepack_call_resize(call, 2, input.sizes, input.rank);
    if (code == EDGEPACK_CODE_OK) code = edgepack_call_tensor(call, 0, &input);
    if (code == EDGEPACK_CODE_OK) code = edgepack_call_output(call, 2, &output);
    if (code != EDGEPACK_CODE_OK) return code;
    const float *x = input.data;
    float *y = output.data;
    for (size_t index = 0; index < input.len / sizeof *x; index++) y[index] = x[index] < 0 ? x[index] * slope : x[index];
    return EDGEPACK_CODE_OK;
}

static void drop_state(void *user, void *state) {
    (void)user;
    free(state);
}

static int failed(EdgepackError error) {
    fprintf(stderr, "%s\n", edgepack_error_message(error).data);
    edgepack_error_close(error);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: custom_kernel leaky.pte\n");
        return 2;
    }
    EdgepackError error;
    EdgepackProgram program;
    EdgepackOptions options;
    EdgepackMethod method;
    const EdgepackKernel leaky = {
        .schema = "my::leaky.out(Tensor self, float slope, *, Tensor(a!) out) -> Tensor(a!)",
        .prepare = prepare,
        .run = run,
        .drop_state = drop_state,
    };
    if (edgepack_program_open(argv[1], (EdgepackLimits){0}, &program, &error)) return failed(error);
    if (edgepack_options_new(&options, &error)) return failed(error);
    if (edgepack_options_add_kernel(options, &leaky, &error)) return failed(error);
    if (edgepack_method_load(program, "forward", options, &method, &error)) return failed(error);

    const size_t sizes[] = {3};
    const float data[] = {-2, 0, 3};
    EdgepackValue x = {.kind = EDGEPACK_KIND_TENSOR}, y;
    x.tensor = (EdgepackTensor){EDGEPACK_DTYPE_FLOAT, 1, sizes, NULL, data, sizeof data};
    if (edgepack_method_run(method, &x, 1, &y, 1, &error)) return failed(error);
    const float *result = y.tensor.data;
    printf("%g %g %g\n", result[0], result[1], result[2]);

    edgepack_method_close(method);
    edgepack_options_close(options);
    edgepack_program_close(program);
    return 0;
}
