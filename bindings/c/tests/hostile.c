/* Takes files of strangers through every function that takes a file, and uses what comes out. Ends with 0 if every function
 * answered, and nothing is left open. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edgepack.h"

static size_t answered, refused;

/* Counts an answer; closes its error. */
static int good(EdgepackCode code, EdgepackError *error) {
    answered++;
    if (code == EDGEPACK_CODE_OK) {
        if (error->id != 0) abort();
        return 1;
    }
    refused++;
    EdgepackText message = edgepack_error_message(*error);
    uint64_t offset = 0;
    if (message.len == 0 || strlen(message.data) > message.len) abort();
    if (edgepack_error_code(*error) != code) abort();
    (void)edgepack_error_offset(*error, &offset);
    if (edgepack_error_rule(*error).data == NULL || edgepack_error_path(*error).data == NULL) abort();
    if (edgepack_error_close(*error) != EDGEPACK_CODE_OK) abort();
    if (edgepack_error_close(*error) != EDGEPACK_CODE_INVALID_ARGUMENT) abort();
    return 0;
}

/* Runs a method on zeros. */
static void use_method(EdgepackProgram program, const char *name) {
    EdgepackError error;
    EdgepackSignature signature;
    EdgepackCounts counts;
    EdgepackMethod method;
    if (!good(edgepack_signature_of(program, name, &signature, &error), &error)) return;
    if (!good(edgepack_signature_counts(signature, &counts, &error), &error)) abort();
    EdgepackValue *inputs = calloc(counts.inputs + 1, sizeof *inputs);
    EdgepackValue *outputs = calloc(counts.outputs + 1, sizeof *outputs);
    void **data = calloc(counts.inputs + 1, sizeof *data);
    int small = counts.outputs < 1000;
    for (size_t index = 0; index < counts.inputs; index++) {
        EdgepackPort port;
        if (!good(edgepack_signature_input(signature, index, &port, &error), &error)) abort();
        inputs[index] = port.value;
        if (port.value.kind != EDGEPACK_KIND_TENSOR) continue;
        if (port.value.tensor.len > 1 << 20) {
            small = 0;
            continue;
        }
        data[index] = calloc(1, port.value.tensor.len + 1);
        inputs[index].tensor.data = data[index];
    }
    if (good(edgepack_method_load(program, name, (EdgepackOptions){0}, &method, &error), &error)) {
        if (small && good(edgepack_method_run(method, inputs, counts.inputs, outputs, counts.outputs, &error), &error)) {
            /* Every byte that an output leads to is there. */
            unsigned sum = 0;
            for (size_t index = 0; index < counts.outputs; index++) {
                const EdgepackTensor *tensor = &outputs[index].tensor;
                if (outputs[index].kind != EDGEPACK_KIND_TENSOR) continue;
                for (size_t at = 0; at < tensor->len; at++) sum += ((const unsigned char *)tensor->data)[at];
                for (size_t dim = 0; dim < tensor->rank; dim++) sum += (unsigned)tensor->sizes[dim] + tensor->dim_order[dim];
            }
            if (sum == 0xdeadbeef) puts("rare");
        }
        if (edgepack_method_close(method) != EDGEPACK_CODE_OK) abort();
        if (good(edgepack_method_reset(method, &error), &error)) abort();
    }
    for (size_t index = 0; index < counts.inputs; index++) free(data[index]);
    free(data);
    free(inputs);
    free(outputs);
    edgepack_signature_close(signature);
}

