// What the inspection finds, against what was planted.
//
// Each kernel has one mistake, and none when it is `kFixed`: the mistake is what `kFixed` decides.
// The lines that a finding may name end in `found: <kind>`, for the kinds of
// cuda_on_cpu/include/cuda_on_cpu/inspection.h. `clean` kernels have no mistake, but look as if
// they had.
//
//   inspection_bugs NAME           launches the kernel with its mistake
//   inspection_bugs NAME --fixed   launches it without
//   inspection_bugs --fixed        launches all of them without
//   inspection_bugs --list         the kernels, as JSON
//   inspection_bugs --inspect      the kernels and what the inspection finds in them, with and without, as JSON (preset `inspect`)
//
// scripts/calibrate_inspection.py runs it under compute-sanitizer, and compares.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/inspection.hpp"
#include "common/check/check.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/ptx.cuh"

namespace ptx = course::ptx;

namespace {

constexpr unsigned kThreads = 64;  // two warps
constexpr int kTiles = 4;

// ---- Races between the threads of a block -------------------------------------------------------

template <bool kFixed>
__global__ void barrier_removed(const float* in, float* out) {
    __shared__ float row[kThreads];
    row[threadIdx.x] = in[threadIdx.x];  // found: race
    if (kFixed) __syncthreads();
    out[threadIdx.x] = row[kThreads - 1 - threadIdx.x];  // found: race
}

template <bool kFixed>
__global__ void barrier_missing_at_the_end_of_a_loop(const float* in, float* out) {
    __shared__ float tile[kThreads];
    float sum = 0;
    for (int t = 0; t < kTiles; ++t) {
        tile[threadIdx.x] = in[t * kThreads + threadIdx.x];  // found: race
        __syncthreads();
        for (unsigned i = 0; i < kThreads; ++i)
            sum += tile[i];  // found: race
        if (kFixed) __syncthreads();
    }
    out[threadIdx.x] = sum;
}

// With two buffers one barrier a round is enough, but in every round.
template <bool kFixed>
__global__ void double_buffer_with_a_barrier_too_few(const float* in, float* out) {
    __shared__ float tile[2][kThreads];
    float sum = 0;
    tile[0][threadIdx.x] = in[threadIdx.x];
    for (int t = 0; t < kTiles; ++t) {
        if (kFixed || t % 2 == 0) __syncthreads();
        if (t + 1 < kTiles)
            tile[(t + 1) % 2][threadIdx.x] = in[(t + 1) * kThreads + threadIdx.x];  // found: race
        sum += tile[t % 2][kThreads - 1 - threadIdx.x];                             // found: race
    }
    out[threadIdx.x] = sum;
}

template <bool kFixed>
__global__ void two_warps_write_one_word(const float* in, float* out) {
    __shared__ float row[32];
    if (!kFixed || threadIdx.x < 32) row[threadIdx.x % 32] = in[threadIdx.x] + threadIdx.x;  // found: race
    __syncthreads();
    out[threadIdx.x] = row[threadIdx.x % 32];
}

// With one instruction: which of the two is kept is not defined.
template <bool kFixed>
__global__ void two_lanes_write_one_word(const float* in, float* out) {
    __shared__ float pairs[kThreads / 2];
    if (!kFixed || threadIdx.x % 2 == 0)
        pairs[threadIdx.x / 2] = in[threadIdx.x] + threadIdx.x;  // found: race
    __syncthreads();
    out[threadIdx.x] = pairs[threadIdx.x / 2];
}

template <bool kFixed>
__global__ void histogram_without_atomics(const int* bin, int* out) {
    __shared__ int counts[8];
    if (threadIdx.x < 8) counts[threadIdx.x] = 0;
    __syncthreads();
    if (kFixed)
        atomicAdd(&counts[bin[threadIdx.x]], 1);
    else
        counts[bin[threadIdx.x]] += 1;  // found: race
    __syncthreads();
    if (threadIdx.x < 8) out[threadIdx.x] = counts[threadIdx.x];
}

template <bool kFixed>
__global__ void counter_read_while_others_add(int* out) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    atomicAdd(&count, static_cast<int>(threadIdx.x));  // found: race
    if (kFixed) __syncthreads();
    out[threadIdx.x] = count;  // found: race
}

template <bool kFixed>
__global__ void counter_cleared_while_others_add(int* out) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;  // found: race
    if (kFixed) __syncthreads();
    atomicAdd(&count, static_cast<int>(threadIdx.x));  // found: race
    __syncthreads();
    out[threadIdx.x] = count;
}

