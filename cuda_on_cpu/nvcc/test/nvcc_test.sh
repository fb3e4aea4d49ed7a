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
cat >pairs.cuh <<'END'
#include <iomanip>
#include <iostream>
__device__ void swap_pair(int* a) {
    int first = a[0];
    a[0] = a[1], a[1] = first;
}
END
cat >pairs.cu <<'END'
__global__ void turn(int* a) { swap_pair(a); }
int main() {
    int* a;
    cudaMallocManaged(&a, 2 * sizeof *a);
    a[0] = 5, a[1] = 7;
    turn<<<1, 1>>>(a);
    cudaDeviceSynchronize();
    std::cout << std::setw(3) << a[0] << std::setw(3) << a[1] << "\n";
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
cat >atomic.cu <<'END'
__global__ void look(int* p) { p[1] = __nv_atomic_load_n(p, __NV_ATOMIC_RELEASE); }
END
cat >main.cpp <<'END'
#include <cuda_runtime.h>
#include <cstdio>
__global__ void __launch_bounds__(32) add(float x, float y, float* sum);
float sum_of_squares(float x, float y);
int main() {
    printf("sum %g\n", sum_of_squares(3, 4));
    return cudaDeviceSynchronize();
}
END
cat >older.cpp <<'END'
#include <cuda_runtime.h>
#include <nccl.h>
#include <cstdio>
float sum_of_squares(float x, float y);
__global__ void kernel_of_another_file(float4 x);
static __host__ __device__ inline float3 doubled(float3 x) { return make_float3(2 * x.x, 2 * x.y, 2 * x.z); }
int main() {
    float *data = nullptr, back = 0, *managed = nullptr;
    const float one = 1;
    cudaMalloc(&data, sizeof one);
    cudaMallocManaged(&managed, sizeof one);
    cudaMemcpy(data, &one, sizeof one, cudaMemcpyHostToDevice);
    cudaMemcpy(&back, data, sizeof one, cudaMemcpyDeviceToHost);
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>(), number = cudaCreateChannelDesc<float>();
    const dim3 grid(2, 3);
    cudaEvent_t event;
    cudaEventCreate(&event, cudaEventDisableTiming);
    printf("%ld: %g %d %d %d %u %g sum %g\n", __cplusplus, back, format.w, format.f == cudaChannelFormatKindUnsigned, number.x,
           grid.y, doubled(make_float3(1, 2, 3)).z, sum_of_squares(3, 4));
    return cudaDeviceSynchronize() != cudaSuccess;
}
END
printf '#include <cublas_v2.h>\nint main() { cublasHandle_t handle = nullptr; return handle != nullptr; }\n' >blas.cpp
printf '#include <cuda_fp16.h>\nint main() {}\n' >half.cpp
printf '#include <cuda_runtime.h>\n#include <mma.h>\n__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n' >older.cu
cat >primitives.cu <<'END'
#include <cooperative_groups/memcpy_async.h>
__global__ void k(int* to, const int* from) { __pipeline_memcpy_async(to, from, 4); }
END
cat >ptx.cu <<'END'
#include <cstdio>
#ifndef INSTRUCTION
#define INSTRUCTION "mov.u32 %0, %%laneid;"
#endif
__device__ inline void not_called() { asm("frobnicate.u32 1;"); }
__global__ void show() {
    unsigned lane;
    asm volatile(INSTRUCTION : "=r"(lane));
    if (threadIdx.x == 37) printf("lane %u\n", lane);
}
int main() {
    show<<<1, 64>>>();
    return cudaDeviceSynchronize();
}
END
cat >architecture.cu <<'END'
#include <cstdio>
__global__ void tell() {
#ifdef __CUDA_ARCH__
    printf("__CUDA_ARCH__ is %d\n", __CUDA_ARCH__);
#endif
}
int main() {
    const int list[] = {__CUDA_ARCH_LIST__};
    printf("first of the list is %d\n", list[0]);
    tell<<<1, 1>>>();
    return cudaDeviceSynchronize();
}
END
cat >counter.cuh <<'END'
#pragma once
__constant__ int step[1];
__device__ int counter;
END
cat >count_a.cu <<'END'
#include "counter.cuh"
__global__ void count() { counter += 1; }
void count_in_a() { count<<<1, 1>>>(); }
END
cat >count_b.cu <<'END'
#include <cstdio>
#include "counter.cuh"
__global__ void show() { printf("counter %d\n", counter); }
void count_in_a();
int main() {
    count_in_a();
    show<<<1, 1>>>();
    return cudaDeviceSynchronize();
}
END
echo 'extern __device__ int counter;' >shared_counter.cuh
sed 's/counter.cuh/shared_counter.cuh/' count_a.cu >share_a.cu
{ sed 's/counter.cuh/shared_counter.cuh/' count_b.cu; echo '__device__ int counter;'; } >share_b.cu
cat >table_a.cu <<'END'
namespace lists { extern __constant__ float weights[4]; }
extern __device__ int table[4];
__global__ void read(int* out) { *out = table[1] + int(lists::weights[0]); }
void run(int* out) { read<<<1, 1>>>(out); }
END
cat >table_b.cu <<'END'
#include <cstdio>
__device__ int table[4] = {0, 7};
namespace lists { __constant__ float weights[4] = {5}; }
static int other = 3;
void run(int* out);
int main() {
    int* out;
    cudaMallocManaged(&out, sizeof *out);
    run(out);
    cudaDeviceSynchronize();
    printf("table %d\n", *out + other - 3);
}
END
sed 's/extern __device__ int table/extern int other; static int table/; s/extern __constant__/static __constant__/' table_a.cu |
    sed 's/table\[1\]/other/' >host_a.cu
cat >answer.cu <<'END'
#include <map>
#include <string>
__global__ void set(int* p) { *p = 42; }
extern "C" int answer(void) {
    std::map<std::string, int*> memory;
    int result = 0;
    cudaMalloc(&memory["result"], sizeof(int));
    set<<<1, 1>>>(memory["result"]);
    cudaMemcpy(&result, memory["result"], sizeof(int), cudaMemcpyDeviceToHost);
    return result;
}
END
cat >asks.c <<'END'
#include <math.h>
#include <stdio.h>
int answer(void);
int main(int count, char** arguments) {
    (void)arguments;
    printf("answer %d\n", answer() + (int)floor(sqrt(count)) - 1);
    return 0;
}
END
cat >names.cu <<'END'
#include <cstdio>
#include <cooperative_groups.h>
#include <cuda_fp16.h>
typedef struct stack_t { uint4* a; int top; } stack_t;
enum sigval { first = 3 };
struct sigaction { int top; };
__global__ void k() { if (threadIdx.x == 1) __brkpt(); }
int main() {
    stack_t s{nullptr, first};
    struct sigaction a{4};
    k<<<1, 1>>>();
    printf("names %d %ld\n", s.top + a.top, static_cast<long>(std::chrono::seconds(1).count()));
    return cudaDeviceSynchronize();
}
END
cat >brought.cu <<'END'
#include <cub/cub.cuh>
std::mutex one_at_a_time;
int main() {
    std::map<int, int> squares{{2, 4}};
    std::set<int> numbers{squares[2]};
    const auto since = std::chrono::steady_clock::now();
    std::cout << "brought " << *numbers.begin() << (std::chrono::steady_clock::now() < since) << "\n";
}
END
cat >from_c.c <<'END'
#include <cuda_runtime.h>
#include <stdio.h>
int main(void) {
    struct cudaDeviceProp properties;
    float4 vector = {1, 2, 3, 4};
    dim3 grid = {1, 2, 3};
    enum cudaMemcpyKind kind = cudaMemcpyHostToDevice;
    float copy = 0;
    void* memory;
    cudaError_t error = cudaGetDeviceProperties(&properties, 0);
    if (error == cudaSuccess) error = cudaMalloc(&memory, sizeof copy);
    if (error == cudaSuccess) error = cudaMemcpy(memory, &vector.w, sizeof copy, kind);
    if (error == cudaSuccess) error = cudaMemcpy(&copy, memory, sizeof copy, cudaMemcpyDeviceToHost);
    printf("%s %g %u %d\n", cudaGetErrorString(error), copy, grid.z, properties.major);
    return cudaFree(memory);
}
END
cat >old.cu <<'END'
#include <cstdio>
__device__ float lerp(float a, float b, float t) { return 100 + a + (b - a) * t; }
__global__ void k(float* x) { *x = lerp(1, 2, .5f) + __shfl(1, 0); }
int main() {
    float *x, result;
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, 0);
    cudaMalloc(&x, sizeof result);
    k<<<1, 1>>>(x);
    cudaThreadSynchronize();
    cudaThreadSynchronize();
    cudaMemcpy(&result, x, sizeof result, cudaMemcpyDeviceToHost);
    printf("result %g, overlap %d\n", result, properties.deviceOverlap);
    return;
}
END
cat >old.cpp <<'END'
#include <math.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cmath>
inline float lerp(float a, float b, float t) { return 100 + a + t * (b - a); }
int main() { printf("lerp %g\n", lerp(0.f, 2.f, .5f)); }
END
cat >driver.cpp <<'END'
#include <cuda.h>
#include <cuda_runtime.h>
int main(int arguments, char**) {
    int count = 0, major = 0;
    if (cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) != CUDA_ERROR_NOT_INITIALIZED) return 2;
    if ((arguments > 1 ? cudaFree(nullptr) : cudaGetDeviceCount(&count)) != cudaSuccess) return 3;
    return cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) != CUDA_SUCCESS;
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
cat >outside.cu <<'END'
__global__ void outside(float* x) { x[threadIdx.x + 64] = 1; }
int main() {
    float* x;
    cudaMalloc(&x, sizeof(float));
    outside<<<1, 1>>>(x);
    return cudaDeviceSynchronize() == cudaSuccess;
}
END
cat >endless.cu <<'END'
#include <atomic>
__global__ void wait_for_ever() {
    std::atomic<int> flag{0};
    while (flag.load(std::memory_order_relaxed) == 0) {}
}
int main() {
    wait_for_ever<<<1, 1>>>();
    return cudaDeviceSynchronize() != cudaErrorLaunchTimeout;
}
END
cat >overrun.cu <<'END'
__global__ void count_up(int* out, int n) {
    int values[16];
    for (int i = 0; i < n; ++i) values[i] = i;
    *out = values[0];
}
__device__ __noinline__ int write_first(int n) {
    volatile int values[18000];
    for (int i = 0; i < n; ++i) values[i] = -1;
    return values[n - 1];
}
__global__ void write_others_stack(int* out, int n) {
    __syncthreads();
    if (threadIdx.x > 0) out[threadIdx.x] = write_first(n);
}
int main(int count, char**) {
    int* out;
    cudaMalloc(&out, 64 * sizeof(int));
    if (count > 1) write_others_stack<<<1, 64>>>(out, 1); else count_up<<<1, 1>>>(out, 20);
    return cudaDeviceSynchronize() == cudaSuccess;
}
END
echo 'int main() { not_declared(); }' >wrong.cu
{
    for letter in {A..Z}; do
        printf '#ifndef %s\n#define %s 10\n#endif\n' $letter $letter
    done
    for header in cooperative_groups.h cooperative_groups/{memcpy_async,reduce,scan}.h cuda/{annotated_ptr,atomic,barrier,cmath} \
        cuda/{functional,pipeline,ptx,semaphore} cuda/std/{array,atomic,tuple} cub/cub.cuh mma.h cuda_{fp16,bf16,fp8}.h \
        cuda_pipeline.h curand_kernel.h cu{blas_v2,blasLt,fft,sparse,da}.h nvrtc.h cstdio; do
        echo "#include <$header>"
    done
    echo '__global__ void add() { printf("sum %d\n", N + T); }'
    echo 'int main() { add<<<1, 1>>>(); return cudaDeviceSynchronize(); }'
} >letters.cu
# Names that <algorithm>, <array>, <atomic>, <string>, <vector> and <mutex> would declare in std.
names=(array atomic count find lock_guard min_element mutex search sort string transform unique vector)
{
    echo 'using namespace std;'
    printf '__device__ int %s;\n' "${names[@]}"
    echo '__global__ void change() {'
    printf '    atomicAdd(&%s, 1);\n' "${names[@]}"
    echo '}'
    echo 'int main() { change<<<1, 1>>>(); return cudaDeviceSynchronize(); }'
} >std_names.cu
{
    printf '#include <%s>\n' algorithm array stdexcept string vector
    echo 'int main() { std::vector<std::string> v(std::array<int, 1>{2}[0]); std::sort(v.begin(), v.end()); return v.size() != 2; }'
} >included.cu

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

