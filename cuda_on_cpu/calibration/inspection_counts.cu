// What the inspection counts, against what a GPU counts.
//
// One small kernel for each rule of the memory system, launched once each. In each the line marked
// `counted` is the only one that does its operation (load, store, atomic, ...) in its memory
// (shared, global). So a GPU's counters, which do not know lines, count what that line costs:
// shared loads are filled by stores and kept by global stores, and so on. What is read comes from
// memory and what is computed goes to memory: no compiler can leave the access out. Strides are
// parameters: none can see two accesses as one.
//
//   inspection_counts                          launches every case, in the order of the list
//   inspection_counts --only SPACE OPERATION   those in which this is counted: --only shared load
//   inspection_counts --list                   the cases, as JSON
//   inspection_counts --inspect                the cases and what the inspection counts in them, as JSON (preset `inspect`)
//
// scripts/calibrate_inspection.py runs it under ncu, and compares.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cuda/atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/bench/inspection.hpp"
#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/ptx.cuh"

namespace ptx = course::ptx;

namespace {

// ---- Shared memory: what a kernel below needs before and after its access -----------------------

// Stores words into `array`, an array of shared memory, and waits.
template <class Array>
__device__ void fill(Array& array) {
    constexpr unsigned kBytes = sizeof(Array);
    auto* words = reinterpret_cast<unsigned*>(&array);
    for (unsigned i = threadIdx.x; 4 * i < kBytes; i += blockDim.x)
        words[i] = i;
    __syncthreads();
}

// A number below `limit` that looks random: a gather whose every request is another one.
__device__ unsigned scattered(unsigned lane, unsigned seed, unsigned limit) {
    unsigned bits = (lane + 1) * 2654435761u ^ seed * 40503u;
    bits ^= bits >> 15;
    bits *= 2246822519u;
    bits ^= bits >> 13;
    return bits % limit;
}

struct Triple {
    float x, y, z;
};

struct Quadruple {
    float x, y, z, w;
};

// ---- Loads from shared memory -------------------------------------------------------------------

__global__ void shared_load_stride(int stride, float* out) {
    __shared__ float words[33 * 32];
    fill(words);
    out[threadIdx.x] = words[threadIdx.x * stride];  // counted
}

__global__ void shared_load_same_in_groups(int group, float* out) {
    __shared__ float words[32];
    fill(words);
    out[threadIdx.x] = words[threadIdx.x / group];  // counted
}

__global__ void shared_load_words_of_one_bank(int words_asked_for, float* out) {
    __shared__ float words[32 * 32];
    fill(words);
    out[threadIdx.x] = words[threadIdx.x % words_asked_for * 32];  // counted
}

__global__ void shared_load_gather(unsigned seed, unsigned limit, float* out) {
    __shared__ float words[1024];
    fill(words);
    out[threadIdx.x] = words[scattered(threadIdx.x, seed, limit)];  // counted
}

__global__ void shared_load_by_some_lanes(unsigned lanes, int stride, float* out) {
    __shared__ float words[32 * 32];
    fill(words);
    if (threadIdx.x < lanes) out[threadIdx.x] = words[threadIdx.x * stride];  // counted
}

__global__ void shared_load_by_odd_lanes(int stride, float* out) {
    __shared__ float words[32 * 32];
    fill(words);
    if (threadIdx.x % 2 == 1) out[threadIdx.x] = words[threadIdx.x * stride];  // counted
}

__global__ void shared_load_tile_column(float* out) {
    __shared__ float tile[32][32];
    fill(tile);
    out[threadIdx.x] = tile[threadIdx.x][5];  // counted
}

__global__ void shared_load_padded_tile_column(float* out) {
    __shared__ float tile[32][33];
    fill(tile);
    out[threadIdx.x] = tile[threadIdx.x][5];  // counted
}

__global__ void shared_load_swizzled_tile_column(float* out) {
    __shared__ float tile[32][32];
    fill(tile);
    out[threadIdx.x] = tile[threadIdx.x][5 ^ threadIdx.x];  // counted
}

// 256 threads, 8 warps of one block: a thread's row and a thread's column, as in a tiled matrix
// product.
__global__ void shared_load_by_8_warps(int stride, float* out) {
    __shared__ float words[256 * 4];
    fill(words);
    out[threadIdx.x] = words[threadIdx.x * stride];  // counted
}

__global__ void shared_load_row_of_16_by_16(float* out) {
    __shared__ float tile[16][16];
    fill(tile);
    out[threadIdx.x] = tile[threadIdx.x / 16][9];  // counted
}

__global__ void shared_load_column_of_16_by_16(float* out) {
    __shared__ float tile[16][16];
    fill(tile);
    out[threadIdx.x] = tile[threadIdx.x % 16][9];  // counted
}

// Lane i loads i + 1 times: the lanes that are still in the loop load together.
__global__ void shared_load_in_a_loop_that_lanes_leave(int stride, float* out) {
    __shared__ float words[33 * 32];
    fill(words);
    float sum = 0;
#pragma unroll 1
    for (unsigned i = 0; i <= threadIdx.x; ++i)
        sum += words[threadIdx.x * stride + i];  // counted
    out[threadIdx.x] = sum;
}

__global__ void shared_load_char(int stride, signed char* out) {
    __shared__ signed char bytes[32 * 128];
    fill(bytes);
    out[threadIdx.x] = bytes[threadIdx.x * stride];  // counted
}

__global__ void shared_load_half(int stride, __half* out) {
    __shared__ __half halves[32 * 66];
    fill(halves);
    out[threadIdx.x] = halves[threadIdx.x * stride];  // counted
}

__global__ void shared_load_member_of_triple(float* out) {
    __shared__ Triple triples[32];
    fill(triples);
    out[threadIdx.x] = triples[threadIdx.x].y;  // counted
}

__global__ void shared_load_member_of_quadruple(float* out) {
    __shared__ Quadruple quadruples[32];
    fill(quadruples);
    out[threadIdx.x] = quadruples[threadIdx.x].y;  // counted
}

// 8 and 16 bytes a lane. What the stride leaves the same (0, or the groups) is broadcast.
template <class Vector>
__global__ void shared_load_vectors(int stride, Vector* out) {
    __shared__ Vector vectors[32 * 17];
    fill(vectors);
    out[threadIdx.x] = vectors[threadIdx.x * stride];  // counted
}

template <class Vector>
__global__ void shared_load_vectors_same_in_groups(int group, int stride, Vector* out) {
    __shared__ Vector vectors[32 * 17];
    fill(vectors);
    out[threadIdx.x] = vectors[threadIdx.x / group * stride];  // counted
}

template <class Vector>
__global__ void shared_load_vectors_same_for_groups(int group, int stride, Vector* out) {
    __shared__ Vector vectors[32 * 17];
    fill(vectors);
    out[threadIdx.x] = vectors[threadIdx.x % group * stride];  // counted
}

template <class Vector>
__global__ void shared_load_vectors_by_some_lanes(unsigned lanes, int stride, Vector* out) {
    __shared__ Vector vectors[32 * 17];
    fill(vectors);
    if (threadIdx.x < lanes) out[threadIdx.x] = vectors[threadIdx.x * stride];  // counted
}

template <class Vector>
__global__ void shared_load_vectors_permuted(unsigned mask, Vector* out) {
    __shared__ Vector vectors[32];
    fill(vectors);
    out[threadIdx.x] = vectors[threadIdx.x ^ mask];  // counted
}

// Pairs of lanes have one address in both half-warps, but in each in another way: neighbours here,
// next neighbours there.
template <class Vector>
__global__ void shared_load_vectors_paired_differently(Vector* out) {
    __shared__ Vector vectors[32];
    fill(vectors);
    out[threadIdx.x] = vectors[threadIdx.x < 16 ? threadIdx.x / 2 : threadIdx.x % 2];  // counted
}

template <class Vector>
__global__ void shared_load_vectors_half_of_them_paired(Vector* out) {
    __shared__ Vector vectors[32];
    fill(vectors);
    out[threadIdx.x] = vectors[threadIdx.x < 16 ? threadIdx.x / 2 : threadIdx.x];  // counted
}

template <class Vector>
__global__ void shared_load_vectors_gather(unsigned seed, unsigned limit, Vector* out) {
    __shared__ Vector vectors[32 * 17];
    fill(vectors);
    out[threadIdx.x] = vectors[scattered(threadIdx.x, seed, limit)];  // counted
}

// ---- Stores to shared memory --------------------------------------------------------------------

__global__ void shared_store_stride(int stride, float* out) {
    __shared__ float words[33 * 32];
    words[threadIdx.x * stride] = static_cast<float>(threadIdx.x);  // counted
    __syncthreads();
    out[threadIdx.x] = words[(threadIdx.x ^ 1) * stride];
}

__global__ void shared_store_by_some_lanes(unsigned lanes, int stride, float* out) {
    __shared__ float words[32 * 32];
    if (threadIdx.x < lanes) words[threadIdx.x * stride] = static_cast<float>(threadIdx.x);  // counted
    __syncthreads();
    if ((threadIdx.x ^ 1) < lanes) out[threadIdx.x] = words[(threadIdx.x ^ 1) * stride];
}

__global__ void shared_store_tile_column(float* out) {
    __shared__ float tile[32][32];
    tile[threadIdx.x][5] = static_cast<float>(threadIdx.x);  // counted
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x ^ 1][5];
}

