#!/usr/bin/env bash
# ./course run, debug and inspect for real, on a program that knows nothing of the course.
# usage: own_program_test.sh CHECKOUT BUILD      inspect is tried where BUILD is build/inspect, run and debug elsewhere
set -euo pipefail

export COURSE_ROOT=$1 COURSE_BUILD_DIR=$2
work=$(mktemp -d)
trap 'rm -rf "$work" "$COURSE_BUILD_DIR"/own/reverse_of_test_*' EXIT
cd "$work"
cat >reverse_of_test.cu <<'END'
#include <cassert>
#include <cstdio>
#include <cstdlib>
__global__ void declared(int n);
__global__ void __launch_bounds__(64) reverse(const float* in, float* out, int n) {
    __shared__ float tile[64];
    int i = threadIdx.x;
    tile[i] = in[i];
    if (n < 64) __syncthreads();
    out[i] = tile[63 - i];
}
int main(int argc, char** argv) {
    const int code = argc > 1 ? atoi(argv[1]) : 0;
    if (code == 4) exit(code);
    float *in, *out;
    cudaMalloc(&in, 64 * sizeof(float));
    cudaMalloc(&out, 64 * sizeof(float));
    cudaMemset(in, 0, 64 * sizeof(float));
    reverse<<<1, 64>>>(in, code == 1 ? nullptr : out, code == 2 ? 32 : 64);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    assert(code != 3);
    exit(code);
}
END

course() { # EXPECTED ARGUMENTS...
    local expected=$1 code=0
    shift
    "$COURSE_BUILD_DIR/bin/course" "$@" >out 2>&1 || code=$?
    [[ $code == "$expected" ]] && return
    echo "FAILED: $*: exit code $code, expected $expected"
    cat out
    exit 1
}
expect() { # WORDS
    grep -qF -- "$1" "${2:-out}" && return
    echo "FAILED: no '$1' in"
    cat "${2:-out}"
    exit 1
}

# A kernel that uses a variable and a function of another file.
cat >reverse_of_test_kernel.cu <<'END'
extern __device__ int table[4];
__device__ int twice(int x);
__global__ void look_up(int* out) { out[threadIdx.x] = twice(table[threadIdx.x]); }
void run(int* out) { look_up<<<1, 4>>>(out); }
END
cat >reverse_of_test_table.cu <<'END'
#include <cstdio>
__device__ int table[4];
__device__ int twice(int x) { return 2 * x; }
void run(int* out);
int main(int, char** argv) {
    int values[4] = {1, 2, 3, 4}, *out;
    cudaMemcpyToSymbol(table, values, sizeof values);
    cudaMallocManaged(&out, sizeof values);
    run(out);
    cudaDeviceSynchronize();
    printf("%s: %d %d %d %d\n", argv[1], out[0], out[1], out[2], out[3]);
}
END

if [[ $COURSE_BUILD_DIR == "$COURSE_ROOT/build/inspect" ]]; then
    course 0 inspect --rdc reverse_of_test_kernel.cu reverse_of_test_table.cu --json all.json -- values
    expect 'values: 2 4 6 8'
    expect 'no findings'
    course 1 inspect reverse_of_test.cu --html page.html --json all.json
    expect 'FINDING race'
    expect 'reverse_of_test.cu:8: tile[i] = in[i];'
    expect 'global load of 4 bytes, in'
    expect '1 finding'
    expect '<svg' page.html
    expect '"sentence"' all.json
    course 0 profile reverse_of_test.cu
    expect '=== reverse, 1 block of 64 threads'
    expect 'barriers per block            0'
    expect '1 finding. Line by line'
    expect 'Without a GPU these are not known'
    course 2 inspect reverse_of_test.cu -- 2  # no race: the program's own exit code
    expect 'no findings'
    expect 'ended with exit code 2'
    course 1 inspect reverse_of_test.cu -- 1
    expect 'FINDING out_of_bounds'
    course 134 inspect reverse_of_test.cu -- 3  # assert() of the host
    expect 'FINDING race'
    course 4 inspect reverse_of_test.cu -- 4  # before the launch
    expect 'ended with exit code 4. The program launched no kernel'
    expect 'Arguments of its own stand behind --: ./course inspect reverse_of_test.cu'
    expect 'nothing was inspected'
    course 1 profile reverse_of_test.cu -- 4
    expect 'launched no kernel'
    course 2 inspect reverse_of_test.cu --size 3
    expect 'its own arguments stand behind --'
    course 2 inspect nowhere.cu
else
    course 0 run reverse_of_test.cu
    expect 'no error'
    course 2 run reverse_of_test.cu -- 2
    course 3 run reverse_of_test_kernel.cu reverse_of_test_table.cu values
    expect "refers to 'table'"
    expect './course run --rdc reverse_of_test_kernel.cu reverse_of_test_table.cu'
    course 0 run --rdc reverse_of_test_kernel.cu reverse_of_test_table.cu values
    expect 'values: 2 4 6 8'
    cat >reverse_of_test_host_code.cu <<'END'
#include <string>
__global__ void host_code(int* out) {
    std::string text = "abc";
    out[0] = static_cast<int>(text.size());
}
int main() { return 0; }
END
    course 0 run reverse_of_test_host_code.cu
    expect 'it runs on the CPU, but nvcc does not compile it:'
    expect 'reverse_of_test_host_code.cu:3: calling a __host__ function("std::string") from a __global__ function'
    cat >reverse_of_test_host_code.cu <<'END'
int twice(int x) { return 2 * x; }
__global__ void host_code(int* out) { out[0] = twice(3); }
int main() { return 0; }
END
    course 0 run reverse_of_test_host_code.cu
    if command -v clang++ >/dev/null; then
        expect 'reverse_of_test_host_code.cu:2: calling a __host__ function("twice")'
    else
        expect 'not looked at: calls of host functions in kernels (clang++ is not installed)'
    fi
    # The header of a library is enough: it is built and linked. cuRAND needs nothing of the host's.
    cat >reverse_of_test_library.cu <<'END'
#include <curand.h>
#include <cstdio>
int main() {
    curandGenerator_t generator;
    float* numbers;
    cudaMalloc(&numbers, 4 * sizeof(float));
    printf("%d\n", curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
    printf("%d\n", curandGenerateUniform(generator, numbers, 4));
    return 0;
}
END
    course 0 run reverse_of_test_library.cu
    expect $'0\n0'
    # One that the machine lacks (OpenBLAS, for cuBLAS) matters only if it is used.
    printf '#include <cublas_v2.h>\n#include <cstdio>\nint main() { puts("not used"); }\n' >reverse_of_test_unused.cu
    course 0 run reverse_of_test_unused.cu
    expect 'not used'
    if command -v gdb >/dev/null; then
        printf '%s\n' 'print threadIdx' 'next' 'next' 'print n' 'info args' 'quit' |
            course 0 debug reverse_of_test.cu -- 2
        expect 'reverse_of_test.cu:6'
        expect '$1 = {x = 0, y = 0, z = 0}'
        expect '$2 = 32'
    fi
fi
echo ok
