// Day 20's host code: argument checks and the list of versions. The kernels and their launches are
// in softmax.cuh.
#include <array>
#include <string>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "softmax.cuh"
#include "softmax.hpp"

namespace day20 {
namespace {

using course::DeviceSpan;
using course::require;

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

// five_kernels and three_kernels. They keep maxima and sums apart: one float of each per block.
template <auto kLaunch>
void softmax_only(Output output, DeviceSpan<const float> in, DeviceSpan<float> out,
                  DeviceSpan<MaxSum> workspace, cudaStream_t stream) {
    const std::size_t n = in.size();
    require(output == Output::kSoftmax, "softmax: this version ", only_softmax({n, output}));
    check_arguments(in, out, workspace);
    if (n == 0) return;
    float* const maxima = reinterpret_cast<float*>(workspace.data());
    kLaunch(in.data(), out.data(), maxima, maxima + workspace_size(n), n, stream);
    CUDA_CHECK_LAUNCH();
}

void online(Output output, DeviceSpan<const float> in, DeviceSpan<float> out, DeviceSpan<MaxSum> workspace,
            cudaStream_t stream) {
    check_arguments(in, out, workspace);
    if (in.empty()) return;
    const auto launch =
        output == Output::kSoftmax ? launch_online<Output::kSoftmax> : launch_online<Output::kLogSoftmax>;
    launch(in.data(), out.data(), workspace.data(), in.size(), stream);
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

std::size_t workspace_size(std::size_t n) {
    return static_cast<std::size_t>(parts_of(n));
}

std::span<const Softmax> versions() {
    static const std::array<Softmax, 3> list = {{
        {"five_kernels", "one kernel per operation", softmax_only<launch_five_kernels>, work, only_softmax},
        {"three_kernels", "difference, exponential and sum fused", softmax_only<launch_three_kernels>, work,
         only_softmax},
        {"online", "maximum and sum in one pass", online, work},
    }};
    return list;
}

}  // namespace day20