__global__ void shared_store_padded_tile_column(float* out) {
    __shared__ float tile[32][33];
    tile[threadIdx.x][5] = static_cast<float>(threadIdx.x);  // counted
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x ^ 1][5];
}

__global__ void shared_store_swizzled_tile_column(float* out) {
    __shared__ float tile[32][32];
    tile[threadIdx.x][5 ^ threadIdx.x] = static_cast<float>(threadIdx.x);  // counted
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x ^ 1][5 ^ threadIdx.x ^ 1];
}

__global__ void shared_store_char(int stride, signed char* out) {
    __shared__ signed char bytes[32 * 128];
    bytes[threadIdx.x * stride] = static_cast<signed char>(threadIdx.x);  // counted
    __syncthreads();
    out[threadIdx.x] = bytes[(threadIdx.x ^ 1) * stride];
}

__global__ void shared_store_half(int stride, unsigned short* out) {
    __shared__ unsigned short halves[32 * 66];
    halves[threadIdx.x * stride] = static_cast<unsigned short>(threadIdx.x);  // counted
    __syncthreads();
    out[threadIdx.x] = halves[(threadIdx.x ^ 1) * stride];
}

template <class Vector>
__global__ void shared_store_vectors(int stride, const Vector* in, Vector* out) {
    __shared__ Vector vectors[32 * 17];
    vectors[threadIdx.x * stride] = in[threadIdx.x];  // counted
    __syncthreads();
    out[threadIdx.x] = vectors[(threadIdx.x ^ 1) * stride];
}