template <bool kFixed>
__global__ void scan_in_place(const float* in, float* out) {
    __shared__ float sums[kThreads];
    sums[threadIdx.x] = in[threadIdx.x];
    for (unsigned distance = 1; distance < kThreads; distance *= 2) {
        __syncthreads();
        const float left = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;  // found: race
        if (kFixed) __syncthreads();
        sums[threadIdx.x] += left;  // found: race
    }
    out[threadIdx.x] = sums[threadIdx.x];
}

// Every thread has its own sum, but all need that of the last one.
template <bool kFixed>
__global__ void total_of_a_scan(const float* in, float* out) {
    __shared__ float total;
    const float sum = in[threadIdx.x];
    if (threadIdx.x == kThreads - 1) total = sum;  // found: race
    if (kFixed) __syncthreads();
    out[threadIdx.x] = sum / total;  // found: race
}

template <bool kFixed>
__global__ void warp_reduces_without_waiting(const float* in, float* out) {
    __shared__ float sums[32];
    sums[threadIdx.x] = in[threadIdx.x];
    __syncwarp();
    for (unsigned distance = 16; distance > 0; distance /= 2) {
        if (threadIdx.x < distance) sums[threadIdx.x] += sums[threadIdx.x + distance];  // found: race
        if (kFixed) __syncwarp();
    }
    if (threadIdx.x == 0) *out = sums[0];
}

template <bool kFixed>
__global__ void lanes_exchange_without_waiting(const float* in, float* out) {
    __shared__ float row[32];
    row[threadIdx.x] = in[threadIdx.x];  // found: race
    if (kFixed) __syncwarp();
    out[threadIdx.x] = row[threadIdx.x ^ 1];  // found: race
}

template <bool kFixed>
__global__ void half_a_warp_waits_for_itself(const float* in, float* out) {
    __shared__ float row[32];
    row[threadIdx.x] = in[threadIdx.x];  // found: race
    __syncwarp(kFixed ? 0xffffffffu : threadIdx.x < 16 ? 0x0000ffffu : 0xffff0000u);
    out[threadIdx.x] = row[31 - threadIdx.x];  // found: race
}

template <bool kFixed>
__global__ void warp_waits_where_the_block_should(const float* in, float* out) {
    __shared__ float row[kThreads];
    row[threadIdx.x] = in[threadIdx.x];  // found: race
    if (kFixed)
        __syncthreads();
    else
        __syncwarp();
    out[threadIdx.x] = row[(threadIdx.x + 1) % kThreads];  // found: race
}

// ---- Asynchronous copies ------------------------------------------------------------------------

template <bool kFixed>
__global__ void copy_without_a_wait(const float* in, float* out) {
    __shared__ float row[kThreads];
    ptx::cp_async_4(&row[threadIdx.x], &in[threadIdx.x]);  // found: missing_wait
    ptx::cp_async_commit();
    if (kFixed) ptx::cp_async_wait<0>();
    out[threadIdx.x] = row[threadIdx.x];  // found: missing_wait
}

template <bool kFixed>
__global__ void copies_waited_for_too_few(const float* in, float* out) {
    __shared__ float rows[2][kThreads];
    for (int r = 0; r < 2; ++r) {
        ptx::cp_async_4(&rows[r][threadIdx.x], &in[r * kThreads + threadIdx.x]);  // found: missing_wait
        ptx::cp_async_commit();
    }
    ptx::cp_async_wait<kFixed ? 0 : 1>();
    out[threadIdx.x] = rows[0][threadIdx.x] + rows[1][threadIdx.x];  // found: missing_wait
}

template <bool kFixed>
__global__ void copies_of_others_without_a_barrier(const float* in, float* out) {
    __shared__ float row[kThreads];
    ptx::cp_async_4(&row[threadIdx.x], &in[threadIdx.x]);  // found: race
    ptx::cp_async_commit();
    ptx::cp_async_wait<0>();
    if (kFixed) __syncthreads();
    out[threadIdx.x] = row[kThreads - 1 - threadIdx.x];  // found: race
}

