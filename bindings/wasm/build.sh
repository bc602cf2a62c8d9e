#!/usr/bin/env bash
# Builds what browsers get: the npm package in `dist/npm` and the page in `dist/page`. Needs the target
# wasm32-unknown-unknown, wasm-bindgen (the version that Cargo.toml names), node, and, to make the module smaller, wasm-opt.
set -euo pipefail
cd "$(dirname "$0")"

target=wasm32-unknown-unknown
folder=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+simd128" cargo build --release --target "$target"

rm -rf dist
mkdir -p dist/npm dist/page
wasm-bindgen --target web --out-name edgepack --out-dir dist/npm/wasm "$folder/$target/release/edgepack_wasm.wasm"
if command -v wasm-opt >/dev/null; then
    wasm-opt -Os --all-features --disable-gc --disable-shared-everything -o dist/npm/wasm/smaller.wasm dist/npm/wasm/edgepack_bg.wasm
    mv dist/npm/wasm/smaller.wasm dist/npm/wasm/edgepack_bg.wasm
else
    echo 'the module is as the compiler made it: wasm-opt is absent'
fi
cp package/* README.md ../../LICENSE-APACHE ../../LICENSE-MIT dist/npm/

node assemble.mjs
printf '%s bytes, %s in gzip\n' "$(wc -c <dist/npm/wasm/edgepack_bg.wasm)" "$(gzip -9 <dist/npm/wasm/edgepack_bg.wasm | wc -c)"
