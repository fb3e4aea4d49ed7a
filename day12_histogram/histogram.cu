// Day 12: histogram, how many of n bytes or ints fall into each bin.                            PMPP chapter 9
//
//   version                 where a value is counted               what limits it
//   global_atomics          in the result itself                   atomics on few addresses queue up in L2
//   shared_private          in a copy per block                    a block has hardly more values than counters
//   coarsened_contiguous    the same; a thread takes a stretch     lanes read far apart
//   coarsened_interleaved   the same; neighbours side by side      a byte per load; lanes meet at one counter
//   aggregated              a run of equal values in a register    comparing, where there are no runs
//   per_warp_copies         in a copy per warp, 16 bytes a load    lanes of a warp meet at one counter, or one bank
//   lane_copies             in a copy per lane, each in its bank   shared atomics: one for every value
//
// Each value is read once and little is written, so the best possible time is bytes / (memory bandwidth). A byte must be
// counted in the time in which a byte arrives.
//
//   ./course run day12                       all versions, verified and timed
//   ./course run day12 --variant lane_copies --size 268435456
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "histogram.hpp"
#include "histogram_bins.cuh"

namespace day12 {
namespace {

using course::DeviceSpan;

constexpr unsigned kWarp = 32;
constexpr int kBlockSize = 256;
using Words = course::Pack<unsigned, 4>;  // 4 ints, or 16 bytes to be cut out of the words
constexpr std::size_t kPackBytes = sizeof(Words);
constexpr int kPacksInFlight = 4;  // loads of 16 bytes that a thread asks for before it counts the first

// Shared memory that a block of per_warp_copies or lane_copies spends on copies.
constexpr std::size_t kWarpBytes = 36 * 1024;
constexpr std::size_t kLaneBytes = 100 * 1024;

// Large blocks: all warps of a block share its copies, and fewer blocks add fewer counters to the result.
constexpr int kLaneBlockSize = 512;

// --- Device helpers --------------------------------------------------------------------------------------------------

__device__ std::size_t global_thread() {
    return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ std::size_t all_threads() {
    return static_cast<std::size_t>(gridDim.x) * blockDim.x;
}

__device__ void clear(unsigned* counters, unsigned size) {
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x)
        counters[i] = 0;
}

// Adds what this block has counted to the result: sum_of(slot) is the block's count of a slot.
template <class Value, class SumOf>
__device__ void merge(const Slots<Value>& slots, Counter* counts, SumOf sum_of) {
    for (unsigned slot = threadIdx.x; slot < slots.count; slot += blockDim.x) {
        const unsigned sum = sum_of(slot);
        const unsigned bin = slots.bin(slot);
        if (sum != 0 && bin < slots.bins.count) atomicAdd(counts + bin, sum);
    }
}

// Calls visit(value) for this thread's share of the values. They come in packs of 16 bytes, which the threads of the grid
// take in turn; the few values before the first aligned address and behind the last whole pack go to single threads.
template <class Value, class Visit>
__device__ void for_each_in_packs(const Value* values, std::size_t n, Visit visit) {
    constexpr std::size_t kPerPack = kPackBytes / sizeof(Value);
    const std::size_t beyond_aligned = reinterpret_cast<std::uintptr_t>(values) / sizeof(Value) % kPerPack;
    const std::size_t to_aligned = (kPerPack - beyond_aligned) % kPerPack;
    const std::size_t head = to_aligned < n ? to_aligned : n;
    const std::size_t packs = (n - head) / kPerPack;
    const std::size_t tail = head + packs * kPerPack;
    const auto load = [&](std::size_t pack) {
        return Words::load(reinterpret_cast<const unsigned*>(values + head + pack * kPerPack));
    };
    const auto visit_all = [&](const Words& words) {
#pragma unroll
        for (const unsigned word : words.value) {
#pragma unroll
            for (unsigned bit = 0; bit < 32; bit += 8 * sizeof(Value))
                visit(static_cast<Value>(word >> bit));
        }
    };

    const std::size_t stride = all_threads();
    std::size_t pack = global_thread();
    for (; pack + (kPacksInFlight - 1) * stride < packs; pack += kPacksInFlight * stride) {
        Words in_flight[kPacksInFlight];
#pragma unroll
        for (int k = 0; k < kPacksInFlight; ++k)
            in_flight[k] = load(pack + k * stride);
#pragma unroll
        for (int k = 0; k < kPacksInFlight; ++k)
            visit_all(in_flight[k]);
    }
    for (; pack < packs; pack += stride)
        visit_all(load(pack));
    if (global_thread() < head) visit(values[global_thread()]);
    if (global_thread() < n - tail) visit(values[tail + global_thread()]);
}

// --- Kernels ---------------------------------------------------------------------------------------------------------

// Idea: as many threads as values; each adds 1 to the counter of its bin, which atomicAdd makes safe.
// Cost removed: the loop of the CPU.
// Still limits it: all multiprocessors add to the same few addresses, in L2, and an address takes one after the other.
template <class Value>
__global__ void count_global_atomics(const Value* values, std::size_t n, EqualBins bins, Counter* counts) {
    const std::size_t i = global_thread();
    if (i >= n) return;
    const unsigned bin = bins.bin(static_cast<unsigned>(values[i]));
    if (bin < bins.count) atomicAdd(counts + bin, 1);
}

// Idea: privatisation. A block counts in shared memory of its own, and adds its sums to the result once.
// Cost removed: the way to L2 and the queue there, for every value.
// Still limits it: 256 values are hardly worth 256 counters, which must be cleared before and added up behind them.
template <class Value>
__global__ void count_shared_private(const Value* values, std::size_t n, Slots<Value> slots,
                                     Counter* counts) {
    extern __shared__ unsigned counters[];
    clear(counters, slots.count);
    __syncthreads();
    const std::size_t i = global_thread();
    if (i < n) atomicAdd(counters + slots.slot(values[i]), 1);
    __syncthreads();
    merge(slots, counts, [&](unsigned slot) { return counters[slot]; });
}

// Idea: coarsening. Only as many blocks as the GPU holds at once, so a thread has many values: here a stretch of neighbours.
// Cost removed: clearing and adding up for every 256 values.
// Still limits it: at each step the lanes of a warp read from 32 places far apart.
template <class Value>
__global__ void count_coarsened_contiguous(const Value* values, std::size_t n, Slots<Value> slots,
                                           Counter* counts) {
    extern __shared__ unsigned counters[];
    clear(counters, slots.count);
    __syncthreads();
    const std::size_t stretch = course::ceil_div(n, all_threads());
    const std::size_t begin = global_thread() * stretch;
    for (std::size_t i = begin; i < begin + stretch && i < n; ++i)
        atomicAdd(counters + slots.slot(values[i]), 1);
    __syncthreads();
    merge(slots, counts, [&](unsigned slot) { return counters[slot]; });
}

// Idea: the same share for each thread, but the grid moves over the values as one: neighbours read neighbours.
// Cost removed: sectors fetched for one value.
// Still limits it: a load for every value; lanes of a warp that meet at a counter, or in a bank.
template <class Value>
__global__ void count_coarsened_interleaved(const Value* values, std::size_t n, Slots<Value> slots,
                                            Counter* counts) {
    extern __shared__ unsigned counters[];
    clear(counters, slots.count);
    __syncthreads();
    for (std::size_t i = global_thread(); i < n; i += all_threads())
        atomicAdd(counters + slots.slot(values[i]), 1);
    __syncthreads();
    merge(slots, counts, [&](unsigned slot) { return counters[slot]; });
}

// Idea: aggregation. A thread takes packs of neighbours and counts a run of equal ones in a register; a run costs one atomic.
// Cost removed: atomics on data with runs; 15 of 16 loads on any.
// Still limits it: on data without runs, comparing comes on top.
template <class Value>
__global__ void count_aggregated(const Value* values, std::size_t n, Slots<Value> slots, Counter* counts) {
    extern __shared__ unsigned counters[];
    clear(counters, slots.count);
    __syncthreads();
    unsigned run_slot = 0;
    unsigned run_length = 0;
    for_each_in_packs(values, n, [&](Value value) {
        const unsigned slot = slots.slot(value);
        if (slot != run_slot) {
            atomicAdd(counters + run_slot, run_length);
            run_slot = slot;
            run_length = 0;
        }
        ++run_length;
    });
    atomicAdd(counters + run_slot, run_length);
    __syncthreads();
    merge(slots, counts, [&](unsigned slot) { return counters[slot]; });
}

// Idea: a copy of the counters for each warp, copy after copy; as many as fit, warps share them when there are fewer.
// Cost removed: waiting for other warps at a counter; comparing.
// Still limits it: the lanes of one warp, which meet at equal values, and at different ones in the same bank.
template <class Value>
__global__ void count_per_warp_copies(const Value* values, std::size_t n, Slots<Value> slots,
                                      Counter* counts) {
    extern __shared__ unsigned counters[];
    clear(counters, slots.copies * slots.count);
    __syncthreads();
    unsigned* const own = counters + threadIdx.x / kWarp % slots.copies * slots.count;
    for_each_in_packs(values, n, [&](Value value) { atomicAdd(own + slots.slot(value), 1); });
    __syncthreads();
    merge(slots, counts, [&](unsigned slot) {
        unsigned sum = 0;
        for (unsigned copy = 0; copy < slots.copies; ++copy)
            sum += counters[copy * slots.count + slot];
        return sum;
    });
}

// Idea: a copy for each lane, the copies of a slot side by side. With 32 of them lane l always adds in bank l, whatever the data.
//
//      bank          0       1       2    ...   31
//      slot 0     lane 0  lane 1  lane 2  ... lane 31       counter = slot * copies + lane % copies
//      slot 1     lane 0  lane 1  lane 2  ... lane 31
//
// Cost removed: all conflicts between the lanes of a warp.
// Still limits it: one atomic on shared memory for every value. Many bins leave room for fewer copies.
template <class Value>
__global__ void __launch_bounds__(kLaneBlockSize)
    count_lane_copies(const Value* values, std::size_t n, Slots<Value> slots, Counter* counts) {
    extern __shared__ unsigned counters[];
    clear(counters, slots.copies * slots.count);
    __syncthreads();
    // Offsets in bytes, so that a single multiply-add makes the address.
    const unsigned own = threadIdx.x % slots.copies * sizeof(unsigned);
    const unsigned stride = slots.copies * sizeof(unsigned);
    for_each_in_packs(values, n, [&](Value value) {
        char* const counter = reinterpret_cast<char*>(counters) + (slots.slot(value) * stride + own);
        atomicAdd(reinterpret_cast<unsigned*>(counter), 1);
    });
    __syncthreads();
    // A thread adds up the copies of a slot. Were all to begin at copy 0, all would read one bank: they begin in different ones.
    merge(slots, counts, [&](unsigned slot) {
        const unsigned turn = slot * slots.copies / kWarp;
        unsigned sum = 0;
#pragma unroll 8
        for (unsigned i = 0; i < slots.copies; ++i)
            sum += counters[slot * slots.copies + ((i + turn) & (slots.copies - 1))];
        return sum;
    });
}

// --- Launchers -------------------------------------------------------------------------------------------------------

void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument("histogram: " + message);
}

template <class Value>
void check_arguments(DeviceSpan<const Value> values, Range range, DeviceSpan<Counter> counts) {
    require(!counts.empty() && counts.size() <= kMostBins,
            "counts has " + std::to_string(counts.size()) + " bins; expected 1 to 2^31");
    require(kAllInts.lower <= range.lower && range.lower < range.upper && range.upper <= kAllInts.upper,
            "range is [" + std::to_string(range.lower) + ", " + std::to_string(range.upper) +
                "); expected lower < upper, both from -2^31 to 2^31");
    require(!overlap(values, counts), "counts overlaps values; expected no element in common");
}

void clear(DeviceSpan<Counter> counts, cudaStream_t stream) {
    CUDA_CHECK(cudaMemsetAsync(counts.data(), 0, counts.size() * sizeof(Counter), stream));
}

std::size_t slot_count(std::size_t value_bytes, std::size_t bins) {
    return value_bytes == 1 ? 256 : bins + 1;
}

// What is beyond this a kernel must ask for.
constexpr std::size_t kSharedForAll = 48 * 1024;

// The most shared memory a block can have, on the device at hand.
std::size_t most_shared_bytes() {
    int device = 0;
    int bytes = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return static_cast<std::size_t>(bytes);
}

// Why a block cannot hold a copy of the counters, or "".
std::string why_not_in_shared(const Problem& problem) {
    const std::size_t bytes = slot_count(problem.value_bytes, problem.bins) * sizeof(unsigned);
    if (bytes <= most_shared_bytes()) return "";
    return std::to_string(problem.bins) + " bins need " + std::to_string(bytes) +
           " bytes of shared memory; a block has at most " + std::to_string(most_shared_bytes());
}

// The power of two of copies, up to `most`, that fit in `budget` bytes together; at least one.
unsigned copies_in(std::size_t budget, std::size_t bytes_of_copy, unsigned most) {
    const std::size_t fit = std::clamp<std::size_t>(budget / bytes_of_copy, 1, most);
    return static_cast<unsigned>(std::bit_floor(fit));
}

// How a version that counts in shared memory is launched.
template <class Value>
struct Plan {
    void (*kernel)(const Value*, std::size_t, Slots<Value>, Counter*);
    int block_size = kBlockSize;
    std::size_t values_per_thread = 1;
    bool resident = true;           // no more blocks than the GPU holds at once
    unsigned most_copies = 1;       // of each slot,
    std::size_t copies_budget = 0;  // in so many bytes per block; one copy may take more
};

template <class Value>
void launch(const Plan<Value>& plan, DeviceSpan<const Value> values, Range range, DeviceSpan<Counter> counts,
            cudaStream_t stream) {
    check_arguments(values, range, counts);
    const std::string too_many = why_not_in_shared({values.size(), sizeof(Value), counts.size()});
    require(too_many.empty(), too_many);
    clear(counts, stream);
    if (values.empty()) return;  // a grid must have a block

    const std::size_t slot_bytes = slot_count(sizeof(Value), counts.size()) * sizeof(unsigned);
    const Slots<Value> slots{
        .bins = EqualBins(range, counts.size()),
        .count = static_cast<unsigned>(slot_bytes / sizeof(unsigned)),
        .copies = copies_in(std::min(plan.copies_budget, most_shared_bytes()), slot_bytes, plan.most_copies)};
    const std::size_t shared = slot_bytes * slots.copies;
    if (shared > kSharedForAll) {
        CUDA_CHECK(cudaFuncSetAttribute(plan.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(most_shared_bytes())));
    }
    unsigned blocks =
        course::blocks_for(course::ceil_div(values.size(), plan.values_per_thread), plan.block_size);
    if (plan.resident) {
        // A slot has 32 bits: never so few blocks that one could have 2^32 values.
        const unsigned fewest = course::blocks_for(values.size(), 1 << 30);
        const unsigned at_once = course::resident_blocks(plan.kernel, plan.block_size, shared);
        blocks = std::min(blocks, std::max(fewest, at_once));
    }
    plan.kernel<<<blocks, plan.block_size, shared, stream>>>(values.data(), values.size(), slots,
                                                             counts.data());
    CUDA_CHECK_LAUNCH();
}

template <class Value>
void launch_global_atomics(DeviceSpan<const Value> values, Range range, DeviceSpan<Counter> counts,
                           cudaStream_t stream) {
    check_arguments(values, range, counts);
    clear(counts, stream);
    if (values.empty()) return;
    const unsigned blocks = course::blocks_for(values.size(), kBlockSize);
    count_global_atomics<<<blocks, kBlockSize, 0, stream>>>(values.data(), values.size(),
                                                            EqualBins(range, counts.size()), counts.data());
    CUDA_CHECK_LAUNCH();
}

template <class Value>
void launch_shared_private(DeviceSpan<const Value> values, Range range, DeviceSpan<Counter> counts,
                           cudaStream_t stream) {
    launch<Value>({.kernel = count_shared_private<Value>, .resident = false}, values, range, counts, stream);
}

template <class Value>
void launch_coarsened_contiguous(DeviceSpan<const Value> values, Range range, DeviceSpan<Counter> counts,
                                 cudaStream_t stream) {
    launch<Value>({.kernel = count_coarsened_contiguous<Value>}, values, range, counts, stream);
}

template <class Value>
void launch_coarsened_interleaved(DeviceSpan<const Value> values, Range range, DeviceSpan<Counter> counts,
                                  cudaStream_t stream) {
    launch<Value>({.kernel = count_coarsened_interleaved<Value>}, values, range, counts, stream);
}

template <class Value>
void launch_aggregated(DeviceSpan<const Value> values, Range range, DeviceSpan<Counter> counts,
                       cudaStream_t stream) {
    launch<Value>({.kernel = count_aggregated<Value>, .values_per_thread = kPackBytes / sizeof(Value)},
                  values, range, counts, stream);
}

template <class Value>
void launch_per_warp_copies(DeviceSpan<const Value> values, Range range, DeviceSpan<Counter> counts,
                            cudaStream_t stream) {
    launch<Value>({.kernel = count_per_warp_copies<Value>,
                   .values_per_thread = kPackBytes / sizeof(Value),
                   .most_copies = kBlockSize / kWarp,
                   .copies_budget = kWarpBytes},
                  values, range, counts, stream);
}

// Bins beyond all shared memory are counted in the result itself.
template <class Value>
void launch_lane_copies(DeviceSpan<const Value> values, Range range, DeviceSpan<Counter> counts,
                        cudaStream_t stream) {
    if (!why_not_in_shared({values.size(), sizeof(Value), counts.size()}).empty())
        return launch_global_atomics(values, range, counts, stream);
    launch<Value>({.kernel = count_lane_copies<Value>,
                   .block_size = kLaneBlockSize,
                   .values_per_thread = kPackBytes / sizeof(Value),
                   .most_copies = kWarp,
                   .copies_budget = kLaneBytes},
                  values, range, counts, stream);
}

// The values are read, the counters written; adding 1 is no floating-point operation.
course::Work work(const Problem& problem) {
    const double written = static_cast<double>(problem.bins * sizeof(Counter));
    return {.bytes = static_cast<double>(problem.size * problem.value_bytes) + written, .written = written};
}

}  // namespace

// --- Variants --------------------------------------------------------------------------------------------------------

std::span<const Histogram> variants() {
    const auto shared = [](const char* name, const char* idea, Launcher launcher) {
        return Histogram{name, idea, launcher, work, why_not_in_shared};
    };
    static const std::array<Histogram, 7> list{{
        {"global_atomics",
         "each value adds to the result",
         {launch_global_atomics, launch_global_atomics},
         work},
        shared("shared_private", "a copy of the counters per block",
               {launch_shared_private, launch_shared_private}),
        shared("coarsened_contiguous", "few blocks; a thread takes a stretch of values",
               {launch_coarsened_contiguous, launch_coarsened_contiguous}),
        shared("coarsened_interleaved", "few blocks; neighbours read neighbours",
               {launch_coarsened_interleaved, launch_coarsened_interleaved}),
        shared("aggregated", "a run of equal values is counted in a register",
               {launch_aggregated, launch_aggregated}),
        shared("per_warp_copies", "16-byte loads, a copy of the counters per warp",
               {launch_per_warp_copies, launch_per_warp_copies}),
        {"lane_copies",
         "a copy of the counters per lane, each in its own bank",
         {launch_lane_copies, launch_lane_copies},
         work},
    }};
    return list;
}

}  // namespace day12
