// Day 33's launchers of pooling, bias and activation. The kernels are in pooling.cuh and
// bias_relu.cuh.
#include "bias_relu.cuh"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/launch.hpp"
#include "pooling.cuh"
#include "pooling.hpp"

namespace day33 {
namespace {

using course::require;

constexpr std::size_t kMostElements = std::size_t{1} << 30;

void check(const PoolShape& shape) {
    require(shape.planes >= 0 && shape.h >= 1 && shape.w >= 1 && shape.h <= 32768 && shape.w <= 32768,
            "pooling: ", shape.planes, " planes of ", course::shape_text(shape.h, shape.w),
            "; expected planes of 1 to 32768 rows and columns");
    require(shape.window >= 1 && shape.window <= 16, "pooling: window is ", shape.window,
            "; expected 1 to 16, so that a byte holds a place in it");
    require(shape.stride >= 1 && shape.stride <= 32768, "pooling: stride is ", shape.stride,
            "; expected 1 to 32768");
    require(shape.padding >= 0 && 2 * shape.padding <= shape.window, "pooling: padding is ", shape.padding,
            "; expected at most half of the window, which is ", shape.window);
    require(shape.window <= shape.h + 2 * shape.padding && shape.window <= shape.w + 2 * shape.padding,
            "pooling: window is ", shape.window, " and the plane with padding ",
            course::shape_text(shape.h + 2 * shape.padding, shape.w + 2 * shape.padding),
            "; expected a window that fits into it");
    require(shape.inputs() <= kMostElements && shape.outputs() <= kMostElements, "pooling: ", shape.inputs(),
            " and ", shape.outputs(), " elements; expected at most ", kMostElements);
}

void check_length(const char* name, std::size_t got, std::size_t expected) {
    require(got == expected, "pooling: ", name, " has ", got, " elements; expected ", expected);
}

course::LaunchConfig a_thread_each(std::size_t threads, cudaStream_t stream) {
    return {.grid = course::blocks_for(threads, kPoolThreads), .block = kPoolThreads, .stream = stream};
}

}  // namespace

void max_pool(const PoolShape& shape, DeviceSpan<const float> x, DeviceSpan<float> y,
              DeviceSpan<std::uint8_t> place, cudaStream_t stream) {
    check(shape);
    check_length("x", x.size(), shape.inputs());
    check_length("y", y.size(), shape.outputs());
    check_length("place", place.size(), shape.outputs());
    if (y.empty()) return;
    // Windows of max_pool_rows: a row of x is whole packs of four, a row of y of two.
    const bool usual = shape.stride == 2 && shape.window >= 2 && shape.window <= 3 &&
                       shape.padding == shape.window - 2 && shape.w % 4 == 0;
    if (usual && course::is_aligned(x.data(), 16) && course::is_aligned(y.data(), 8) &&
        course::is_aligned(place.data(), 2)) {
        const std::size_t threads = static_cast<std::size_t>(shape.planes) *
                                    static_cast<std::size_t>(course::ceil_div(shape.p(), kRowsOfThread)) *
                                    static_cast<std::size_t>(shape.w / 4);
        course::launch(shape.window == 2 ? max_pool_rows<2> : max_pool_rows<3>,
                       a_thread_each(threads, stream), x.data(), y.data(), place.data(), shape);
        return;
    }
    const auto kernel = shape.window == 2   ? max_pool_windows<2>
                        : shape.window == 3 ? max_pool_windows<3>
                                            : max_pool_windows<0>;
    course::launch(kernel, a_thread_each(y.size(), stream), x.data(), y.data(), place.data(), shape);
}

void max_pool_gradient(const PoolShape& shape, DeviceSpan<const float> dy,
                       DeviceSpan<const std::uint8_t> place, DeviceSpan<float> dx, cudaStream_t stream) {
    check(shape);
    check_length("dy", dy.size(), shape.outputs());
    check_length("place", place.size(), shape.outputs());
    check_length("dx", dx.size(), shape.inputs());
    if (dx.empty()) return;
    course::launch(max_pool_gather, a_thread_each(dx.size(), stream), dy.data(), place.data(), dx.data(),
                   shape);
}

void average_pool(const PoolShape& shape, DeviceSpan<const float> x, DeviceSpan<float> y,
                  cudaStream_t stream) {
    check(shape);
    check_length("x", x.size(), shape.inputs());
    check_length("y", y.size(), shape.outputs());
    if (y.empty()) return;
    const auto kernel = shape.window == 2   ? average_pool_windows<2>
                        : shape.window == 3 ? average_pool_windows<3>
                                            : average_pool_windows<0>;
    course::launch(kernel, a_thread_each(y.size(), stream), x.data(), y.data(), shape);
}

void average_pool_gradient(const PoolShape& shape, DeviceSpan<const float> dy, DeviceSpan<float> dx,
                           cudaStream_t stream) {
    check(shape);
    check_length("dy", dy.size(), shape.outputs());
    check_length("dx", dx.size(), shape.inputs());
    if (dx.empty()) return;
    course::launch(average_pool_gather, a_thread_each(dx.size(), stream), dy.data(), dx.data(), shape);
}

void check(const Channels& shape) {
    constexpr std::size_t kMost = std::size_t{1} << 30;
    course::require(shape.n >= 0 && shape.k >= 1 && shape.plane >= 1 && shape.elements() <= kMost,
                    "channels: n, k, plane are ", shape.n, ", ", shape.k, ", ", shape.plane,
                    "; expected n >= 0, the others >= 1, and at most 2^30 elements");
}

void bias_relu(const Channels& shape, DeviceSpan<float> y, DeviceSpan<const float> bias,
               cudaStream_t stream) {
    check(shape);
    check_length("y", y.size(), shape.elements());
    check_length("bias", bias.size(), static_cast<std::size_t>(shape.k));
    if (y.empty()) return;
    const bool fours = shape.plane % 4 == 0 && course::is_aligned(y.data(), 16);
    const int pack = fours ? 4 : 1;
    const std::size_t packs = y.size() / static_cast<std::size_t>(pack);
    course::launch(fours ? add_bias_relu<4> : add_bias_relu<1>, a_thread_each(packs, stream), y.data(),
                   bias.data(), static_cast<int>(packs), shape.k, shape.plane / pack);
}

void bias_relu_gradient(const Channels& shape, DeviceSpan<const float> y, DeviceSpan<const float> dy,
                        DeviceSpan<float> dz, DeviceSpan<float> dbias, DeviceSpan<float> scratch,
                        cudaStream_t stream) {
    check(shape);
    const auto planes = static_cast<std::size_t>(shape.n) * static_cast<std::size_t>(shape.k);
    check_length("y", y.size(), shape.elements());
    check_length("dy", dy.size(), shape.elements());
    check_length("dz", dz.size(), shape.elements());
    check_length("dbias", dbias.size(), static_cast<std::size_t>(shape.k));
    check_length("scratch", scratch.size(), planes);
    if (dbias.empty()) return;
    if (planes > 0)
        course::launch(relu_gradient_planes,
                       {.grid = static_cast<unsigned>(planes), .block = kPoolThreads, .stream = stream},
                       y.data(), dy.data(), dz.data(), scratch.data(), shape.plane);
    course::launch(add_planes, a_thread_each(dbias.size(), stream), scratch.data(), dbias.data(), shape.n,
                   shape.k);
}

}  // namespace day33