# Commands without the quotes that they are printed with.
dry() { "$nvcc" --dryrun "$@" 2>&1 | tr -d '"'; }

cat >static.cu <<'END'
#include <cstdio>
__global__ void add(int* p, int n) { *p += n; }
struct Global {
    int* p = nullptr;
    Global() {
        cudaMallocManaged(&p, sizeof *p);
        *p = 0;
        add<<<1, 1>>>(p, 3);
    }
    ~Global() {
        add<<<1, 1>>>(p, 4);
        cudaDeviceSynchronize();
        printf("sum %d\n", *p);
        cudaFree(p);
    }
} global;
int main() {}
END
# Its object is destroyed after those of the runtime, whose memory then has other owners.
cat >late.cu <<'END'
#include <cuda.h>
#include <curand_kernel.h>
#include <cstdio>
#include <cstring>
__global__ void add(int* p) { atomicAdd(p, 1); }
void launch(int* p) {
    cudaMemset(p, 0, sizeof *p);
    cudaStream_t streams[4];
    for (cudaStream_t& stream : streams) {
        cudaStreamCreate(&stream);
        add<<<8, 32, 0, stream>>>(p);
    }
    cudaDeviceSynchronize();
}
__global__ void skip_ahead(unsigned* value) {
    curandStateXORWOW_t xorwow;
    curandStateMRG32k3a_t mrg;
    curand_init(1, threadIdx.x + 5, 1000003, &xorwow);
    curand_init(1, threadIdx.x + 5, 1000003, &mrg);
    value[threadIdx.x] = curand(&xorwow) ^ curand(&mrg);
}
// What the runtime keeps of numbers, contexts and names.
unsigned use_lists() {
    unsigned* value = nullptr;
    cudaMallocManaged(&value, 32 * sizeof *value);
    skip_ahead<<<1, 32>>>(value);
    cudaThreadSynchronize();  // of older versions: told once
    cuInit(0);
    CUcontext context = nullptr, current = nullptr;
    cuDevicePrimaryCtxRetain(&context, 0);
    if (cuCtxPushCurrent(context) != CUDA_SUCCESS || cuCtxGetCurrent(&current) != CUDA_SUCCESS ||
        current != context || cuCtxPopCurrent(&current) != CUDA_SUCCESS)
        printf("the context is lost\n");
    const unsigned first = value[7];
    cudaFree(value);
    return first;
}
unsigned first_value = 0;
struct Late {
    ~Late() {
        for (int bytes = 1; bytes < 200; ++bytes)
            std::memset(new char[bytes], 0x5a, bytes);
        for (int i = 0; i < 100; ++i) {
            int *p = nullptr, *q = nullptr;
            cudaMallocManaged(&p, sizeof *p);
            cudaMallocAsync(&q, sizeof *q, 0);
            if (i == 99) launch(p), printf("late %d\n", *p);
            if (i == 99) printf("lists %s\n", use_lists() == first_value ? "still there" : "lost");
            cudaFreeAsync(q, 0);
            cudaFree(p);
        }
    }
};
[[gnu::init_priority(200)]] Late late;
int main() {
    int *p = nullptr, *q = nullptr;
    cudaMallocAsync(&q, sizeof *q, 0);
    cudaMalloc(&p, sizeof *p);
    launch(p);
    first_value = use_lists();
    cudaFreeAsync(q, 0);
}
END
expect 'a program whose static object launches kernels' 0 '' static "$nvcc" static.cu -o static
expect 'one that outlives the runtime' 0 '' late "$nvcc" late.cu -o late -lcuda
expect 'a program whose source is in a directory with a blank' 0 '' outside "$nvcc" "$PWD/outside.cu" -o outside
expect 'a report of it' 0 'a directory/outside.cu:1' '' ../outside
expect 'a loop that never ends, of functions of the standard library' 0 '' endless "$nvcc" -G endless.cu -o endless
# The kernel is ended, and the program goes on; or, where the kernel is at no instruction that it can be left from, the program.
expect 'its line is one of the program' 0 'a directory/endless.cu:4' '' sh -c 'said=$(CUDA_ON_CPU_LIMIT=1 ../endless 2>&1)
    status=$?; echo "$said"; case $said in *"the program ends here") [ $status = 1 ];; *) [ $status = 0 ];; esac'
