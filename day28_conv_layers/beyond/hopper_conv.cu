// Day 28's host code of the forward pass by TMA and wgmma: constraints, and the tile that suits the
// shape. The kernel and its launch are in hopper_conv.cuh.
#include <algorithm>
#include <array>
#include <string>

#include "common/device/cluster_launch.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "hopper_conv.cuh"
#include "launchers.hpp"

namespace day28 {
namespace {

template <class S>
void launch(const HopperCall& call) {
    launch_conv_tma_wgmma<S>(call.a, call.b, call.out, call.shape, call.stream);
}

// The tiles to choose from: large ones need fewer bytes per product, and small ones occupy all SMs
// if there are few pixels. Times in microseconds, fitted to runs on an H200: ResNet-50's four 3 x 3
// layers, with 1 to 64 images.
using Tile64x64 = HopperTile<64, 64, 5, 2>;
using Tile128x64 = HopperTile<128, 64, 4, 2>;
using Tile128x128 = HopperTile<128, 128, 5, 1>;
using Tile192x128 = HopperTile<192, 128, 4, 1>;

struct Candidate {
    void (*launch)(const HopperCall& call);
    int pixels;
    int filters;
    int blocks;    // on an SM
    double tile;   // to start and end a tile
    double step;   // 64 channels under one element of the filter, while all SMs are busy
    double alone;  // the same, where there are more SMs than tiles

    // Blocks take tiles in waves. A wave that is not full takes as long as one that is.
    double time(const Shape& shape, int multiprocessors) const {
        const int tiles =
            course::ceil_div(shape.n * shape.plane(), pixels) * course::ceil_div(shape.k, filters);
        const int steps = shape.r * shape.s * course::ceil_div(shape.c, 64);
        const int waves = course::ceil_div(tiles, multiprocessors * blocks);
        return waves * (tile + steps * (tiles <= multiprocessors ? alone : step));
    }
};

template <class S>
constexpr Candidate candidate(double tile, double step, double alone) {
    return {launch<S>, S::BM, S::BN, S::BLOCKS, tile, step, alone};
}
constexpr std::array<Candidate, kHopperTiles> kCandidates = {
    candidate<Tile64x64>(1.2, 0.29, 0.18), candidate<Tile128x64>(2.8, 0.37, 0.23),
    candidate<Tile128x128>(3.3, 0.28, 0.30), candidate<Tile192x128>(1.9, 0.55, 0.45)};

void check_alignment(const HopperCall& call) {
    course::require(course::is_aligned(call.a, 16) && course::is_aligned(call.b, 16),
                    "conv_layers: an operand is not 16-byte aligned; expected what cudaMalloc returns");
}

}  // namespace

std::string tma_wgmma_constraint(const Shape& shape) {
    const auto text = [](int number) { return std::to_string(number); };
    if (shape.c % 8 != 0) return "loads 8 channels at a time; these are " + text(shape.c);
    if (shape.stride > 8) return "moves filters by at most 8 pixels; the stride is " + text(shape.stride);
    // The map has a byte for each coordinate of the bounding box's corners.
    if (shape.padding > 127 || std::max(shape.r, shape.s) - 1 - shape.padding > 128)
        return "needs a padding of at most 127, and filters at most 129 larger than it; these are " +
               course::shape_text(shape.r, shape.s) + " with padding " + text(shape.padding);
    return course::why_no_hopper();
}

template <int kTile>
void tma_wgmma_with(const HopperCall& call) {
    check_alignment(call);
    kCandidates[kTile].launch(call);
}
template void tma_wgmma_with<0>(const HopperCall&);
template void tma_wgmma_with<1>(const HopperCall&);
template void tma_wgmma_with<2>(const HopperCall&);
template void tma_wgmma_with<3>(const HopperCall&);

void tma_wgmma(const HopperCall& call) {
    check_alignment(call);
    const int multiprocessors = static_cast<int>(course::multiprocessors());
    const auto time = [&](const Candidate& candidate) { return candidate.time(call.shape, multiprocessors); };
    std::ranges::min_element(kCandidates, {}, time)->launch(call);
}

}  // namespace day28
