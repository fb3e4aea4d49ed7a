// Day 18's host code: argument checks and the list of versions. The kernels and their launches are
// in merge.cuh and beyond/; beyond/bulk_merge.cu is compiled apart, for compute capability 9.0a.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "beyond/bulk_merge.hpp"
#include "beyond/merge_path.cuh"
#include "beyond/overlapped.cuh"
#include "co_ranks.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_core_support.hpp"
#include "merge.cuh"
#include "merge.hpp"

namespace day18 {
namespace {

using course::ceil_div;
using course::DeviceSpan;
using course::require;

bool overlap(const Sorted& a, const Output& out) {
    return overlap(a.keys, out.keys) || overlap(a.keys, out.values) || overlap(a.values, out.keys) ||
           overlap(a.values, out.values);
}

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

void check_ranks(DeviceSpan<const Key> a, DeviceSpan<const Key> b, DeviceSpan<std::size_t> ranks,
                 std::size_t for_each) {
    const std::size_t expected = (a.size() + b.size() + 1) * for_each;
    require(ranks.size() == expected, "co_ranks: ranks has ", ranks.size(), " elements; expected ", for_each,
            " for each number from 0 to the length of a and b together, ", expected);
}

constexpr std::size_t kMostSequential = std::size_t{1} << 17;  // more would take long

std::string constraint_of_one_thread(const std::size_t& elements) {
    if (elements <= kMostSequential) return "";
    return "one thread merges at most " + std::to_string(kMostSequential) + " elements";
}

void enqueue_sequential(const Sorted& a, const Sorted& b, const Output& out, Workspace& workspace,
                        cudaStream_t stream) {
    check_arguments(a, b, out, workspace, Operation::kKeys);
    const std::string reason = constraint_of_one_thread(out.keys.size());
    require(reason.empty(), "merge: out has ", out.keys.size(), " keys; ", reason);
    if (out.keys.empty()) return;
    launch_sequential(a.keys.data(), a.keys.size(), b.keys.data(), b.keys.size(), out.keys.data(), stream);
    CUDA_CHECK_LAUNCH();
}

// basic, tiled, circular_buffer.
template <auto kLaunch>
void enqueue(const Sorted& a, const Sorted& b, const Output& out, Workspace& workspace, cudaStream_t stream) {
    check_arguments(a, b, out, workspace, Operation::kKeys);
    if (out.keys.empty()) return;
    kLaunch(a.keys.data(), a.keys.size(), b.keys.data(), b.keys.size(), out.keys.data(), stream);
    CUDA_CHECK_LAUNCH();
}

void enqueue_merge_path(const Sorted& a, const Sorted& b, const Output& out, Workspace& workspace,
                        cudaStream_t stream) {
    check_arguments(a, b, out, workspace, Operation::kKeys);
    if (out.keys.empty()) return;
    launch_merge_path(a.keys.data(), a.keys.size(), b.keys.data(), b.keys.size(), workspace.splits(),
                      out.keys.data(), stream);
    CUDA_CHECK_LAUNCH();
}

template <bool kPairs>
void enqueue_overlapped(const Sorted& a, const Sorted& b, const Output& out, Workspace& workspace,
                        cudaStream_t stream) {
    check_arguments(a, b, out, workspace, kPairs ? Operation::kPairs : Operation::kKeys);
    if (out.keys.empty()) return;
    launch_overlapped<kPairs>(a.keys.data(), a.values.data(), a.keys.size(), b.keys.data(), b.values.data(),
                              b.keys.size(), out.keys.data(), out.values.data(), stream);
    CUDA_CHECK_LAUNCH();
}

// Where an array is not aligned, bulk copies cannot read it, so overlapped is used.
template <bool kPairs>
void enqueue_bulk(const Sorted& a, const Sorted& b, const Output& out, Workspace& workspace,
                  cudaStream_t stream) {
    const auto is_aligned = [](auto span) { return reinterpret_cast<std::uintptr_t>(span.data()) % 16 == 0; };
    if (!is_aligned(a.keys) || !is_aligned(a.values) || !is_aligned(b.keys) || !is_aligned(b.values) ||
        !is_aligned(out.keys) || !is_aligned(out.values))
        return enqueue_overlapped<kPairs>(a, b, out, workspace, stream);
    check_arguments(a, b, out, workspace, kPairs ? Operation::kPairs : Operation::kKeys);
    const std::string reason = course::why_no_bulk_copies();
    require(reason.empty(), "merge: this version ", reason);
    if (out.keys.empty()) return;
    enqueue_bulk_merge<kPairs>(a, b, out, workspace, stream);
}

std::string needs_bulk_copies(const std::size_t&) {
    return course::why_no_bulk_copies();
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

// `count` elements from `offset` on.
Output part_of(const Output& all, std::size_t offset, std::size_t count) {
    return {all.keys.subspan(offset, count),
            all.values.empty() ? all.values : all.values.subspan(offset, count)};
}

// One round of merge_many: the first array with the second, the third with the fourth, and so on. A
// last one without a partner is merged with an empty array. Returns where the results are.
std::vector<Sorted> merge_neighbours(Launcher launch, std::span<const Sorted> runs, const Output& to,
                                     Workspace& workspace, cudaStream_t stream) {
    std::vector<Sorted> merged;
    std::size_t offset = 0;
    for (std::size_t r = 0; r < runs.size(); r += 2) {
        const Sorted& a = runs[r];
        const Sorted b = r + 1 < runs.size() ? runs[r + 1] : Sorted{};
        const Output part = part_of(to, offset, a.keys.size() + b.keys.size());
        launch(a, b, part, workspace, stream);
        merged.push_back({part.keys, part.values});
        offset += part.keys.size();
    }
    return merged;
}

}  // namespace

void merge_many(Operation operation, std::span<const Sorted> runs, const Output& out, const Output& spare,
                Workspace& workspace, cudaStream_t stream) {
    std::size_t total = 0;
    for (std::size_t r = 0; r < runs.size(); ++r) {
        total += runs[r].keys.size();
        check_values("a run", runs[r].keys.size(), runs[r].values.size(), operation);
        require(!overlap(runs[r], out) && !overlap(runs[r], spare), "merge_many: run ", r,
                " overlaps out or spare; expected no element in common");
    }
    for (const Output* const output : {&out, &spare}) {
        require(output->keys.size() == total, "merge_many: out or spare has ", output->keys.size(),
                " keys; expected as many as all runs together, ", total);
        check_values("out or spare", total, output->values.size(), operation);
    }
    require(!overlap({spare.keys, spare.values}, out),
            "merge_many: out overlaps spare; expected no element in common");
    require(workspace.capacity() >= total, "merge_many: workspace has capacity ", workspace.capacity(),
            "; expected at least the length of out, ", total);

    const bool has_bulk_copies = course::why_no_bulk_copies().empty();
    const Launcher launch_keys = has_bulk_copies ? enqueue_bulk<false> : enqueue_overlapped<false>;
    const Launcher launch_pairs = has_bulk_copies ? enqueue_bulk<true> : enqueue_overlapped<true>;
    const Launcher launch = operation == Operation::kPairs ? launch_pairs : launch_keys;
    std::size_t rounds = 1;
    while ((std::size_t{1} << rounds) < runs.size())
        ++rounds;
    std::vector<Sorted> current(runs.begin(), runs.end());
    // The last round, number 1, writes to `out`, the one before it to `spare`, and so on.
    for (; rounds > 0; --rounds)
        current = merge_neighbours(launch, current, rounds % 2 == 1 ? out : spare, workspace, stream);
}

void co_ranks_by_threads(DeviceSpan<const Key> a, DeviceSpan<const Key> b, DeviceSpan<std::size_t> ranks,
                         cudaStream_t stream) {
    check_ranks(a, b, ranks, 1);
    launch_find_co_ranks(a.data(), a.size(), b.data(), b.size(), ranks.data(), stream);
    CUDA_CHECK_LAUNCH();
}

void co_ranks_by_warps(DeviceSpan<const Key> a, DeviceSpan<const Key> b, DeviceSpan<std::size_t> ranks,
                       cudaStream_t stream) {
    check_ranks(a, b, ranks, kWarpSize);
    launch_find_co_ranks_by_warps(a.data(), a.size(), b.data(), b.size(), ranks.data(), stream);
    CUDA_CHECK_LAUNCH();
}

Workspace::Workspace(std::size_t capacity)
    : capacity_(checked(capacity)), splits_(ceil_div<std::size_t>(capacity, kPathTile) + 1), ticket_(1) {}

std::span<const Version> versions() {
    using enum Operation;
    static const std::array<Version, 9> list = {{
        {"sequential",
         "one thread merges everything",
         {kKeys, enqueue_sequential},
         keys_work,
         constraint_of_one_thread},
        {"basic", "each thread finds its share by co-rank", {kKeys, enqueue<launch_basic>}, keys_work},
        {"tiled", "tiles of a and b in shared memory", {kKeys, enqueue<launch_tiled>}, keys_work},
        {"circular_buffer",
         "ring buffers keep what a tile has left",
         {kKeys, enqueue<launch_circular_buffer>},
         keys_work},
        {"merge_path",
         "a kernel splits tiles; threads merge in registers",
         {kKeys, enqueue_merge_path},
         keys_work},
        {"overlapped",
         "the next tile is loaded during the merge",
         {kKeys, enqueue_overlapped<false>},
         keys_work},
        {"overlapped_pairs", "with a value for each key", {kPairs, enqueue_overlapped<true>}, pairs_work},
        {"bulk_merge",
         "one warp searches and loads, the others merge",
         {kKeys, enqueue_bulk<false>},
         keys_work,
         needs_bulk_copies},
        {"bulk_merge_pairs",
         "with a value for each key",
         {kPairs, enqueue_bulk<true>},
         pairs_work,
         needs_bulk_copies},
    }};
    return list;
}

}  // namespace day18
