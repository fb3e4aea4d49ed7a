// Day 28's launcher of the forward pass by TMA and wgmma: the tensor maps and the tile that suits
// the shape. The kernel is in hopper_conv.cuh.
#include <algorithm>
#include <string>

#include "common/device/cluster_launch.hpp"
#include "common/device/launch.hpp"
#include "common/device/tensor_map.hpp"
#include "hopper_conv.cuh"
#include "launchers.hpp"

namespace day28 {
namespace {

template <class S>
void launch(const HopperCall& call) {
    const Shape& shape = call.shape;
    const std::size_t channels = static_cast<std::size_t>(shape.c);
    const std::size_t pixels = static_cast<std::size_t>(shape.n) * static_cast<std::size_t>(shape.plane());
    const std::size_t elements = static_cast<std::size_t>(shape.r) * static_cast<std::size_t>(shape.s);
    const std::size_t filters = static_cast<std::size_t>(shape.k);
    const bool through_tma = shape.k % 8 == 0 && course::is_aligned(call.out, 16);

    ConvMaps maps{};
    maps.x = course::make_im2col_map(call.a,
                                     {.images = shape.n,
                                      .rows = shape.h,
                                      .columns = shape.w,
                                      .channels = shape.c,
                                      .filter_rows = shape.r,
                                      .filter_columns = shape.s,
                                      .padding = shape.padding,
                                      .stride = shape.stride},
                                     S::BM);
    // As matrices of K x C, one for each element (r, s).
    maps.w = course::make_tensor_map(call.b, filters, channels, elements * channels, {elements, 1},
                                     {channels, 0}, S::BN);
    if (through_tma) {
        const auto y = DeviceSpan<__nv_bfloat16>::from_device_pointer(call.out, pixels * filters);
        maps.y = course::make_tensor_map(course::DeviceMatrix<__nv_bfloat16>(y, pixels, filters), 16, 64);
    }

    const auto tiles = blocks(static_cast<int>(pixels), S::BM) * blocks(shape.k, S::BN);
    const course::ClusterLaunch how{
        .threads = S::THREADS, .shared = sizeof(ConvRing<S>), .cluster = 1, .persistent = true};
    how.start(conv_tma_wgmma<S>, tiles, call.stream, maps, call.out, shape, static_cast<int>(tiles),
              through_tma);
}

}  // namespace

std::string tma_wgmma_constraint(const Shape& shape) {
    const auto text = [](int number) { return std::to_string(number); };
    if (shape.c % 8 != 0) return "loads 8 channels at a time; these are " + text(shape.c);
    if (shape.stride > 8) return "moves filters by at most 8 pixels; the stride is " + text(shape.stride);
    // The map has a byte for each coordinate of the bounding box's corners.
    constexpr int kMost = 128;
    if (shape.padding > kMost || std::max(shape.r, shape.s) - 1 - shape.padding > kMost)
        return "needs a padding of at most 128, and filters at most 129 larger than that; these are " +
               course::shape_text(shape.r, shape.s) + " with padding " + text(shape.padding);
    return course::why_no_hopper();
}

void tma_wgmma(const HopperCall& call) {
    course::require(course::is_aligned(call.a, 16) && course::is_aligned(call.b, 16),
                    "conv_layers: an operand is not 16-byte aligned; expected what cudaMalloc returns");
    if (call.shape.k <= 64) {
        launch<HopperTile<128, 64, 3, 2>>(call);
    } else {
        launch<HopperTile<128, 128, 5, 1>>(call);
    }
}

}  // namespace day28