template <class Vector>
__global__ void shared_store_vectors_by_some_lanes(unsigned lanes, int stride, const Vector* in,
                                                   Vector* out) {
    __shared__ Vector vectors[32 * 17];
    if (threadIdx.x < lanes) vectors[threadIdx.x * stride] = in[threadIdx.x];  // counted
    __syncthreads();
    if ((threadIdx.x ^ 1) < lanes) out[threadIdx.x] = vectors[(threadIdx.x ^ 1) * stride];
}

template <class Vector>
__global__ void shared_store_vectors_same_in_groups(int group, const Vector* in, Vector* out) {
    __shared__ Vector vectors[32];
    vectors[threadIdx.x / group] = in[threadIdx.x];  // counted
    __syncthreads();
    out[threadIdx.x] = vectors[(threadIdx.x ^ 1) / group];
}

template <class Vector>
__global__ void shared_store_vectors_gather(unsigned seed, unsigned limit, const Vector* in, Vector* out) {
    __shared__ Vector vectors[32 * 17];
    vectors[scattered(threadIdx.x, seed, limit)] = in[threadIdx.x];  // counted
    __syncthreads();
    out[threadIdx.x] = vectors[scattered(threadIdx.x ^ 1, seed, limit)];
}

// ---- Atomics in shared memory -------------------------------------------------------------------

template <class Number>
__global__ void shared_atomic_stride(int stride, Number* out) {
    __shared__ Number numbers[33 * 32];
    fill(numbers);
    atomicAdd(&numbers[threadIdx.x * stride], static_cast<Number>(threadIdx.x));  // counted
    __syncthreads();
    out[threadIdx.x] = numbers[(threadIdx.x ^ 1) * stride];
}

template <class Number>
__global__ void shared_atomic_in_groups(unsigned groups, Number* out) {
    __shared__ Number numbers[32];
    fill(numbers);
    atomicAdd(&numbers[threadIdx.x % groups], static_cast<Number>(threadIdx.x));  // counted
    __syncthreads();
    out[threadIdx.x] = numbers[(threadIdx.x ^ 1) % groups];
}

template <class Number>
__global__ void shared_atomic_gather(unsigned seed, unsigned limit, Number* out) {
    __shared__ Number numbers[33 * 32];
    fill(numbers);
    atomicAdd(&numbers[scattered(threadIdx.x, seed, limit)], static_cast<Number>(threadIdx.x));  // counted
    __syncthreads();
    out[threadIdx.x] = numbers[scattered(threadIdx.x ^ 1, seed, limit)];
}

__global__ void shared_atomic_that_returns(int stride, int* out) {
    __shared__ int numbers[32 * 32];
    fill(numbers);
    out[threadIdx.x] = atomicAdd(&numbers[threadIdx.x * stride], static_cast<int>(threadIdx.x));  // counted
}

__global__ void shared_atomic_exchange(int stride, int* out) {
    __shared__ int numbers[32 * 32];
    fill(numbers);
    out[threadIdx.x] = atomicExch(&numbers[threadIdx.x * stride], static_cast<int>(threadIdx.x));  // counted
}

__global__ void shared_atomic_maximum(int stride, int* out) {
    __shared__ int numbers[32 * 32];
    fill(numbers);
    out[threadIdx.x] = atomicMax(&numbers[threadIdx.x * stride], static_cast<int>(threadIdx.x));  // counted
}

// ---- Matrices from shared memory to registers ---------------------------------------------------

__global__ void ldmatrix_gather(unsigned seed, unsigned limit, unsigned* out) {
    alignas(16) __shared__ unsigned char bytes[32 * 272];
    fill(bytes);
    unsigned r[4];
    ptx::ldmatrix_x4(r, bytes + scattered(threadIdx.x, seed, limit) * 16);  // counted
    for (int m = 0; m < 4; ++m)
        out[32 * m + threadIdx.x] = r[m];
}

template <int kMatrices>
__global__ void ldmatrix(int pitch, unsigned* out) {
    alignas(16) __shared__ unsigned char bytes[32 * 272];
    fill(bytes);
    const unsigned char* row = bytes + threadIdx.x % (8 * kMatrices) * pitch;
    unsigned r[kMatrices];
    if constexpr (kMatrices == 1) {
        ptx::ldmatrix_x1(r, row);  // counted
    } else if constexpr (kMatrices == 2) {
        ptx::ldmatrix_x2(r, row);  // counted
    } else {
        ptx::ldmatrix_x4(r, row);  // counted
    }
    for (int m = 0; m < kMatrices; ++m)
        out[32 * m + threadIdx.x] = r[m];
}

__global__ void ldmatrix_swizzled(unsigned* out) {
    alignas(16) __shared__ unsigned char bytes[32 * 128];
    fill(bytes);
    unsigned r[4];
    ptx::ldmatrix_x4(r, bytes + threadIdx.x * 128 + (3 ^ threadIdx.x % 8) * 16);  // counted
    for (int m = 0; m < 4; ++m)
        out[32 * m + threadIdx.x] = r[m];
}

__global__ void ldmatrix_transposed(int pitch, unsigned* out) {
    alignas(16) __shared__ unsigned char bytes[32 * 272];
    fill(bytes);
    unsigned r[4];
    ptx::ldmatrix_x4_trans(r, bytes + threadIdx.x * pitch);  // counted
    for (int m = 0; m < 4; ++m)
        out[32 * m + threadIdx.x] = r[m];
}

// ---- Asynchronous copies ------------------------------------------------------------------------

