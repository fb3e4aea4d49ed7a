// Day 31, beyond: the choice of a tile for int8_wgmma.cuh.
#include <algorithm>
#include <array>
#include <string_view>

#include "common/device/grid.hpp"
#include "common/tile/tile_choice.hpp"
#include "int8_wgmma.cuh"
#include "int8_wgmma.hpp"

namespace day31 {
namespace {

using In = course::DeviceMatrix<const std::int8_t>;
using Out = course::DeviceMatrix<std::int32_t>;

struct Candidate {
    std::string_view name;
    void (*launch)(In a, In w, Out c, cudaStream_t stream);
    course::Tiling tiling;
};

template <int BM, int BN, int STAGES, int SHARERS = 1>
constexpr Candidate candidate(std::string_view name, double launch, double tile, double step, double load) {
    using S = hopper::TileShape<std::int8_t, BM, BN, STAGES, SHARERS>;
    return {name,
            launch_wgmma_shape<S>,
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
