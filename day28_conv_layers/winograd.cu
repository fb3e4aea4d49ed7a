// Day 28's launchers of Winograd's convolution, forward and for the gradient of the filters. The
// kernels are in winograd.cuh and winograd_gradient.cuh.
#include <algorithm>

#include "common/device/launch.hpp"
#include "conv_layers.hpp"
#include "launchers.hpp"
#include "winograd.cuh"
#include "winograd_gradient.cuh"

namespace day28 {
namespace {

WinogradSizes winograd_sizes(const Shape& shape, int m) {
    const int across = course::ceil_div(shape.q(), m);
    const int of_image = across * course::ceil_div(shape.p(), m);
    return {.across = across,
            .of_image = of_image,
            .channels = round_up(shape.c, Tile::BK),
            .filters = round_up(shape.k, Tile::BM),
            .tiles = round_up(shape.n * of_image, Tile::BN)};
}

}  // namespace

template <int m>
std::size_t winograd_scratch(const Shape& shape) {
    const WinogradSizes sizes = winograd_sizes(shape, m);
    const auto channels = static_cast<std::size_t>(sizes.channels);
    const auto filters = static_cast<std::size_t>(sizes.filters);
    const auto tiles = static_cast<std::size_t>(sizes.tiles);
    return (m + 2) * (m + 2) * (channels * filters + channels * tiles + filters * tiles);
}

template <int m>
void winograd(const Call& call) {
    constexpr std::size_t kElements = (m + 2) * (m + 2);
    const Shape& shape = call.shape;
    const WinogradSizes sizes = winograd_sizes(shape, m);
    const auto channels = static_cast<unsigned>(sizes.channels);
    float* const u = call.scratch;
    float* const v = u + kElements * channels * static_cast<std::size_t>(sizes.filters);
    float* const products = v + kElements * channels * static_cast<std::size_t>(sizes.tiles);
    const auto transform = [&](int columns, unsigned rows) {
        return course::LaunchConfig{.grid = dim3(blocks(columns, kTransformThreads), rows),
                                    .block = kTransformThreads,
                                    .stream = call.stream};
    };
    course::launch(winograd_filters<m>, transform(sizes.filters, channels), call.b, u, shape, sizes);
    course::launch(winograd_inputs<m>, transform(sizes.tiles, channels), call.a, v, shape, sizes);
    const dim3 grid(blocks(sizes.tiles, Tile::BN), blocks(sizes.filters, Tile::BM), kElements);
    course::launch(winograd_multiply, {.grid = grid, .block = Tile::THREADS, .stream = call.stream}, u, v,
                   products, sizes, 1);
    const bool packs = shape.q() % m == 0 && course::is_aligned(call.out, m * sizeof(float));
    course::launch(winograd_outputs<m>, transform(sizes.tiles, static_cast<unsigned>(shape.k)), products,
                   call.out, shape, sizes, packs);
}

template void winograd<2>(const Call& call);
template void winograd<4>(const Call& call);
template std::size_t winograd_scratch<2>(const Shape& shape);
template std::size_t winograd_scratch<4>(const Shape& shape);

std::string winograd_constraint(const Shape& shape) {
    if (shape.r == 3 && shape.s == 3 && shape.stride == 1) return "";
    return "needs filters of 3 x 3 and stride 1; these are " + course::shape_text(shape.r, shape.s) +
           " with stride " + std::to_string(shape.stride);
}

// --- The gradient of the filters -----------------------------------------------------------------

namespace {

// Enough blocks for a large GPU, and steps enough to fill the pipeline of copies.
constexpr int kGradientBlocks = 600;
constexpr int kFewestGradientSteps = 16;

// The extents of the products, all of them whole tiles of winograd_multiply(); each of the parts
// has as many steps.
template <int m>
struct GradientSizes {
    static constexpr int kElements = (m + 2) * (m + 2);
    WinogradSizes of;
    int parts;

    explicit GradientSizes(const Shape& shape) {
        of.across = course::ceil_div(shape.q(), m);
        of.of_image = of.across * course::ceil_div(shape.p(), m);
        of.filters = round_up(shape.k, Tile::BM);
        of.tiles = round_up(shape.c, Tile::BN);
        // The parts do not depend on the device, so all devices round alike.
        const int results = kElements * (of.filters / Tile::BM) * (of.tiles / Tile::BN);
        const int steps = course::ceil_div(std::max(1, shape.n * of.of_image), Tile::BK);
        parts = std::clamp(course::ceil_div(kGradientBlocks, results), 1,
                           std::max(1, steps / kFewestGradientSteps));
        of.channels = round_up(steps, parts) * Tile::BK;
    }
    std::size_t dm() const {
        return std::size_t{kElements} * static_cast<std::size_t>(of.channels) *
               static_cast<std::size_t>(of.filters);
    }
    std::size_t v() const {
        return std::size_t{kElements} * static_cast<std::size_t>(of.channels) *
               static_cast<std::size_t>(of.tiles);
    }
    std::size_t du() const {
        return std::size_t{kElements} * static_cast<std::size_t>(parts) *
               static_cast<std::size_t>(of.filters) * static_cast<std::size_t>(of.tiles);
    }
};

}  // namespace

template <int m>
std::size_t winograd_gradient_scratch(const Shape& shape) {
    const GradientSizes<m> sizes(shape);
    return sizes.dm() + sizes.v() + sizes.du();
}

template <int m>
void winograd_gradient(const Call& call) {
    const Shape& shape = call.shape;
    const GradientSizes<m> sizes(shape);
    float* const dm = call.scratch;
    float* const v = dm + sizes.dm();
    float* const du = v + sizes.v();
    const auto transform = [&](int channels) {
        return course::LaunchConfig{
            .grid = dim3(blocks(sizes.of.channels, kTilesOfBlock), blocks(channels, kChannelsOfBlock)),
            .block = kTransformThreads,
            .stream = call.stream};
    };
    course::launch(winograd_inputs_channels_last<m>, transform(sizes.of.tiles), call.a, v, shape, sizes.of);
    course::launch(winograd_output_gradients<m>, transform(sizes.of.filters), call.b, dm, shape, sizes.of);
    const dim3 products(blocks(sizes.of.tiles, Tile::BN), blocks(sizes.of.filters, Tile::BM),
                        static_cast<unsigned>(GradientSizes<m>::kElements * sizes.parts));
    course::launch(winograd_multiply, {.grid = products, .block = Tile::THREADS, .stream = call.stream}, dm,
                   v, du, sizes.of, sizes.parts);
    const dim3 filters(blocks(shape.c, kTransformThreads), static_cast<unsigned>(shape.k));
    course::launch(winograd_filter_gradients<m>,
                   {.grid = filters, .block = kTransformThreads, .stream = call.stream}, du, call.out, shape,
                   sizes.of, sizes.parts);
}

template void winograd_gradient<4>(const Call& call);
template std::size_t winograd_gradient_scratch<4>(const Shape& shape);

}  // namespace day28