__global__ void async_copy_4(int shared_stride, int global_stride, const float* in, float* out) {
    __shared__ float words[32 * 33];
    ptx::cp_async_4(&words[threadIdx.x * shared_stride], &in[threadIdx.x * global_stride]);  // counted
    ptx::cp_async_commit();
    ptx::cp_async_wait<0>();
    __syncthreads();
    out[threadIdx.x] = words[(threadIdx.x ^ 1) * shared_stride];
}

__global__ void async_copy_16(int shared_stride, int global_stride, const float4* in, float4* out) {
    __shared__ float4 vectors[32 * 17];
    ptx::cp_async_16(&vectors[threadIdx.x * shared_stride], &in[threadIdx.x * global_stride]);  // counted
    ptx::cp_async_commit();
    ptx::cp_async_wait<0>();
    __syncthreads();
    out[threadIdx.x] = vectors[(threadIdx.x ^ 1) * shared_stride];
}

// ---- Loads from global memory -------------------------------------------------------------------

template <class T>
__global__ void global_load(int stride, int offset, const T* in, T* out) {
    out[threadIdx.x] = in[threadIdx.x * stride + offset];  // counted
}

template <class T>
__global__ void global_load_by_some_lanes(unsigned lanes, int stride, const T* in, T* out) {
    if (threadIdx.x < lanes) out[threadIdx.x] = in[threadIdx.x * stride];  // counted
}

__global__ void global_load_read_only(int stride, const float* __restrict__ in, float* __restrict__ out) {
    out[threadIdx.x] = __ldg(&in[threadIdx.x * stride]);  // counted
}

template <class T>
__global__ void global_load_gather(unsigned seed, unsigned limit, const T* in, T* out) {
    out[threadIdx.x] = in[scattered(threadIdx.x, seed, limit)];  // counted
}

__global__ void global_load_reversed(const float* in, float* out) {
    out[threadIdx.x] = in[31 - threadIdx.x];  // counted
}

__global__ void global_load_member_of_triple(const Triple* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x].y;  // counted
}

__global__ void global_load_member_of_quadruple(const Quadruple* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x].y;  // counted
}

// Three loads, one for each member: no compiler may join them, for a triple is aligned to 4 bytes.
__global__ void global_load_triple(const Triple* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x].x + in[threadIdx.x].y + in[threadIdx.x].z;  // counted
}

__global__ void global_load_by_8_warps(int stride, const float* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x * stride];  // counted
}

// ---- Stores to global memory --------------------------------------------------------------------

template <class T>
__global__ void global_store(int stride, int offset, T* out) {
    out[threadIdx.x * stride + offset] = T{};  // counted
}

__global__ void global_store_by_some_lanes(unsigned lanes, int stride, float* out) {
    if (threadIdx.x < lanes) out[threadIdx.x * stride] = static_cast<float>(threadIdx.x);  // counted
}

__global__ void global_store_member_of_triple(Triple* out) {
    out[threadIdx.x].y = static_cast<float>(threadIdx.x);  // counted
}

template <class T>
__global__ void global_store_gather(unsigned seed, unsigned limit, T* out) {
    out[scattered(threadIdx.x, seed, limit)] = T{};  // counted
}

// ---- Atomics in global memory -------------------------------------------------------------------

template <class Number>
__global__ void global_atomic(int stride, Number* numbers) {
    atomicAdd(&numbers[threadIdx.x * stride], static_cast<Number>(threadIdx.x));  // counted
}

__global__ void global_atomic_in_groups(unsigned groups, int* numbers) {
    atomicAdd(&numbers[threadIdx.x % groups], static_cast<int>(threadIdx.x));  // counted
}

__global__ void global_atomic_gather(unsigned seed, unsigned limit, int* numbers) {
    atomicAdd(&numbers[scattered(threadIdx.x, seed, limit)], static_cast<int>(threadIdx.x));  // counted
}

__global__ void global_atomic_that_returns(int stride, int* numbers, int* out) {
    out[threadIdx.x] = atomicAdd(&numbers[threadIdx.x * stride], static_cast<int>(threadIdx.x));  // counted
}

// ---- Relaxed loads and stores: atomics that read or write, and update nothing ---------------------

template <class Number>
__global__ void global_atomic_load(int stride, Number* numbers, Number* out) {
    using Word = cuda::atomic_ref<Number, cuda::thread_scope_device>;
    out[threadIdx.x] = Word(numbers[threadIdx.x * stride]).load(cuda::memory_order_relaxed);  // counted
}

template <class Number>
__global__ void global_atomic_store(int stride, Number* numbers) {
    using Word = cuda::atomic_ref<Number, cuda::thread_scope_device>;
    Word(numbers[threadIdx.x * stride]).store(Number{}, cuda::memory_order_relaxed);  // counted
}

// ---- The list -----------------------------------------------------------------------------------

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

struct Case {
    std::string kernel;
    std::string parameters;
    std::string space;      // "shared" or "global"
    std::string operation;  // "load", "store", "atomic", "async_copy", "atomic_load", ...
    std::function<void()> launch;
    std::string remark;  // why a GPU counts something else, where it does
};

class Cases {
  public:
    Cases();
    const std::vector<Case>& list() const { return list_; }

  private:
    // Zeros to read, and a place to write to: made when first asked for, so that the list needs no
    // GPU.
    template <class T>
    T* in() const {
        static course::DeviceBuffer<unsigned char> buffer{std::vector<unsigned char>(kBufferBytes)};
        return reinterpret_cast<T*>(buffer.data());
    }
    template <class T>
    T* out() const {
        static course::DeviceBuffer<unsigned char> buffer{std::vector<unsigned char>(kBufferBytes)};
        return reinterpret_cast<T*>(buffer.data());
    }