static void use_data(EdgepackData data) {
    EdgepackError error;
    size_t count = 0;
    if (!good(edgepack_data_count(data, &count, &error), &error)) abort();
    for (size_t index = 0; index < count; index++) {
        EdgepackText key;
        EdgepackTensor layout;
        EdgepackBytes bytes;
        const void *at;
        size_t len;
        if (!good(edgepack_data_key(data, index, &key, &error), &error)) abort();
        good(edgepack_data_layout(data, index, &layout, &error), &error);
        if (!good(edgepack_data_bytes(data, index, &bytes, &error), &error)) continue;
        if (!good(edgepack_bytes_view(bytes, &at, &len, &error), &error)) abort();
        void *copy = malloc(len + 1);
        good(edgepack_data_read(data, index, copy, len, &error), &error);
        if (len > 0 && memcmp(copy, at, len) != 0) abort();
        free(copy);
        edgepack_bytes_close(bytes);
    }
    edgepack_data_close(data);
}

static void give_back(void *user) { free(user); }

/* Reads a file whole, into memory that ends where the file does. */
static void *read_file(const char *path, size_t *len) {
    FILE *file = fopen(path, "rb");
    if (!file) abort();
    fseek(file, 0, SEEK_END);
    *len = (size_t)ftell(file);
    rewind(file);
    void *bytes = malloc(*len ? *len : 1);
    if (fread(bytes, 1, *len, file) != *len) abort();
    fclose(file);
    return bytes;
}

static void take(const char *path, EdgepackLimits limits) {
    EdgepackError error;
    EdgepackProgram programs[3];
    EdgepackData data;
    size_t len, count;
    void *bytes = read_file(path, &len);
    void *lent = read_file(path, &len);
    int open[3] = {
        good(edgepack_program_open(path, limits, &programs[0], &error), &error),
        good(edgepack_program_open_copy(bytes, len, limits, &programs[1], &error), &error),
        good(edgepack_program_open_borrowed(lent, len, give_back, lent, limits, &programs[2], &error), &error),
    };
    if (!open[2]) free(lent);
    for (int which = 0; which < 3; which++) {
        if (!open[which]) continue;
        if (!good(edgepack_program_method_count(programs[which], &count, &error), &error)) abort();
        for (size_t index = 0; index < count && index < 4; index++) {
            EdgepackText name;
            if (!good(edgepack_program_method_name(programs[which], index, &name, &error), &error)) abort();
            use_method(programs[which], name.data);
        }
        if (good(edgepack_data_of_program(programs[which], &data, &error), &error)) use_data(data);
        edgepack_program_close(programs[which]);
    }
    if (good(edgepack_data_open(path, limits, &data, &error), &error)) use_data(data);
    if (good(edgepack_data_open_copy(bytes, len, limits, &data, &error), &error)) use_data(data);

    const EdgepackFile file = {NULL, bytes, len};
    EdgepackFindings findings;
    EdgepackFindingCounts counts;
    if (good(edgepack_verify(&file, EDGEPACK_PRESET_HOSTILE, &findings, &error), &error)) {
        if (!good(edgepack_findings_counts(findings, &counts, &error), &error)) abort();
        for (size_t index = 0; index < counts.listed; index++) {
            EdgepackFinding finding;
            if (!good(edgepack_findings_at(findings, index, &finding, &error), &error)) abort();
            if (finding.rule.len == 0 || finding.message.data[finding.message.len] != 0) abort();
        }
        edgepack_findings_close(findings);
    }
    EdgepackReport report;
    EdgepackText text;
    if (!good(edgepack_inspect(&file, EDGEPACK_PRESET_HOSTILE, &report, &error), &error)) abort();
    if (!good(edgepack_report_output(report, &text, &error), &error)) abort();
    edgepack_report_close(report);
    free(bytes);
}

int main(int argc, char **argv) {
    EdgepackError error;
    EdgepackLimits limits;
    if (edgepack_abi_version() != EDGEPACK_ABI_VERSION) abort();
    if (!good(edgepack_limits_new(EDGEPACK_PRESET_HOSTILE, &limits, &error), &error)) abort();
    for (int index = 1; index < argc; index++) take(argv[index], limits);
    edgepack_limits_close(limits);
    printf("%d files, %zu answers, %zu of them errors\n", argc - 1, answered, refused);
    return edgepack_open_handles() == 0 ? 0 : 1;
}