template <bool kFixed>
__global__ void copy_into_what_others_still_read(const float* in, float* out) {
    __shared__ float row[kThreads];
    row[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    const float other = row[kThreads - 1 - threadIdx.x];  // found: race
    if (kFixed) __syncthreads();
    ptx::cp_async_4(&row[threadIdx.x], &in[kThreads + threadIdx.x]);  // found: race
    ptx::cp_async_commit();
    ptx::cp_async_wait<0>();
    out[threadIdx.x] = other + row[threadIdx.x];
}

// ---- Races between blocks -----------------------------------------------------------------------

template <bool kFixed>
__global__ void blocks_count_without_atomics(int* count) {
    if (threadIdx.x != 0) return;
    if (kFixed)
        atomicAdd(count, 1);
    else
        *count += 1;  // found: race_between_blocks
}

// Smooths in place: the next block's first element may be the old or the new one.
template <bool kFixed>
__global__ void blocks_read_what_neighbours_write(const float* in, float* out) {
    const unsigned i = blockIdx.x * kThreads + threadIdx.x;
    const unsigned next = i + 1 < gridDim.x * kThreads ? i + 1 : i;
    const float value = kFixed ? in[next] : out[next];  // found: race_between_blocks
    __syncthreads();
    out[i] = value;  // found: race_between_blocks
}

template <bool kFixed>
__global__ void blocks_overlap_by_one(float* out) {
    const unsigned i = blockIdx.x * kThreads + threadIdx.x;
    out[i] = static_cast<float>(blockIdx.x);  // found: race_between_blocks
    const bool has_right_neighbour = blockIdx.x + 1 < gridDim.x;
    if (!kFixed && threadIdx.x == kThreads - 1 && has_right_neighbour)
        out[i + 1] = -1;  // found: race_between_blocks
}

template <bool kFixed>
__global__ void grid_does_not_wait(float* partial, float* out) {
    if (threadIdx.x == 0) partial[blockIdx.x] = static_cast<float>(blockIdx.x);  // found: race_between_blocks
    if (kFixed)
        cooperative_groups::this_grid().sync();
    else
        __syncthreads();
    if (threadIdx.x == 0)
        out[blockIdx.x] = partial[(blockIdx.x + 1) % gridDim.x];  // found: race_between_blocks
}

// The last block sums the partial sums of all. Each must write its own before it counts itself.
template <bool kFixed>
__global__ void block_says_so_before_it_writes(float* partial, unsigned* done, float* out) {
    if (threadIdx.x != 0) return;
    unsigned before = 0;
    if (!kFixed) before = atomicAdd(done, 1);
    partial[blockIdx.x] = static_cast<float>(blockIdx.x);  // found: race_between_blocks
    __threadfence();
    if (kFixed) before = atomicAdd(done, 1);
    if (before + 1 != gridDim.x) return;
    __threadfence();
    float sum = 0;
    for (unsigned b = 0; b < gridDim.x; ++b)
        sum += partial[b];  // found: race_between_blocks
    *out = sum;
}

template <bool kFixed>
__global__ void done_is_counted_without_a_fence(float* partial, unsigned* done, float* out) {
    if (threadIdx.x != 0) return;
    partial[blockIdx.x] = static_cast<float>(blockIdx.x);  // found: race_between_blocks
    if (kFixed) __threadfence();
    if (atomicAdd(done, 1) + 1 != gridDim.x) return;
    if (kFixed) __threadfence();
    float sum = 0;
    for (unsigned b = 0; b < gridDim.x; ++b)
        sum += partial[b];  // found: race_between_blocks
    *out = sum;
}

// ---- Out of bounds ------------------------------------------------------------------------------

template <bool kFixed>
__global__ void load_past_the_end(unsigned n, const float* in, float* out) {
    const unsigned i = threadIdx.x;
    if (kFixed ? i + 1 < n : i < n) out[i] = in[i] + in[i + 1];  // found: out_of_bounds
}

template <bool kFixed>
__global__ void load_before_the_beginning(unsigned n, const float* in, float* out) {
    const int i = static_cast<int>(threadIdx.x);
    if (i >= (kFixed ? 1 : 0) && i < static_cast<int>(n)) out[i] = in[i] - in[i - 1];  // found: out_of_bounds
}

template <bool kFixed>
__global__ void store_past_the_end(unsigned n, float* out) {
    if (kFixed ? threadIdx.x < n : threadIdx.x <= n) out[threadIdx.x] = 1;  // found: out_of_bounds
}

// n is no multiple of 4: the last vector is not all there.
template <bool kFixed>
__global__ void vector_past_the_end(unsigned n, const float4* in, float4* out) {
    const unsigned vectors = kFixed ? n / 4 : (n + 3) / 4;
    if (threadIdx.x < vectors) out[threadIdx.x] = in[threadIdx.x];  // found: out_of_bounds
}

template <bool kFixed>
__global__ void shared_array_runs_into_the_next(const float* in, float* out) {
    __shared__ float left[kThreads];
    __shared__ float right[kThreads];
    left[threadIdx.x] = in[threadIdx.x];
    right[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    const unsigned next = threadIdx.x + 1;
    float sum = right[threadIdx.x];
    if (!kFixed || next < kThreads) sum += left[next];  // found: out_of_bounds
    out[threadIdx.x] = sum;
}

template <bool kFixed>
__global__ void halo_one_too_far(const float* in, float* out) {
    __shared__ float row[kThreads + 2];
    __shared__ float copy[kThreads];
    copy[threadIdx.x] = in[threadIdx.x];
    row[threadIdx.x + 1] = in[threadIdx.x];
    const unsigned right = blockDim.x + (kFixed ? 1 : 2);
    if (threadIdx.x == 0) row[0] = 0;
    if (threadIdx.x == 1) row[right] = 0;  // found: out_of_bounds
    if (!kFixed && threadIdx.x == 2) row[kThreads + 1] = 0;
    __syncthreads();
    out[threadIdx.x] = row[threadIdx.x] + row[threadIdx.x + 2] + copy[kThreads - 1 - threadIdx.x];
}

__global__ void dynamic_shared_memory_too_small(const float* in, float* out) {
    extern __shared__ float dynamic_row[];
    dynamic_row[threadIdx.x] = in[threadIdx.x];  // found: out_of_bounds
    __syncthreads();
    out[threadIdx.x] = dynamic_row[threadIdx.x ^ 1];  // found: out_of_bounds
}

__global__ void read_freed_memory(const float* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x];  // found: use_after_free
}

// ---- Misaligned vectors -------------------------------------------------------------------------

template <bool kFixed>
__global__ void misaligned_vector_in_global_memory(const float* in, float4* out) {
    const auto* vectors = reinterpret_cast<const float4*>(in + (kFixed ? 4 : 1));
    out[threadIdx.x] = vectors[threadIdx.x];  // found: misaligned
}

// Rows of 33 words are free of bank conflicts, and only every fourth of them can be read by
// vectors.
template <bool kFixed>
__global__ void misaligned_vector_in_shared_memory(const float* in, float4* out) {
    constexpr unsigned kPitch = kFixed ? 36 : 33;
    alignas(16) __shared__ float rows[4 * kPitch];
    for (unsigned i = threadIdx.x; i < 4 * kPitch; i += kThreads)
        rows[i] = in[i % kThreads];
    __syncthreads();
    const auto* row = reinterpret_cast<const float4*>(&rows[threadIdx.x * kPitch]);
    if (threadIdx.x < 4) out[threadIdx.x] = *row;  // found: misaligned
}

// ---- Reads of what nothing wrote ----------------------------------------------------------------

template <bool kFixed>
__global__ void halo_not_loaded(const float* in, float* out) {
    __shared__ float row[kThreads + 1];
    row[threadIdx.x + 1] = in[threadIdx.x];
    if (kFixed && threadIdx.x == 0) row[0] = 0;
    __syncthreads();
    out[threadIdx.x] = row[threadIdx.x + 1] - row[threadIdx.x];  // found: uninitialised_read
}

template <bool kFixed>
__global__ void tile_edge_not_filled(unsigned n, const float* in, float* out) {
    __shared__ float tile[kThreads];
    if (threadIdx.x < n)
        tile[threadIdx.x] = in[threadIdx.x];
    else if (kFixed)
        tile[threadIdx.x] = 0;
    __syncthreads();
    float sum = 0;
    for (unsigned i = 0; i < kThreads; ++i)
        sum += tile[i];  // found: uninitialised_read
    out[threadIdx.x] = sum;
}

__global__ void sum_not_cleared(const float* in, float* sums) {
    sums[threadIdx.x] += in[threadIdx.x];  // found: uninitialised_read
}

__global__ void counter_not_cleared(int* counter) {
    atomicAdd(counter, static_cast<int>(threadIdx.x));  // found: uninitialised_read
}

// ---- Barriers and masks -------------------------------------------------------------------------

template <bool kFixed>
__global__ void barrier_that_a_warp_does_not_reach(float* out) {
    if (!kFixed && threadIdx.x < 32) __syncthreads();  // found: divergent_barrier
    out[threadIdx.x] = 1;
    __syncthreads();  // found: divergent_barrier
    out[threadIdx.x] += 1;
}

template <bool kFixed>
__global__ void barrier_that_half_a_warp_reaches(float* out) {
    if (!kFixed && threadIdx.x % 32 < 16) __syncthreads();  // found: divergent_barrier
    out[threadIdx.x] = 1;
    __syncthreads();  // found: divergent_barrier
    out[threadIdx.x] += 1;
}

template <bool kFixed>
__global__ void two_barriers_for_one(float* out) {
    if (threadIdx.x < 32) {
        out[threadIdx.x] = 1;
        if (!kFixed) __syncthreads();  // found: divergent_barrier
    } else {
        out[threadIdx.x] = 2;
        if (!kFixed) __syncthreads();  // found: divergent_barrier
    }
    if (kFixed) __syncthreads();
}

template <bool kFixed>
__global__ void shuffle_with_lanes_that_do_not_come(const float* in, float* out) {
    if (threadIdx.x >= 16) return;
    out[threadIdx.x] =
        __shfl_xor_sync(kFixed ? 0x0000ffffu : 0xffffffffu, in[threadIdx.x], 1);  // found: wrong_mask
}

template <bool kFixed>
__global__ void vote_without_the_voter(const int* in, int* out) {
    const unsigned mask = kFixed ? 0xffffffffu : 0x7fffffffu;
    out[threadIdx.x] = __any_sync(mask, in[threadIdx.x] > 0);  // found: wrong_mask
}

// ---- Clean, whatever it looks like --------------------------------------------------------------

// Bytes next to each other are no race.
__global__ void clean_bytes_of_one_word(const unsigned char* in, unsigned char* out) {
    __shared__ unsigned char bytes[kThreads];
    bytes[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[blockIdx.x * kThreads + threadIdx.x] = bytes[threadIdx.x ^ 1];
}

// Nor are bytes of one word that two blocks write.
__global__ void clean_bytes_of_two_blocks(unsigned char* out) {
    if (threadIdx.x == 0) out[blockIdx.x] = static_cast<unsigned char>(blockIdx.x);
}

// A barrier orders also what only one warp did before it.
__global__ void clean_one_warp_fills(const float* in, float* out) {
    __shared__ float row[kThreads];
    if (threadIdx.x < 32) {
        row[threadIdx.x] = in[threadIdx.x];
        __syncwarp();
        row[32 + threadIdx.x] = row[31 - threadIdx.x];
    }
    __syncthreads();
    out[threadIdx.x] = row[kThreads - 1 - threadIdx.x];
}

// A shuffle orders the lanes it joins.
__global__ void clean_shuffle_in_between(const float* in, float* out) {
    __shared__ float row[32];
    row[threadIdx.x] = in[threadIdx.x];
    const float sum = __shfl_xor_sync(0xffffffffu, in[threadIdx.x], 1);
    __syncwarp();
    out[threadIdx.x] = sum + row[31 - threadIdx.x];
}

// Threads that have ended count as arrived.
__global__ void clean_early_return(unsigned n, const float* in, float* out) {
    __shared__ float row[kThreads];
    if (threadIdx.x >= n) return;
    row[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = row[n - 1 - threadIdx.x];
}

// All write the same: legal for a GPU, and what a flag often is.
__global__ void clean_same_value_from_all(const float* in, int* out) {
    __shared__ int found;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    if (in[threadIdx.x] < 2) found = 1;
    __syncthreads();
    out[threadIdx.x] = found;
}

// ---- The list -----------------------------------------------------------------------------------

struct Bug {
    const char* name;
    const char* kind;  // of cuda_on_cpu/inspection.h; "none" for the clean ones
    const char* tool;  // of compute-sanitizer; "" where no tool of it looks for this
    std::function<void(bool fixed)> launch;
};

template <class T>
course::DeviceBuffer<T> ones(std::size_t count) {
    return course::DeviceBuffer<T>{std::vector<T>(count, T{1})};
}

void finish() {
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaDeviceSynchronize());
}

// Of a kernel with and without its mistake: the one that is asked for, launched on an array of ones
// to read and another one to write.
template <class In, class Out>
std::function<void(bool)> reads_and_writes(void (*bug)(const In*, Out*), void (*fixed)(const In*, Out*),
                                           unsigned threads = kThreads, std::size_t shared_bytes = 0) {
    return [=](bool is_fixed) {
        const auto in = ones<float>(kTiles * kThreads + 8);
        auto out = ones<float>(4 * kThreads);
        const auto kernel = is_fixed ? fixed : bug;
        kernel<<<1, threads, shared_bytes>>>(reinterpret_cast<const In*>(in.data()),
                                             reinterpret_cast<Out*>(out.data()));
        finish();
    };
}

template <class Out>
std::function<void(bool)> writes(void (*bug)(Out*), void (*fixed)(Out*), unsigned blocks = 1) {
    return [=](bool is_fixed) {
        auto out = ones<Out>(blocks * kThreads);
        const auto kernel = is_fixed ? fixed : bug;
        kernel<<<blocks, kThreads>>>(out.data());
        finish();
    };
}

// The last block of four sums up.
std::function<void(bool)> sums_up(void (*bug)(float*, unsigned*, float*),
                                  void (*fixed)(float*, unsigned*, float*)) {
    return [=](bool is_fixed) {
        auto partial = ones<float>(4);
        course::DeviceBuffer<unsigned> done{std::vector<unsigned>{0}};
        auto out = ones<float>(1);
        const auto kernel = is_fixed ? fixed : bug;
        kernel<<<4, kThreads>>>(partial.data(), done.data(), out.data());
        finish();
    };
}

// `n` elements to read and `n` to write, not one more.
template <class In, class Out>
std::function<void(bool)> exactly(unsigned n, void (*bug)(unsigned, const In*, Out*),
                                  void (*fixed)(unsigned, const In*, Out*)) {
    return [=](bool is_fixed) {
        const auto in = ones<float>(n);
        auto out = ones<float>(kThreads);
        const auto kernel = is_fixed ? fixed : bug;
        kernel<<<1, kThreads>>>(n, reinterpret_cast<const In*>(in.data()),
                                reinterpret_cast<Out*>(out.data()));
        finish();
    };
}

void write_past_the_end(bool fixed) {
    auto out = ones<float>(40);
    const auto kernel = fixed ? store_past_the_end<true> : store_past_the_end<false>;
    kernel<<<1, kThreads>>>(40, out.data());
    finish();
}

void launch_with_too_little_shared_memory(bool fixed) {
    const std::size_t bytes = (fixed ? kThreads : kThreads - 4) * sizeof(float);
    reads_and_writes(dynamic_shared_memory_too_small, dynamic_shared_memory_too_small, kThreads,
                     bytes)(fixed);
}

void read_after_free(bool fixed) {
    auto in = ones<float>(kThreads);
    auto out = ones<float>(kThreads);
    const float* data = in.data();
    if (!fixed) in = course::DeviceBuffer<float>{};  // frees what `data` points to
    read_freed_memory<<<1, kThreads>>>(data, out.data());
    finish();
}

void blocks_read_each_other(bool fixed) {
    const auto in = ones<float>(4 * kThreads);
    auto out = ones<float>(4 * kThreads);
    const auto kernel =
        fixed ? blocks_read_what_neighbours_write<true> : blocks_read_what_neighbours_write<false>;
    kernel<<<4, kThreads>>>(in.data(), out.data());
    finish();
}

void launch_grid(bool fixed) {
    auto partial = ones<float>(4);
    auto out = ones<float>(4);
    float* pointers[] = {partial.data(), out.data()};
    void* arguments[] = {&pointers[0], &pointers[1]};
    const auto kernel = fixed ? grid_does_not_wait<true> : grid_does_not_wait<false>;
    CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(kernel), dim3(4), dim3(kThreads),
                                           arguments, 0, nullptr));
    finish();
}

