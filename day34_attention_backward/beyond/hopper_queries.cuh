// Day 34, beyond: the path of dQ from the blocks of hopper.cuh to global memory. All blocks of a
// head have a part of each row of dQ. A bulk reduction adds a part to sums in global memory; a last
// kernel computes dQ from the sums.
#pragma once

#include "hopper_tile.cuh"
#include "launch.cuh"

namespace day34 {

// Adds the block's part of dQ to the sums in global memory, tile after tile: 32 KB per bulk
// reduction, which L2 carries out. ORDERED: in turns. With a causal mask, the later its keys, the
// sooner a block reaches a tile of rows. So the blocks of the last keys add first, and no block
// waits long.
template <class T, int D, bool ORDERED>
__device__ void write_queries(HopperMemory<T, D>& memory, const Problem<T>& problem, const KeyTile& keys) {
    unsigned parity = 0;
    for (int tile = keys.begin; tile < problem.row_tiles; ++tile, parity ^= 1) {
        const std::size_t number =
            keys.head * static_cast<std::size_t>(problem.row_tiles) + static_cast<std::size_t>(tile);
        ptx::mbarrier_wait(&memory.dq_full, parity);
        if constexpr (ORDERED) {
            const int last_key = min(tile * kRows<D> + kRows<D> - 1, (1 << 30) - 1) + problem.diagonal;
            const int turn = min(last_key / kKeys, problem.key_tiles - 1) - keys.tile;
            while (atomicAdd(&problem.done[number], 0u) != static_cast<unsigned>(turn)) {
            }
            __threadfence();
        }
        ptx::bulk_reduce_add(problem.dq + number * (kConsumers * kPart), &memory.dq[0][0].x,
                             sizeof(memory.dq));
        ptx::tma_store_commit();
        ptx::tma_store_wait_read<0>();
        ptx::mbarrier_arrive(&memory.dq_empty);
        if constexpr (ORDERED) {
            ptx::tma_store_wait<0>();
            __threadfence();
            atomicAdd(&problem.done[number], 1u);
        }
    }
    ptx::tma_store_wait<0>();
}

// dq = scale times the sums, which are in the order of registers. A thread has 8 columns of a row.
template <class T, int D>
__global__ void finish_queries(const HeadsView<T> dq, const float* sums, int row_tiles, float scale,
                               std::size_t packs) {
    constexpr int ROWS = kRows<D>;
    const std::size_t index = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (index >= packs) return;
    const int pack = static_cast<int>(index % (D / 8));
    const std::size_t row = index / (D / 8) % dq.extents().length;
    const std::size_t head = index / (D / 8) / dq.extents().length;
    if (pack * 8 >= dq.dim()) return;
    const std::size_t tile = row / ROWS;
    const auto in_tile = static_cast<int>(row % ROWS);
    const int group = D == 64 ? in_tile / 64 : pack / 8;
    const int in_part = in_tile % 64;
    const float* const part = sums + ((head * static_cast<std::size_t>(row_tiles) + tile) * kConsumers +
                                      static_cast<std::size_t>(group)) *
                                         kPart;
    // Registers 4 j + 2 h and the next one, of lanes 4 g to 4 g + 3.
    const int j = pack % 8;
    const int thread = in_part / 16 * 32 + in_part % 8 * 4;
    const int h = in_part / 8 % 2;
    unsigned bits[4];
#pragma unroll
    for (int t = 0; t < 4; ++t) {
        const float2 two = *reinterpret_cast<const float2*>(part + (j * kWarpgroup + thread + t) * 4 + h * 2);
        bits[t] = pair<T>(two.x * scale, two.y * scale);
    }
    *reinterpret_cast<uint4*>(row_of(dq, head, row) + pack * 8) = {bits[0], bits[1], bits[2], bits[3]};
}

template <class T, int D>
void launch_finish_queries(const HeadsView<T>& dq, const float* sums, int row_tiles, float scale,
                           cudaStream_t stream) {
    const Extents q = dq.extents();
    const std::size_t packs = q.batch * q.heads * q.length * (D / 8);
    finish_queries<T, D><<<course::blocks_for(packs, kFinishThreads), kFinishThreads, 0, stream>>>(
        dq, sums, row_tiles, scale, packs);
}

}  // namespace day34
