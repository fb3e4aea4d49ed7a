// Day 28's host code of Winograd's convolution, forward and for the gradient of the filters:
// scratch memory and constraint. The kernels and their launches are in winograd.cuh and
// winograd_gradient.cuh.
#include "common/device/grid.hpp"
#include "launchers.hpp"
#include "winograd.cuh"
#include "winograd_gradient.cuh"

namespace day28 {

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
    with_scratch<launch_winograd<m>>(call);
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

template <int m>
std::size_t winograd_gradient_scratch(const Shape& shape) {
    const GradientSizes<m> sizes(shape);
    return sizes.dm() + sizes.v() + sizes.du();
}

template <int m>
void winograd_gradient(const Call& call) {
    with_scratch<launch_winograd_gradient<m>>(call);
}

template void winograd_gradient<4>(const Call& call);
template std::size_t winograd_gradient_scratch<4>(const Shape& shape);

}  // namespace day28
