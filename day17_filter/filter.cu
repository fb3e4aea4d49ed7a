// Day 17's host code: argument checks and the list of versions. The kernels and their launches are
// in filter.cuh and beyond/.
#include <array>
#include <vector>

#include "beyond/bulk_filter.hpp"
#include "beyond/single_pass.cuh"
#include "beyond/tiles.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_core_support.hpp"
#include "filter.cuh"
#include "filter.hpp"

namespace day17 {
namespace {

using course::ceil_div;
using course::DeviceSpan;
using course::require;

void check_arguments(DeviceSpan<const std::int32_t> in, DeviceSpan<std::int32_t> out, DeviceSpan<Count> count,
                     const Workspace& workspace) {
    require(out.size() >= in.size(), "filter: out has ", out.size(),
            " elements; expected room for all elements of in, ", in.size());
    require(count.size() == 1, "filter: count has ", count.size(), " elements; expected 1");
    require(!overlap(in, out), "filter: out overlaps in; expected no element in common");
    require(!overlap(in, count) && !overlap(out, count),
            "filter: count overlaps in or out; expected memory of its own");
    require(workspace.capacity() >= in.size(), "filter: workspace has capacity ", workspace.capacity(),
            "; expected at least the length of in, ", in.size());
}

void clear(DeviceSpan<Count> count, cudaStream_t stream) {
    CUDA_CHECK(cudaMemsetAsync(count.data(), 0, sizeof(Count), stream));
}

// atomic, warp_aggregated, privatised.
template <auto kLaunch>
void with_counter(DeviceSpan<const std::int32_t> in, std::int32_t threshold, DeviceSpan<std::int32_t> out,
                  DeviceSpan<Count> count, Workspace& workspace, cudaStream_t stream) {
    check_arguments(in, out, count, workspace);
    if (in.empty()) return clear(count, stream);
    kLaunch(in.data(), in.size(), threshold, out.data(), count.data(), stream);
    CUDA_CHECK_LAUNCH();
}

// stable, coarsened.
template <auto kLaunch>
void in_three_kernels(DeviceSpan<const std::int32_t> in, std::int32_t threshold, DeviceSpan<std::int32_t> out,
                      DeviceSpan<Count> count, Workspace& workspace, cudaStream_t stream) {
    check_arguments(in, out, count, workspace);
    if (in.empty()) return clear(count, stream);
    kLaunch(in.data(), in.size(), threshold, out.data(), workspace.counts(), count.data(), stream);
    CUDA_CHECK_LAUNCH();
}

void remove_duplicates(DeviceSpan<const std::int32_t> in, std::int32_t, DeviceSpan<std::int32_t> out,
                       DeviceSpan<Count> count, Workspace& workspace, cudaStream_t stream) {
    check_arguments(in, out, count, workspace);
    if (in.empty()) return clear(count, stream);
    launch_remove_duplicates(in.data(), in.size(), out.data(), workspace.counts(), count.data(), stream);
    CUDA_CHECK_LAUNCH();
}

Progress* progress_of(Workspace& workspace) {
    return reinterpret_cast<Progress*>(workspace.progress());
}

template <class Keep>
void in_one_pass(DeviceSpan<const std::int32_t> in, Keep keep, DeviceSpan<std::int32_t> out,
                 DeviceSpan<Count> count, Workspace& workspace, cudaStream_t stream) {
    check_arguments(in, out, count, workspace);
    if (in.empty()) return clear(count, stream);
    launch_single_pass(in.data(), in.size(), keep, out.data(), count.data(), progress_of(workspace),
                       workspace.words(), stream);
    CUDA_CHECK_LAUNCH();
}

void select_in_one_pass(DeviceSpan<const std::int32_t> in, std::int32_t threshold,
                        DeviceSpan<std::int32_t> out, DeviceSpan<Count> count, Workspace& workspace,
                        cudaStream_t stream) {
    in_one_pass(in, TileBelow{threshold}, out, count, workspace, stream);
}

void unique_in_one_pass(DeviceSpan<const std::int32_t> in, std::int32_t, DeviceSpan<std::int32_t> out,
                        DeviceSpan<Count> count, Workspace& workspace, cudaStream_t stream) {
    in_one_pass(in, TileFirstOfRun{}, out, count, workspace, stream);
}

void partition_in_one_pass(DeviceSpan<const std::int32_t> in, std::int32_t threshold,
                           DeviceSpan<std::int32_t> out, DeviceSpan<Count> count, Workspace& workspace,
                           cudaStream_t stream) {
    check_arguments(in, out, count, workspace);
    if (in.empty()) return clear(count, stream);
    launch_partition(in.data(), in.size(), threshold, out.data(), count.data(), progress_of(workspace),
                     workspace.words(), stream);
    CUDA_CHECK_LAUNCH();
}

std::string needs_bulk_copies(const Problem&) {
    return course::why_no_bulk_copies();
}

void require_bulk_copies() {
    const std::string reason = course::why_no_bulk_copies();
    course::require(reason.empty(), "filter: this version ", reason);
}

// Where `in` is not aligned, bulk copies cannot read it.
bool is_for_bulk_copies(DeviceSpan<const std::int32_t> in) {
    return reinterpret_cast<std::uintptr_t>(in.data()) % 16 == 0;
}

void bulk_select(DeviceSpan<const std::int32_t> in, std::int32_t threshold, DeviceSpan<std::int32_t> out,
                 DeviceSpan<Count> count, Workspace& workspace, cudaStream_t stream) {
    if (!is_for_bulk_copies(in)) return select_in_one_pass(in, threshold, out, count, workspace, stream);
    check_arguments(in, out, count, workspace);
    require_bulk_copies();
    if (in.empty()) return clear(count, stream);
    launch_bulk_filter(in.data(), in.size(), threshold, out.data(), count.data(), workspace, stream);
}

void bulk_duplicates(DeviceSpan<const std::int32_t> in, std::int32_t threshold, DeviceSpan<std::int32_t> out,
                     DeviceSpan<Count> count, Workspace& workspace, cudaStream_t stream) {
    if (!is_for_bulk_copies(in)) return unique_in_one_pass(in, threshold, out, count, workspace, stream);
    check_arguments(in, out, count, workspace);
    require_bulk_copies();
    if (in.empty()) return clear(count, stream);
    launch_bulk_unique(in.data(), in.size(), out.data(), count.data(), workspace, stream);
}

// Every element is read, those kept are written.
course::Work filter_work(const Problem& problem) {
    const double written = sizeof(std::int32_t) * static_cast<double>(problem.kept);
    const double read = sizeof(std::int32_t) * static_cast<double>(problem.elements);
    return {.bytes = read + written, .written = written};
}

course::Work partition_work(const Problem& problem) {
    return filter_work({problem.elements, problem.elements});
}

std::size_t checked(std::size_t capacity) {
    require(capacity <= Workspace::kMostElements, "Workspace: capacity is ", capacity,
            "; expected at most 2^38");
    return capacity;
}

}  // namespace

Workspace::Workspace(std::size_t capacity)
    : capacity_(checked(capacity)),
      counts_(ceil_div<std::size_t>(capacity, kBlock)),
      words_(std::span<const unsigned long long>(
          std::vector<unsigned long long>(ceil_div<std::size_t>(capacity, kTile)))),
      // struct Progress: launch 1, tile 0
      progress_(std::span<const unsigned long long>(std::array{1ULL << 32, 0ULL, Count{words_.size()}})) {}

std::span<const Version> versions() {
    using enum Operation;
    static const std::array<Version, 11> list = {{
        {"atomic",
         "an atomic counter gives each its place",
         {kSelect, false, with_counter<launch_atomic>},
         filter_work},
        {"warp_aggregated",
         "one atomic for what a warp keeps",
         {kSelect, false, with_counter<launch_warp_aggregated>},
         filter_work},
        {"privatised",
         "a block counts in shared memory first",
         {kSelect, false, with_counter<launch_privatised>},
         filter_work},
        {"stable",
         "places from a scan, in three kernels",
         {kSelect, true, in_three_kernels<launch_stable>},
         filter_work},
        {"coarsened",
         "tiles of 4,096 elements, staged in order",
         {kSelect, true, in_three_kernels<launch_coarsened>},
         filter_work},
        {"remove_duplicates",
         "the same kernels keep the first of each run",
         {kUnique, true, remove_duplicates},
         filter_work},
        {"single_pass",
         "look-back: elements are read once",
         {kSelect, true, select_in_one_pass},
         filter_work},
        {"single_pass_unique",
         "look-back, for the first of each run",
         {kUnique, true, unique_in_one_pass},
         filter_work},
        {"partition",
         "the other elements go to the end",
         {kPartition, true, partition_in_one_pass},
         partition_work},
        {"bulk_filter",
         "tiles are counted rounds ahead of their filter",
         {kSelect, true, bulk_select},
         filter_work,
         needs_bulk_copies},
        {"bulk_unique",
         "the same, for the first of each run",
         {kUnique, true, bulk_duplicates},
         filter_work,
         needs_bulk_copies},
    }};
    return list;
}

}  // namespace day17
