#!/usr/bin/env bash
# Builds every libFuzzer target for OSS-Fuzz and ClusterFuzzLite: `OUT/BODY` with `OUT/BODY_seed_corpus.zip` and, for
# formats that have words, `OUT/BODY.dict`. Names of bodies as arguments build only those. Their base image says where
# everything is; on any machine with a nightly toolchain, cargo-fuzz, zip and a C++ compiler:
#   OUT=/tmp/out WORK=/tmp/work fuzz/oss-fuzz/build.sh pte
set -euo pipefail

: "${OUT:?the folder for what was built}"
WORK=${WORK:-$OUT/work}
# In the images a copy of this file is next to the checkout, elsewhere it is in it.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ -d "$here/../fuzz_targets" ]; then
    cd "$here/../.."
else
    cd "${SRC:?the folder with the sources}/edgepack"
fi

# The image may have a toolchain that is older than what the crates need.
needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml | tail -n 1)
present=$(rustc --version | sed 's/^rustc \([0-9]*\.[0-9]*\).*/\1/')
if [ "$(printf '%s\n' "$needed" "$present" | sort -V | head -n 1)" != "$needed" ]; then
    rustup toolchain install nightly --profile minimal
    export RUSTUP_TOOLCHAIN=nightly
fi

host=$(rustc -vV | sed -n 's/^host: //p')
built=$WORK/edgepack-targets
mapfile -t all < <(cargo fuzz list)
targets=("$@")
[ $# -gt 0 ] || targets=("${all[@]}")

mkdir -p "$OUT" "$WORK"
if [ $# -gt 0 ]; then
    for target in "${targets[@]}"; do cargo fuzz build -O --debug-assertions --target-dir "$built" "$target"; done
else
    cargo fuzz build -O --debug-assertions --target-dir "$built"
fi

rm -rf "$WORK/edgepack-seeds"
for target in "${targets[@]}"; do
    cp "$built/$host/release/$target" "$OUT/$target"
    # A target has its seeds and its dictionary in it, and writes them when it is asked to.
    ASAN_OPTIONS=detect_leaks=0 EDGEPACK_SEEDS="$WORK/edgepack-seeds" "$OUT/$target"
    rm -f "$OUT/${target}_seed_corpus.zip"
    (cd "$WORK/edgepack-seeds/$target" && find . -type f -print | LC_ALL=C sort | zip -q -X "$OUT/${target}_seed_corpus.zip" -@)
    if [ -f "$WORK/edgepack-seeds/$target.dict" ]; then
        cp "$WORK/edgepack-seeds/$target.dict" "$OUT/$target.dict"
    fi
    printf '[libfuzzer]\nmax_len = 131072\ntimeout = 60\nrss_limit_mb = 2560\n' >"$OUT/$target.options"
done
printf '%s targets in %s\n' "${#targets[@]}" "$OUT"
