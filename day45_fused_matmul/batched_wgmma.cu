// Day 45: the launcher of batched_wgmma.cuh.
#include <algorithm>
#include <array>
#include <cstdint>

#include "batched_wgmma.cuh"
#include "batched_wgmma.hpp"
#include "common/device/cluster_launch.hpp"
#include "common/device/tensor_map.hpp"
#include "common/tile/tile_choice.hpp"

namespace day45 {
namespace {

using Matrices = course::Batch<const __nv_bfloat16>;
template <class S>
auto kernel_for(bool a_is_k_major, bool b_is_k_major) {
    if (a_is_k_major)
        return b_is_k_major ? multiply_by_wgmma<S, true, true> : multiply_by_wgmma<S, true, false>;
    return b_is_k_major ? multiply_by_wgmma<S, false, true> : multiply_by_wgmma<S, false, false>;
}

std::string why_no_map(const char* name, const Matrices& matrices) {
    if (!matrices.pointers.empty())
        return std::string(name) + " is behind pointers, which only a kernel can read";
    const std::string reason = course::why_no_tensor_map(matrices.first);
    if (!reason.empty()) return std::string(name) + " " + reason;
    const std::size_t pitch = matrices.stride * sizeof(__nv_bfloat16);
    if (pitch % 16 != 0 || pitch >= std::size_t{1} << 40)
        return std::string(name) + " has matrices that are " + std::to_string(pitch) +
               " bytes apart; expected a multiple of 16, less than 2^40";
    return "";
}

// In boxes of 64 along K by `extent`, or of 64 by 64.
CUtensorMap map_of(const Matrices& matrices, bool k_major, unsigned extent) {
    const auto& first = matrices.first;
    const bool one = matrices.stride == 0;
    return course::make_tensor_map<__nv_bfloat16>(first.data(), first.rows(), first.cols(),
                                                  first.leading_dimension(), {one ? 1 : matrices.count, 1},
                                                  {matrices.stride, 0}, k_major ? extent : 64);
}

template <class S>
void launch_tiles(const Bfloat16Matmul& matmul, cudaStream_t stream) {
    const auto& factors = matmul.factors;
    const bool a_is_k_major = factors.op_a == course::Op::kNone;
    const bool b_is_k_major = factors.op_b == course::Op::kTranspose;
    const BatchMaps maps{.a = map_of(factors.a, a_is_k_major, S::BM),
                         .b = map_of(factors.b, b_is_k_major, S::BN),
                         .one_a = factors.a.stride == 0,
                         .one_b = factors.b.stride == 0};
    const auto tiles = course::every_tile<S>(factors.m(), factors.n(), factors.count());
    const int steps = static_cast<int>(course::ceil_div<std::size_t>(factors.k(), S::BK));
    const course::ClusterLaunch how{.threads = S::THREADS,
                                    .shared = sizeof(WgmmaMemory<S>),
                                    .cluster = 1,
                                    .persistent = true,
                                    .early = true};
    how.start(kernel_for<S>(a_is_k_major, b_is_k_major), tiles.all, stream, maps, matmul, tiles, steps);
}

struct Candidate {
    void (*launch)(const Bfloat16Matmul& matmul, cudaStream_t stream);
    course::Tiling tiling;
};
template <class S>
constexpr Candidate candidate(double launch, double tile, double step, double load) {
    return {launch_tiles<S>,
            {.rows = S::BM,
             .columns = S::BN,
             .cluster = 1,
             .splits = 1,
             .blocks = S::BLOCKS,
             .depth = S::BK,
             .launch = launch,
             .tile = tile,
             .step = step,
             .load = load}};
}
// Microseconds, fitted to the times of 149 batches on an H100, by least squares of relative errors.
constexpr std::array<Candidate, kWgmmaTiles> kCandidates = {
    candidate<WideWgmmaTile>(0.16, 5.05, 0.494, 0.316), candidate<LargeWgmmaTile>(0.78, 3.55, 0.358, 0.385),
    candidate<MediumWgmmaTile>(0.96, 1.97, 0.141, 0.338),
    candidate<SmallWgmmaTile>(1.33, 1.32, 0.105, 0.228)};

}  // namespace

std::string why_no_tensor_maps(const course::FactorsOf<__nv_bfloat16>& factors) {
    if (factors.k() == 0) return "there is nothing to load";
    if (std::string reason = why_no_map("A", factors.a); !reason.empty()) return reason;
    return why_no_map("B", factors.b);
}

void launch_wgmma(const Bfloat16Matmul& matmul, cudaStream_t stream) {
    const auto& factors = matmul.factors;
    const course::ProductShape shape{factors.count(), factors.m(), factors.n(), factors.k()};
    const Candidate& fastest = *std::ranges::min_element(kCandidates, {}, [&](const Candidate& candidate) {
        return candidate.tiling.time_of_batch(shape, course::multiprocessors());
    });
    fastest.launch(matmul, stream);
}

void launch_wgmma_with(std::size_t tile, const Bfloat16Matmul& matmul, cudaStream_t stream) {
    kCandidates.at(tile).launch(matmul, stream);
}

}  // namespace day45