expect 'no line of a header passes for one of the program' 1 '' '' sh -c 'objdump -dl ../endless | grep "endless.cu:[0-9][0-9][0-9]"'
expect 'local arrays' 0 '' overrun "$nvcc" overrun.cu -o overrun
expect 'a write past one' 0 "count_up: block (0,0,0), thread (0,0,0): this thread's stack is damaged" '' ../overrun
expect 'one that is larger than the stack' 0 "write_others_stack: block (0,0,0), thread (1,0,0): this thread's stack is full" '' ../overrun large
expect 'before main() and after it' 0 'sum 7' '' ../static
expect 'after all other objects' 0 $'late 1024\nlists still there' '' ../late

expect 'a program' 0 '' a.out "$nvcc" hello.cu
expect 'it runs' 0 'hello from thread 1' '' ../a.out
expect 'a header that only the command line includes' 0 '' pairs "$nvcc" -include pairs.cuh pairs.cu -o pairs
expect 'with device code and the standard library' 0 '  7  5' '' ../pairs
expect 'a .cpp file with a lerp() of its own' 0 '' older "$nvcc" old.cpp -o older
expect 'it is called' 0 'lerp 101' '' ../older
expect 'the driver API' 0 '' driver "$nvcc" driver.cpp -o driver -lcuda
expect 'the runtime initialises it' 0 '' '' ../driver
expect 'so does cudaFree' 0 '' '' ../driver free
expect 'options of a GPU change nothing' 0 '' hello "$nvcc" -O3 -arch=sm_80 -gencode arch=compute_80,code=sm_80 \
    -rdc=true --ptxas-options=-v -Xptxas -O3 -maxrregcount=32 -lineinfo --extended-lambda -use_fast_math \
    -Wno-deprecated-gpu-targets -Xcudafe --diag_suppress=177 -m64 -std=c++17 hello.cu -o hello -lcudart -lcudadevrt
