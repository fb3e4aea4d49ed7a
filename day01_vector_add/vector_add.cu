// Day 1's launchers: argument checks, the size of the grid, the list of versions. The kernels are
// in vector_add.cuh.
#include <algorithm>
#include <array>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/pack.cuh"
#include "vector_add.cuh"
#include "vector_add.hpp"

namespace day01 {
namespace {

using course::DeviceSpan;
using course::require;

constexpr int kBlockSize = 256;

void check_arguments(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c) {
    require(a.size() == c.size() && b.size() == c.size(), "vector_add: a, b and c have ", a.size(), ", ",
            b.size(), " and ", c.size(), " elements; expected the same number");
    require(a.data() == c.data() || !overlap(a, c),
            "vector_add: c overlaps a but is not a; expected the same elements or none in common");
    require(b.data() == c.data() || !overlap(b, c),
            "vector_add: c overlaps b but is not b; expected the same elements or none in common");
}

void launch_one_per_element(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c,
                            cudaStream_t stream) {
    check_arguments(a, b, c);
    if (c.empty()) return;  // a grid has at least one block
    const unsigned blocks = course::blocks_for(c.size(), kBlockSize);
    add_one_per_element<<<blocks, kBlockSize, 0, stream>>>(a.data(), b.data(), c.data(), c.size());
    CUDA_CHECK_LAUNCH();
}

void launch_grid_stride(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c,
                        cudaStream_t stream) {
    check_arguments(a, b, c);
    if (c.empty()) return;
    const unsigned needed = course::blocks_for(c.size(), kBlockSize);
    const unsigned blocks = std::min(needed, course::resident_blocks(add_grid_stride, kBlockSize));
    add_grid_stride<<<blocks, kBlockSize, 0, stream>>>(a.data(), b.data(), c.data(), c.size());
    CUDA_CHECK_LAUNCH();
}

void launch_float4(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c,
                   cudaStream_t stream) {
    check_arguments(a, b, c);
    if (c.empty()) return;
    const auto aligned = [](const float* pointer) { return course::is_aligned(pointer, sizeof(float4)); };
    if (!aligned(a.data()) || !aligned(b.data()) || !aligned(c.data()))
        return launch_grid_stride(a, b, c, stream);
    const unsigned blocks = course::blocks_for(course::ceil_div<std::size_t>(c.size(), 4), kBlockSize);
    add_float4<<<blocks, kBlockSize, 0, stream>>>(a.data(), b.data(), c.data(), c.size());
    CUDA_CHECK_LAUNCH();
}

course::Work work(const std::size_t& n) {
    const auto elements = static_cast<double>(n);
    return {.bytes = 3 * sizeof(float) * elements, .written = sizeof(float) * elements, .flops = elements};
}

}  // namespace

std::span<const VectorAdd> versions() {
    static const std::array<VectorAdd, 3> list = {{
        {"one_per_element", "one thread per element", launch_one_per_element, work},
        {"grid_stride", "resident threads stride over the data", launch_grid_stride, work},
        {"float4", "16 bytes per access, scalar tail", launch_float4, work},
    }};
    return list;
}

}  // namespace day01