    void add(std::string kernel, std::string parameters, std::string space, std::string operation,
             std::function<void()> launch, std::string remark = "") {
        list_.push_back({std::move(kernel), std::move(parameters), std::move(space), std::move(operation),
                         std::move(launch), std::move(remark)});
    }

    void add_shared_loads();
    template <class Vector>
    void add_shared_vectors(const std::string& type);
    void add_shared_stores();
    template <class Number>
    void add_shared_atomics(const std::string& type);
    void add_ldmatrix();
    void add_async_copies();
    template <class T>
    void add_global(const std::string& type);
    void add_global_loads();
    void add_global_stores();
    void add_global_atomics();
    template <class Number>
    void add_global_atomic_loads_and_stores(const std::string& type);

    std::vector<Case> list_;
};

std::string text(const char* name, int value) {
    return std::string(name) + " " + std::to_string(value);
}

// Random requests: few places, so that lanes meet, and many.
struct Gather {
    unsigned seed, limit;

    std::string text() const { return "of " + std::to_string(limit) + ", seed " + std::to_string(seed); }
};
std::vector<Gather> gathers(unsigned most) {
    std::vector<Gather> all;
    for (unsigned limit : {3u, 16u, 64u, most}) {
        for (unsigned seed : {1u, 2u})
            all.push_back({seed, limit});
    }
    return all;
}

Cases::Cases() {
    add_shared_loads();
    add_shared_vectors<float2>("float2");
    add_shared_vectors<float4>("float4");
    add_shared_stores();
    add_shared_atomics<int>("int");
    add_shared_atomics<float>("float");
    add_shared_atomics<unsigned long long>("unsigned long long");
    add_ldmatrix();
    add_async_copies();
    add_global<signed char>("char");
    add_global<short>("short");
    add_global<float>("float");
    add_global<float2>("float2");
    add_global<float4>("float4");
    add_global_loads();
    add_global_stores();
    add_global_atomics();
    add_global_atomic_loads_and_stores<unsigned>("unsigned");
    add_global_atomic_loads_and_stores<unsigned long long>("unsigned long long");
}

void Cases::add_shared_loads() {
    const auto load = [this](std::string kernel, std::string parameters, std::function<void()> launch) {
        add(std::move(kernel), std::move(parameters), "shared", "load", std::move(launch));
    };
    for (int stride = 0; stride <= 33; ++stride)
        load("shared_load_stride", text("stride", stride),
             [=, this] { shared_load_stride<<<1, 32>>>(stride, out<float>()); });
    for (int group : {2, 4, 8, 16})
        load("shared_load_same_in_groups", text("of", group),
             [=, this] { shared_load_same_in_groups<<<1, 32>>>(group, out<float>()); });
    for (int words : {2, 3, 8, 32})
        load("shared_load_words_of_one_bank", text("words", words),
             [=, this] { shared_load_words_of_one_bank<<<1, 32>>>(words, out<float>()); });
    for (Gather g : gathers(1024))
        load("shared_load_gather", g.text(),
             [=, this] { shared_load_gather<<<1, 32>>>(g.seed, g.limit, out<float>()); });
    for (int lanes : {1, 7, 17, 31}) {
        for (int stride : {1, 8})
            load("shared_load_by_some_lanes", text("lanes", lanes) + text(", stride", stride), [=, this] {
                shared_load_by_some_lanes<<<1, 32>>>(static_cast<unsigned>(lanes), stride, out<float>());
            });
    }
    for (int stride : {1, 2, 16})
        load("shared_load_by_odd_lanes", text("stride", stride),
             [=, this] { shared_load_by_odd_lanes<<<1, 32>>>(stride, out<float>()); });
    load("shared_load_tile_column", "", [this] { shared_load_tile_column<<<1, 32>>>(out<float>()); });
    load("shared_load_padded_tile_column", "",
         [this] { shared_load_padded_tile_column<<<1, 32>>>(out<float>()); });
    load("shared_load_swizzled_tile_column", "",
         [this] { shared_load_swizzled_tile_column<<<1, 32>>>(out<float>()); });
    for (int stride : {1, 4})
        load("shared_load_by_8_warps", text("stride", stride),
             [=, this] { shared_load_by_8_warps<<<1, 256>>>(stride, out<float>()); });
    load("shared_load_row_of_16_by_16", "",
         [this] { shared_load_row_of_16_by_16<<<1, 256>>>(out<float>()); });
    load("shared_load_column_of_16_by_16", "",
         [this] { shared_load_column_of_16_by_16<<<1, 256>>>(out<float>()); });
    for (int stride : {1, 32})
        load("shared_load_in_a_loop_that_lanes_leave", text("stride", stride),
             [=, this] { shared_load_in_a_loop_that_lanes_leave<<<1, 32>>>(stride, out<float>()); });
    for (int stride : {1, 2, 4, 32, 128})
        load("shared_load_char", text("stride", stride),
             [=, this] { shared_load_char<<<1, 32>>>(stride, out<signed char>()); });
    for (int stride : {1, 2, 32, 33, 64, 66})
        load("shared_load_half", text("stride", stride),
             [=, this] { shared_load_half<<<1, 32>>>(stride, out<__half>()); });
    load("shared_load_member_of_triple", "",
         [this] { shared_load_member_of_triple<<<1, 32>>>(out<float>()); });
    load("shared_load_member_of_quadruple", "",
         [this] { shared_load_member_of_quadruple<<<1, 32>>>(out<float>()); });
}

