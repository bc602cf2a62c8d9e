/* Verifies a file of any format, and prints what is inside of it as JSON.
 *
 *     inspect FILE
 */
#include <stdio.h>
#include <string.h>

#include "edgepack.h"

static int failed(EdgepackError error) {
    fprintf(stderr, "%s\n", edgepack_error_message(error).data);
    edgepack_error_close(error);
    return 3;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: inspect FILE\n");
        return 2;
    }
    EdgepackFile file = {argv[1], NULL, 0};
    EdgepackError error;
    EdgepackFindings findings;
    EdgepackFindingCounts counts;
    if (edgepack_verify(&file, EDGEPACK_PRESET_MACHINE, &findings, &error) != EDGEPACK_CODE_OK) return failed(error);
    if (edgepack_findings_counts(findings, &counts, &error) != EDGEPACK_CODE_OK) return failed(error);
    for (size_t index = 0; index < counts.listed; index++) {
        EdgepackFinding finding;
        if (edgepack_findings_at(findings, index, &finding, &error) != EDGEPACK_CODE_OK) return failed(error);
        fprintf(stderr, "%s %s: %s\n", finding.rule.data, finding.path.data, finding.message.data);
    }
    edgepack_findings_close(findings);

    EdgepackReport report;
    EdgepackText json;
    if (edgepack_inspect(&file, EDGEPACK_PRESET_MACHINE, &report, &error) != EDGEPACK_CODE_OK) return failed(error);
    if (edgepack_report_output(report, &json, &error) != EDGEPACK_CODE_OK) return failed(error);
    fwrite(json.data, 1, json.len, stdout);
    edgepack_report_close(report);
    return counts.broken ? 1 : 0;
}
