#!/usr/bin/env bash
# Installs the stand-in, moves it to another place, and compiles with it from there: by hand, watched, and in a project of CMake.
# usage: installed_test.sh BUILD|PREFIX      BUILD: of `cmake -S cuda_on_cpu`; PREFIX: where one is installed
set -euo pipefail

given=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
expect() { # PART COMMAND...: the command prints it and succeeds
    local part=$1 output
    shift
    output=$("$@" 2>&1) || fail "$*: exit code $?: $output"
    [[ $output == *"$part"* ]] || fail "$*: '$part' is expected in: $output"
}

cd "$work"
export XDG_CACHE_HOME=$work/cache
unset NVCC_CCBIN
prefix=$given
if [[ -e $given/CMakeCache.txt ]]; then
    cmake --install "$given" --prefix "$work/first place" >/dev/null
    mv "first place" "second place"
    prefix=$work/'second place'
fi
nvcc=$prefix/bin/cuda-on-cpu-nvcc
find "$prefix" | sort >before

cat >reverse.cu <<'END'
#include <cstdio>
__constant__ float one;
__global__ void reverse(float* out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = threadIdx.x + one;
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
int main() {
    float* out;
    cudaMalloc(&out, 64 * sizeof(float));
    reverse<<<1, 64>>>(out);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
END
expect '' "$nvcc" -o reverse reverse.cu
expect 'no error' ./reverse
expect '' "$nvcc" --inspect -o watched reverse.cu
expect 'FINDING race (64)' ./watched
! ./watched 2>&1 | grep -q 'include/' || fail "lines of the stand-in's own headers: $(./watched 2>&1)"
[[ -n $(find cache -name '*.gch') ]] || fail "no precompiled header in the cache directory"
[[ $(ls "$prefix/bin") == cuda-on-cpu-nvcc ]] || fail "bin has more than cuda-on-cpu-nvcc: $(ls "$prefix/bin")"

mkdir project
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.18)
project(own LANGUAGES CXX)
find_package(cuda_on_cpu 1.0 REQUIRED)
cuda_on_cpu_add_executable(reverse ../reverse.cu)
add_executable(host host.cpp)
target_link_libraries(host PRIVATE cuda_on_cpu::cuda_on_cpu)
add_executable(random random.cpp)
target_link_libraries(random PRIVATE cuda_on_cpu::curand)
if(TARGET cuda_on_cpu::cublas)
  add_executable(norm norm.cpp)
  target_link_libraries(norm PRIVATE cuda_on_cpu::cublas)
endif()
END
cat >project/random.cpp <<'END'
#include <curand.h>
int main() {
    curandGenerator_t generator;
    return curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10);
}
END
cat >project/norm.cpp <<'END'
#include <cublas_v2.h>
int main() {
    cublasHandle_t handle;
    return cublasCreate(&handle);
}
END
cat >project/host.cpp <<'END'
#include <cuda_runtime.h>
int main() {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess && count == 1 ? 0 : 1;
}
END
expect '' cmake -G Ninja -S project -B made -DCMAKE_PREFIX_PATH="$prefix"
expect '' cmake --build made
expect 'no error' made/reverse
expect '' made/host
expect '' made/random
if [[ -e $prefix/lib/cuda_on_cpu/lib64/libcuda_on_cpu_cublas.a ]]; then
    expect '' made/norm
    expect 'no cuda_on_cpu::cublas: OpenBLAS' cmake -G Ninja -S project -B without -DCMAKE_PREFIX_PATH="$prefix" -DCUDA_ON_CPU_HAS_openblas=OFF
fi

find "$prefix" | sort | diff before - || fail "something was written into the installed tree"
echo ok