template <class Vector>
void Cases::add_shared_vectors(const std::string& type) {
    const auto load = [&](const std::string& kernel, std::string parameters, std::function<void()> launch) {
        add(kernel + "<" + type + ">", std::move(parameters), "shared", "load", std::move(launch));
    };
    for (int stride : {0, 1, 2, 3, 4, 5, 8, 16, 17})
        load("shared_load_vectors", text("stride", stride),
             [=, this] { shared_load_vectors<<<1, 32>>>(stride, out<Vector>()); });
    for (int group : {2, 4, 8, 16}) {
        for (int stride : {1, 5, 16})
            load("shared_load_vectors_same_in_groups", text("of", group) + text(", stride", stride),
                 [=, this] { shared_load_vectors_same_in_groups<<<1, 32>>>(group, stride, out<Vector>()); });
    }
    for (int group : {2, 4, 8, 16}) {
        for (int stride : {1, 5, 16})
            load("shared_load_vectors_same_for_groups", text("of", group) + text(", stride", stride),
                 [=, this] { shared_load_vectors_same_for_groups<<<1, 32>>>(group, stride, out<Vector>()); });
    }
    for (int lanes : {1, 7, 8, 9, 16, 17, 31})
        load("shared_load_vectors_by_some_lanes", text("lanes", lanes), [=, this] {
            shared_load_vectors_by_some_lanes<<<1, 32>>>(static_cast<unsigned>(lanes), 1, out<Vector>());
        });
    for (int mask : {1, 3, 8, 16, 31})
        load("shared_load_vectors_permuted", text("lane ^", mask), [=, this] {
            shared_load_vectors_permuted<<<1, 32>>>(static_cast<unsigned>(mask), out<Vector>());
        });
    load("shared_load_vectors_paired_differently", "",
         [this] { shared_load_vectors_paired_differently<<<1, 32>>>(out<Vector>()); });
    load("shared_load_vectors_half_of_them_paired", "",
         [this] { shared_load_vectors_half_of_them_paired<<<1, 32>>>(out<Vector>()); });
    for (Gather g : gathers(544)) {
        load("shared_load_vectors_gather", g.text(),
             [=, this] { shared_load_vectors_gather<<<1, 32>>>(g.seed, g.limit, out<Vector>()); });
        add("shared_store_vectors_gather<" + type + ">", g.text(), "shared", "store", [=, this] {
            shared_store_vectors_gather<<<1, 32>>>(g.seed, g.limit, in<Vector>(), out<Vector>());
        });
    }
    for (int group : {2, 8})
        add("shared_store_vectors_same_in_groups<" + type + ">", text("of", group), "shared", "store",
            [=, this] {
                shared_store_vectors_same_in_groups<<<1, 32>>>(group, in<Vector>(), out<Vector>());
            });
    for (int stride : {1, 2, 3, 4, 5, 8, 16, 17})
        add("shared_store_vectors<" + type + ">", text("stride", stride), "shared", "store",
            [=, this] { shared_store_vectors<<<1, 32>>>(stride, in<Vector>(), out<Vector>()); });
    for (int lanes : {1, 7, 17, 31})
        add("shared_store_vectors_by_some_lanes<" + type + ">", text("lanes", lanes), "shared", "store",
            [=, this] {
                shared_store_vectors_by_some_lanes<<<1, 32>>>(static_cast<unsigned>(lanes), 1, in<Vector>(),
                                                              out<Vector>());
            });
}

void Cases::add_shared_stores() {
    const auto store = [this](std::string kernel, std::string parameters, std::function<void()> launch) {
        add(std::move(kernel), std::move(parameters), "shared", "store", std::move(launch));
    };
    for (int stride = 1; stride <= 33; ++stride)
        store("shared_store_stride", text("stride", stride),
              [=, this] { shared_store_stride<<<1, 32>>>(stride, out<float>()); });
    for (int lanes : {1, 7, 17, 31})
        store("shared_store_by_some_lanes", text("lanes", lanes), [=, this] {
            shared_store_by_some_lanes<<<1, 32>>>(static_cast<unsigned>(lanes), 8, out<float>());
        });
    store("shared_store_tile_column", "", [this] { shared_store_tile_column<<<1, 32>>>(out<float>()); });
    store("shared_store_padded_tile_column", "",
          [this] { shared_store_padded_tile_column<<<1, 32>>>(out<float>()); });
    store("shared_store_swizzled_tile_column", "",
          [this] { shared_store_swizzled_tile_column<<<1, 32>>>(out<float>()); });
    for (int stride : {1, 2, 4, 32, 128})
        store("shared_store_char", text("stride", stride),
              [=, this] { shared_store_char<<<1, 32>>>(stride, out<signed char>()); });
    for (int stride : {1, 2, 32, 33, 64, 66})
        store("shared_store_half", text("stride", stride),
              [=, this] { shared_store_half<<<1, 32>>>(stride, out<unsigned short>()); });
}