void sum_into_fresh_memory(bool fixed) {
    const auto in = ones<float>(kThreads);
    course::DeviceBuffer<float> sums(kThreads);
    if (fixed) CUDA_CHECK(cudaMemset(sums.data(), 0, sums.bytes()));
    sum_not_cleared<<<1, kThreads>>>(in.data(), sums.data());
    finish();
}

void count_in_fresh_memory(bool fixed) {
    course::DeviceBuffer<int> counter(1);
    if (fixed) CUDA_CHECK(cudaMemset(counter.data(), 0, counter.bytes()));
    counter_not_cleared<<<1, kThreads>>>(counter.data());
    finish();
}

void return_early(bool) {
    const auto in = ones<float>(kThreads);
    auto out = ones<float>(kThreads);
    clean_early_return<<<1, kThreads>>>(40, in.data(), out.data());
    finish();
}

#define WITH_AND_WITHOUT(kernel) kernel<false>, kernel<true>
#define SAME(kernel) kernel, kernel

const std::vector<Bug>& bugs() {
    static const std::vector<Bug> all{
        {"barrier_removed", "race", "racecheck", reads_and_writes(WITH_AND_WITHOUT(barrier_removed))},
        {"barrier_missing_at_the_end_of_a_loop", "race", "racecheck",
         reads_and_writes(WITH_AND_WITHOUT(barrier_missing_at_the_end_of_a_loop))},
        {"double_buffer_with_a_barrier_too_few", "race", "racecheck",
         reads_and_writes(WITH_AND_WITHOUT(double_buffer_with_a_barrier_too_few))},
        {"two_warps_write_one_word", "race", "racecheck",
         reads_and_writes(WITH_AND_WITHOUT(two_warps_write_one_word))},
        {"two_lanes_write_one_word", "race", "racecheck",
         reads_and_writes(WITH_AND_WITHOUT(two_lanes_write_one_word))},
        {"histogram_without_atomics", "race", "racecheck",
         [](bool fixed) {
             const course::DeviceBuffer<int> bin{std::vector<int>(kThreads, 3)};
             auto out = ones<int>(8);
             const auto kernel = fixed ? histogram_without_atomics<true> : histogram_without_atomics<false>;
             kernel<<<1, kThreads>>>(bin.data(), out.data());
             finish();
         }},
        {"counter_read_while_others_add", "race", "racecheck",
         writes(WITH_AND_WITHOUT(counter_read_while_others_add))},
        {"counter_cleared_while_others_add", "race", "racecheck",
         writes(WITH_AND_WITHOUT(counter_cleared_while_others_add))},
        {"scan_in_place", "race", "racecheck", reads_and_writes(WITH_AND_WITHOUT(scan_in_place))},
        {"total_of_a_scan", "race", "racecheck", reads_and_writes(WITH_AND_WITHOUT(total_of_a_scan))},
        {"warp_reduces_without_waiting", "race", "racecheck",
         reads_and_writes(WITH_AND_WITHOUT(warp_reduces_without_waiting), 32)},
        {"lanes_exchange_without_waiting", "race", "racecheck",
         reads_and_writes(WITH_AND_WITHOUT(lanes_exchange_without_waiting), 32)},
        {"half_a_warp_waits_for_itself", "race", "racecheck",
         reads_and_writes(WITH_AND_WITHOUT(half_a_warp_waits_for_itself), 32)},
        {"warp_waits_where_the_block_should", "race", "racecheck",
         reads_and_writes(WITH_AND_WITHOUT(warp_waits_where_the_block_should))},
        {"copy_without_a_wait", "missing_wait", "racecheck",
         reads_and_writes(WITH_AND_WITHOUT(copy_without_a_wait))},
        {"copies_waited_for_too_few", "missing_wait", "racecheck",
         reads_and_writes(WITH_AND_WITHOUT(copies_waited_for_too_few))},
        {"copies_of_others_without_a_barrier", "race", "racecheck",
         reads_and_writes(WITH_AND_WITHOUT(copies_of_others_without_a_barrier))},
        {"copy_into_what_others_still_read", "race", "racecheck",
         reads_and_writes(WITH_AND_WITHOUT(copy_into_what_others_still_read))},
        {"blocks_count_without_atomics", "race_between_blocks", "",
         writes(WITH_AND_WITHOUT(blocks_count_without_atomics), 4)},
        {"blocks_read_what_neighbours_write", "race_between_blocks", "", blocks_read_each_other},
        {"blocks_overlap_by_one", "race_between_blocks", "",
         writes(WITH_AND_WITHOUT(blocks_overlap_by_one), 4)},
        {"grid_does_not_wait", "race_between_blocks", "", launch_grid},
        {"block_says_so_before_it_writes", "race_between_blocks", "",
         sums_up(WITH_AND_WITHOUT(block_says_so_before_it_writes))},
        {"done_is_counted_without_a_fence", "race_between_blocks", "",
         sums_up(WITH_AND_WITHOUT(done_is_counted_without_a_fence))},
        {"load_past_the_end", "out_of_bounds", "memcheck", exactly(40, WITH_AND_WITHOUT(load_past_the_end))},
        {"load_before_the_beginning", "out_of_bounds", "memcheck",
         exactly(40, WITH_AND_WITHOUT(load_before_the_beginning))},
        {"store_past_the_end", "out_of_bounds", "memcheck", write_past_the_end},
        {"vector_past_the_end", "out_of_bounds", "memcheck",
         exactly(39, WITH_AND_WITHOUT(vector_past_the_end))},
        {"shared_array_runs_into_the_next", "out_of_bounds", "memcheck",
         reads_and_writes(WITH_AND_WITHOUT(shared_array_runs_into_the_next))},
        {"halo_one_too_far", "out_of_bounds", "memcheck",
         reads_and_writes(WITH_AND_WITHOUT(halo_one_too_far))},
        {"dynamic_shared_memory_too_small", "out_of_bounds", "memcheck",
         launch_with_too_little_shared_memory},
        {"read_freed_memory", "use_after_free", "memcheck", read_after_free},
        {"misaligned_vector_in_global_memory", "misaligned", "memcheck",
         reads_and_writes(WITH_AND_WITHOUT(misaligned_vector_in_global_memory), 16)},
        {"misaligned_vector_in_shared_memory", "misaligned", "memcheck",
         reads_and_writes(WITH_AND_WITHOUT(misaligned_vector_in_shared_memory))},
        {"halo_not_loaded", "uninitialised_read", "initcheck",
         reads_and_writes(WITH_AND_WITHOUT(halo_not_loaded))},
        {"tile_edge_not_filled", "uninitialised_read", "initcheck",
         exactly(40, WITH_AND_WITHOUT(tile_edge_not_filled))},
        {"sum_not_cleared", "uninitialised_read", "initcheck", sum_into_fresh_memory},
        {"counter_not_cleared", "uninitialised_read", "initcheck", count_in_fresh_memory},
        {"barrier_that_a_warp_does_not_reach", "divergent_barrier", "synccheck",
         writes(WITH_AND_WITHOUT(barrier_that_a_warp_does_not_reach))},
        {"barrier_that_half_a_warp_reaches", "divergent_barrier", "synccheck",
         writes(WITH_AND_WITHOUT(barrier_that_half_a_warp_reaches))},
        {"two_barriers_for_one", "divergent_barrier", "synccheck",
         writes(WITH_AND_WITHOUT(two_barriers_for_one))},
        {"shuffle_with_lanes_that_do_not_come", "wrong_mask", "synccheck",
         reads_and_writes(WITH_AND_WITHOUT(shuffle_with_lanes_that_do_not_come), 32)},
        {"vote_without_the_voter", "wrong_mask", "synccheck",
         reads_and_writes(WITH_AND_WITHOUT(vote_without_the_voter), 32)},
        {"clean_bytes_of_one_word", "none", "racecheck", reads_and_writes(SAME(clean_bytes_of_one_word))},
        {"clean_bytes_of_two_blocks", "none", "racecheck", writes(SAME(clean_bytes_of_two_blocks), 4)},
        {"clean_one_warp_fills", "none", "racecheck", reads_and_writes(SAME(clean_one_warp_fills))},
        {"clean_shuffle_in_between", "none", "racecheck",
         reads_and_writes(SAME(clean_shuffle_in_between), 32)},
        {"clean_early_return", "none", "synccheck", return_early},
        {"clean_same_value_from_all", "none", "racecheck", reads_and_writes(SAME(clean_same_value_from_all))},
    };
    return all;
}

