#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <array>

#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/tile/tile_choice.hpp"
#include "common/tile/unaligned_matmul.cuh"
#include "common/tile/unaligned_matmul.hpp"

namespace course {
namespace {

template <class T>
using Launcher = void (*)(const OperandsOf<T>&, const Batch<float>&, float, float, cudaStream_t);

template <class T, int SPLITS>
void launch_tiles(const OperandsOf<T>& operands, const Batch<float>& c, float alpha, float beta,
                  cudaStream_t stream) {
    using S = hopper::UnalignedShape<T, SPLITS>;
    const auto down = static_cast<unsigned>(ceil_div<std::size_t>(operands.m(), S::BM));
    const auto across = static_cast<unsigned>(ceil_div<std::size_t>(operands.n(), S::BN));
    const bool a_is_k_major = operands.op_a == Op::kNone;
    const bool b_is_k_major = operands.op_b == Op::kTranspose;
    const auto kernel = a_is_k_major ? (b_is_k_major ? hopper::multiply_unaligned_tile<S, true, true>
                                                     : hopper::multiply_unaligned_tile<S, true, false>)
                                     : (b_is_k_major ? hopper::multiply_unaligned_tile<S, false, true>
                                                     : hopper::multiply_unaligned_tile<S, false, false>);
    const ClusterLaunch how{.threads = hopper::kWarpgroup,
                            .shared = sizeof(hopper::UnalignedMemory<S>),
                            .cluster = SPLITS,
                            .persistent = false,
                            .early = true};
    how.start(kernel, blocks_for(std::size_t{down} * across * c.count * SPLITS, 1), stream, operands, c,
              alpha, beta, down, across);
}

struct Candidate {
    Launcher<__half> half;
    Launcher<__nv_bfloat16> bfloat16;
    Tiling tiling;
};
template <int SPLITS>
constexpr Candidate candidate(double launch, double tile, double step, double load) {
    return {launch_tiles<__half, SPLITS>,
            launch_tiles<__nv_bfloat16, SPLITS>,
            {.rows = 64,
             .columns = 64,
             .cluster = SPLITS,
             .splits = SPLITS,
             .blocks = hopper::kBlocksPerSm,
             .depth = 64,
             .launch = launch,
             .tile = tile,
             .step = step,
             .load = load}};
}
// In microseconds, fitted to the times of 170 random shapes on an H200 (least squares of the
// relative errors).
constexpr std::array<Candidate, kUnalignedTiles> kCandidates = {candidate<1>(1.05, 1.54, 0.771, 0.307),
                                                                candidate<4>(0.72, 2.23, 0.704, 0.392),
                                                                candidate<8>(0.94, 2.50, 0.519, 0.473)};

double time_of(const Candidate& candidate, const ProductShape& shape) {
    return candidate.tiling.time_of_batch(shape, multiprocessors());
}

const Candidate& fastest(const ProductShape& shape) {
    return *std::ranges::min_element(kCandidates, {},
                                     [&](const Candidate& candidate) { return time_of(candidate, shape); });
}

}  // namespace

template <class T>
void multiply_unaligned_with(std::size_t tile, const OperandsOf<T>& operands, const Batch<float>& c,
                             float alpha, float beta, cudaStream_t stream) {
    const Candidate& candidate = kCandidates.at(tile);
    if constexpr (std::is_same_v<T, __half>) {
        candidate.half(operands, c, alpha, beta, stream);
    } else {
        candidate.bfloat16(operands, c, alpha, beta, stream);
    }
}

template <class T>
void multiply_unaligned(const OperandsOf<T>& operands, const Batch<float>& c, float alpha, float beta,
                        cudaStream_t stream) {
    const ProductShape shape{operands.count(), operands.m(), operands.n(), operands.k()};
    const Candidate& candidate = fastest(shape);
    multiply_unaligned_with<T>(static_cast<std::size_t>(&candidate - kCandidates.data()), operands, c, alpha,
                               beta, stream);
}

#define COURSE_UNALIGNED(T)                                                                              \
    template void multiply_unaligned_with(std::size_t, const OperandsOf<T>&, const Batch<float>&, float, \
                                          float, cudaStream_t);                                          \
    template void multiply_unaligned(const OperandsOf<T>&, const Batch<float>&, float, float, cudaStream_t);
COURSE_UNALIGNED(__half)
COURSE_UNALIGNED(__nv_bfloat16)
#undef COURSE_UNALIGNED

double time_of_unaligned(const ProductShape& shape) {
    return time_of(fastest(shape), shape);
}

}  // namespace course
