// Day 1: the host's side of vector_add.cuh. Arguments are checked, grids are sized, kernels are launched.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "common/check/check.hpp"
#include "common/device/grid.hpp"
#include "vector_add.cuh"
#include "vector_add.hpp"

namespace day01 {
namespace {

using course::DeviceSpan;

constexpr int kBlockSize = 256;

void require(bool condition, const std::string& message) {
    if (!condition) throw std::invalid_argument("vector_add: " + message);
}

// The same elements, or none in common.
bool same_or_apart(DeviceSpan<const float> in, DeviceSpan<float> out) {
    return in.data() == out.data() || !overlap(in, out);
}

void check_arguments(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c) {
    require(a.size() == c.size() && b.size() == c.size(),
            "a, b and c have " + std::to_string(a.size()) + ", " + std::to_string(b.size()) + " and " +
                std::to_string(c.size()) + " elements; expected the same number");
    require(same_or_apart(a, c), "c overlaps a but is not a; expected the same elements or none in common");
    require(same_or_apart(b, c), "c overlaps b but is not b; expected the same elements or none in common");
}

void launch_one_per_element(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c,
                            cudaStream_t stream) {
    check_arguments(a, b, c);
    if (c.empty()) return;  // a grid must have a block
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
    for (const void* pointer : {static_cast<const void*>(a.data()), static_cast<const void*>(b.data()),
                                static_cast<const void*>(c.data())}) {
        if (!course::is_aligned(pointer, sizeof(Float4))) return launch_grid_stride(a, b, c, stream);
    }
    const unsigned blocks = course::blocks_for(course::ceil_div<std::size_t>(c.size(), 4), kBlockSize);
    add_float4<<<blocks, kBlockSize, 0, stream>>>(a.data(), b.data(), c.data(), c.size());
    CUDA_CHECK_LAUNCH();
}

course::Work work(const std::size_t& n) {
    const auto elements = static_cast<double>(n);
    return {.bytes = 3 * sizeof(float) * elements, .written = sizeof(float) * elements, .flops = elements};
}

}  // namespace

// --- The list ----------------------------------------------------------------------------------------------------------

std::span<const VectorAdd> variants() {
    static const std::array<VectorAdd, 3> list = {{
        {"one_per_element", "one thread per element", launch_one_per_element, work},
        {"grid_stride", "resident threads stride over the data", launch_grid_stride, work},
        {"float4", "16 bytes per access, scalar tail", launch_float4, work},
    }};
    return list;
}

}  // namespace day01