expect 'a macro' 0 '' greeting "$nvcc" -DGREETING='"good morning"' hello.cu -o greeting
expect 'the macro counts' 0 'good morning from thread 0' '' ../greeting
expect 'macros of one letter' 0 '' letters "$nvcc" -DN=4096 -DT=16 -DB=1 -DK letters.cu -o letters
expect 'are none in the headers' 0 'sum 4112' '' ../letters
expect 'names of standard headers, for variables' 0 '' std_names "$nvcc" std_names.cu -o std_names
expect 'standard headers that a program includes' 0 '' included "$nvcc" included.cu -o included
expect 'and that it uses' 0 '' '' ../included
expect 'options for the host compiler' 0 '' openmp "$nvcc" -Xcompiler -Wall,-fopenmp hello.cu -o openmp
expect '__CUDA_ARCH__ is 900' 0 '' architecture "$nvcc" architecture.cu -o architecture
expect 'in device code' 0 'is 900' '' ../architecture
expect '-arch changes it' 0 '' architecture80 "$nvcc" -arch=sm_80 architecture.cu -o architecture80
expect 'to what is asked for' 0 'is 800' '' ../architecture80
expect 'of several the last' 0 '' architectures "$nvcc" -gencode arch=compute_90a,code=sm_90a \
    -gencode=arch=compute_75,code=[sm_75,compute_75] architecture.cu -o architectures
