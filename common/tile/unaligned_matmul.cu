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
using Launcher = void (*)(const FactorsOf<T>&, const Batch<float>&, float, float, cudaStream_t);

template <class S>
void launch_tiles(const FactorsOf<typename S::T>& factors, const Batch<float>& c, float alpha, float beta,
                  cudaStream_t stream) {
    const auto down = static_cast<unsigned>(ceil_div<std::size_t>(factors.m(), S::BM));
    const auto across = static_cast<unsigned>(ceil_div<std::size_t>(factors.n(), S::BN));
    const bool a_is_k_major = factors.op_a == Op::kNone;
    const bool b_is_k_major = factors.op_b == Op::kTranspose;
    const auto kernel = a_is_k_major ? (b_is_k_major ? hopper::multiply_gathered<S, true, true>
                                                     : hopper::multiply_gathered<S, true, false>)
                                     : (b_is_k_major ? hopper::multiply_gathered<S, false, true>
                                                     : hopper::multiply_gathered<S, false, false>);
    const ClusterLaunch how{.threads = S::CONSUMERS * hopper::kWarpgroup + hopper::kGatherThreads,
                            .shared = sizeof(hopper::Ring<S>),
                            .cluster = S::SPLITS,
                            .persistent = false,
                            .early = true};
    how.start(kernel, blocks_for(std::size_t{down} * across * c.count * S::SPLITS, 1), stream, factors, c,
              alpha, beta, down, across);
}

template <int BM, int BN, int STAGES, int SPLITS>
struct Shape {
    template <class T>
    using Of = hopper::TileShape<T, BM, BN, STAGES, 1, SPLITS>;
};

struct Candidate {
    Launcher<__half> half;
    Launcher<__nv_bfloat16> bfloat16;
    Tiling tiling;
};
template <class S>
constexpr Candidate candidate(std::size_t blocks, double launch, double tile, double step, double load) {
    using H = typename S::template Of<__half>;
    return {launch_tiles<H>,
            launch_tiles<typename S::template Of<__nv_bfloat16>>,
            {.rows = H::BM,
             .columns = H::BN,
             .cluster = H::SPLITS,
             .splits = H::SPLITS,
             .blocks = blocks,
             .depth = H::BK,
             .launch = launch,
             .tile = tile,
             .step = step,
             .load = load}};
}
// Microseconds: those that predict best how long 171 random shapes took on an H100, in least
// squares of relative errors.
constexpr std::array<Candidate, kUnalignedTiles> kCandidates = {
    candidate<Shape<128, 128, 6, 1>>(1, 0.00, 3.72, 0.937, 0.285),
    candidate<Shape<64, 64, 6, 1>>(2, 0.50, 2.18, 0.562, 0.232),
    candidate<Shape<64, 64, 6, 4>>(2, 1.25, 3.50, 0.401, 0.317)};

double time_of(const Candidate& candidate, const ProductShape& shape) {
    return candidate.tiling.time_of_batch(shape, multiprocessors());
}

const Candidate& fastest(const ProductShape& shape) {
    return *std::ranges::min_element(kCandidates, {},
                                     [&](const Candidate& candidate) { return time_of(candidate, shape); });
}

}  // namespace

template <class T>
void multiply_unaligned_with(std::size_t tile, const FactorsOf<T>& factors, const Batch<float>& c,
                             float alpha, float beta, cudaStream_t stream) {
    const Candidate& candidate = kCandidates.at(tile);
    if constexpr (std::is_same_v<T, __half>) {
        candidate.half(factors, c, alpha, beta, stream);
    } else {
        candidate.bfloat16(factors, c, alpha, beta, stream);
    }
}

template <class T>
void multiply_unaligned(const FactorsOf<T>& factors, const Batch<float>& c, float alpha, float beta,
                        cudaStream_t stream) {
    const ProductShape shape{factors.count(), factors.m(), factors.n(), factors.k()};
    const Candidate& candidate = fastest(shape);
    multiply_unaligned_with<T>(static_cast<std::size_t>(&candidate - kCandidates.data()), factors, c, alpha,
                               beta, stream);
}

#define COURSE_UNALIGNED(T)                                                                             \
    template void multiply_unaligned_with(std::size_t, const FactorsOf<T>&, const Batch<float>&, float, \
                                          float, cudaStream_t);                                         \
    template void multiply_unaligned(const FactorsOf<T>&, const Batch<float>&, float, float, cudaStream_t);
COURSE_UNALIGNED(__half)
COURSE_UNALIGNED(__nv_bfloat16)
#undef COURSE_UNALIGNED

double time_of_unaligned(const ProductShape& shape) {
    return time_of(fastest(shape), shape);
}

}  // namespace course
