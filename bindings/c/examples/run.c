/* Opens a program, runs one of its methods on inputs of one number, and prints the outputs.
 *
 *     run MODEL.pte [METHOD] [DATA.ptd]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edgepack.h"

/* Ends the program with the reason of an error. */
static void must(EdgepackCode code, EdgepackError *error) {
    if (code == EDGEPACK_CODE_OK) return;
    fprintf(stderr, "%s\n", edgepack_error_message(*error).data);
    if (edgepack_error_path(*error).len > 0) fprintf(stderr, "  at %s\n", edgepack_error_path(*error).data);
    edgepack_error_close(*error);
    exit(1);
}

static void print_tensor(const EdgepackTensor *tensor) {
    size_t size = edgepack_dtype_size(tensor->dtype);
    size_t count = size ? tensor->len / size : 0;
    printf("[");
    for (size_t dim = 0; dim < tensor->rank; dim++) printf(dim ? ", %zu" : "%zu", tensor->sizes[dim]);
    printf("]");
    for (size_t index = 0; index < count && index < 4; index++) {
        if (tensor->dtype == EDGEPACK_DTYPE_FLOAT) printf(" %g", ((const float *)tensor->data)[index]);
        if (tensor->dtype == EDGEPACK_DTYPE_LONG) printf(" %lld", (long long)((const int64_t *)tensor->data)[index]);
    }
    printf(count > 4 ? " ...\n" : "\n");
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: run MODEL.pte [METHOD] [DATA.ptd]\n");
        return 2;
    }
    const char *name = argc > 2 ? argv[2] : "forward";
    EdgepackError error;
    EdgepackProgram program;
    must(edgepack_program_open(argv[1], (EdgepackLimits){0}, &program, &error), &error);

    /* What the method takes. */
    EdgepackSignature signature;
    EdgepackCounts counts;
    must(edgepack_signature_of(program, name, &signature, &error), &error);
    must(edgepack_signature_counts(signature, &counts, &error), &error);
    EdgepackValue *inputs = calloc(counts.inputs + 1, sizeof *inputs);
    EdgepackValue *outputs = calloc(counts.outputs + 1, sizeof *outputs);
    for (size_t index = 0; index < counts.inputs; index++) {
        EdgepackPort port;
        must(edgepack_signature_input(signature, index, &port, &error), &error);
        inputs[index] = port.value;
        if (port.value.kind != EDGEPACK_KIND_TENSOR) continue;
        void *data = calloc(1, port.value.tensor.len + 1);
        if (port.value.tensor.dtype == EDGEPACK_DTYPE_FLOAT) {
            for (size_t at = 0; at < port.value.tensor.len / sizeof(float); at++) ((float *)data)[at] = 0.5f;
        }
        inputs[index].tensor.data = data;
    }

    EdgepackOptions options;
    EdgepackMethod method;
    must(edgepack_options_new(&options, &error), &error);
    if (argc > 3) {
        EdgepackData data;
        must(edgepack_data_open(argv[3], (EdgepackLimits){0}, &data, &error), &error);
        must(edgepack_options_add_data(options, data, &error), &error);
        edgepack_data_close(data);
    }
    must(edgepack_method_load(program, name, options, &method, &error), &error);
    must(edgepack_method_run(method, inputs, counts.inputs, outputs, counts.outputs, &error), &error);
    for (size_t index = 0; index < counts.outputs; index++) {
        printf("output %zu: ", index);
        switch (outputs[index].kind) {
        case EDGEPACK_KIND_TENSOR: print_tensor(&outputs[index].tensor); break;
        case EDGEPACK_KIND_INT:
        case EDGEPACK_KIND_BOOL: printf("%lld\n", (long long)outputs[index].integer); break;
        case EDGEPACK_KIND_DOUBLE: printf("%g\n", outputs[index].number); break;
        default: printf("%s\n", outputs[index].text.data); break;
        }
    }

    for (size_t index = 0; index < counts.inputs; index++) {
        if (inputs[index].kind == EDGEPACK_KIND_TENSOR) free((void *)inputs[index].tensor.data);
    }
    free(inputs);
    free(outputs);
    edgepack_method_close(method);
    edgepack_options_close(options);
    edgepack_signature_close(signature);
    edgepack_program_close(program);
    return edgepack_open_handles() == 0 ? 0 : 1;
}
