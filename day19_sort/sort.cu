// Day 19's launchers: argument checks, passes and their buffers, the list of versions. The kernels
// are in comparison.cuh, sort.cuh and multibit.cuh.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "comparison.cuh"
#include "multibit.cuh"
#include "sort.cuh"
#include "sort.hpp"

namespace day19 {
namespace {

using course::blocks_for;
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

// --- Sorts that compare --------------------------------------------------------------------------

template <unsigned kMost>
std::string constraint(const std::size_t& n) {
    if (n <= kMost) return "";
    return "one block sorts at most " + std::to_string(kMost) + " keys";
}

template <unsigned kMost>
void check_length(std::size_t n) {
    require(n <= kMost, "sort: in has ", n, " keys; ", constraint<kMost>(n));
}

void launch_odd_even(DeviceSpan<const Key> in, DeviceSpan<Key> out, Workspace& workspace,
                     cudaStream_t stream) {
    check_arguments(in, out, workspace);
    check_length<kOddEvenKeys>(in.size());
    if (in.empty()) return;
    odd_even<<<1, kOddEvenBlock, 0, stream>>>(in.data(), static_cast<unsigned>(in.size()), out.data());
    CUDA_CHECK_LAUNCH();
}

void launch_bitonic_block(DeviceSpan<const Key> in, DeviceSpan<Key> out, Workspace& workspace,
                          cudaStream_t stream) {
    check_arguments(in, out, workspace);
    check_length<kSorted>(in.size());
    if (in.empty()) return;
    bitonic_block<<<1, kBitonicBlock, 0, stream>>>(in.data(), in.size(), out.data());
    CUDA_CHECK_LAUNCH();
}

// Where passes 0 to `passes` - 1 read and write: the last one writes to `out`, the one before it to
// the spare keys, and so on. The first one reads `in`.
template <class Pass>
void for_each_pass(int passes, DeviceSpan<const Key> in, DeviceSpan<Key> out, Workspace& workspace,
                   const Pass& pass) {
    const Key* from = in.data();
    for (int p = 0; p < passes; ++p) {
        Key* const to = (passes - p) % 2 == 1 ? out.data() : workspace.spare();
        pass(p, from, to);
        from = to;
    }
}

void launch_merge_sort(DeviceSpan<const Key> in, DeviceSpan<Key> out, Workspace& workspace,
                       cudaStream_t stream) {
    check_arguments(in, out, workspace);
    if (in.empty()) return;
    const std::size_t n = in.size();
    const unsigned tiles = blocks_for(ceil_div<std::size_t>(n, kSorted), 1);
    int passes = 1;
    while (std::size_t{kSorted} << (passes - 1) < n)
        ++passes;
    for_each_pass(passes, in, out, workspace, [&](int pass, const Key* from, Key* to) {
        if (pass == 0) {
            bitonic_block<<<tiles, kBitonicBlock, 0, stream>>>(from, n, to);
        } else {
            merge_runs<<<tiles, kMergeBlock, 0, stream>>>(from, n, std::size_t{kSorted} << (pass - 1), to);
        }
        CUDA_CHECK_LAUNCH();
    });
}

// --- Radix sorts ---------------------------------------------------------------------------------

void launch_scan(unsigned* counts, std::size_t n, std::size_t* sums, cudaStream_t stream) {
    const unsigned parts = blocks_for(n, kScanBlock);
    scan_parts<<<parts, kScanBlock, 0, stream>>>(counts, n, sums);
    CUDA_CHECK_LAUNCH();
    scan_sums<<<1, kScanBlock, 0, stream>>>(sums, parts);
    CUDA_CHECK_LAUNCH();
}

void launch_radix_1bit(DeviceSpan<const Key> in, DeviceSpan<Key> out, Workspace& workspace,
                       cudaStream_t stream) {
    check_arguments(in, out, workspace);
    if (in.empty()) return;
    const std::size_t n = in.size();
    const unsigned blocks = blocks_for(n, kBlock);
    for_each_pass(kKeyBits, in, out, workspace, [&](int bit, const Key* from, Key* to) {
        bits_of_keys<<<blocks, kBlock, 0, stream>>>(from, n, bit, workspace.counts());
        CUDA_CHECK_LAUNCH();
        launch_scan(workspace.counts(), n, workspace.sums(), stream);
        scatter_by_bit<<<blocks, kBlock, 0, stream>>>(from, n, bit, workspace.counts(), workspace.sums(), to);
        CUDA_CHECK_LAUNCH();
    });
}

// Passes of kBits bits each, of blocks with kKeys keys: kCount counts the digits of each block,
// kScatter stores the keys.
template <auto kCount, auto kScatter, int kBits, unsigned kKeys>
void launch_tiles(DeviceSpan<const Key> in, DeviceSpan<Key> out, Workspace& workspace, cudaStream_t stream) {
    check_arguments(in, out, workspace);
    if (in.empty()) return;
    const std::size_t n = in.size();
    const unsigned blocks = blocks_for(ceil_div<std::size_t>(n, kKeys), 1);
    for_each_pass(kKeyBits / kBits, in, out, workspace, [&](int pass, const Key* from, Key* to) {
        const int bit = pass * kBits;
        kCount<<<blocks, kBlock, 0, stream>>>(from, n, bit, workspace.counts());
        CUDA_CHECK_LAUNCH();
        launch_scan(workspace.counts(), std::size_t{blocks} << kBits, workspace.sums(), stream);
        kScatter<<<blocks, kBlock, 0, stream>>>(from, n, bit, workspace.counts(), workspace.sums(), to);
        CUDA_CHECK_LAUNCH();
    });
}

void launch_onesweep(DeviceSpan<const Key> in, DeviceSpan<Key> out, Workspace& workspace,
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
}

Workspace::Workspace(std::size_t capacity)
    : capacity_(checked(capacity)),
      spare_(capacity),
      counts_(counts_for(capacity)),
      sums_(ceil_div<std::size_t>(counts_for(capacity), kScanBlock) + 1),
      radix_(capacity, sizeof(Key)) {}

std::span<const Version> versions() {
    static const std::array<Version, 9> list = {{
        {"odd_even", "neighbours are swapped", launch_odd_even, keys_work, constraint<kOddEvenKeys>},
        {"bitonic_block", "a network of distant pairs", launch_bitonic_block, keys_work, constraint<kSorted>},
        {"merge_sort", "sorted tiles are merged", launch_merge_sort, keys_work},
        {"radix_1bit", "a stable split by each bit, by a scan", launch_radix_1bit, keys_work},
        {"radix_1bit_coalesced", "blocks split in shared memory first",
         launch_tiles<count_bits, scatter_split_tiles, 1, kBlock>, keys_work},
        {"radix_multibit", "four bits in a pass",
         launch_tiles<count_digits, scatter_sorted_tiles, kDigitBits, kBlock>, keys_work},
        {"radix_coarsened", "15 keys per thread",
         launch_tiles<count_digits_of_tiles, scatter_large_tiles, kDigitBits, kTile>, keys_work},
        {"radix_8bit", "a byte in a pass, of four kernels", radix_8bit, keys_work},
        {"onesweep", "one kernel a pass, which looks back", launch_onesweep, keys_work},
    }};
    return list;
}

}  // namespace day19