template <class Number>
void Cases::add_shared_atomics(const std::string& type) {
    const std::string remark =
        std::is_same_v<Number, int> ? "" : "nvcc makes a loop of load and compare-and-swap";
    const auto atomic = [&](const std::string& kernel, std::string parameters, std::function<void()> launch) {
        add(kernel, std::move(parameters), "shared", "atomic", std::move(launch), remark);
    };
    for (int stride : {0, 1, 2, 4, 32, 33})
        atomic("shared_atomic_stride<" + type + ">", text("stride", stride),
               [=, this] { shared_atomic_stride<<<1, 32>>>(stride, out<Number>()); });
    for (int groups : {2, 4, 8})
        atomic("shared_atomic_in_groups<" + type + ">", text("groups", groups), [=, this] {
            shared_atomic_in_groups<<<1, 32>>>(static_cast<unsigned>(groups), out<Number>());
        });
    for (Gather g : gathers(1024))
        atomic("shared_atomic_gather<" + type + ">", g.text(),
               [=, this] { shared_atomic_gather<<<1, 32>>>(g.seed, g.limit, out<Number>()); });
    if constexpr (std::is_same_v<Number, int>) {
        for (int stride : {0, 1, 2, 32}) {
            atomic("shared_atomic_that_returns", text("stride", stride),
                   [=, this] { shared_atomic_that_returns<<<1, 32>>>(stride, out<int>()); });
            atomic("shared_atomic_exchange", text("stride", stride),
                   [=, this] { shared_atomic_exchange<<<1, 32>>>(stride, out<int>()); });
            atomic("shared_atomic_maximum", text("stride", stride),
                   [=, this] { shared_atomic_maximum<<<1, 32>>>(stride, out<int>()); });
        }
    }
}

void Cases::add_ldmatrix() {
    const auto matrix_load = [this](std::string kernel, std::string parameters,
                                    std::function<void()> launch) {
        add(std::move(kernel), std::move(parameters), "shared", "matrix_load", std::move(launch));
    };
    for (int pitch : {0, 16, 32, 64, 80, 128, 144, 272}) {
        const std::string parameters = text("bytes from row to row:", pitch);
        matrix_load("ldmatrix<1>", parameters, [=, this] { ldmatrix<1><<<1, 32>>>(pitch, out<unsigned>()); });
        matrix_load("ldmatrix<2>", parameters, [=, this] { ldmatrix<2><<<1, 32>>>(pitch, out<unsigned>()); });
        matrix_load("ldmatrix<4>", parameters, [=, this] { ldmatrix<4><<<1, 32>>>(pitch, out<unsigned>()); });
    }
    for (Gather g : gathers(544))
        matrix_load("ldmatrix_gather", g.text(),
                    [=, this] { ldmatrix_gather<<<1, 32>>>(g.seed, g.limit, out<unsigned>()); });
    matrix_load("ldmatrix_swizzled", "", [this] { ldmatrix_swizzled<<<1, 32>>>(out<unsigned>()); });
    for (int pitch : {16, 128, 144})
        matrix_load("ldmatrix_transposed", text("bytes from row to row:", pitch),
                    [=, this] { ldmatrix_transposed<<<1, 32>>>(pitch, out<unsigned>()); });
}

void Cases::add_async_copies() {
    struct Strides {
        int shared, global;
    };
    const std::string conflicts_of_the_source = "bank conflicts where the source is read are not counted";
    const std::string no_counter = "ncu's estimate: no counter sees a copy past L1 write shared memory";
    const std::string by_destination =
        "past L1 a sector is fetched for each 32 bytes of shared memory that it goes to";
    for (const char* space : {"shared", "global"}) {
        const bool is_shared = std::string(space) == "shared";
        for (Strides stride :
             {Strides{1, 1}, {2, 1}, {3, 1}, {8, 1}, {32, 1}, {33, 1}, {1, 2}, {1, 8}, {1, 0}})
            add(
                "async_copy_4", text("to stride", stride.shared) + text(", from stride", stride.global),
                space, "async_copy",
                [=, this] {
                    async_copy_4<<<1, 32>>>(stride.shared, stride.global, in<float>(), out<float>());
                },
                is_shared ? conflicts_of_the_source : "");
        for (Strides stride : {Strides{1, 1},
                               {2, 1},
                               {3, 1},
                               {4, 1},
                               {8, 1},
                               {9, 1},
                               {16, 1},
                               {17, 1},
                               {1, 2},
                               {1, 5},
                               {1, 0}})
            add(
                "async_copy_16", text("to stride", stride.shared) + text(", from stride", stride.global),
                space, "async_copy",
                [=, this] {
                    async_copy_16<<<1, 32>>>(stride.shared, stride.global, in<float4>(), out<float4>());
                },
                is_shared ? no_counter : by_destination);
    }
}

template <class T>
void Cases::add_global(const std::string& type) {
    struct Place {
        int stride, offset;
    };
    for (Place place : {Place{1, 0}, {1, 1}, {1, 7}, {2, 0}, {3, 1}, {8, 0}, {32, 0}, {0, 3}}) {
        const std::string parameters = text("stride", place.stride) + text(", offset", place.offset);
        add("global_load<" + type + ">", parameters, "global", "load",
            [=, this] { global_load<T><<<1, 32>>>(place.stride, place.offset, in<T>(), out<T>()); });
        if (place.stride != 0)
            add("global_store<" + type + ">", parameters, "global", "store",
                [=, this] { global_store<T><<<1, 32>>>(place.stride, place.offset, out<T>()); });
    }
    for (Gather g : gathers(1000)) {
        add("global_load_gather<" + type + ">", g.text(), "global", "load",
            [=, this] { global_load_gather<T><<<1, 32>>>(g.seed, g.limit, in<T>(), out<T>()); });
        add("global_store_gather<" + type + ">", g.text(), "global", "store",
            [=, this] { global_store_gather<T><<<1, 32>>>(g.seed, g.limit, out<T>()); });
    }
    for (int lanes : {1, 7, 17, 31})
        add("global_load_by_some_lanes<" + type + ">", text("lanes", lanes), "global", "load", [=, this] {
            global_load_by_some_lanes<T><<<1, 32>>>(static_cast<unsigned>(lanes), 1, in<T>(), out<T>());
        });
}

