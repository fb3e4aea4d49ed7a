// Day 31: the launcher of int8_wgmma.cuh, and the choice of its tile.
#include <algorithm>
#include <array>
#include <string_view>

#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_map.hpp"
#include "common/tile/tile_choice.hpp"
#include "int8_wgmma.cuh"
#include "int8_wgmma.hpp"

namespace day31 {
namespace {

using In = course::DeviceMatrix<const std::int8_t>;
using Out = course::DeviceMatrix<std::int32_t>;

constexpr int kBand = 8;  // rows of tiles that are computed together, for L2: as on day 41

// A matrix of a single row may have any leading dimension, but a tensor map needs a multiple of 16.
In with_aligned_pitch(In matrix) {
    if (matrix.rows() != 1) return matrix;
    const auto row = course::DeviceSpan<const std::int8_t>::from_device_pointer(matrix.data(), matrix.cols());
    return {row, 1, matrix.cols(), course::ceil_div<std::size_t>(matrix.cols(), 16) * 16};
}

template <class S>
void launch_tiles(In a, In w, Out c, cudaStream_t stream) {
    hopper::Maps maps{};
    if (a.cols() > 0) {
        maps.a = course::make_tensor_map(with_aligned_pitch(a), S::BM, S::BK);
        maps.b = course::make_tensor_map(with_aligned_pitch(w), S::SHARE, S::IN_ROW);
    }
    const bool through_tma = course::why_no_tensor_map(c).empty();
    if (through_tma) maps.c = course::make_tensor_map(c, 16, hopper::kSliceColumns);
    const course::RasterOrder order = course::make_order(c, S::BM * S::SHARERS, S::BN, kBand);
    const course::ClusterLaunch how{.threads = (1 + S::CONSUMERS) * hopper::kWarpgroup,
                                    .shared = sizeof(WgmmaMemory<S>),
                                    .cluster = S::CLUSTER,
                                    .persistent = true,
                                    .early = true};
    how.start(wgmma<S>, course::blocks_of(order, S::CLUSTER), stream, maps, course::make_output(c, 1, 0),
              static_cast<int>(a.cols()), order, through_tma);
}

struct Candidate {
    std::string_view name;
    void (*launch)(In a, In w, Out c, cudaStream_t stream);
    course::Tiling tiling;
};

template <int BM, int BN, int STAGES, int SHARERS = 1>
constexpr Candidate candidate(std::string_view name, double launch, double tile, double step, double load) {
    using S = hopper::TileShape<std::int8_t, BM, BN, STAGES, SHARERS>;
    return {name,
            launch_tiles<S>,
            {.rows = S::BM * S::SHARERS,
             .columns = S::BN,
             .cluster = S::CLUSTER,
             .splits = 1,
             .blocks = 1,
             .depth = S::BK,
             .launch = launch,
             .tile = tile,
             .step = step,
             .load = load}};
}

// Microseconds, fitted to the times of 105 random shapes on an H100.
constexpr std::array kCandidates = {candidate<128, 256, 4, 2>("128x256", 4.53, 4.62, 0.538, 0.164),
                                    candidate<128, 192, 4, 2>("128x192", 4.09, 3.63, 0.426, 0.124),
                                    candidate<128, 128, 6, 2>("128x128", 5.05, 2.07, 0.236, 0.210),
                                    candidate<64, 128, 8>("64x128", 2.81, 0.86, 0.194, 0.220),
                                    candidate<64, 64, 12>("64x64", 3.35, 0.27, 0.119, 0.159)};

const Candidate& fastest(const MatmulShape& shape, std::size_t multiprocessors) {
    return *std::ranges::min_element(kCandidates, {}, [&](const Candidate& candidate) {
        return candidate.tiling.time({.m = shape.m, .n = shape.n, .k = shape.k}, multiprocessors);
    });
}

}  // namespace

std::string wgmma_tile_for(const MatmulShape& shape, std::size_t multiprocessors) {
    return std::string(fastest(shape, multiprocessors).name);
}

std::vector<std::string> wgmma_tiles() {
    return course::names(kCandidates);
}

void launch_wgmma_tile(std::string_view tile, In a, In w, Out c, cudaStream_t stream) {
    course::find_version(kCandidates, tile).launch(a, w, c, stream);
}

void launch_wgmma(In a, In w, Out c, cudaStream_t stream) {
    fastest({.m = c.rows(), .n = c.cols(), .k = a.cols()}, course::multiprocessors()).launch(a, w, c, stream);
}

}  // namespace day31
