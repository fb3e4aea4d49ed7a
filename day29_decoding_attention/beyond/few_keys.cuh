// Day 29, beyond: caches of few keys, for which one kernel is enough.
#pragma once

#include "async_ring.cuh"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"

namespace day29 {

// Idea: a block of WARPS warps for each head of K, which attends to all its keys and stores
// results, not parts. A single warp, where a head has few tiles.
// Cost removed: the second kernel, and warps without a tile.
// Still limits it: not profiled.
template <class T, int D, int WARPS>
__global__ void __launch_bounds__(WARPS * 32) few_keys(Task<T> task) {
    extern __shared__ __align__(128) unsigned char memory[];
    const int warp = static_cast<int>(threadIdx.x / 32);
    Ring<T, D>& ring = reinterpret_cast<Ring<T, D>*>(memory)[warp];
    const auto item = static_cast<int>(blockIdx.x);
    const int length = task.length(item / task.heads_kv);

    const auto copy = [&](int first, int stage) {
        if (first < length) {
            const std::size_t at = task.cache(item, first, D);
            copy_tile(ring.stages[stage], task.k + at, task.v + at, length - first);
        }
        course::ptx::cp_async_commit();  // a group for each tile, also where there is none
    };
    constexpr int kStep = kKeys * WARPS;
    const int begin = warp * kKeys;
    for (int stage = 0; stage < kStages - 1; ++stage)
        copy(begin + stage * kStep, stage);
    WarpRows<T, D> rows(task.q + static_cast<std::size_t>(item) * task.rows * D, task.rows, task.queries);
    int stage = 0;
    for (int first = begin; first < length; first += kStep) {
        copy(first + (kStages - 1) * kStep, (stage + kStages - 1) % kStages);
        course::ptx::cp_async_wait<kStages - 1>();
        __syncwarp();  // this tile is complete in all lanes
        rows.attend(ring.stages[stage], length - first, task.scale);
        __syncwarp();  // safe to overwrite
        stage = (stage + 1) % kStages;
    }
    course::ptx::cp_async_wait<0>();
    rows.template merge_warps<WARPS>([&](int row, int col, const Part& part) {
        const std::size_t of_all = static_cast<std::size_t>(item) * task.rows + row;
        task.out[of_all * D + col] = T(part.result());
    });
}

template <class T, int D, int WARPS>
void launch_few_keys(const Task<T>& task, cudaStream_t stream) {
    const std::size_t heads = static_cast<std::size_t>(task.batch) * task.heads_kv;  // of K
    course::launch(few_keys<T, D, WARPS>,
                   {course::blocks_for(heads, 1), WARPS * 32, WARPS * sizeof(Ring<T, D>), stream}, task);
}

}  // namespace day29
