// Writes the matrix of distances, for the versions that store it and read it again.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/device/launch.hpp"
#include "common/tile/distance.cuh"
#include "common/tile/epilogue.cuh"
#include "common/tile/main_loop.cuh"

namespace course {
namespace {

// Idea: sums become distances while they are in registers.
// Cost removed: writing the sums and reading them again, to add the norms.
// Still limits it: the multiply-adds; with a short K, the stores of the distances.
//
// `one` is 1, but the compiler does not know it, so write_tile() gets a computed value
// (epilogue.cuh explains why).
template <class T, class LoaderA, class LoaderB, class Add>
__global__ __launch_bounds__(T::THREADS,
                             1) void write_distances(const __grid_constant__ Operands operands,
                                                     const __grid_constant__ EveryTile<T> tiles,
                                                     const Add add, const __grid_constant__ Distance distance,
                                                     const __grid_constant__ Batch<float> distances,
                                                     const float one) {
    extern __shared__ float4 shared[];
    multiply_tiles<T, LoaderA, LoaderB>(operands, tiles, reinterpret_cast<Stage<T>*>(shared), add,
                                        [&](const Tile& tile, float(&sums)[T::TM][T::TN]) {
                                            const ThreadTileCoords<T> at{tile};
                                            distance.finish(at, sums);
                                            write_tile(at, distances[tile.product],
                                                       [&](int i, int j) { return one * sums[i][j]; });
                                        });
}

}  // namespace

void launch_distances(Metric metric, const Operands& operands, std::uint64_t* scratch, float* distances,
                      cudaStream_t stream) {
    using T = LargeTile;
    constexpr std::size_t kShared = sizeof(Stage<T>) * T::STAGES;
    const std::size_t in_product = operands.m() * operands.n();
    const auto all = DeviceSpan<float>::from_device_pointer(distances, in_product * operands.count());
    if (all.empty()) return;
    const Distance distance = launch_distance(metric, operands, scratch, stream);
    const auto tiles = every_tile<T>(operands);
    const Batch<float> batch{
        .first = {all, operands.m(), operands.n()}, .count = operands.count(), .stride = in_product};
    with_add(metric, [&]<class Add>(Add add) {
        using LoaderA = ElementLoader<T::BM, T::BK, T::THREADS>;
        using AnyB = ElementLoader<T::BN, T::BK, T::THREADS>;
        using AlignedB = PackLoader<T::BN, T::BK, T::THREADS>;
        const auto kernel = b_goes_in_packs(operands) ? write_distances<T, LoaderA, AlignedB, Add>
                                                      : write_distances<T, LoaderA, AnyB, Add>;
        allow_shared_bytes(kernel, kShared);
        const unsigned grid = std::min(tiles.all, resident_blocks(kernel, T::THREADS, kShared));
        launch(kernel, {grid, T::THREADS, kShared, stream}, operands, tiles, add, distance, batch, 1.0f);
    });
}

}  // namespace course
