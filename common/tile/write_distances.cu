// The matrix of distances, for the versions that write it and read it again.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/tile/distance.cuh"
#include "common/tile/epilogue.cuh"
#include "common/tile/fused_matmul.cuh"

namespace course {
namespace {

// The plain epilogue, but for what is written.
struct WriteDistances {
    Distance distance;
    WriteTile write;

    using State = WriteTile::State;
    template <class T>
    __device__ State begin() const {
        return {};
    }

    template <class T>
    __device__ void take(State& state, const ThreadTileCoords<T>& at, float (&sums)[T::TM][T::TN]) const {
        distance.finish(at, sums);
        write.take<T>(state, at, sums);
    }

    template <class T, class Walk>
    __device__ void end(const State&, const Walk&) const {}
};

}  // namespace

void launch_distances(Metric metric, const Factors& factors, std::uint64_t* scratch, float* distances,
                      cudaStream_t stream) {
    using T = LargeTile;
    const std::size_t in_product = factors.m() * factors.n();
    const auto all = DeviceSpan<float>::from_device_pointer(distances, in_product * factors.count());
    if (all.empty()) return;
    const Distance distance = launch_distance(metric, factors, scratch, stream);
    const auto walk = every_tile<T>(factors);
    const WriteTile write{
        {.first = {all, factors.m(), factors.n()}, .count = factors.count(), .stride = in_product}, 1, 0};
    with_add(metric, [&]<class Add>(Add) {
        const FusedMatmul<T, 1, EveryTile<T>, WriteDistances, Add> kernel;
        kernel.launch(std::min(walk.all, kernel.resident_blocks()), factors, walk, {distance, write}, stream);
    });
}

}  // namespace course