expect 'counts' 0 $'list is 750\n__CUDA_ARCH__ is 900' '' ../architectures
expect 'device variables of a header' 0 '' own_counters "$nvcc" count_a.cu count_b.cu -o own_counters
expect 'are of each file' 0 'counter 0' '' ../own_counters
expect 'variables that files share need -rdc=true' 1 "refers to 'table'" '' "$nvcc" table_a.cu table_b.cu -o table
expect 'also those of a namespace' 1 "refers to 'lists::weights'" '' "$nvcc" table_b.cu table_a.cu -o table
"$nvcc" -c table_a.cu table_b.cu
expect 'and those of objects' 1 'compile all of them with -rdc=true' '' "$nvcc" table_a.o table_b.o -o table
expect 'with it they are one' 0 'table 12' '' "$nvcc" -rdc=true -run table_a.cu table_b.cu -o ../table
expect 'a function that is defined nowhere is no such variable' 1 'undefined reference' '' "$nvcc" table_b.cu -o table
[[ $("$nvcc" table_b.cu -o table 2>&1) != *-rdc* ]] || { echo 'FAILED: -rdc=true for a function'; failures=$((failures + 1)); }
expect 'with -rdc=true' 0 '' shared_counter "$nvcc" -rdc=true share_a.cu share_b.cu -o shared_counter
expect 'of all' 0 'counter 1' '' ../shared_counter
expect 'the runtime API from C' 0 '' from_c "$nvcc" -Xcompiler -Wall,-Wextra,-pedantic,-Werror from_c.c -o from_c
expect 'it works' 0 'no error 4 3 9' '' ../from_c
expect 'an old program' 0 'old.cu:14: warning: return without a value' old "$nvcc" old.cu -o old
expect 'is told once what it should use' 0 $'use cudaDeviceSynchronize\nresult 102.5, overlap 1' '' ../old
expect 'and strictly refused' 1 cudaThreadSynchronize '' "$nvcc" -DCUDA_ON_CPU_STRICT old.cu -o old
expect 'a memory order that a load cannot have' 1 'a load cannot be release or acq_rel' '' "$nvcc" -c atomic.cu
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
expect 'options for the host compiler in one word' 0 ' -Wall -DX=a,b -DY=c d ' '' dry -Xcompiler '-Wall -DX=a\,b' --compiler-options='"-DY=c d"' hello.cu
expect 'options for the linker' 0 ' -Xlinker -rpath -Xlinker /usr/lib ' '' dry -Xlinker -rpath,/usr/lib hello.cu
expect 'lists' 0 ' -Ione -Itwo -DA -DB=f(x) ' '' dry -I one,two -DA,'B=f(x)' hello.cu
expect 'what names an architecture' 0 hello.cu '' dry -gencode=arch=compute_80,code=[sm_80,compute_80] -gencode 'arch=compute_90,code="sm_90,compute_90"' \
    -arch sm_80 hello.cu
echo '-DA  "-DB=c d"
hello.cu' >options.txt
expect 'a file of options' 0 ' -DA -DB=c d ' '' dry --options-file options.txt
expect 'a file of options, as other compilers have it' 0 ' -DA -DB=c d ' '' dry @options.txt
expect 'several files of options' 0 ' -DA -DB=c d -DA -DB=c d ' '' dry -optf options.txt,options.txt
rm options.txt
expect 'options of the environment' 0 ' -DBEFORE -DA -DBEHIND ' '' env NVCC_PREPEND_FLAGS=-DBEFORE NVCC_APPEND_FLAGS=-DBEHIND "$nvcc" --dryrun -DA hello.cu
expect 'a library by its file' 0 ' -l:libm.a ' '' dry -l:libm.a hello.cu
expect '-run' 0 'hello from thread 1' ran "$nvcc" hello.cu -run -o ran
expect '-MM leaves out the headers of the system' 0 $'a.o: a.cu square.cuh' '' "$nvcc" -MM a.cu
expect 'g++ links with -lcudart' 0 '' by_gxx g++ ../a.o ../b.o -L"$toolkit/lib64" -lcudart -o by_gxx
expect 'and that runs' 0 'sum 25' '' ../by_gxx

