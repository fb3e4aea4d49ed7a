// To work through: fill in what says TODO, then ./course check day12. Yours is the copy in my/.
// What follows is the lesson's file, without what you will write.
//
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
    // TODO day12/shared_private, about 25 minutes.
    // Privatisation: a block counts in shared memory of its own and adds its counts to the result once, at
    // the end.
    //
    // The block's counters are `slots.count` unsigned numbers in `extern __shared__ unsigned counters[];`,
    // with rubbish in them at first. `clear(counters, slots.count)` sets them to 0, all threads together.
    // `slots.slot(value)` is the counter of a value, always a valid one: values outside the range have a
    // counter too.
    //
    // `merge` is called by all threads of the block. For each slot it takes what the block has counted,
    // `sum_of(slot)`, and adds it to `counts[bin]`, where bin is `slots.bin(slot)`. The last slot's bin may
    // be beyond the result, `slots.bins.count` or more: then nothing is added. `counts` is in global memory,
    // and all blocks add to it.
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
    // TODO day12/global_atomics, about 10 minutes.
    // `values` has `n` elements, bytes or ints. Add 1 to `counts[bin]` for each of them, a thread per value.
    // `counts` is 0 everywhere when the kernel starts.
    //
    // `bins.bin(static_cast<unsigned>(value))` is the bin of a value. For a value outside the range it is
    // `bins.count`, one beyond the last bin: such a value is not counted. `global_thread()` is the number of
    // this thread in the grid. There may be more threads than values.
}

// Idea: privatisation. A block counts in shared memory of its own, and adds its sums to the result once.
// Cost removed: the way to L2 and the queue there, for every value.
// Still limits it: 256 values are hardly worth 256 counters, which must be cleared before and added up behind them.
template <class Value>
__global__ void count_shared_private(const Value* values, std::size_t n, Slots<Value> slots,
                                     Counter* counts) {
    // TODO day12/shared_private: this one too, see merge.
}

// Idea: coarsening. Only as many blocks as the GPU holds at once, so a thread has many values: here a stretch of neighbours.
// Cost removed: clearing and adding up for every 256 values.
// Still limits it: at each step the lanes of a warp read from 32 places far apart.
template <class Value>
__global__ void count_coarsened_contiguous(const Value* values, std::size_t n, Slots<Value> slots,
                                           Counter* counts) {
    // TODO day12/coarsened, about 15 minutes.
    // Clearing and merging cost as much as counting, if a block counts 256 values. So there are fewer threads
    // now than values: each counts many before the block merges.
    //
    // In `count_coarsened_contiguous` a thread takes a stretch of neighbours: thread 0 the first stretch,
    // thread 1 the next, all of the same length except at the end. In `count_coarsened_interleaved` thread t
    // takes the values t, t + T, t + 2T, ... with T threads in all. `all_threads()` is T. Everything around
    // the loop is as in `count_shared_private`.
}

// Idea: the same share for each thread, but the grid moves over the values as one: neighbours read neighbours.
// Cost removed: sectors fetched for one value.
// Still limits it: a load for every value; lanes of a warp that meet at a counter, or in a bank.
template <class Value>
__global__ void count_coarsened_interleaved(const Value* values, std::size_t n, Slots<Value> slots,
                                            Counter* counts) {
    // TODO day12/coarsened: this one too, see count_coarsened_contiguous.
}

// Idea: aggregation. A thread takes packs of neighbours and counts a run of equal ones in a register; a run costs one atomic.
// Cost removed: atomics on data with runs; 15 of 16 loads on any.
// Still limits it: on data without runs, comparing comes on top.
template <class Value>
__global__ void count_aggregated(const Value* values, std::size_t n, Slots<Value> slots, Counter* counts) {
    // TODO day12/aggregated, about 20 minutes.
    // Neighbouring values are often equal. A thread that meets the same slot again and again can count in a
    // register, and add once when another slot comes.
    //
    // `for_each_in_packs(values, n, visit)` calls `visit(value)` for each value of this thread, neighbours
    // one after the other, 16 bytes a load. Write the `visit`: a lambda that keeps the slot of the present
    // run and its length in two variables outside of it. Clear, barriers and merge as before.
}

// Idea: a copy of the counters for each warp, copy after copy; as many as fit, warps share them when there are fewer.
// Cost removed: waiting for other warps at a counter; comparing.
// Still limits it: the lanes of one warp, which meet at equal values, and at different ones in the same bank.
template <class Value>
__global__ void count_per_warp_copies(const Value* values, std::size_t n, Slots<Value> slots,
                                      Counter* counts) {
    // TODO day12/per_warp_copies, about 20 minutes.
    // A copy of the counters for each warp, so that warps do not wait for one another. The block has
    // `slots.copies` copies of `slots.count` counters each, copy after copy: counter = copy * `slots.count` +
    // slot.
    //
    // With many bins there are fewer copies than warps, and then warps share: warp w counts in copy w %
    // `slots.copies`. At the end the count of a slot is the sum over all copies.
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
    // TODO day12/lane_copies, about 30 minutes.
    // A copy for each lane, the copies of a slot side by side: counter = slot * `slots.copies` + copy, where
    // copy = lane % `slots.copies`. With 32 copies lane l always adds in bank l, whatever the data: no
    // conflicts.
    //
    // `slots.copies` is a power of two, from 1 to 32. When the copies are added up, thread t has the slots t,
    // t + blockDim.x, ... and must sum the `slots.copies` neighbours of each. Let threads begin in different
    // copies, so that they read different banks at the same time: the result is the same, and the star for
    // conflicts depends on it.
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
