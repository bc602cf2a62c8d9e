#!/usr/bin/env bash
# Builds the wheel, installs it into a fresh environment and runs its tests there.
#
#     bindings/python/test.sh [--release] [ARGUMENTS OF PYTEST…]
#
# Without --release the wheel is built without optimisation, which is quicker to build. Needs Python 3.11 or newer and a Rust
# toolchain; maturin, NumPy and pytest are installed by pip where they are absent. What is missing is said by name, and the
# part is then skipped. EDGEPACK_EXECUTORCH may name a Python with ExecuTorch: its packages are then seen by the tests, too.
set -euo pipefail
cd "$(dirname "$0")"

skip() {
    printf 'skipped: %s\npython: 0 passed, 0 failed, 1 skipped\n' "$*"
    exit 0
}

profile=dev
if [ "${1:-}" = --release ]; then
    profile=release
    shift
fi

python=${PYTHON:-python3}
command -v "$python" >/dev/null || skip "python3 is absent"
command -v cargo >/dev/null || skip "cargo is absent"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip "Python is older than 3.11"
"$python" -c 'import venv, ensurepip' 2>/dev/null || skip "the module venv of Python is absent"

target=${CARGO_TARGET_DIR:-$PWD/../../target}
mkdir -p "$target"
target=$(cd "$target" && pwd)
export CARGO_TARGET_DIR=$target
tools=$target/python-tools
fresh=$target/python-fresh
wheels=$target/wheels

maturin=$(command -v maturin || true)
if [ -z "$maturin" ]; then
    [ -x "$tools/bin/maturin" ] || { "$python" -m venv "$tools" && "$tools/bin/pip" install -q 'maturin>=1.9.4,<2'; } ||
        skip "maturin is absent and pip cannot install it"
    maturin=$tools/bin/maturin
fi

rm -rf "$wheels"
"$maturin" build --locked --profile "$profile" --out "$wheels" --interpreter "$python"

# From here on everything is counted: installing and testing take less than a minute.
SECONDS=0
rm -rf "$fresh"
"$python" -m venv "$fresh"
"$fresh/bin/pip" install -q "$wheels"/edgepack-*.whl pytest || skip "NumPy and pytest are absent and pip cannot install them"
# Types of elements that NumPy lacks are tested where this is to be had.
"$fresh/bin/pip" install -q ml_dtypes 2>/dev/null || echo "skipped: ml_dtypes is absent"
if [ -n "${EDGEPACK_EXECUTORCH:-}" ]; then
    packages=$("$EDGEPACK_EXECUTORCH" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    echo "$packages" >"$("$fresh/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/executorch.pth"
else
    echo "skipped: executorch is absent (EDGEPACK_EXECUTORCH names a Python that has it)"
fi
EDGEPACK_ROOT=$(cd ../.. && pwd) "$fresh/bin/python" -m pytest -p no:cacheprovider tests "$@"
echo "python: installed and tested in $SECONDS s"