const Bug& bug_named(const std::string& name) {
    for (const Bug& bug : bugs()) {
        if (name == bug.name) return bug;
    }
    throw std::invalid_argument("no bug is named '" + name + "'; expected one of --list");
}

nlohmann::ordered_json to_json(const Bug& bug) {
    return {{"name", bug.name}, {"kind", bug.kind}, {"tool", bug.tool}};
}

// What the inspection finds in one launch. That a kernel with a mistake may fail is one more thing
// to find.
nlohmann::ordered_json findings(const Bug& bug, bool fixed) {
    auto found = nlohmann::ordered_json::array();
    const course::Inspection seen = course::inspect([&] {
        try {
            bug.launch(fixed);
        } catch (const course::CudaError&) {
            CUDA_CHECK(cudaDeviceReset());
        }
    });
    for (const course::KernelInspection& kernel : seen.kernels) {
        const nlohmann::ordered_json json = course::to_json(kernel);
        found.insert(found.end(), json.at("findings").begin(), json.at("findings").end());
    }
    return found;
}

nlohmann::ordered_json inspected(const Bug& bug) {
    nlohmann::ordered_json json = to_json(bug);
    json["findings"] = findings(bug, false);
    json["findings_when_fixed"] = findings(bug, true);
    return json;
}

int run(const std::vector<std::string>& arguments) {
    const std::string command = arguments.empty() ? "" : arguments[0];
    if (arguments.size() == 1 && (command == "--list" || command == "--inspect")) {
        auto json = nlohmann::ordered_json::array();
        for (const Bug& bug : bugs())
            json.push_back(command == "--list" ? to_json(bug) : inspected(bug));
        std::puts(json.dump(1).c_str());
        return 0;
    }
    if (arguments.size() == 1 && command == "--fixed") {
        for (const Bug& bug : bugs())
            bug.launch(true);
        return 0;
    }
    const bool fixed = arguments.size() == 2 && arguments[1] == "--fixed";
    if (arguments.size() != 1 && !fixed) {
        std::fprintf(stderr, "usage: inspection_bugs NAME [--fixed] | --fixed | --list | --inspect\n");
        return 2;
    }
    bug_named(command).launch(fixed);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run({argv + 1, argv + argc});
    } catch (const std::invalid_argument& error) {
        std::fprintf(stderr, "inspection_bugs: %s\n", error.what());
        return 2;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "inspection_bugs: %s\n", error.what());
        return 1;
    }
}
