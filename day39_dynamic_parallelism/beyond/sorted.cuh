// Day 39, beyond: the quadtree without children. The points are sorted along a curve that visits
// the squares of a quadtree one after the other. Then the points of each node are adjacent, and a
// node is two numbers.
//
//   version      what is new                                            what limits it
//   tree_sorted  a radix sort, then a thread for each node of a level   latency
#pragma once

#include "../dynamic_parallelism.cuh"

namespace day39 {

constexpr unsigned kDigitBits = 4;  // of x and of y
constexpr unsigned kBins = 256;     // digits: 4 bits of x and 4 of y
constexpr unsigned kSortBlock = 256;
static_assert(kSortBlock == kBins, "a thread for each digit");
constexpr unsigned kSortWarps = kSortBlock / 32;
constexpr unsigned kPerThread = 8;
constexpr unsigned kSortTile = kSortBlock * kPerThread;

// The square of depth `max_depth` that a point is in, by its column and row.
__device__ inline uint2 cell_of(float2 p, unsigned max_depth) {
    if (!in_unit_square(p)) return {0, 0};
    const auto squares = static_cast<float>(1u << max_depth);
    return {static_cast<unsigned>(p.x * squares), static_cast<unsigned>(p.y * squares)};
}

// 4 bits: their places become 0, 2, 4 and 6.
__device__ inline unsigned spread(unsigned bits) {
    bits = (bits | bits << 2) & 0x33;
    return (bits | bits << 1) & 0x55;
}

// Digit `pass` of the point's Morton code, which has the bits of column and row in turn. Two points
// whose codes begin with the same 2 d bits are in the same square of depth d.
__device__ inline unsigned digit_of(float2 p, unsigned max_depth, unsigned pass) {
    const uint2 cell = cell_of(p, max_depth);
    return spread(cell.x >> pass * kDigitBits & 15) | spread(cell.y >> pass * kDigitBits & 15) << 1;
}

// Each tile counts its digits: counts[digit * tiles + tile].
__global__ void count_digits(const float2* in, unsigned n, unsigned max_depth, unsigned pass,
                             unsigned* counts) {
    __shared__ unsigned own[kBins];
    own[threadIdx.x] = 0;
    __syncthreads();
    const unsigned begin = blockIdx.x * kSortTile;
    for (unsigned i = begin + threadIdx.x; i < n && i - begin < kSortTile; i += kSortBlock)
        atomicAdd(&own[digit_of(in[i], max_depth, pass)], 1u);
    __syncthreads();
    counts[std::size_t{threadIdx.x} * gridDim.x + blockIdx.x] = own[threadIdx.x];
}

inline void launch_count_digits(const float2* in, unsigned n, unsigned max_depth, unsigned pass,
                                unsigned* counts, cudaStream_t stream) {
    count_digits<<<course::blocks_for(n, kSortTile), kSortBlock, 0, stream>>>(in, n, max_depth, pass, counts);
}

// The inclusive scan of the block's values, one for each thread.
__device__ inline unsigned scan_in_block(unsigned value) {
    __shared__ unsigned of_warp[kSortWarps];
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    for (unsigned step = 1; step < 32; step *= 2) {
        const unsigned before = __shfl_up_sync(~0u, value, step);
        if (lane >= step) value += before;
    }
    __syncthreads();  // the sums of an earlier call have been read
    if (lane == 31) of_warp[warp] = value;
    __syncthreads();
    for (unsigned w = 0; w < warp; ++w)
        value += of_warp[w];
    return value;
}

// A block for each digit: the counts of its tiles become an exclusive scan, and their sum goes to
// totals[digit].
__global__ void scan_digits(unsigned* counts, unsigned tiles, unsigned* totals) {
    __shared__ unsigned last;
    unsigned* const row = counts + std::size_t{blockIdx.x} * tiles;
    unsigned before = 0;
    for (unsigned begin = 0; begin < tiles; begin += blockDim.x) {
        const unsigned i = begin + threadIdx.x;
        const unsigned count = i < tiles ? row[i] : 0;
        const unsigned sum = scan_in_block(count);
        if (i < tiles) row[i] = before + sum - count;
        if (threadIdx.x == blockDim.x - 1) last = sum;
        __syncthreads();
        before += last;
        __syncthreads();
    }
    if (threadIdx.x == 0) totals[blockIdx.x] = before;
}

inline void launch_scan_digits(unsigned* counts, unsigned tiles, unsigned* totals, cudaStream_t stream) {
    const unsigned warps = std::min(course::ceil_div(tiles, 32u), kSortWarps);
    scan_digits<<<kBins, warps * 32, 0, stream>>>(counts, tiles, totals);
}

// Moves the points of a tile to their places, in order: those of smaller digits come first, then
// those of the same digit from earlier tiles, then from earlier places of this tile. A warp handles
// 32 points at a time; lanes with the same digit find one another by a match.
__global__ void move_points(const float2* in, unsigned n, unsigned max_depth, unsigned pass,
                            const unsigned* counts, const unsigned* totals, float2* out) {
    __shared__ unsigned places[kSortWarps][kBins];
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    const unsigned begin = blockIdx.x * kSortTile + warp * 32 * kPerThread + lane;
    for (unsigned w = 0; w < kSortWarps; ++w)
        places[w][threadIdx.x] = 0;
    __syncthreads();
    float2 points[kPerThread];
    unsigned digits[kPerThread];
    unsigned ranks[kPerThread];  // among the points of the same digit in this warp
    for (unsigned k = 0; k < kPerThread; ++k) {
        const unsigned i = begin + k * 32;
        const bool is_point = i < n;
        points[k] = is_point ? in[i] : float2{0, 0};
        digits[k] = is_point ? digit_of(points[k], max_depth, pass) : kBins;
        const unsigned same = __match_any_sync(~0u, digits[k]);
        const unsigned before = __popc(same & ((1u << lane) - 1));
        unsigned counted = 0;
        if (is_point) counted = places[warp][digits[k]];
        __syncwarp();  // all lanes have read the count
        if (is_point && before == 0) places[warp][digits[k]] = counted + static_cast<unsigned>(__popc(same));
        __syncwarp();
        ranks[k] = counted + before;
    }
    __syncthreads();
    // Thread d: digit d. Its counts become the first places of the warps.
    const unsigned total = totals[threadIdx.x];
    unsigned place = scan_in_block(total) - total + counts[std::size_t{threadIdx.x} * gridDim.x + blockIdx.x];
    for (unsigned w = 0; w < kSortWarps; ++w) {
        const unsigned count = places[w][threadIdx.x];
        places[w][threadIdx.x] = place;
        place += count;
    }
    __syncthreads();
    for (unsigned k = 0; k < kPerThread; ++k)
        if (digits[k] < kBins) out[places[warp][digits[k]] + ranks[k]] = points[k];
}

inline void launch_move_points(const float2* in, unsigned n, unsigned max_depth, unsigned pass,
                               const unsigned* counts, const unsigned* totals, float2* out,
                               cudaStream_t stream) {
    move_points<<<course::blocks_for(n, kSortTile), kSortBlock, 0, stream>>>(in, n, max_depth, pass, counts,
                                                                             totals, out);
}

// Idea: sort first. The quadrants of a node are four adjacent ranges of the sorted points, so a
// thread finds them by three binary searches, and no point moves any more. Nodes of a level are
// adjacent: level_nodes[d] counts those of depth d, and a level begins where the one before ends.
// Cost removed: a block, or a launch, for each node, and the single block of the root. All threads
// have points from the first kernel on.
// Still limits it: latency (counters: warps wait for loads 63 % of their time). Each pass of the
// sort reads the points twice and writes them once.
__global__ void tree_sorted(Tree t, unsigned depth, unsigned* level_nodes) {
    unsigned first = 0;
    for (unsigned d = 0; d < depth; ++d)
        first += level_nodes[d];
    const unsigned end = first + level_nodes[depth];
    for (unsigned i = first + blockIdx.x * blockDim.x + threadIdx.x; i < end; i += gridDim.x * blockDim.x) {
        const Node node = t.nodes[i];
        if (!must_split(node, t.limits)) {
            atomicAdd(&t.header->leaves, 1u);
            continue;
        }
        const unsigned quarters = end + atomicAdd(&level_nodes[depth + 1], 4u);
        t.nodes[i].children = quarters;
        unsigned begin = node.begin;
        for (unsigned q = 0; q < 4; ++q) {
            // The first point behind `begin` that is in a later quadrant.
            unsigned low = begin;
            unsigned high = node.end;
            while (low < high) {
                const unsigned middle = low + (high - low) / 2;
                if (quadrant_of(t.even[middle], node) <= q)
                    low = middle + 1;
                else
                    high = middle;
            }
            t.nodes[quarters + q] = child_of(node, q, begin, low);
            begin = low;
        }
        atomicAdd(&t.header->nodes, 4u);
    }
}

// A grid for each level, without asking how many nodes it has. `blocks`: as many as can be
// resident.
inline void launch_tree_sorted(const Tree& t, unsigned depth, unsigned* level_nodes, unsigned blocks,
                               cudaStream_t stream) {
    tree_sorted<<<blocks, kSortBlock, 0, stream>>>(t, depth, level_nodes);
}

}  // namespace day39
