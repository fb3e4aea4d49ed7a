// Day 29, beyond: the cache in pages.
//
//   version         what is new
//   page_rows       a block for each row; each key's page is looked up in the block table
//   page_group      K and V of a page are loaded once for the heads that share them; several blocks
//   page_ring       the next pages are in flight while these are multiplied
#pragma once

#include "async_ring.cuh"
#include "common/device/launch.hpp"
#include "decoding_attention.cuh"
#include "paged.hpp"
#include "warp_rows.cuh"

namespace day29 {

// Arguments of all kernels. Items are the heads of K of all sequences, row r of item i is head r of
// its group.
template <class T>
struct PagedTask {
    static constexpr int kTokens = static_cast<int>(kPage);

    const T* q;
    const T* k;
    const T* v;
    const int* table;
    const int* lengths;
    T* out;
    int batch;
    int heads_kv;
    int rows;  // of an item: the heads that share a head of K
    int table_pages;
    float scale;  // contains log2(e)

    __device__ int length(int item) const {
        return min(max(lengths[item / heads_kv], 0), table_pages * kTokens);
    }
    // The entry of the block table that has `token`.
    __device__ int page_of(int item, int token) const {
        return table[static_cast<std::size_t>(item / heads_kv) * table_pages + token / kTokens];
    }
    // The first token of a page, for the head of K of `item`.
    __device__ std::size_t in_pool(int item, int page, int dim) const {
        return (static_cast<std::size_t>(page) * heads_kv + item % heads_kv) * kTokens * dim;
    }
};

// --- A block for each row ------------------------------------------------------------------------

// Idea: row_per_block of the core. Only the address of a key is new: its page comes from the table.
// Cost removed: none yet, this is the start.
// Still limits it: latency, and the number of rows, each of which loads K and V itself. 16
// sequences of 32 heads take 590 µs with 8 heads of K, and 566 with one, which is an eighth of the
// bytes. With 64 heads of Q it is 1.13 ms (8,192 tokens, H200).
template <class T, int D>
__global__ void __launch_bounds__(kWarps * 32) page_rows(PagedTask<T> task) {
    constexpr int COLS = D / 32;  // columns of a lane
    using Columns = course::Pack<T, COLS>;
    __shared__ Part parts[kWarps][D];
    const std::size_t row = blockIdx.x;
    const auto item = static_cast<int>(row / static_cast<std::size_t>(task.rows));
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int warp = static_cast<int>(threadIdx.x / 32);
    const int length = task.length(item);
    const Columns query = Columns::load(task.q + row * D + lane * COLS);

    float max = -kInfinity;
    float sum = 0;
    float out[COLS] = {};
    for (int key = warp; key < length; key += kWarps) {
        const std::size_t at = task.in_pool(item, task.page_of(item, key), D) +
                               static_cast<std::size_t>(key % task.kTokens) * D + lane * COLS;
        const Columns k = Columns::load(task.k + at);
        const Columns v = Columns::load(task.v + at);
        float score = 0;
#pragma unroll
        for (int c = 0; c < COLS; ++c)
            score += static_cast<float>(query.value[c]) * static_cast<float>(k.value[c]);
        score = course::warp_reduce(score, [](float x, float y) { return x + y; }) * task.scale;
        const float new_max = fmaxf(max, score);
        const float factor = weight_of(max, new_max);
        const float p = weight_of(score, new_max);
        max = new_max;
        sum = sum * factor + p;
#pragma unroll
        for (int c = 0; c < COLS; ++c)
            out[c] = out[c] * factor + p * static_cast<float>(v.value[c]);
    }
#pragma unroll
    for (int c = 0; c < COLS; ++c)
        parts[warp][lane * COLS + c] = {max, sum, out[c]};
    __syncthreads();
    if (threadIdx.x < D) {
        Part whole;
        for (int w = 0; w < kWarps; ++w)
            whole.add(parts[w][threadIdx.x]);
        task.out[row * D + threadIdx.x] = T(whole.result());
    }
}

template <class T>
std::size_t items(const PagedTask<T>& task) {
    return static_cast<std::size_t>(task.batch) * task.heads_kv;
}

template <class T, int D>
void launch_page_rows(const PagedTask<T>& task, cudaStream_t stream) {
    page_rows<T, D><<<course::blocks_for(items(task) * task.rows, 1), kWarps * 32, 0, stream>>>(task);
}

// --- Pages are loaded once for a group -----------------------------------------------------------

// A page is a tile of keys of warp_rows.cuh.
static_assert(PagedTask<__nv_bfloat16>::kTokens == kKeys);

// Idea: packed_group. A block loads eight pages into shared memory. SETS x 16 heads share them:
// warp w multiplies the rows 16 (w % SETS) and following by every (kWarps / SETS)-th page.
// Cost removed: K and V are loaded once for up to 64 heads, and all SMs have work.
// Still limits it: looking up the page of each load. packed_group, which is the same without a
// table, takes 205 µs in place of 377 (16x32:8x8192x128, H200). And a block has no loads in flight
// while it multiplies.
template <class T, int D, int SETS>
__global__ void __launch_bounds__(kWarps * 32) page_group(PagedTask<T> task, int splits, float* parts) {
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const tiles = reinterpret_cast<Tile<T, D>*>(memory);  // kWarps pages
    const auto item = static_cast<int>(blockIdx.x / static_cast<unsigned>(splits));
    const auto split = static_cast<int>(blockIdx.x % static_cast<unsigned>(splits));
    const int length = task.length(item);
    const Range keys = range_of(length, split, splits, kKeys * kWarps);
    const int warp = static_cast<int>(threadIdx.x / 32);
    const std::size_t first_row = static_cast<std::size_t>(item) * task.rows;
    const int set = warp % SETS;

    WarpRows<T, D> rows(task.q + (first_row + set * 16) * D, task.rows - set * 16, 1);
    for (int first = keys.first; first < keys.last; first += kKeys * kWarps) {
        for (int i = static_cast<int>(threadIdx.x); i < kWarps * kKeys * D / 8; i += kWarps * 32) {
            const int key = i / (D / 8);
            const int pack = i % (D / 8);
            uint4 k{};  // keys after the end are zeros, because 0 times NaN is NaN
            uint4 v{};
            if (first + key < length) {
                const std::size_t at = task.in_pool(item, task.page_of(item, first + key), D) +
                                       static_cast<std::size_t>(key % kKeys) * D + pack * 8;
                k = *reinterpret_cast<const uint4*>(task.k + at);
                v = *reinterpret_cast<const uint4*>(task.v + at);
            }
            Tile<T, D>& tile = tiles[key / kKeys];
            tile.k[tile.place(key % kKeys, pack)] = k;
            tile.v[tile.place(key % kKeys, pack)] = v;
        }
        __syncthreads();  // the pages are complete
        for (int page = warp / SETS; page < kWarps; page += kWarps / SETS)
            rows.attend(tiles[page], length - first - page * kKeys, task.scale);
        __syncthreads();  // safe to overwrite
    }
    rows.template merge_warps<kWarps, SETS>([&](int row, int col, const Part& part) {
        if (row < task.rows) store_part<D>(parts, (first_row + row) * splits + split, col, part);
    });
}

// A block for each part of an item; then the parts become one, as in split_keys.
template <class T, int D, int SETS>
void launch_page_group(const PagedTask<T>& task, int splits, float* parts, cudaStream_t stream) {
    const unsigned blocks = course::blocks_for(items(task) * static_cast<std::size_t>(splits), 1);
    course::launch(page_group<T, D, SETS>, {blocks, kWarps * 32, kWarps * sizeof(Tile<T, D>), stream}, task,
                   splits, parts);
    launch_combine_splits<T, D>(parts, splits, task.out, items(task) * task.rows, stream);
}

// --- The next pages are in flight ----------------------------------------------------------------

// Idea: async_ring. Each warp copies one page of the next eight with cp.async while these eight are
// multiplied. An address needs an entry of the block table first, so each lane reads one of the
// warp's next 32 entries, and a shuffle distributes them.
// Cost removed: the time without loads in flight, and the wait for the table before each page: 128
// µs in place of 377 (16x32:8x8192x128, H200).
// Still limits it: memory, 90 % busy. That is 2 % longer than async_ring takes without pages.
template <class T, int D, int SETS>
__global__ void __launch_bounds__(kWarps * 32) page_ring(PagedTask<T> task, int splits, float* parts) {
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const tiles = reinterpret_cast<Tile<T, D>*>(memory);  // kStages x kWarps pages
    const auto item = static_cast<int>(blockIdx.x / static_cast<unsigned>(splits));
    const auto split = static_cast<int>(blockIdx.x % static_cast<unsigned>(splits));
    const int length = task.length(item);
    const Range keys = range_of(length, split, splits, kKeys * kWarps);
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int warp = static_cast<int>(threadIdx.x / 32);
    const std::size_t first_row = static_cast<std::size_t>(item) * task.rows;
    const int set = warp % SETS;
    constexpr int kStep = kKeys * kWarps;

    int entries = 0;  // of the table: lane i has that of step 32 n + i of this warp
    const auto copy = [&](int step) {
        const int first = keys.first + step * kStep + warp * kKeys;
        if (step % 32 == 0) {
            const int of_lane = first + lane * kStep;
            entries = of_lane < keys.last ? task.page_of(item, of_lane) : 0;
        }
        const int page = __shfl_sync(course::kWholeWarp, entries, step % 32);
        const std::size_t at = task.in_pool(item, page, D);
        if (keys.first + step * kStep < keys.last)
            copy_tile(tiles[step % kStages * kWarps + warp], task.k + at, task.v + at, length - first);
        course::ptx::cp_async_commit();  // a group for each step, also where there is no page
    };
    for (int step = 0; step < kStages - 1; ++step)
        copy(step);
    WarpRows<T, D> rows(task.q + (first_row + set * 16) * D, task.rows - set * 16, 1);
    const int steps = course::ceil_div(keys.last - keys.first, kStep);
    for (int step = 0; step < steps; ++step) {
        copy(step + kStages - 1);
        course::ptx::cp_async_wait<kStages - 1>();
        __syncthreads();  // the pages of this step are complete
        const int first = keys.first + step * kStep;
        for (int page = warp / SETS; page < kWarps; page += kWarps / SETS)
            rows.attend(tiles[step % kStages * kWarps + page], length - first - page * kKeys, task.scale);
        __syncthreads();  // safe to overwrite
    }
    course::ptx::cp_async_wait<0>();
    rows.template merge_warps<kWarps, SETS>([&](int row, int col, const Part& part) {
        if (row < task.rows) store_part<D>(parts, (first_row + row) * splits + split, col, part);
    });
}

template <class T, int D, int SETS>
void launch_page_ring(const PagedTask<T>& task, int splits, float* parts, cudaStream_t stream) {
    const unsigned blocks = course::blocks_for(items(task) * static_cast<std::size_t>(splits), 1);
    course::launch(page_ring<T, D, SETS>,
                   {blocks, kWarps * 32, kStages * kWarps * sizeof(Tile<T, D>), stream}, task, splits, parts);
    launch_combine_splits<T, D>(parts, splits, task.out, items(task) * task.rows, stream);
}

}  // namespace day29
