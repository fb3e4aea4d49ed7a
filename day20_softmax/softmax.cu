// Day 20's launchers: argument checks, the size of the grid, the list of versions. The kernels are
// in softmax.cuh.
#include <algorithm>
#include <array>
#include <string>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "softmax.cuh"
#include "softmax.hpp"

namespace day20 {
namespace {

using course::DeviceSpan;
using course::require;

constexpr std::size_t kMostParts = 1024;  // few enough for every block to reduce all of them

void check_arguments(DeviceSpan<const float> in, DeviceSpan<float> out, DeviceSpan<MaxSum> workspace) {
    require(in.size() == out.size(), "softmax: in has ", in.size(), " elements and out ", out.size(),
            "; expected the same number");
    require(in.data() == out.data() || !overlap(in, out),
            "softmax: out overlaps in but is not in; expected the same elements or none in common");
    const std::size_t needed = workspace_size(in.size());
    require(workspace.size() >= needed, "softmax: workspace has ", workspace.size(),
            " elements; expected at least ", needed);
}

std::string only_softmax(const Problem& problem) {
    return problem.output == Output::kSoftmax ? "" : "computes softmax, not " + name(problem.output);
}

// A block per part.
int grid_size(std::size_t n) {
    return static_cast<int>(workspace_size(n));
}

// five_kernels and three_kernels keep maxima and sums apart: one float of each per block.
struct FloatParts {
    explicit FloatParts(DeviceSpan<MaxSum> workspace, int blocks)
        : maxima(reinterpret_cast<float*>(workspace.data())), sums(maxima + blocks) {}

    float* maxima;
    float* sums;
};

void launch_five_kernels(Output output, DeviceSpan<const float> in, DeviceSpan<float> out,
                         DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    const std::size_t n = in.size();
    require(output == Output::kSoftmax, "softmax: this version ", only_softmax({n, output}));
    check_arguments(in, out, workspace);
    if (n == 0) return;
    const int blocks = grid_size(n);
    const FloatParts parts(workspace, blocks);
    part_maxima<<<blocks, kBlock, 0, stream>>>(in.data(), parts.maxima, n);
    CUDA_CHECK_LAUNCH();
    subtract_maximum<<<blocks, kBlock, 0, stream>>>(in.data(), out.data(), parts.maxima, blocks, n);
    CUDA_CHECK_LAUNCH();
    exponentiate<<<blocks, kBlock, 0, stream>>>(out.data(), n);
    CUDA_CHECK_LAUNCH();
    part_sums<<<blocks, kBlock, 0, stream>>>(out.data(), parts.sums, n);
    CUDA_CHECK_LAUNCH();
    divide_by_sum<<<blocks, kBlock, 0, stream>>>(out.data(), parts.sums, blocks, n);
    CUDA_CHECK_LAUNCH();
}

void launch_three_kernels(Output output, DeviceSpan<const float> in, DeviceSpan<float> out,
                          DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    const std::size_t n = in.size();
    require(output == Output::kSoftmax, "softmax: this version ", only_softmax({n, output}));
    check_arguments(in, out, workspace);
    if (n == 0) return;
    const int blocks = grid_size(n);
    const FloatParts parts(workspace, blocks);
    part_maxima<<<blocks, kBlock, 0, stream>>>(in.data(), parts.maxima, n);
    CUDA_CHECK_LAUNCH();
    exponentials_and_sums<<<blocks, kBlock, 0, stream>>>(in.data(), out.data(), parts.maxima, parts.sums,
                                                         blocks, n);
    CUDA_CHECK_LAUNCH();
    divide_by_sum<<<blocks, kBlock, 0, stream>>>(out.data(), parts.sums, blocks, n);
    CUDA_CHECK_LAUNCH();
}

void launch_online(Output output, DeviceSpan<const float> in, DeviceSpan<float> out,
                   DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    check_arguments(in, out, workspace);
    const std::size_t n = in.size();
    if (n == 0) return;
    const int blocks = grid_size(n);
    part_maxima_and_sums<<<blocks, kBlock, 0, stream>>>(in.data(), workspace.data(), n);
    CUDA_CHECK_LAUNCH();
    const auto last =
        output == Output::kSoftmax ? normalise<Output::kSoftmax> : normalise<Output::kLogSoftmax>;
    last<<<blocks, kBlock, 0, stream>>>(in.data(), out.data(), workspace.data(), blocks, n);
    CUDA_CHECK_LAUNCH();
}

// Maximum, difference, exponential, sum and quotient: five operations per element.
course::Work work(const Problem& problem) {
    const auto elements = static_cast<double>(problem.n);
    return {
        .bytes = 2 * sizeof(float) * elements, .written = sizeof(float) * elements, .flops = 5 * elements};
}

}  // namespace

std::string name(Output output) {
    return output == Output::kSoftmax ? "softmax" : "log_softmax";
}

// Four elements per thread, until there are kMostParts blocks.
std::size_t workspace_size(std::size_t n) {
    return std::min(kMostParts, course::ceil_div<std::size_t>(n, 4 * kBlock));
}

std::span<const Softmax> versions() {
    static const std::array<Softmax, 3> list = {{
        {"five_kernels", "one kernel per operation", launch_five_kernels, work, only_softmax},
        {"three_kernels", "difference, exponential and sum fused", launch_three_kernels, work, only_softmax},
        {"online", "maximum and sum in one pass", launch_online, work},
    }};
    return list;
}

}  // namespace day20
