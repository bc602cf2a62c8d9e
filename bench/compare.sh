#!/bin/sh
# Prints the reference runtime's figures beside ours, as ratios of one run. See README.md for the two variables.
set -eu
: "${EDGEPACK_BENCH_MODELS:?names no folder of models}"
: "${EDGEPACK_REFERENCE_PYTHON:?names no Python with executorch}"
cd "$(dirname "$0")/.."
exec cargo run --release -q -p edgepack-bench -- suite language operators serialize lower delegates
