// Day 29, beyond: the heads that share K and V are the rows of one matrix, on tensor cores.
#pragma once

#include "common/device/launch.hpp"
#include "decoding_attention.cuh"
#include "warp_rows.cuh"

namespace day29 {

// Idea: the queries of all heads that share K and V are the rows of one matrix, at most 16. Now
// scores and weighted sums are matrix products, and a tensor core takes 16 rows at a time. With
// fewer rows, the others are zeros: tensor cores have time to spare here.
// Cost removed: repeated loads: K and V are loaded once for a group instead of once for each head.
// Still limits it: the block loads a tile, waits, multiplies, waits. While it multiplies, it has no
// loads in flight.
template <class T, int D>
__global__ void __launch_bounds__(kWarps * 32) packed_group(Task<T> task, int splits, float* parts) {
    extern __shared__ __align__(128) unsigned char memory[];
    auto* const tiles = reinterpret_cast<Tile<T, D>*>(memory);  // one for each warp
    const auto item = static_cast<int>(blockIdx.x / static_cast<unsigned>(splits));
    const auto split = static_cast<int>(blockIdx.x % static_cast<unsigned>(splits));
    const int length = task.length(item / task.heads_kv);
    const Range keys = range_of(length, split, splits, kKeys * kWarps);
    const int warp = static_cast<int>(threadIdx.x / 32);

    WarpRows<T, D> rows(task.q + static_cast<std::size_t>(item) * task.rows * D, task.rows, task.queries);
    for (int first = keys.first; first < keys.last; first += kKeys * kWarps) {
        const std::size_t at = task.cache(item, first, D);
        for (int i = static_cast<int>(threadIdx.x); i < kWarps * kKeys * D / 8; i += kWarps * 32) {
            const int key = i / (D / 8);
            const int pack = i % (D / 8);
            const bool inside = first + key < length;
            Tile<T, D>& tile = tiles[key / kKeys];
            // Keys after the end are zero-filled, because memory there may contain NaN, and 0 times
            // NaN is NaN.
            const uint4 zeros{};
            tile.k[tile.place(key % kKeys, pack)] =
                inside ? reinterpret_cast<const uint4*>(task.k + at)[i] : zeros;
            tile.v[tile.place(key % kKeys, pack)] =
                inside ? reinterpret_cast<const uint4*>(task.v + at)[i] : zeros;
        }
        __syncthreads();  // the tiles are complete
        rows.attend(tiles[warp], length - first - warp * kKeys, task.scale);
        __syncthreads();  // safe to overwrite
    }
    rows.template merge_warps<kWarps>([&](int row, int col, const Part& part) {
        const std::size_t of_all = static_cast<std::size_t>(item) * task.rows + row;
        store_part<D>(parts, of_all * splits + split, col, part);
    });
}

// A block for each part of a head of K; then the parts become one, as in split_keys.
template <class T, int D>
void launch_packed_group(const Task<T>& task, int splits, float* parts, cudaStream_t stream) {
    const std::size_t heads = static_cast<std::size_t>(task.batch) * task.heads_kv;  // of K
    const unsigned blocks = course::blocks_for(heads * static_cast<std::size_t>(splits), 1);
    course::launch(packed_group<T, D>, {blocks, kWarps * 32, kWarps * sizeof(Tile<T, D>), stream}, task,
                   splits, parts);
    launch_combine_splits<T, D>(parts, splits, task.out, all_rows(task), stream);
}

}  // namespace day29
