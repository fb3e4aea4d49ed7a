// Day 18's launchers: argument checks, the sizes of grids, the list of versions. The kernels are in
// merge.cuh and overlapped.cuh.
#include <algorithm>
#include <array>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "merge.cuh"
#include "merge.hpp"
#include "overlapped.cuh"

namespace day18 {
namespace {

using course::ceil_div;
using course::DeviceSpan;
using course::require;

template <class T>
void check_overlap(const Sorted& a, const Sorted& b, DeviceSpan<T> out, const char* what) {
    require(!overlap(a.keys, out) && !overlap(a.values, out), "merge: the ", what,
            " of out overlap a; expected no element in common");
    require(!overlap(b.keys, out) && !overlap(b.values, out), "merge: the ", what,
            " of out overlap b; expected no element in common");
}

void check_values(const char* array, std::size_t keys, std::size_t values, Operation operation) {
    const bool has_pairs = operation == Operation::kPairs;
    require(values == (has_pairs ? keys : 0), "merge: ", array, " has ", values, " values; expected ",
            has_pairs ? "one for each key, " : "none, as keys are merged alone, ", has_pairs ? keys : 0);
}

void check_arguments(const Sorted& a, const Sorted& b, const Output& out, const Workspace& workspace,
                     Operation operation) {
    const std::size_t total = a.keys.size() + b.keys.size();
    require(out.keys.size() == total, "merge: out has ", out.keys.size(),
            " keys; expected as many as a and b together, ", total);
    check_values("a", a.keys.size(), a.values.size(), operation);
    check_values("b", b.keys.size(), b.values.size(), operation);
    check_values("out", out.keys.size(), out.values.size(), operation);
    check_overlap(a, b, out.keys, "keys");
    check_overlap(a, b, out.values, "values");
    require(!overlap(out.keys, out.values),
            "merge: the keys of out overlap its values; expected no element in common");
    require(workspace.capacity() >= total, "merge: workspace has capacity ", workspace.capacity(),
            "; expected at least the length of out, ", total);
}

// Blocks that do not depend on each other, each with `kShare` elements of the output.
template <auto kKernel, int kBlock, unsigned kShare>
void launch_shares(const Sorted& a, const Sorted& b, const Output& out, Workspace& workspace,
                   cudaStream_t stream) {
    check_arguments(a, b, out, workspace, Operation::kKeys);
    if (out.keys.empty()) return;
    const unsigned grid = course::blocks_for(ceil_div<std::size_t>(out.keys.size(), kShare), 1);
    kKernel<<<grid, kBlock, 0, stream>>>(a.keys.data(), a.keys.size(), b.keys.data(), b.keys.size(),
                                         out.keys.data());
    CUDA_CHECK_LAUNCH();
}

void launch_merge_path(const Sorted& a, const Sorted& b, const Output& out, Workspace& workspace,
                       cudaStream_t stream) {
    check_arguments(a, b, out, workspace, Operation::kKeys);
    if (out.keys.empty()) return;
    const unsigned tiles = course::blocks_for(ceil_div<std::size_t>(out.keys.size(), kPathTile), 1);
    partition<<<course::blocks_for(std::size_t{tiles} + 1, kPartitionBlock), kPartitionBlock, 0, stream>>>(
        a.keys.data(), a.keys.size(), b.keys.data(), b.keys.size(), tiles, workspace.splits());
    CUDA_CHECK_LAUNCH();
    merge_path<<<tiles, kPathBlock, 0, stream>>>(a.keys.data(), a.keys.size(), b.keys.data(), b.keys.size(),
                                                 workspace.splits(), out.keys.data());
    CUDA_CHECK_LAUNCH();
}

template <bool kPairs>
void launch_overlapped(const Sorted& a, const Sorted& b, const Output& out, Workspace& workspace,
                       cudaStream_t stream) {
    check_arguments(a, b, out, workspace, kPairs ? Operation::kPairs : Operation::kKeys);
    if (out.keys.empty()) return;
    const std::size_t tiles = ceil_div<std::size_t>(out.keys.size(), RingShape<kPairs>::kTile);
    const std::size_t resident = course::resident_blocks(overlapped<kPairs>, kRingBlock);
    const auto grid = static_cast<unsigned>(std::min(tiles, resident));
    overlapped<kPairs><<<grid, kRingBlock, 0, stream>>>(a.keys.data(), a.values.data(), a.keys.size(),
                                                        b.keys.data(), b.values.data(), b.keys.size(),
                                                        out.keys.data(), out.values.data());
    CUDA_CHECK_LAUNCH();
}

// Every element is read once and written once.
course::Work keys_work(const std::size_t& elements) {
    const double bytes = sizeof(Key) * static_cast<double>(elements);
    return {.bytes = 2 * bytes, .written = bytes};
}

course::Work pairs_work(const std::size_t& elements) {
    const double bytes = (sizeof(Key) + sizeof(Value)) * static_cast<double>(elements);
    return {.bytes = 2 * bytes, .written = bytes};
}

std::size_t checked(std::size_t capacity) {
    require(capacity <= Workspace::kMostElements, "Workspace: capacity is ", capacity,
            "; expected at most 2^38");
    return capacity;
}

}  // namespace

Workspace::Workspace(std::size_t capacity)
    : capacity_(checked(capacity)), splits_(ceil_div<std::size_t>(capacity, kPathTile) + 1) {}

std::span<const Version> variants() {
    using enum Operation;
    static const std::array<Version, 6> list = {{
        {"basic",
         "each thread finds its share by co-rank",
         {kKeys, launch_shares<basic, kBasicBlock, kBasicBlock * kBasicShare>},
         keys_work},
        {"tiled",
         "tiles of a and b in shared memory",
         {kKeys, launch_shares<tiled, kTiledBlock, kBlockShare>},
         keys_work},
        {"circular_buffer",
         "what is left of a tile stays in its buffer",
         {kKeys, launch_shares<circular_buffer, kTiledBlock, kBlockShare>},
         keys_work},
        {"merge_path",
         "a kernel splits tiles; threads merge in registers",
         {kKeys, launch_merge_path},
         keys_work},
        {"overlapped", "the next tile is loaded meanwhile", {kKeys, launch_overlapped<false>}, keys_work},
        {"overlapped_pairs", "with a value for each key", {kPairs, launch_overlapped<true>}, pairs_work},
    }};
    return list;
}

}  // namespace day18
