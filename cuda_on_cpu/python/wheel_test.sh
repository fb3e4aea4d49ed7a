#!/usr/bin/env bash
# Makes the wheel, installs it into a virtual environment, and compiles and runs a program with what it brings.
# usage: wheel_test.sh BUILD      BUILD: of `cmake -S cuda_on_cpu`; exit code 77: skipped
set -euo pipefail

here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

wheel=$(python3 "$here/make_wheel.py" "$1" --output "$work")
cd "$work"
export XDG_CACHE_HOME=$work/cache
if ! python3 -m venv "an environment" >log 2>&1; then
    echo "skipped: no virtual environment: $(tail -n 1 log)"
    exit 77
fi
unzip_list=$(python3 -m zipfile --list "$wheel")
[[ $unzip_list == *dist-info/LICENSE* ]] || fail "the wheel has no LICENSE"
# With python -m: a script whose path has blanks in it has no first line that the system takes.
"an environment/bin/python" -m pip --disable-pip-version-check install --quiet --no-index --no-deps "$wheel" || fail "pip install"
echo '#include <cstdio>
__global__ void hello() { printf("hello from thread %u\n", threadIdx.x); }
int main() { hello<<<1, 2>>>(); return cudaDeviceSynchronize(); }' >hello.cu
"an environment/bin/cuda-on-cpu-nvcc" hello.cu || fail "cuda-on-cpu-nvcc hello.cu"
[[ $(./a.out) == *'hello from thread 1' ]] || fail "a.out prints $(./a.out)"
said=$("an environment/bin/python" - <<'END'
import cuda_on_cpu
class Notebook:
    def register_magic_function(self, function, kind, name):
        self.magic = (function, kind, name)
notebook = Notebook()
cuda_on_cpu.load_ipython_extension(notebook)
assert notebook.magic[1:] == ("cell", "cuda")
notebook.magic[0]("-O0", open("hello.cu").read())
END
)
[[ $said == *'hello from thread 1' ]] || fail "%%cuda prints $said"
echo ok
