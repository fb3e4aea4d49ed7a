// Day 19's host code: argument checks and the list of versions. The kernels and their launches are
// in sort.cuh and beyond/; beyond/radix_sort.cu calls those of the radix sorts by bytes.
#include <algorithm>
#include <array>
#include <string>

#include "beyond/merge_sort.cuh"
#include "beyond/odd_even.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "sort.cuh"
#include "sort.hpp"

namespace day19 {
namespace {

using course::ceil_div;
using course::DeviceSpan;
using course::require;

void check_arguments(DeviceSpan<const Key> in, DeviceSpan<Key> out, const Workspace& workspace) {
    require(out.size() == in.size(), "sort: out has ", out.size(), " keys; expected as many as in, ",
            in.size());
    require(!overlap(in, out), "sort: out overlaps in; expected no key in common");
    require(workspace.capacity() >= in.size(), "sort: workspace has capacity ", workspace.capacity(),
            "; expected at least the length of in, ", in.size());
}

template <unsigned kMost>
std::string constraint(const std::size_t& n) {
    if (n <= kMost) return "";
    return "one block sorts at most " + std::to_string(kMost) + " keys";
}

template <unsigned kMost>
void check_length(std::size_t n) {
    require(n <= kMost, "sort: in has ", n, " keys; ", constraint<kMost>(n));
}

void enqueue_odd_even(DeviceSpan<const Key> in, DeviceSpan<Key> out, Workspace& workspace,
                      cudaStream_t stream) {
    check_arguments(in, out, workspace);
    check_length<kOddEvenKeys>(in.size());
    if (in.empty()) return;
    launch_odd_even(in.data(), static_cast<unsigned>(in.size()), out.data(), stream);
    CUDA_CHECK_LAUNCH();
}

void enqueue_bitonic_block(DeviceSpan<const Key> in, DeviceSpan<Key> out, Workspace& workspace,
                           cudaStream_t stream) {
    check_arguments(in, out, workspace);
    check_length<kSorted>(in.size());
    if (in.empty()) return;
    launch_bitonic_block(in.data(), in.size(), out.data(), stream);
    CUDA_CHECK_LAUNCH();
}

void enqueue_merge_sort(DeviceSpan<const Key> in, DeviceSpan<Key> out, Workspace& workspace,
                        cudaStream_t stream) {
    check_arguments(in, out, workspace);
    if (in.empty()) return;
    launch_merge_sort(in.data(), in.size(), out.data(), workspace.spare(), stream);
    CUDA_CHECK_LAUNCH();
}

// radix_1bit, radix_1bit_coalesced, radix_multibit, radix_coarsened.
template <auto kLaunch>
void enqueue_radix(DeviceSpan<const Key> in, DeviceSpan<Key> out, Workspace& workspace, cudaStream_t stream) {
    check_arguments(in, out, workspace);
    if (in.empty()) return;
    kLaunch(in.data(), in.size(), out.data(), workspace.spare(), workspace.counts(), workspace.sums(),
            stream);
    CUDA_CHECK_LAUNCH();
}

void enqueue_onesweep(DeviceSpan<const Key> in, DeviceSpan<Key> out, Workspace& workspace,
                      cudaStream_t stream) {
    check_arguments(in, out, workspace);
    sort_keys(in, out, Direction::kAscending, workspace.radix(), stream);
}

// Every key is read once and written once.
course::Work keys_work(const std::size_t& n) {
    const double bytes = sizeof(Key) * static_cast<double>(n);
    return {.bytes = 2 * bytes, .written = bytes};
}

std::size_t checked(std::size_t capacity) {
    require(capacity <= Workspace::kMostKeys, "Workspace: capacity is ", capacity, "; expected at most 2^37");
    return capacity;
}

// radix_1bit has a count for each key. For short arrays radix_multibit has more: 16 for a block.
std::size_t counts_for(std::size_t capacity) {
    return std::max(capacity, ceil_div<std::size_t>(capacity, kBlock) * kDigits);
}

}  // namespace

void scan_counts(DeviceSpan<unsigned> counts, DeviceSpan<std::size_t> sums, cudaStream_t stream) {
    const std::size_t parts = ceil_div<std::size_t>(counts.size(), kScanBlock);
    require(sums.size() == parts + 1, "scan_counts: sums has ", sums.size(),
            " elements; expected one for each 1024 counts, and one more, ", parts + 1);
    require(!counts.empty(), "scan_counts: counts has 0 elements; expected at least 1");
    launch_scan(counts.data(), counts.size(), sums.data(), stream);
    CUDA_CHECK_LAUNCH();
}

Workspace::Workspace(std::size_t capacity)
    : capacity_(checked(capacity)),
      spare_(capacity),
      counts_(counts_for(capacity)),
      sums_(ceil_div<std::size_t>(counts_for(capacity), kScanBlock) + 1),
      radix_(capacity, sizeof(Key)) {}

std::span<const Version> versions() {
    static const std::array<Version, 9> list = {{
        {"odd_even", "neighbours are swapped", enqueue_odd_even, keys_work, constraint<kOddEvenKeys>},
        {"bitonic_block", "a network of distant pairs", enqueue_bitonic_block, keys_work,
         constraint<kSorted>},
        {"merge_sort", "sorted tiles are merged", enqueue_merge_sort, keys_work},
        {"radix_1bit", "a stable split by each bit, by a scan", enqueue_radix<launch_radix_1bit>, keys_work},
        {"radix_1bit_coalesced", "blocks split in shared memory first",
         enqueue_radix<launch_radix_1bit_coalesced>, keys_work},
        {"radix_multibit", "four bits in a pass", enqueue_radix<launch_radix_multibit>, keys_work},
        {"radix_coarsened", "15 keys per thread", enqueue_radix<launch_radix_coarsened>, keys_work},
        {"radix_8bit", "a byte in a pass, of four kernels", radix_8bit, keys_work},
        {"onesweep", "one kernel a pass, which looks back", enqueue_onesweep, keys_work},
    }};
    return list;
}

}  // namespace day19
