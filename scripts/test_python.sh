#!/usr/bin/env bash
# Installs the Python package as its users do, into a virtual environment of its own under build/,
# and runs its tests.
set -euo pipefail

usage() {
    cat <<'END'
usage: scripts/test_python.sh [PYTEST_ARGUMENT...]
  PyTorch and CuPy are tested where they are in build/python-venv; NumPy always.
example: scripts/test_python.sh -k matmul
exit codes: 0 all passed, or skipped because pip reaches no package index; 1 some failed or it did not build
END
}

[[ ${1:-} != --help && ${1:-} != -h ]] || { usage; exit 0; }
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
scripts/install_dependencies.sh --python

venv=build/python-venv
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }

# What the build takes from the index is not installed here, so that it tells whether there is one.
if ! pip download --no-deps --dest "$venv/probe" nanobind scikit-build-core || ! pip install pytest numpy scipy; then
    echo "skipped: pip reaches no package index to get pytest, NumPy, SciPy and nanobind from"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
# NVTX's headers, which need no GPU: without them its tests are skipped.
nvtx=
! pip install nvidia-nvtx-cu12 || nvtx=$("$venv/bin/python" -c "import nvidia.nvtx; print(nvidia.nvtx.__path__[0])")/include
pip install --force-reinstall --no-deps ./python ${nvtx:+-C "cmake.define.COURSE_NVTX_INCLUDE_DIR=$nvtx"}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
"$venv/bin/python" -m pytest -q -rs -p no:cacheprovider python/tests "$@" | tee "$log" || code=1

count() { tail -n 1 "$log" | grep -oE "[0-9]+ $1" | cut -d ' ' -f 1 || echo 0; }
echo "$(count passed) passed, $(($(count failed) + $(count error))) failed, $(count skipped) skipped"
exit $code