"$nvcc" -c answer.cu -o ../answer.o
gcc -c asks.c -o ../asks.o
expect 'gcc links with -lcudart' 0 '' by_gcc gcc ../asks.o ../answer.o -L"$toolkit/lib64" -lcudart -lm -o by_gcc
expect 'and it runs' 0 'answer 42' '' ../by_gcc
expect 'names of <csignal> are free' 0 'names 7 1' '' "$nvcc" -run names.cu -o ../names
expect 'headers of C++ come with CUB' 0 'brought 40' '' "$nvcc" -run brought.cu -o ../brought
expect '-cuda writes the translation' 0 '' 'hello.cu.cpp.ii pairs.cu.cpp.ii' "$nvcc" -cuda -include pairs.cuh hello.cu pairs.cu
expect 'to the file of -o' 0 '' hello.ii "$nvcc" --cuda hello.cu -o hello.ii
expect 'of each source by itself' 1 'A single input file is required' '' "$nvcc" -cuda hello.cu a.cu -o hello.ii
expect '-cubin makes a module' 0 '' hello.cubin "$nvcc" -cubin -arch=sm_80 hello.cu
expect 'a program that loads modules' 0 '' load "$nvcc" load.cpp -o load -lcuda
expect 'it loads the module' 0 'hello from thread 1' '' ../load ../hello.cubin
printf '#include <cusparse.h>\nint main() { cusparseHandle_t handle; return cusparseCreate(&handle); }\n' >sparse.cpp
expect 'one that uses a library, too' 0 '' sparse "$nvcc" sparse.cpp -o sparse -lcusparse -lcuda
expect 'and that runs' 0 '' '' ../sparse
expect '-ptx makes one that is text' 0 '' hello.ptx "$nvcc" -ptx hello.cu
expect 'that is loaded, too' 0 'hello from thread 1' '' ../load ../hello.ptx
expect 'PTX of a GPU is refused' 1 'the image is PTX, an assembler of GPUs' '' ../load gpu.ptx
expect 'g++ links with -lcuda' 0 '' load_by_gxx g++ -std=c++20 -I"$toolkit/include" load.cpp -L"$toolkit/lib64" -lcuda -o load_by_gxx
expect 'but modules do not find the stand-in in it' 1 'is linked by nvcc' '' ../load_by_gxx ../hello.cubin

expect 'headers that are compiled before know a macro of the program' 1 my_malloc '' "$nvcc" -DcudaMalloc=my_malloc a.cu b.cu
for standard in 14 17; do
    expect "a .cpp of the host in C++$standard" 0 '' older.o \
        g++ -std=c++$standard -Wall -Wextra -Werror -I"$toolkit/include" -c older.cpp
    expect 'is linked' 0 '' older g++ ../older.o ../a.o -L"$toolkit/lib64" -lcudart -pthread -ldl -o older
    expect 'and works' 0 "${standard/1/201}" '' ../older
    expect 'as it should' 0 ': 1 8 1 32 3 6 sum 25' '' ../older
    expect 'the header of cuBLAS needs its library only where it is called' 0 '' blas g++ -std=c++$standard -Wall -Wextra -Werror \
        -I"$toolkit/include" blas.cpp -o blas
    expect 'a header that needs more says so' 1 'this header needs -std=c++20' '' \
        g++ -std=c++$standard -I"$toolkit/include" -c half.cpp
    expect 'in a few lines' 0 '' '' test "$(g++ -std=c++$standard -I"$toolkit/include" -c half.cpp 2>&1 | grep -c error)" -lt 4
    expect "a .cu file for C++$standard is compiled as C++20" 0 '' older "$nvcc" -std=c++$standard older.cu -o older
done
expect 'C++11 is told in a line' 1 'cuda_runtime.h needs -std=c++14 or later' '' g++ -std=c++11 -I"$toolkit/include" -c older.cpp
expect 'cooperative groups bring the primitives of pipelines' 0 '' primitives.o "$nvcc" -c primitives.cu

expect 'inline PTX' 0 '' ptx "$nvcc" ptx.cu -o ptx
expect 'it runs' 0 'lane 5' '' ../ptx
expect 'PTX that does not exist' 1 'PTX instruction "mov.s32.frobnicate": the modifier .frobnicate is not provided here' '' \
    "$nvcc" '-DINSTRUCTION="mov.s32.frobnicate %0, 1;"' ptx.cu
expect 'its line' 1 'ptx.cu:8:' '' "$nvcc" '-DINSTRUCTION="frobnicate.s32 %0, 1;"' ptx.cu

