#!/usr/bin/env bash
# Builds the C interface and tests it: its functions from Rust, programs in C and C++ (shared, static, with AddressSanitizer),
# random calls, and that the header is fresh.
#
#     bindings/c/test.sh [ARGUMENTS OF CARGO TEST…]
#
# Needs a Rust toolchain. Without a compiler of C or C++ the tests that need it say so; they are counted at the end.
set -euo pipefail
cd "$(dirname "$0")"

command -v cargo >/dev/null || { printf 'skipped: cargo is absent\nc: 0 passed, 0 failed, 1 skipped\n'; exit 0; }

cargo fmt --check
cargo clippy --all-targets -- -D warnings
log=$(mktemp)
trap 'rm -f "$log"' EXIT
result=0
cargo test "$@" 2>&1 | tee "$log" || result=$?
passed=$(sed -n 's/^test result: [^.]*\. \([0-9]*\) passed.*/\1/p' "$log" | awk '{ sum += $1 } END { print sum + 0 }')
failed=$(sed -n 's/^test result: .* \([0-9]*\) failed.*/\1/p' "$log" | awk '{ sum += $1 } END { print sum + 0 }')
skipped=$(grep -c '^skipped: ' "$log" || true)
grep '^skipped: ' "$log" || true
printf 'c: %s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
exit "$result"
