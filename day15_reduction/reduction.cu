// Day 15's host code: argument checks and the list of versions. The kernels and their launches are
// in reduction.cuh, warp_sums.cuh and beyond/.
#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "beyond/deterministic.cuh"
#include "beyond/single_pass.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "reduction.cuh"
#include "reduction.hpp"
#include "warp_sums.cuh"
#include "warp_sums.hpp"

namespace day15 {
namespace {

using course::DeviceSpan;
using course::require;

template <class Op>
void check_arguments(DeviceSpan<const typename Op::Element> in, DeviceSpan<typename Op::Result> out,
                     unsigned blocks) {
    require(out.size() == 1, "reduction: out has ", out.size(), " elements; expected 1");
    require(!overlap(in, out), "reduction: out lies within in; expected an element of its own");
    require(blocks <= kMostBlocks, "reduction: blocks is ", blocks, "; expected at most ", kMostBlocks,
            ", or 0 for the launcher's choice");
}

static_assert(kMostBlocks == kLargestGrid);

// interleaved, sequential: the tree is in the workspace.
template <auto kLaunch>
void with_scratch(DeviceSpan<const float> in, DeviceSpan<float> out, Workspace& workspace, unsigned blocks,
                  cudaStream_t stream) {
    check_arguments<Sum<float>>(in, out, blocks);
    kLaunch(in.data(), in.size(), out.data(), workspace.results<float>(), blocks, stream);
    CUDA_CHECK_LAUNCH();
}

// shared_memory, coarsened, shuffle, vectorised.
template <auto kLaunch>
void without_scratch(DeviceSpan<const float> in, DeviceSpan<float> out, Workspace&, unsigned blocks,
                     cudaStream_t stream) {
    check_arguments<Sum<float>>(in, out, blocks);
    kLaunch(in.data(), in.size(), out.data(), blocks, stream);
    CUDA_CHECK_LAUNCH();
}

void single_pass(DeviceSpan<const float> in, DeviceSpan<float> out, Workspace& workspace, unsigned blocks,
                 cudaStream_t stream) {
    check_arguments<Sum<float>>(in, out, blocks);
    launch_single_pass(in.data(), in.size(), out.data(), workspace.results<float>(), workspace.ticket(),
                       blocks, stream);
    CUDA_CHECK_LAUNCH();
}

template <class Op>
void deterministic(DeviceSpan<const typename Op::Element> in, DeviceSpan<typename Op::Result> out,
                   Workspace& workspace, unsigned blocks, cudaStream_t stream) {
    check_arguments<Op>(in, out, blocks);
    launch_deterministic<Op>(in.data(), in.size(), out.data(), workspace.results<typename Op::Result>(),
                             workspace.ticket(), blocks, stream);
    CUDA_CHECK_LAUNCH();
}

template <class Op>
course::Work work(const std::size_t& n) {
    using Element = typename Op::Element;
    using Result = typename Op::Result;
    const auto elements = static_cast<double>(n);
    return {.bytes = sizeof(Element) * elements + sizeof(Result),
            .written = sizeof(Result),
            .flops = elements,
            .arithmetic =
                std::is_same_v<Element, float> ? course::Arithmetic::kFp32 : course::Arithmetic::kOther};
}

template <class Op>
Reduction<Op> deterministic_version() {
    return {"deterministic", "the same bits in every run and with every grid", deterministic<Op>, work<Op>};
}

}  // namespace

Workspace::Workspace()
    : ticket_(std::span<const unsigned>(std::array{0U})),
      results_(static_cast<std::size_t>(kMostBlocks) * kBlock) {}

template <class Op>
std::span<const Reduction<Op>> versions() {
    static const std::array<Reduction<Op>, 1> list = {{deterministic_version<Op>()}};
    return list;
}

template <>
std::span<const Reduction<Sum<float>>> versions<Sum<float>>() {
    constexpr auto kWork = work<Sum<float>>;
    static const std::array<Reduction<Sum<float>>, 8> list = {{
        {"interleaved", "a tree over pairs of neighbours, in global memory", with_scratch<launch_interleaved>,
         kWork},
        {"sequential", "pairs half the values apart: no divergence", with_scratch<launch_sequential>, kWork},
        {"shared_memory", "the tree in shared memory", without_scratch<launch_shared_memory>, kWork},
        {"coarsened", "each thread sums many elements, then one tree per block",
         without_scratch<launch_coarsened>, kWork},
        {"shuffle", "warps reduce in registers", without_scratch<launch_shuffle>, kWork},
        {"vectorised", "16-byte loads, eight in flight per thread", without_scratch<launch_vectorised>,
         kWork},
        {"single_pass", "the last block to finish adds up the sums: one launch", single_pass, kWork},
        deterministic_version<Sum<float>>(),
    }};
    return list;
}

template std::span<const Reduction<Sum<std::int32_t>>> versions<Sum<std::int32_t>>();
template std::span<const Reduction<Sum<std::int64_t>>> versions<Sum<std::int64_t>>();
template std::span<const Reduction<Min<float>>> versions<Min<float>>();
template std::span<const Reduction<Min<std::int32_t>>> versions<Min<std::int32_t>>();
template std::span<const Reduction<Min<std::int64_t>>> versions<Min<std::int64_t>>();
template std::span<const Reduction<Max<float>>> versions<Max<float>>();
template std::span<const Reduction<Max<std::int32_t>>> versions<Max<std::int32_t>>();
template std::span<const Reduction<Max<std::int64_t>>> versions<Max<std::int64_t>>();

void sum_each_warp(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream) {
    require(out.size() == course::ceil_div<std::size_t>(in.size(), kWarpSize), "sum_each_warp: in has ",
            in.size(), " elements, out ", out.size(), "; expected one for each 32 of in, rounded up");
    if (in.empty()) return;
    sum_by_warps<<<course::blocks_for(in.size(), kBlock), kBlock, 0, stream>>>(in.data(), in.size(),
                                                                               out.data());
    CUDA_CHECK_LAUNCH();
}

std::size_t shared_bytes_of_sum_each_warp() {
    cudaFuncAttributes attributes{};
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, sum_by_warps));
    return attributes.sharedSizeBytes;
}

void sum_in_a_row(DeviceSpan<const float> in, DeviceSpan<float> out, cudaStream_t stream) {
    require(in.size() == out.size() * kBlock, "sum_in_a_row: in has ", in.size(), " elements, out ",
            out.size(), "; expected ", kBlock, " of in for each of out");
    if (out.empty()) return;
    sum_by_one_block<<<1, kBlock, 0, stream>>>(in.data(), out.size(), out.data());
    CUDA_CHECK_LAUNCH();
}

}  // namespace day15
