// Day 24's host code: argument checks and the list of versions. The kernels and their launches are
// in single_pass.cuh.
#include <array>
#include <limits>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "single_pass.cuh"
#include "single_pass.hpp"

namespace day24 {
namespace {

using course::ceil_div;
using course::DeviceSpan;
using course::require;

void check_workspace(const char* what, std::size_t n, const Workspace& workspace) {
    require(workspace.capacity() >= n, what, ": workspace has capacity ", workspace.capacity(),
            "; expected at least the length of in, ", n);
}

void check_scan(DeviceSpan<const std::int32_t> in, DeviceSpan<std::int32_t> out, const Workspace& workspace) {
    require(out.size() == in.size(), "scan: in has ", in.size(), " elements and out ", out.size(),
            "; expected the same number");
    require(in.data() == out.data() || !overlap(in, out),
            "scan: out overlaps in; expected in itself, or memory apart");
    check_workspace("scan", in.size(), workspace);
}

// grid_barrier.
template <auto kLaunch>
void with_sums(DeviceSpan<const std::int32_t> in, DeviceSpan<std::int32_t> out, Workspace& workspace,
               cudaStream_t stream) {
    check_scan(in, out, workspace);
    if (in.empty()) return;
    kLaunch(in.data(), out.data(), in.size(), workspace.sums(), stream);
    CUDA_CHECK_LAUNCH();
}

// domino.
template <auto kLaunch>
void with_board_and_prefixes(DeviceSpan<const std::int32_t> in, DeviceSpan<std::int32_t> out,
                             Workspace& workspace, cudaStream_t stream) {
    check_scan(in, out, workspace);
    if (in.empty()) return;
    kLaunch(in.data(), out.data(), in.size(), workspace.board(), workspace.sums(), stream);
    CUDA_CHECK_LAUNCH();
}

// look_back, look_back_warp.
template <auto kLaunch>
void with_board(DeviceSpan<const std::int32_t> in, DeviceSpan<std::int32_t> out, Workspace& workspace,
                cudaStream_t stream) {
    check_scan(in, out, workspace);
    if (in.empty()) return;
    kLaunch(in.data(), out.data(), in.size(), workspace.board(), stream);
    CUDA_CHECK_LAUNCH();
}

course::Work work(const std::size_t& n) {
    const auto elements = static_cast<double>(n);
    return {.bytes = 8 * elements, .written = 4 * elements, .flops = elements};
}

}  // namespace

Workspace::Workspace(std::size_t capacity)
    : capacity_(capacity),
      board_(1 + ceil_div<std::size_t>(capacity, kTile)),
      sums_(ceil_div<std::size_t>(capacity, kTile)) {}

std::span<const Version> versions() {
    static const std::array<Version, 4> list = {{
        {"grid_barrier", "all blocks meet, twice", with_sums<launch_grid_barrier>, work},
        {"domino", "each tile waits for the one before", with_board_and_prefixes<launch_domino>, work},
        {"look_back", "a thread adds up the sums before its tile", with_board<launch_look_back>, work},
        {"look_back_warp", "a warp adds up 32 of them at a time", with_board<launch_look_back_warp>, work},
    }};
    return list;
}

void filter_below(DeviceSpan<const std::int32_t> in, std::int32_t threshold, DeviceSpan<std::int32_t> out,
                  DeviceSpan<std::uint32_t> count, Workspace& workspace, cudaStream_t stream) {
    require(out.size() >= in.size(), "filter: out has ", out.size(),
            " elements; expected room for all elements of in, ", in.size());
    require(in.size() <= std::numeric_limits<std::int32_t>::max(), "filter: in has ", in.size(),
            " elements; expected at most 2^31 - 1");
    require(count.size() == 1, "filter: count has ", count.size(), " elements; expected 1");
    require(!overlap(in, out), "filter: out overlaps in; expected no element in common");
    require(!overlap(in, count) && !overlap(out, count),
            "filter: count overlaps in or out; expected memory of its own");
    check_workspace("filter", in.size(), workspace);
    if (in.empty()) {
        CUDA_CHECK(cudaMemsetAsync(count.data(), 0, sizeof(std::uint32_t), stream));
        return;
    }
    launch_filter(in.data(), in.size(), threshold, out.data(), count.data(), workspace.board(), stream);
    CUDA_CHECK_LAUNCH();
}

void resume(std::string_view version, DeviceSpan<const std::int32_t> in, DeviceSpan<std::int32_t> out,
            Workspace& workspace, cudaStream_t stream) {
    check_scan(in, out, workspace);
    const unsigned tiles = course::blocks_for(in.size(), kTile);
    const std::size_t n = in.size();
    Word* const board = workspace.board();
    if (version == "domino") {
        domino<<<tiles, kBlock, 0, stream>>>(in.data(), out.data(), n, board, workspace.sums());
    } else if (version == "look_back") {
        look_back<<<tiles, kBlock, 0, stream>>>(in.data(), out.data(), n, board);
    } else {
        require(version == "look_back_warp", "resume: version is ", version,
                "; expected domino, look_back or look_back_warp");
        look_back_warp<<<tiles, kBlock, 0, stream>>>(in.data(), out.data(), n, board);
    }
    CUDA_CHECK_LAUNCH();
}

}  // namespace day24
