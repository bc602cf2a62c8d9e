/* A backend of your own: what it made at export is a delegate's payload, which it runs. This one evaluates a polynomial, whose
 * coefficients are the payload, lowest power first.
 *
 *     custom_backend polynomial.pte
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edgepack.h"

typedef struct {
    size_t count;
    float coefficients[];
} Polynomial;

/* Once for every delegate, when a method is loaded. */
static int32_t init(void *user, EdgepackInit init, void **delegate) {
    (void)user;
    const void *payload;
    size_t len;
    EdgepackCode code = edgepack_init_payload(init, &payload, &len);
    if (code != EDGEPACK_CODE_OK) return code;
    if (len % sizeof(float) != 0) {
        edgepack_init_fail(init, "the payload is not a list of floats");
        return EDGEPACK_CODE_INVALID_PROGRAM;
    }
    Polynomial *made = malloc(sizeof *made + len);
    if (!made) return EDGEPACK_CODE_MEMORY_ALLOCATION_FAILED;
    made->count = len / sizeof(float);
    memcpy(made->coefficients, payload, len);
    *delegate = made;
    return EDGEPACK_CODE_OK;
}

/* In every run. Arguments are the inputs, then the outputs. */
static int32_t run(void *user, void *delegate, void *state, EdgepackCall call) {
    (void)user;
    (void)state;
    const Polynomial *polynomial = delegate;
    EdgepackTensor x;
    EdgepackTensorMut y;
    EdgepackCode code = edgepack_call_tensor(call, 0, &x);
    if (code == EDGEPACK_CODE_OK) code = edgepack_call_output(call, 1, &y);
    if (code != EDGEPACK_CODE_OK) return code;
    if (x.dtype != EDGEPACK_DTYPE_FLOAT || y.dtype != EDGEPACK_DTYPE_FLOAT || x.len != y.len) {
        edgepack_call_fail(call, "the input and the output are as many floats");
        return EDGEPACK_CODE_INVALID_ARGUMENT;
    }
    for (size_t index = 0; index < x.len / sizeof(float); index++) {
        float sum = 0;
        for (size_t power = polynomial->count; power-- > 0;) {
            sum = sum * ((const float *)x.data)[index] + polynomial->coefficients[power];
        }
        ((float *)y.data)[index] = sum;
    }
    return EDGEPACK_CODE_OK;
}

static void drop_delegate(void *user, void *delegate) {
    (void)user;
    free(delegate);
}

static int failed(EdgepackError error) {
    fprintf(stderr, "%s\n", edgepack_error_message(error).data);
    edgepack_error_close(error);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: custom_backend polynomial.pte\n");
        return 2;
    }
    EdgepackError error;
    EdgepackProgram program;
    EdgepackOptions options;
    EdgepackMethod method;
    const EdgepackBackend backend = {.id = "Polynomial", .init = init, .run = run, .drop_delegate = drop_delegate};
    if (edgepack_program_open(argv[1], (EdgepackLimits){0}, &program, &error)) return failed(error);
    if (edgepack_options_new(&options, &error)) return failed(error);
    if (edgepack_options_add_backend(options, &backend, &error)) return failed(error);
    if (edgepack_method_load(program, "forward", options, &method, &error)) return failed(error);

    const size_t sizes[] = {3};
    const float data[] = {0, 1, 2};
    EdgepackValue x = {.kind = EDGEPACK_KIND_TENSOR}, y;
    x.tensor = (EdgepackTensor){EDGEPACK_DTYPE_FLOAT, 1, sizes, NULL, data, sizeof data};
    if (edgepack_method_run(method, &x, 1, &y, 1, &error)) return failed(error);
    const float *result = y.tensor.data;
    printf("1 + 2x^2: %g %g %g\n", result[0], result[1], result[2]);

    edgepack_method_close(method);
    edgepack_options_close(options);
    edgepack_program_close(program);
    return 0;
}
