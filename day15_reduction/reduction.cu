// Day 15's launchers: argument checks, the size of the grid, the list of versions. The kernels are
// in reduction.cuh, deterministic.cuh and warp_sums.cuh.
#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "deterministic.cuh"
#include "reduction.cuh"
#include "reduction.hpp"
#include "warp_sums.cuh"
#include "warp_sums.hpp"

namespace day15 {
namespace {

using course::ceil_div;
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

// The size of the grid: `wanted`, or if that is 0, a block per piece of work, at least 1 and at
// most `most`.
unsigned grid_size(unsigned wanted, std::size_t pieces, unsigned most) {
    if (wanted > 0) return wanted;
    return static_cast<unsigned>(std::clamp<std::size_t>(pieces, 1, std::min(most, kMostBlocks)));
}

// The atomics add to *out.
void set_to_zero(DeviceSpan<float> out, cudaStream_t stream) {
    CUDA_CHECK(cudaMemsetAsync(out.data(), 0, sizeof(float), stream));
}

// interleaved, sequential: the tree is in the workspace, which limits the number of blocks.
template <auto kKernel>
void launch_with_scratch(DeviceSpan<const float> in, DeviceSpan<float> out, Workspace& workspace,
                         unsigned blocks, cudaStream_t stream) {
    check_arguments<Sum<float>>(in, out, blocks);
    set_to_zero(out, stream);
    const unsigned grid = grid_size(blocks, ceil_div<std::size_t>(in.size(), kBlock), kMostBlocks);
    kKernel<<<grid, kBlock, 0, stream>>>(in.data(), in.size(), out.data(), workspace.results<float>());
    CUDA_CHECK_LAUNCH();
}

// shared_memory, coarsened, shuffle, vectorised: a block for every kPiece elements, as many as are
// resident at once.
template <auto kKernel, int kPiece>
void launch_with_atomics(DeviceSpan<const float> in, DeviceSpan<float> out, Workspace&, unsigned blocks,
                         cudaStream_t stream) {
    check_arguments<Sum<float>>(in, out, blocks);
    set_to_zero(out, stream);
    const unsigned grid =
        grid_size(blocks, ceil_div<std::size_t>(in.size(), kPiece), course::resident_blocks(kKernel, kBlock));
    kKernel<<<grid, kBlock, 0, stream>>>(in.data(), in.size(), out.data());
    CUDA_CHECK_LAUNCH();
}

void launch_single_pass(DeviceSpan<const float> in, DeviceSpan<float> out, Workspace& workspace,
                        unsigned blocks, cudaStream_t stream) {
    check_arguments<Sum<float>>(in, out, blocks);
    const unsigned grid = grid_size(blocks, ceil_div<std::size_t>(in.size(), kTile),
                                    course::resident_blocks(reduce_single_pass, kBlock));
    reduce_single_pass<<<grid, kBlock, 0, stream>>>(in.data(), in.size(), out.data(),
                                                    workspace.results<float>(), workspace.ticket());
    CUDA_CHECK_LAUNCH();
}

template <class Op>
void launch_deterministic(DeviceSpan<const typename Op::Element> in, DeviceSpan<typename Op::Result> out,
                          Workspace& workspace, unsigned blocks, cudaStream_t stream) {
    check_arguments<Op>(in, out, blocks);
    // The segments must not depend on the device: at most kMostBlocks, of as many tiles each; the
    // last may have fewer.
    const std::size_t tiles = tiles_of<Op>(in.size());
    const std::size_t tiles_per_segment = std::max<std::size_t>(1, ceil_div<std::size_t>(tiles, kMostBlocks));
    const auto segments = static_cast<unsigned>(ceil_div(tiles, tiles_per_segment));
    // The grid may, because the block that reduces a segment does not affect its result.
    const unsigned grid =
        grid_size(blocks, segments, course::resident_blocks(reduce_deterministic<Op>, kBlock));
    reduce_deterministic<Op><<<grid, kBlock, 0, stream>>>(in.data(), in.size(), out.data(),
                                                          workspace.results<typename Op::Result>(),
                                                          workspace.ticket(), segments, tiles_per_segment);
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
Reduction<Op> deterministic() {
    return {"deterministic", "the same bits in every run and with every grid", launch_deterministic<Op>,
            work<Op>};
}

}  // namespace

Workspace::Workspace()
    : ticket_(std::span<const unsigned>(std::array{0U})),
      results_(static_cast<std::size_t>(kMostBlocks) * kBlock) {}

template <class Op>
std::span<const Reduction<Op>> versions() {
    static const std::array<Reduction<Op>, 1> list = {{deterministic<Op>()}};
    return list;
}

template <>
std::span<const Reduction<Sum<float>>> versions<Sum<float>>() {
    constexpr auto kWork = work<Sum<float>>;
    static const std::array<Reduction<Sum<float>>, 8> list = {{
        {"interleaved", "a tree over pairs of neighbours, in global memory",
         launch_with_scratch<reduce_interleaved>, kWork},
        {"sequential", "pairs half the values apart: no divergence", launch_with_scratch<reduce_sequential>,
         kWork},
        {"shared_memory", "the tree in shared memory", launch_with_atomics<reduce_shared_memory, kBlock>,
         kWork},
        {"coarsened", "each thread sums many elements, then one tree per block",
         launch_with_atomics<reduce_coarsened, kBlock>, kWork},
        {"shuffle", "warps reduce in registers", launch_with_atomics<reduce_shuffle, kBlock>, kWork},
        {"vectorised", "16-byte loads, eight in flight per thread",
         launch_with_atomics<reduce_vectorised, kTile>, kWork},
        {"single_pass", "the last block to finish adds up the sums: one launch", launch_single_pass, kWork},
        deterministic<Sum<float>>(),
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
