#!/usr/bin/env bash
# Builds what browsers get: the npm package in `dist/npm` and the page in `dist/page`. Needs the target
# wasm32-unknown-unknown, wasm-bindgen (the version that Cargo.toml names) and node.
set -euo pipefail
cd "$(dirname "$0")"

target=wasm32-unknown-unknown
folder=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+simd128" cargo build --release --target "$target"

rm -rf dist
mkdir -p dist/npm dist/page
# Optimising it again (`wasm-opt -Os`) takes three minutes; it is 7 % smaller then, and 5 % larger in brotli.
wasm-bindgen --target web --remove-name-section --remove-producers-section --out-name edgepack --out-dir dist/npm/wasm \
    "$folder/$target/release/edgepack_wasm.wasm"
cp package/* README.md ../../LICENSE-APACHE ../../LICENSE-MIT dist/npm/

node assemble.mjs
node -e '
    const { brotliCompressSync, gzipSync } = require("zlib");
    const module = require("fs").readFileSync("dist/npm/wasm/edgepack_bg.wasm");
    const sizes = [module, gzipSync(module, { level: 9 }), brotliCompressSync(module)].map((bytes) => bytes.length);
    console.log("%d bytes, %d in gzip, %d in brotli", ...sizes);'
