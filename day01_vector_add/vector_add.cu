// Day 1's host code: argument checks and the list of versions. The kernels and their launches are
// in vector_add.cuh.
#include <array>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/pack.cuh"
#include "vector_add.cuh"
#include "vector_add.hpp"

namespace day01 {
namespace {

using course::DeviceSpan;
using course::require;

void check_arguments(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c) {
    require(a.size() == c.size() && b.size() == c.size(), "vector_add: a, b and c have ", a.size(), ", ",
            b.size(), " and ", c.size(), " elements; expected the same number");
    require(a.data() == c.data() || !overlap(a, c),
            "vector_add: c overlaps a but is not a; expected the same elements or none in common");
    require(b.data() == c.data() || !overlap(b, c),
            "vector_add: c overlaps b but is not b; expected the same elements or none in common");
}

template <auto kLaunch>
void add(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c, cudaStream_t stream) {
    check_arguments(a, b, c);
    kLaunch(a.data(), b.data(), c.data(), c.size(), stream);
    CUDA_CHECK_LAUNCH();
}

// float4 needs 16-byte aligned addresses; grid_stride takes the others.
void add_aligned(DeviceSpan<const float> a, DeviceSpan<const float> b, DeviceSpan<float> c,
                 cudaStream_t stream) {
    const auto aligned = [](const float* pointer) { return course::is_aligned(pointer, sizeof(float4)); };
    const bool all = aligned(a.data()) && aligned(b.data()) && aligned(c.data());
    (all ? add<launch_float4> : add<launch_grid_stride>)(a, b, c, stream);
}

course::Work work(const std::size_t& n) {
    const auto elements = static_cast<double>(n);
    return {.bytes = 3 * sizeof(float) * elements, .written = sizeof(float) * elements, .flops = elements};
}

}  // namespace

std::span<const VectorAdd> versions() {
    static const std::array<VectorAdd, 3> list = {{
        {"one_per_element", "one thread per element", add<launch_one_per_element>, work},
        {"grid_stride", "resident threads stride over the data", add<launch_grid_stride>, work},
        {"float4", "16 bytes per access, scalar tail", add_aligned, work},
    }};
    return list;
}

}  // namespace day01
