// Day 45, beyond: host code of batched_wgmma.cuh.
#include <algorithm>
#include <array>
#include <cstdint>

#include "batched_wgmma.cuh"
#include "batched_wgmma.hpp"
#include "common/device/tensor_map.hpp"
#include "common/tile/tile_choice.hpp"

namespace day45 {
namespace {

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

template <class S>
void launch_tiles(const Bfloat16Matmul& matmul, cudaStream_t stream) {
    const bool b_is_k_major = matmul.operands.op_b == course::Op::kTranspose;
    const auto launch = matmul.operands.op_a == course::Op::kNone
                            ? (b_is_k_major ? launch_multiply_by_wgmma<S, true, true>
                                            : launch_multiply_by_wgmma<S, true, false>)
                            : (b_is_k_major ? launch_multiply_by_wgmma<S, false, true>
                                            : launch_multiply_by_wgmma<S, false, false>);
    launch(matmul, stream);
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

double time_of(const Candidate& candidate, const course::ProductShape& shape) {
    return candidate.tiling.time_of_batch(shape, course::multiprocessors());
}

const Candidate& fastest(const course::ProductShape& shape) {
    return *std::ranges::min_element(kCandidates, {},
                                     [&](const Candidate& candidate) { return time_of(candidate, shape); });
}

}  // namespace

std::string why_no_tensor_maps(const course::OperandsOf<__nv_bfloat16>& operands) {
    if (operands.k() == 0) return "there is nothing to load";
    if (std::string reason = why_no_map("A", operands.a); !reason.empty()) return reason;
    return why_no_map("B", operands.b);
}

double time_of_wgmma(const course::ProductShape& shape) {
    return time_of(fastest(shape), shape);
}

void launch_wgmma(const Bfloat16Matmul& matmul, cudaStream_t stream) {
    const auto& operands = matmul.operands;
    fastest({operands.count(), operands.m(), operands.n(), operands.k()}).launch(matmul, stream);
}

void launch_wgmma_with(std::size_t tile, const Bfloat16Matmul& matmul, cudaStream_t stream) {
    kCandidates.at(tile).launch(matmul, stream);
}

}  // namespace day45