expect 'the version' 0 'release 13.0' '' "$nvcc" --version
expect '-c -o with two files' 1 'A single input file is required' '' "$nvcc" -c a.cu b.cu -o both.o
expect 'an unknown option' 1 "Unknown option '-fopenmp'" '' "$nvcc" -fopenmp hello.cu
expect 'a standard that there is not' 1 '-std=c++12: expected c++03' '' "$nvcc" -std=c++12 hello.cu
expect 'a level that is no number' 1 '-Ofast: expected a number' '' "$nvcc" -Ofast hello.cu
expect 'a directory that is not there' 1 "no directory 'nowhere'" '' "$nvcc" -odir nowhere -c hello.cu
expect '-run without a program' 1 'only a program can be run' '' "$nvcc" -run -c hello.cu
expect '-O without a number' 1 '-Ohello.cu: expected a number' '' "$nvcc" -O hello.cu
expect 'an option without its value' 1 "'-o' needs a value" '' "$nvcc" hello.cu -o
expect 'a library that does not exist' 1 "'-lcudnn'" '' "$nvcc" hello.cu -lcudnn
expect '-E' 1 'compiled for the CPU' '' "$nvcc" -E hello.cu
expect 'a file that is not there' 1 "there is no file 'nowhere.cu'" '' "$nvcc" nowhere.cu
expect 'no file' 1 'No input files specified' '' "$nvcc" -O2
expect 'a file of no known kind' 1 "'hello.txt' is neither a source" '' "$nvcc" hello.txt
expect 'the compiler says what is wrong' 1 'wrong.cu:1' '' "$nvcc" -c wrong.cu

for header in cuda_gl_interop cudaGL cuda_egl_interop cudaEGL; do
    printf '#include <cuda_runtime.h>\n#include <%s.h>\n' $header >graphics.cu
    expect "$header.h" 1 'cannot be shared with kernels that run on the CPU' '' "$nvcc" -c graphics.cu
done

# A wrapper of the compiler that links with libraries of its own, as mpicxx does.
cat >wrapper <<'END'
#!/bin/sh
for option; do
    case $option in -c | -print-file-name=*) exec g++ "$@" ;; esac
done
exec g++ "$@" -lm
END
chmod +x wrapper
expect 'a wrapper of the compiler, without a word' 0 '' wrapped \
    bash -c '"$1" -ccbin ./wrapper hello.cu -o wrapped 2>&1 | { ! grep .; }' bash "$nvcc"
expect 'what it makes runs' 0 'hello from thread 1' '' ../wrapped

# Libraries over those of the host: there, or a sentence names the package.
with_library() { # LIBRARY PACKAGE PROGRAM EXPECTED: the program is standard input
    cat >"$3.cu"
    if [[ -e $toolkit/lib64/lib$1.so ]]; then
        expect "-l$1" 0 '' "$3" "$nvcc" "$3.cu" -o "$3" "-l$1"
        expect "$3 runs" 0 "$4" '' "../$3"
    else
        expect "-l$1 is left out" 1 "$2" '' "$nvcc" "$3.cu" -o "$3" "-l$1"
    fi
}
with_library cublas libopenblas-dev norm 'norm 5' <<'END'
#include <cublas_v2.h>
#include <cstdio>
__global__ void fill(float* x) { x[threadIdx.x] = 3 + threadIdx.x; }
int main() {
    float *x, norm = 0;
    cudaMalloc(&x, 2 * sizeof(float));
    fill<<<1, 2>>>(x);
    cublasHandle_t handle;
    cublasCreate(&handle);
    cublasSnrm2(handle, 2, x, 1, &norm);
    printf("norm %g\n", norm);
    return cublasDestroy(handle);
}
END
with_library cusolver libopenblas-dev roots 'x 2 -1' <<'END'
#include <cstdio>
#include <cusolverDn.h>
int main() {
    const double matrix[] = {4, 1, 1, 3}, right[] = {7, -1};
    double *A, *x, *work, result[2];
    int *info, size = 0;
    cudaMalloc(&A, sizeof matrix);
    cudaMalloc(&x, sizeof right);
    cudaMalloc(&info, sizeof(int));
    cudaMemcpy(A, matrix, sizeof matrix, cudaMemcpyHostToDevice);
    cudaMemcpy(x, right, sizeof right, cudaMemcpyHostToDevice);
    cusolverDnHandle_t handle;
    cusolverDnCreate(&handle);
    cusolverDnDpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, 2, A, 2, &size);
    cudaMalloc(&work, size * sizeof(double));
    cusolverDnDpotrf(handle, CUBLAS_FILL_MODE_LOWER, 2, A, 2, work, size, info);
    cusolverDnDpotrs(handle, CUBLAS_FILL_MODE_LOWER, 2, 1, A, 2, x, 2, info);
    cudaMemcpy(result, x, sizeof result, cudaMemcpyDeviceToHost);
    printf("x %g %g\n", result[0], result[1]);
    return cusolverDnDestroy(handle);
}
END
cat >bare-g++ <<'END'
#!/bin/sh
# A host without OpenBLAS.
for option; do
    case $option in -print-file-name=*) echo "${option#*=}"; exit ;; esac
done
exec g++ "$@"
END
chmod +x bare-g++
if [[ -f ../norm ]]; then
    expect 'a library may stand before the source' 0 '' norm_first "$nvcc" -lcublas -o norm_first norm.cu
    expect 'it runs' 0 'norm 5' '' ../norm_first
fi
expect 'OpenBLAS is not there' 1 "libopenblas-dev" '' "$nvcc" -ccbin ./bare-g++ norm.cu -o norm -lcublas

