#!/usr/bin/env bash
# Tests nvcc for machines without a GPU on small programs: what each command line makes, says and returns.
# usage: nvcc_test.sh TOOLKIT      TOOLKIT: the directory that bin/nvcc is in
set -uo pipefail

toolkit=$1
nvcc=$toolkit/bin/nvcc
unset MAKEFLAGS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/a directory"
cd "$work/a directory" || exit 1

cat >hello.cu <<'END'
#include <cstdio>
#ifndef GREETING
#define GREETING "hello"
#endif
__global__ void hello() { printf("%s from thread %u\n", GREETING, threadIdx.x); }
int main() {
    hello<<<1, 2>>>();
    return cudaDeviceSynchronize();
}
END
cat >square.cuh <<'END'
#pragma once
__device__ inline float square(float x) { return x * x; }
float sum_of_squares(float x, float y);
END
cat >a.cu <<'END'
#include "square.cuh"
__global__ void add(float x, float y, float* sum) { *sum = square(x) + square(y); }
float sum_of_squares(float x, float y) {
    float* sum_d;
    cudaMalloc(&sum_d, sizeof(float));
    add<<<1, 1>>>(x, y, sum_d);
    float sum;
    cudaMemcpy(&sum, sum_d, sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(sum_d);
    return sum;
}
END
cat >b.cu <<'END'
#include <cstdio>
#include "square.cuh"
__global__ void show(float x) { printf("square %g\n", square(x)); }
int main() {
    show<<<1, 1>>>(2);
    printf("sum %g\n", sum_of_squares(3, 4));
    return cudaDeviceSynchronize();
}
END
cat >main.cpp <<'END'
#include <cuda_runtime.h>
#include <cstdio>
float sum_of_squares(float x, float y);
int main() {
    printf("sum %g\n", sum_of_squares(3, 4));
    return cudaDeviceSynchronize();
}
END
cat >load.cpp <<'END'
#include <cuda.h>
#include <cstdio>
int main(int, char** arguments) {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    cuInit(0);
    cuDeviceGet(&device, 0);
    cuCtxCreate(&context, 0, device);
    if (cuModuleLoad(&module, arguments[1]) != CUDA_SUCCESS) return 1;
    if (cuModuleGetFunction(&function, module, "_Z5hellov") != CUDA_SUCCESS) return 2;
    cuLaunchKernel(function, 1, 1, 1, 2, 1, 1, 0, nullptr, nullptr, nullptr);
    return cuCtxSynchronize();
}
END
printf '.version 8.0\n.target sm_80\n' >gpu.ptx
cp hello.cu hello.txt
echo 'int main() { not_declared(); }' >wrong.cu

failures=0
# Runs a command, then compares: its exit code, a part of what it prints, and the files that it has made.
expect() { # WHAT CODE PART FILES COMMAND...
    local what=$1 code=$2 part=$3 files=$4 output got made
    shift 4
    ls -1 >../before
    output=$("$@" 2>&1)
    got=$?
    made=$(ls -1 | comm -13 ../before - | xargs)
    if [[ $got == "$code" && $output == *"$part"* && $made == "$files" ]]; then
        echo "ok: $what"
    else
        echo "FAILED: $what: $*"
        echo "  exit code $got, expected $code"
        echo "  made '$made', expected '$files'"
        echo "  '$part' is expected in: $output"
        failures=$((failures + 1))
    fi
    # shellcheck disable=SC2086  # names without blanks
    [[ -z $files ]] || mv $files ..
}

expect 'a program' 0 '' a.out "$nvcc" hello.cu
expect 'it runs' 0 'hello from thread 1' '' ../a.out
expect 'options of a GPU change nothing' 0 '' hello "$nvcc" -O3 -arch=sm_80 -gencode arch=compute_80,code=sm_80 \
    -rdc=true --ptxas-options=-v -Xptxas -O3 -maxrregcount=32 -lineinfo --extended-lambda -use_fast_math \
    -Wno-deprecated-gpu-targets -Xcudafe --diag_suppress=177 -m64 -std=c++17 hello.cu -o hello -lcudart -lcudadevrt
expect 'a macro' 0 '' greeting "$nvcc" -DGREETING='"good morning"' hello.cu -o greeting
expect 'the macro counts' 0 'good morning from thread 0' '' ../greeting
expect 'options for the host compiler' 0 '' openmp "$nvcc" -Xcompiler -Wall,-fopenmp hello.cu -o openmp
expect '-x cu' 0 '' from_text "$nvcc" -x cu hello.txt -o from_text
expect 'two files share a device function' 0 '' two "$nvcc" -I. a.cu b.cu -o two
expect 'both of them run' 0 $'square 4\nsum 25' '' ../two
expect 'a .cpp beside a .cu' 0 '' mixed "$nvcc" -O2 main.cpp a.cu -o mixed
expect 'it runs, too' 0 'sum 25' '' ../mixed
expect '-c makes one object for each file' 0 '' 'a.o b.o' "$nvcc" -c a.cu b.cu
expect 'objects are linked' 0 '' linked "$nvcc" ../a.o ../b.o -o linked
expect 'device code is linked' 0 '' dlink.o "$nvcc" -dlink ../a.o ../b.o -o dlink.o
expect 'a library' 0 '' liba.a "$nvcc" -lib ../a.o -o liba.a
expect 'a library is linked' 0 '' with_library "$nvcc" main.cpp -L.. -la -o with_library
expect 'a rule for make' 0 '' 'a.d a.o' "$nvcc" -c a.cu -o a.o -MD
expect 'it names the headers' 0 square.cuh '' cat ../a.d
expect 'a rule alone' 0 square.cuh '' "$nvcc" -M a.cu
expect '--keep keeps the translation' 0 '' 'a.o a.o.translated.ii' "$nvcc" --keep -c a.cu
expect '--dryrun makes nothing' 0 hello.cu '' "$nvcc" --dryrun hello.cu
expect 'g++ links with -lcudart' 0 '' by_gxx g++ ../a.o ../b.o -L"$toolkit/lib64" -lcudart -o by_gxx
expect 'and that runs' 0 'sum 25' '' ../by_gxx

expect '-cubin makes a module' 0 '' hello.cubin "$nvcc" -cubin -arch=sm_80 hello.cu
expect 'a program that loads modules' 0 '' load "$nvcc" load.cpp -o load -lcuda
expect 'it loads the module' 0 'hello from thread 1' '' ../load ../hello.cubin
expect 'PTX of a GPU is refused' 1 'the image is PTX, an assembler of GPUs' '' ../load gpu.ptx
expect 'g++ links with -lcuda' 0 '' load_by_gxx g++ -std=c++20 -I"$toolkit/include" load.cpp -L"$toolkit/lib64" -lcuda -o load_by_gxx
expect 'but modules do not find the stand-in in it' 1 'is linked by nvcc' '' ../load_by_gxx ../hello.cubin

expect 'headers that are compiled before know a macro of the program' 1 my_malloc '' "$nvcc" -DcudaMalloc=my_malloc a.cu b.cu
expect 'g++ is told which standard it needs' 1 'needs C++20' '' g++ -std=c++17 -I"$toolkit/include" -c main.cpp

expect 'the version' 0 'release 13.0' '' "$nvcc" --version
expect '-c -o with two files' 1 'A single input file is required' '' "$nvcc" -c a.cu b.cu -o both.o
expect 'an unknown option' 1 "Unknown option '-fopenmp'" '' "$nvcc" -fopenmp hello.cu
expect 'an option without its value' 1 "'-o' needs a value" '' "$nvcc" hello.cu -o
expect 'a library that does not exist' 1 "'-lcublas'" '' "$nvcc" hello.cu -lcublas
expect '-E' 1 'compiled for the CPU' '' "$nvcc" -E hello.cu
expect 'a file that is not there' 1 "there is no file 'nowhere.cu'" '' "$nvcc" nowhere.cu
expect 'no file' 1 'No input files specified' '' "$nvcc" -O2
expect 'a file of no known kind' 1 "'hello.txt' is neither a source" '' "$nvcc" hello.txt
expect 'the compiler says what is wrong' 1 'wrong.cu:1' '' "$nvcc" -c wrong.cu

if command -v make >/dev/null; then
    cat >Makefile <<'END'
NVCC ?= nvcc
release := $(shell $(NVCC) --version | sed -n 's/.*release \([0-9]*\).*/\1/p')
from_make: a.o b.o
	$(NVCC) $^ -o $@ -lcudart
%.o: %.cu
	$(NVCC) -O3 -arch=sm_70 -DRELEASE=$(release) -dc $< -o $@
END
    expect 'a Makefile' 0 RELEASE=13 'a.o b.o from_make' make NVCC="'$nvcc'"
    expect 'what it made' 0 'sum 25' '' ../from_make
fi

cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.18)
project(own LANGUAGES CXX CUDA)
find_package(CUDAToolkit REQUIRED)
add_library(squares STATIC a.cu)
set_target_properties(squares PROPERTIES CUDA_SEPARABLE_COMPILATION ON CUDA_STANDARD 17)
add_executable(from_cmake b.cu)
target_compile_options(from_cmake PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -Xcompiler=-Wall>)
target_link_libraries(from_cmake PRIVATE squares CUDA::cudart)
END
expect 'CMake takes it for a CUDA compiler' 0 'identification is NVIDIA 13.0' build \
    cmake -G Ninja -B build -DCMAKE_CUDA_COMPILER="$nvcc"
mv ../build .
expect 'and builds with it' 0 from_cmake '' cmake --build build
expect 'what CMake made' 0 'sum 25' '' build/from_cmake

((failures == 0)) || echo "$failures failed"
exit $((failures > 0))
