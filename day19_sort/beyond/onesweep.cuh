// Day 19, beyond: radix sort by digits of eight bits. Four passes sort keys of 32 bits, eight those
// of 64. How a block sorts its tile is in ranking.cuh.
//
//   version                what is new                                   what limits it
//   radix_8bit             8 bits in a pass, by votes                    latency; 4 passes, 12 bytes a key
//   onesweep               a pass is one kernel                          latency; many keys: instructions
#pragma once

#include <algorithm>

#include "beyond/ranking.cuh"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "common/device/relaxed.cuh"

namespace day19 {

template <class Bits>
__device__ unsigned size_of_sweep(std::size_t n, std::size_t first) {
    return n - first < kSweepTile<Bits> ? static_cast<unsigned>(n - first) : kSweepTile<Bits>;
}

// --- radix_8bit: count, scan, scatter ------------------------------------------------------------

// The first kernel of a pass of radix_8bit: counts, as in radix_multibit, but for 256 digits. Row
// d, column t gets the number of keys with digit d in tile t.
__global__ void __launch_bounds__(kSweepBlock)
    count_bytes(const std::uint32_t* in, std::size_t n, int pass, unsigned* counts) {
    __shared__ unsigned bins[kBins];
    bins[threadIdx.x] = 0;
    __syncthreads();
    const std::size_t first = std::size_t{blockIdx.x} * kSweepTile<std::uint32_t>;
    const unsigned size = size_of_sweep<std::uint32_t>(n, first);
    for (unsigned i = threadIdx.x; i < size; i += kSweepBlock)
        atomicAdd(&bins[byte_of(in[first + i], pass)], 1U);
    __syncthreads();
    counts[threadIdx.x * std::size_t{gridDim.x} + blockIdx.x] = bins[threadIdx.x];
}

// One block for each tile, as in the launch of scatter_bytes. counts: 256 for each tile.
inline void launch_count_bytes(const std::uint32_t* in, std::size_t n, int pass, unsigned* counts,
                               cudaStream_t stream) {
    const unsigned tiles = course::blocks_for(n, kSweepTile<std::uint32_t>);
    count_bytes<<<tiles, kSweepBlock, 0, stream>>>(in, n, pass, counts);
}

// Idea: digits of eight bits. The keys of a digit go after those of smaller digits, and after those
// of the same digit in the tiles before. The scan of the counts gives that place. Within a tile,
// each warp ranks its keys by votes.
// Cost removed: half of the passes, and a scan of the tile for each bit of a digit.
// Still limits it: latency (2^20 keys, counters: no unit above 37 %). A pass reads the keys twice
// and writes them once, in four launches.
__global__ void __launch_bounds__(kSweepBlock, 2)
    scatter_bytes(const std::uint32_t* in, std::size_t n, int pass, const unsigned* counts,
                  const std::size_t* sums, std::uint32_t* out) {
    extern __shared__ __align__(16) unsigned char shared[];
    auto& tile = *reinterpret_cast<Tile<std::uint32_t, false>*>(shared);
    const KeyCode<std::uint32_t> as_it_is;
    const std::size_t first = std::size_t{blockIdx.x} * kSweepTile<std::uint32_t>;
    const unsigned size = size_of_sweep<std::uint32_t>(n, first);
    clear_counters(tile);
    __syncthreads();

    std::uint32_t keys[kSweepEach<std::uint32_t>];
    load_keys(in + first, size, as_it_is, false, keys);
    count_bytes_of_warps(keys, pass, tile);
    __syncthreads();
    const unsigned first_in_tile = scan_bins(sum_of_warps(tile), tile.sums);
    const std::size_t count = threadIdx.x * std::size_t{gridDim.x} + blockIdx.x;
    tile.offsets[threadIdx.x] = sums[count / kCountsPerSum] + counts[count] - first_in_tile;
    place_warps(first_in_tile, tile);
    __syncthreads();
    unsigned places[kSweepEach<std::uint32_t>];
    stage_keys(keys, pass, tile, places);
    __syncthreads();
    store_tile<false>(tile, size, pass, as_it_is, out, nullptr);
}

inline void launch_scatter_bytes(const std::uint32_t* in, std::size_t n, int pass, const unsigned* counts,
                                 const std::size_t* sums, std::uint32_t* out, cudaStream_t stream) {
    const unsigned tiles = course::blocks_for(n, kSweepTile<std::uint32_t>);
    course::launch(scatter_bytes,
                   {.grid = tiles,
                    .block = kSweepBlock,
                    .shared_bytes = sizeof(Tile<std::uint32_t, false>),
                    .stream = stream},
                   in, n, pass, counts, sums, out);
}

// --- onesweep: one kernel a pass -----------------------------------------------------------------

// The arguments of every pass.
template <class Bits>
struct Pass {
    const Bits* in;
    const std::uint32_t* values_in;
    Bits* out;
    std::uint32_t* values_out;
    std::size_t n;       // the number of keys; an upper bound where `fewer` is set
    const Count* fewer;  // nullptr, or the address of their number in device memory
    KeyCode<Bits> code;
    int pass;     // the number of the digit, the lowest is 0
    bool encode;  // the first pass
    bool decode;  // the last one
};

constexpr int kHistogramBlock = 1024;
// Columns of counters, of all digits together: 128 KB of shared memory, or 64 KB where a block
// cannot have more.
constexpr int kHistogramColumns = 128;
constexpr int kFewColumns = 64;
template <int kColumns>
constexpr std::size_t kHistogramBytes = std::size_t{kColumns} * kBins * sizeof(unsigned);
constexpr int kHistogramEach = 8;  // keys of a thread at a time
constexpr unsigned kHistogramChunk = kHistogramEach * kHistogramBlock;

// A block publishes a word for each digit of its tile.
using Word = unsigned long long;
constexpr int kCountBits = 56;
// The state contains the pass in which the word was written, so words need not be cleared between
// passes. A sum is that of the tile, a prefix that of the tile and all before it.
__device__ inline unsigned sum_state(int pass) {
    return 2 * pass + 1;
}
__device__ inline unsigned prefix_state(int pass) {
    return 2 * pass + 2;
}
__device__ inline Word make_word(unsigned state, Count count) {
    return Word{state} << kCountBits | count;
}
__device__ inline unsigned state_of(Word word) {
    return static_cast<unsigned>(word >> kCountBits);
}
__device__ inline Count count_of(Word word) {
    return word & ((Word{1} << kCountBits) - 1);
}

// Idea: keys move between passes, but the number of keys with each digit does not change. One
// kernel counts the digits of all passes: totals[pass][digit]. As in day 12, a lane has its own
// column of counters, in its own bank; with keys of 64 bits, or fewer columns, some lanes share
// one. The warps of a block share them all, so the additions are atomic.
// Cost removed: all reads for counting except one.
//
// It also clears the words, for the first pass.
template <class Bits, int kAllColumns>
__global__ void __launch_bounds__(kHistogramBlock)
    histogram(const Bits* in, std::size_t most, const Count* fewer, KeyCode<Bits> code, Count* totals,
              Word* words, std::size_t num_words) {
    extern __shared__ unsigned bins[];  // digits x 256 x columns
    constexpr int kColumns = kAllColumns / kBytes<Bits>;
    const std::size_t n = fewer == nullptr ? most : *fewer;
    for (std::size_t i = std::size_t{blockIdx.x} * kHistogramBlock + threadIdx.x; i < num_words;
         i += std::size_t{gridDim.x} * kHistogramBlock)
        words[i] = 0;
    for (int i = threadIdx.x; i < kBytes<Bits> * kBins * kColumns; i += kHistogramBlock)
        bins[i] = 0;
    __syncthreads();

    const int column = static_cast<int>(threadIdx.x) % kColumns;
    for (std::size_t first = std::size_t{blockIdx.x} * kHistogramChunk; first < n;
         first += std::size_t{gridDim.x} * kHistogramChunk) {
        const unsigned size =
            n - first < kHistogramChunk ? static_cast<unsigned>(n - first) : kHistogramChunk;
        Bits keys[kHistogramEach];  // all are loaded before the first is counted
#pragma unroll
        for (int k = 0; k < kHistogramEach; ++k) {
            const unsigned i = threadIdx.x + k * kHistogramBlock;
            keys[k] = i < size ? in[first + i] : 0;
        }
        if (!code.is_identity()) {
#pragma unroll
            for (int k = 0; k < kHistogramEach; ++k)
                keys[k] = code.encode(keys[k]);
        }
#pragma unroll
        for (int k = 0; k < kHistogramEach; ++k) {
            if (threadIdx.x + k * kHistogramBlock >= size) break;
#pragma unroll
            for (int pass = 0; pass < kBytes<Bits>; ++pass)
                atomicAdd(&bins[(pass * kBins + byte_of(keys[k], pass)) * kColumns + column], 1U);
        }
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < kBytes<Bits> * kBins; bin += kHistogramBlock) {
        Count sum = 0;
        for (int c = 0; c < kColumns; ++c)  // each lane starts in another bank
            sum += bins[bin * kColumns + (c + column) % kColumns];
        if (sum != 0) atomicAdd(&totals[bin], sum);
    }
}

// shared_bytes: the most that a block can have.
template <class Bits>
void launch_histogram(const Bits* in, std::size_t n, const Count* fewer, const KeyCode<Bits>& code,
                      Count* totals, Word* words, std::size_t num_words, std::size_t shared_bytes,
                      cudaStream_t stream) {
    const std::size_t blocks =
        std::min<std::size_t>(course::ceil_div<std::size_t>(n, kHistogramChunk), course::multiprocessors());
    const auto count = [&](auto kernel, std::size_t bytes) {
        course::launch(kernel,
                       {.grid = static_cast<unsigned>(blocks),
                        .block = kHistogramBlock,
                        .shared_bytes = bytes,
                        .stream = stream},
                       in, n, fewer, code, totals, words, num_words);
    };
    if (shared_bytes >= kHistogramBytes<kHistogramColumns>) {
        count(histogram<Bits, kHistogramColumns>, kHistogramBytes<kHistogramColumns>);
    } else {
        count(histogram<Bits, kFewColumns>, kHistogramBytes<kFewColumns>);
    }
}

// How many keys of digit threadIdx.x the tiles before this one have. Reads the words of kGroup
// tiles at a time, because four independent loads take hardly longer than one.
__device__ inline Count look_back(const Word* words, unsigned tile, int pass) {
    Count before = 0;
    for (unsigned left = tile; left > 0;) {
        Word asked[kGroup];
        for (unsigned g = 0; g < kGroup; ++g)
            asked[g] = g < left
                           ? course::load_relaxed(&words[(left - 1 - g) * std::size_t{kBins} + threadIdx.x])
                           : 0;
        for (unsigned g = 0; g < kGroup; ++g) {
            if (state_of(asked[g]) < sum_state(pass)) break;  // not published yet: read again from here on
            before += count_of(asked[g]);
            if (state_of(asked[g]) == prefix_state(pass)) return before;
            --left;
        }
    }
    return before;
}

// Idea: the sums of the tiles before this one are not computed by three kernels beforehand.
// Instead, blocks publish them and look back, as in day 16. A. Adinets and D. Merrill, "Onesweep: A
// Faster Least Significant Digit Radix Sort for GPUs", 2022.
// Cost removed: a pass reads the keys once and writes them once, in one launch.
// Still limits it: latency with 2^20 keys (counters: no unit above 34 %). With many keys, perhaps
// the instructions that rank them, and shared memory, because random digits are in random banks.
// Memory is busy about half of the time.
//
// kFewer: the number of keys is on the device, and may be smaller than the size of the grid
// assumes.
template <class Bits, bool kPairs, bool kFewer>
__global__ void __launch_bounds__(kSweepBlock, 2)
    onesweep(Pass<Bits> arguments, const Count* totals, Word* words, unsigned* ticket) {
    extern __shared__ __align__(16) unsigned char shared[];
    auto& tile = *reinterpret_cast<Tile<Bits, kPairs>*>(shared);
    __shared__ unsigned drawn;
    const auto& [in, values_in, out, values_out, most, fewer, code, pass, encode, decode] = arguments;
    std::size_t n = most;
    if constexpr (kFewer) {
        n = *fewer;
        if (std::size_t{blockIdx.x} * kSweepTile<Bits> >= n) return;  // one block per tile goes on
    }
    // Blocks start in any order, and a block may only wait for blocks that have started, so it
    // draws its tile.
    if (threadIdx.x == 0) drawn = atomicAdd(ticket, 1U);
    clear_counters(tile);
    __syncthreads();
    const unsigned number = drawn;
    const std::size_t first = std::size_t{number} * kSweepTile<Bits>;
    const unsigned size = size_of_sweep<Bits>(n, first);

    Bits keys[kSweepEach<Bits>];
    load_keys(in + first, size, code, encode, keys);
    // Values arrive while the keys are ranked.
    if constexpr (kPairs) begin_values(values_in + first, size, tile);
    count_bytes_of_warps(keys, pass, tile);
    __syncthreads();
    const unsigned count = sum_of_warps(tile);
    Word* const word = words + std::size_t{number} * kBins + threadIdx.x;
    course::store_relaxed(word, make_word(sum_state(pass), count));

    const unsigned first_in_tile = scan_bins(count, tile.sums);
    const Count first_of_digit = scan_bins(totals[threadIdx.x], tile.sums_of_all);
    place_warps(first_in_tile, tile);
    unsigned places[kSweepEach<Bits>];
    const bool all_equal = __syncthreads_or(count == kSweepTile<Bits>);
    if (all_equal) {
        keep_order(keys, tile, places);
    } else {
        stage_keys(keys, pass, tile, places);
    }

    const Count before = look_back(words, number, pass);
    course::store_relaxed(word, make_word(prefix_state(pass), before + count));
    if constexpr (kPairs) stage_values(places, tile);
    tile.offsets[threadIdx.x] = first_of_digit + before - first_in_tile;
    __syncthreads();
    if (decode) {
        store_tile<true>(tile, size, pass, code, out, values_out);
    } else {
        store_tile<false>(tile, size, pass, code, out, values_out);
    }
}

// One pass; ticket and totals are its own.
template <class Bits, bool kPairs, bool kFewer>
void launch_onesweep(const Pass<Bits>& arguments, const Count* totals, Word* words, unsigned* ticket,
                     cudaStream_t stream) {
    const unsigned tiles = course::blocks_for(arguments.n, kSweepTile<Bits>);
    course::launch(
        onesweep<Bits, kPairs, kFewer>,
        {.grid = tiles, .block = kSweepBlock, .shared_bytes = sizeof(Tile<Bits, kPairs>), .stream = stream},
        arguments, totals, words, ticket);
}

}  // namespace day19