inspect=
[[ ! -e $toolkit/lib64/cuda_on_cpu_whole_program.o ]] || inspect=--inspect
if [[ $inspect ]] || grep -qI inspector "$toolkit/lib64/libcudart.so"; then  # the text file of a build that always inspects
    cat >racy.cu <<'END'
#include <cstdlib>
__global__ void reverse(float* out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = 1;
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
int main() {
    float* out;
    cudaMalloc(&out, 64 * sizeof(float));
    reverse<<<1, 64>>>(out);
    exit(cudaDeviceSynchronize());
}
END
    cat >interrupted.cu <<'END'
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
__global__ void racy(int* p) { p[0] += threadIdx.x; }
__global__ void endless(volatile int* p) {
    p[1] = 0;
    for (long i = 0; i < 4000000000000L; ++i) p[2] = i;
}
int main(int count, char** arguments) {
    int* p;
    cudaMallocManaged(&p, 4 * sizeof *p);
    p[0] = 0;
    racy<<<1, 64>>>(p);
    cudaDeviceSynchronize();
    const int signal = std::atoi(arguments[1]);
    if (count > 2) std::signal(signal, SIG_IGN);
    std::thread([signal] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        kill(getpid(), signal);
        kill(getpid(), signal);
    }).detach();
    if (count > 2) std::this_thread::sleep_for(std::chrono::milliseconds(600));
    else endless<<<1, 1>>>(p);
    return cudaDeviceSynchronize();
}
END
    # shellcheck disable=SC2086  # one option or none
    expect 'a program that will be interrupted' 0 '' interrupted "$nvcc" $inspect interrupted.cu -o interrupted
    expect 'SIGTERM' 143 'interrupted by SIGTERM: what the inspection has seen' '' ../interrupted 15
    expect 'SIGINT: the findings' 130 'FINDING race' '' bash -c '../interrupted 2'
    expect 'to a file' 143 '' seen.json env CUDA_ON_CPU_INSPECTION=seen.json ../interrupted 15
    expect 'which has the finding' 0 '"kind": "race"' '' cat ../seen.json
    expect 'what the program ignores does not interrupt it' 0 'inspection: 1 finding' '' ../interrupted 15 ignore
    expect 'a program that is watched' 0 '' racy "$nvcc" $inspect racy.cu -o racy -lcudart
    expect 'its findings are printed at its end' 0 'FINDING race (64)' '' ../racy
    expect 'they go to a file' 0 '' seen.json env CUDA_ON_CPU_INSPECTION=seen.json ../racy
    expect 'as JSON' 0 '"race"' '' cat ../seen.json
else
    expect '--inspect without an inspector' 1 'built without the inspector' '' "$nvcc" --inspect hello.cu
fi

# Installed, it keeps precompiled headers in the user's cache. Without a HOME that is a place which others can guess: it is not used
# if they could have put something there.
mkdir -p ../installed/bin ../guessed/"cache_of_$(id -u)"
cp "$toolkit/bin/nvcc" ../installed/bin/
ln -s "$(realpath "$toolkit/bin/cuda_on_cpu_compile")" ../installed/bin/cuda_on_cpu_compile
for name in include lib64; do ln -s "$(realpath "$toolkit/$name")" "../installed/$name"; done
chmod 777 ../guessed/cache_of_*
expect 'without HOME it compiles' 0 '' hello.o env -u HOME -u XDG_CACHE_HOME TMPDIR="$work/guessed" ../installed/bin/nvcc -c hello.cu
expect 'and takes nothing from a directory that others can write to' 0 '' '' test -z "$(find ../guessed -type f)"

# Named by the directory it is in, a compiler is not known.
mkdir ../clang
printf '#!/bin/sh\ncase " $* " in *-fno-gnu-unique*) echo told; esac\nexec g++ "$@"\n' >../clang/c++
chmod +x ../clang/c++
expect 'g++ in a directory named clang is g++' 0 told hello.cubin "$nvcc" -ccbin "$work/clang/c++" -cubin -o hello.cubin hello.cu

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
add_executable(older_from_cmake older.cpp older_kernel.cu)
set_target_properties(older_from_cmake PROPERTIES CXX_STANDARD 17 CUDA_STANDARD 14)
target_link_libraries(older_from_cmake PRIVATE squares CUDA::cudart)
END
printf '#include <mma.h>\n__global__ void kernel_of_another_file(float4) {}\n' >older_kernel.cu
expect 'CMake takes it for a CUDA compiler' 0 'identification is NVIDIA 13.0' build \
    cmake -G Ninja -B build -DCMAKE_CUDA_COMPILER="$nvcc"
mv ../build .
expect 'and builds with it' 0 from_cmake '' cmake --build build
expect 'what CMake made' 0 'sum 25' '' build/from_cmake
expect 'C++17 and C++14 in CMake' 0 '201703: 1 8 1 32 3 6 sum 25' '' build/older_from_cmake

((failures == 0)) || echo "$failures failed"
exit $((failures > 0))
