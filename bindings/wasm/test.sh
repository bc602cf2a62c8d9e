#!/usr/bin/env bash
# Tests of what browsers get: the package in node, its types, and the page in Chromium. What is absent is skipped by name,
# and counted in the last line.
#
# EDGEPACK_COMMAND names the command of this machine, to compare numbers with; CHROMIUM the browser.
set -euo pipefail
cd "$(dirname "$0")"

skipped=()
step() { printf '\n== %s\n' "$*"; }
skip() { echo "not run: $*"; skipped+=("$*"); }
finish() { printf '\nthe browser: %s skipped\n' "${#skipped[@]}"; printf '  %s\n' "${skipped[@]}"; }

export CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
wanted=$(sed -n 's/^wasm-bindgen = "=\(.*\)"$/\1/p' Cargo.toml)

command -v node >/dev/null || { skip 'all tests: node is absent'; finish; exit 0; }
if ! command -v wasm-bindgen >/dev/null; then
    skip "all tests: wasm-bindgen is absent (cargo install wasm-bindgen-cli --version $wanted)"
    finish
    exit 0
fi
found=$(wasm-bindgen --version | cut -d' ' -f2)
if [ "$found" != "$wanted" ]; then
    skip "all tests: wasm-bindgen is $found, not $wanted"
    finish
    exit 0
fi
rustup target list --installed | grep -qx wasm32-unknown-unknown || rustup target add wasm32-unknown-unknown

step 'the module, the package, the page'
./build.sh

[ -n "${EDGEPACK_COMMAND:-}" ] || skip 'numbers beside those of this machine: EDGEPACK_COMMAND is not given'
step 'the package in node'
node --test tests/node.test.mjs tests/docs.test.mjs

if [ ! -d tests/node_modules ] && ! (cd tests && npm install --no-package-lock --no-audit --no-fund); then
    skip 'types and the page: the packages of tests/package.json are out of reach'
    finish
    exit 0
fi
step 'types'
tests/node_modules/.bin/tsc -p tests/tsconfig.json

if [ -z "$CHROMIUM" ]; then
    skip 'the page: chromium is absent'
    finish
    exit 0
fi
step "the page in $("$CHROMIUM" --version)"
node --test tests/page.test.mjs
finish