void Cases::add_global_loads() {
    const auto load = [this](std::string kernel, std::string parameters, std::function<void()> launch) {
        add(std::move(kernel), std::move(parameters), "global", "load", std::move(launch));
    };
    for (int stride = 4; stride <= 31; ++stride) {
        if (stride == 8) continue;  // is among those of add_global()
        load("global_load<float>", text("stride", stride) + ", offset 0",
             [=, this] { global_load<float><<<1, 32>>>(stride, 0, in<float>(), out<float>()); });
    }
    for (int stride : {1, 2, 32})
        load("global_load_read_only", text("stride", stride),
             [=, this] { global_load_read_only<<<1, 32>>>(stride, in<float>(), out<float>()); });
    load("global_load_reversed", "", [this] { global_load_reversed<<<1, 32>>>(in<float>(), out<float>()); });
    load("global_load_member_of_triple", "",
         [this] { global_load_member_of_triple<<<1, 32>>>(in<Triple>(), out<float>()); });
    load("global_load_member_of_quadruple", "",
         [this] { global_load_member_of_quadruple<<<1, 32>>>(in<Quadruple>(), out<float>()); });
    load("global_load_triple", "", [this] { global_load_triple<<<1, 32>>>(in<Triple>(), out<float>()); });
    for (int stride : {1, 4})
        load("global_load_by_8_warps", text("stride", stride),
             [=, this] { global_load_by_8_warps<<<1, 256>>>(stride, in<float>(), out<float>()); });
}

void Cases::add_global_stores() {
    const auto store = [this](std::string kernel, std::string parameters, std::function<void()> launch) {
        add(std::move(kernel), std::move(parameters), "global", "store", std::move(launch));
    };
    for (int lanes : {1, 7, 17, 31})
        store("global_store_by_some_lanes", text("lanes", lanes), [=, this] {
            global_store_by_some_lanes<<<1, 32>>>(static_cast<unsigned>(lanes), 1, out<float>());
        });
    store("global_store_member_of_triple", "",
          [this] { global_store_member_of_triple<<<1, 32>>>(out<Triple>()); });
}

void Cases::add_global_atomics() {
    const auto atomic = [this](std::string kernel, std::string parameters, std::function<void()> launch) {
        add(std::move(kernel), std::move(parameters), "global", "atomic", std::move(launch));
    };
    for (int stride : {0, 1, 2, 8, 32}) {
        atomic("global_atomic<int>", text("stride", stride),
               [=, this] { global_atomic<<<1, 32>>>(stride, out<int>()); });
        atomic("global_atomic<float>", text("stride", stride),
               [=, this] { global_atomic<<<1, 32>>>(stride, out<float>()); });
        atomic("global_atomic<double>", text("stride", stride),
               [=, this] { global_atomic<<<1, 32>>>(stride, out<double>()); });
        atomic("global_atomic_that_returns", text("stride", stride),
               [=, this] { global_atomic_that_returns<<<1, 32>>>(stride, in<int>(), out<int>()); });
    }
    for (Gather g : gathers(1000))
        atomic("global_atomic_gather", g.text(),
               [=, this] { global_atomic_gather<<<1, 32>>>(g.seed, g.limit, out<int>()); });
    for (int groups : {2, 8})
        atomic("global_atomic_in_groups", text("groups", groups),
               [=, this] { global_atomic_in_groups<<<1, 32>>>(static_cast<unsigned>(groups), out<int>()); });
}

template <class Number>
void Cases::add_global_atomic_loads_and_stores(const std::string& type) {
    for (int stride : {0, 1, 2, 8, 32}) {
        add("global_atomic_load<" + type + ">", text("stride", stride), "global", "atomic_load",
            [=, this] { global_atomic_load<<<1, 32>>>(stride, in<Number>(), out<Number>()); });
        add("global_atomic_store<" + type + ">", text("stride", stride), "global", "atomic_store",
            [=, this] { global_atomic_store<<<1, 32>>>(stride, out<Number>()); });
    }
}

nlohmann::ordered_json to_json(const Case& c) {
    return {{"kernel", c.kernel},
            {"parameters", c.parameters},
            {"space", c.space},
            {"operation", c.operation},
            {"remark", c.remark}};
}

void launch(const Case& c) {
    c.launch();
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaDeviceSynchronize());
}

nlohmann::ordered_json inspected(const Case& c) {
    nlohmann::ordered_json json = to_json(c);
    for (const course::KernelInspection& kernel : course::inspect([&] { launch(c); }).kernels)
        json["inspection"].push_back(course::to_json(kernel));
    return json;
}

int run(const std::vector<std::string>& arguments) {
    const Cases cases;
    const std::string command = arguments.empty() ? "" : arguments[0];
    if (arguments.empty() || (command == "--only" && arguments.size() == 3)) {
        for (const Case& c : cases.list()) {
            if (arguments.empty() || (c.space == arguments[1] && c.operation == arguments[2])) launch(c);
        }
        return 0;
    }
    if (arguments.size() != 1 || (command != "--list" && command != "--inspect")) {
        std::fprintf(stderr, "usage: inspection_counts [--only SPACE OPERATION | --list | --inspect]\n");
        return 2;
    }
    auto json = nlohmann::ordered_json::array();
    for (const Case& c : cases.list())
        json.push_back(command == "--list" ? to_json(c) : inspected(c));
    std::puts(json.dump(1).c_str());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "inspection_counts: %s\n", error.what());
        return 1;
    }
}
