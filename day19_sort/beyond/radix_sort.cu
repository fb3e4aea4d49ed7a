// The host code of the radix sorts by digits of eight bits: argument checks and the row of passes.
// The kernels and their launches are in onesweep.cuh, segments.cuh and few_keys.cuh.
#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "beyond/few_keys.cuh"
#include "beyond/onesweep.cuh"
#include "beyond/radix_sort.hpp"
#include "beyond/segments.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "sort.hpp"

namespace day19 {
namespace {

using course::ceil_div;
using course::DeviceSpan;
using course::require;

constexpr int kMostPasses = sizeof(std::uint64_t);

std::size_t checked(std::size_t capacity, std::size_t key_bytes) {
    require(key_bytes == 4 || key_bytes == 8, "RadixWorkspace: key_bytes is ", key_bytes,
            "; expected 4 or 8");
    require(capacity <= RadixWorkspace::kMostKeys, "RadixWorkspace: capacity is ", capacity,
            "; expected at most 2^38");
    return capacity;
}

std::size_t tiles_of(std::size_t n, std::size_t key_bytes) {
    const std::size_t tile = key_bytes == 4 ? kSweepTile<std::uint32_t> : kSweepTile<std::uint64_t>;
    return ceil_div(n, tile);
}

template <class Key>
void check_arguments(DeviceSpan<const Key> in, DeviceSpan<Key> out, const RadixWorkspace& workspace,
                     std::size_t key_bytes) {
    require(out.size() == in.size(), "sort: out has ", out.size(), " keys; expected as many as in, ",
            in.size());
    require(!overlap(in, out), "sort: out overlaps in; expected no key in common");
    require(workspace.key_bytes() == key_bytes, "sort: the workspace is for keys of ", workspace.key_bytes(),
            " bytes; expected ", key_bytes);
    require(workspace.capacity() >= in.size(), "sort: workspace has capacity ", workspace.capacity(),
            "; expected at least the length of in, ", in.size());
}

template <class Bits>
struct Arrays {
    const Bits* in = nullptr;
    const std::uint32_t* values_in = nullptr;
    Bits* out = nullptr;
    std::uint32_t* values_out = nullptr;
    Bits* spare = nullptr;  // what the passes between the first and the last write
    std::uint32_t* spare_values = nullptr;
};

// The arguments of pass `pass` of `passes`. The last one writes `out`, the one before it the spare
// arrays, and so on, so that `in` is only read.
template <class Bits>
Pass<Bits> arguments_of(const Arrays<Bits>& arrays, std::size_t n, const Count* fewer,
                        const KeyCode<Bits>& code, int pass, int passes) {
    const bool to_out = (passes - 1 - pass) % 2 == 0;
    const bool from_in = pass == 0;
    return {.in = from_in ? arrays.in : (to_out ? arrays.spare : arrays.out),
            .values_in = from_in ? arrays.values_in : (to_out ? arrays.spare_values : arrays.values_out),
            .out = to_out ? arrays.out : arrays.spare,
            .values_out = to_out ? arrays.values_out : arrays.spare_values,
            .n = n,
            .fewer = fewer,
            .code = code,
            .pass = pass,
            .encode = from_in && !code.is_identity(),
            .decode = pass == passes - 1 && !code.is_identity()};
}

// Sorts by the `passes` lowest bytes of the codes. `fewer`: nullptr, or where on the device the
// number of keys is; then n is an upper bound.
template <class Bits, bool kPairs, bool kFewer = false>
void sweep(const Arrays<Bits>& arrays, std::size_t n, const Count* fewer, const KeyCode<Bits>& code,
           int passes, RadixWorkspace& workspace, cudaStream_t stream) {
    if (n == 0) return;
    const unsigned tiles = course::blocks_for(tiles_of(n, sizeof(Bits)), 1);
    Count* const totals = workspace.totals();
    auto* const tickets = reinterpret_cast<unsigned*>(totals + kMostPasses * kBins);
    CUDA_CHECK(cudaMemsetAsync(totals, 0, kMostPasses * (kBins * sizeof(Count) + sizeof(unsigned)), stream));
    launch_histogram(arrays.in, n, fewer, code, totals, workspace.words(), std::size_t{tiles} * kBins,
                     workspace.shared_bytes(), stream);
    for (int pass = 0; pass < passes; ++pass)
        launch_onesweep<Bits, kPairs, kFewer>(arguments_of(arrays, n, fewer, code, pass, passes),
                                              totals + pass * kBins, workspace.words(), tickets + pass,
                                              stream);
}

template <class Key>
const BitsOf<Key>* bits(const Key* keys) {
    return reinterpret_cast<const BitsOf<Key>*>(keys);
}
template <class Key>
BitsOf<Key>* bits(Key* keys) {
    return reinterpret_cast<BitsOf<Key>*>(keys);
}

// Words of the workspace for segments: the sums of the long ones, a count for each list (two in a
// word), the long ones, the lists. `n`: the most keys.
constexpr std::size_t kSegmentSums = 4;
constexpr std::array<std::size_t, kSegmentLists + 1> kKinds = {kTinySegment, kSmallSegment, kShortSegment,
                                                               kMediumSegment};

std::size_t words_for_segments(std::size_t n) {
    std::size_t numbers = 0;
    for (int k = 0; k < kSegmentLists; ++k)
        numbers += n / (kKinds[k] + 1);
    return kSegmentSums + 2 * (n / (kMediumSegment + 1)) + ceil_div<std::size_t>(numbers, 2);
}

SegmentsByKind kinds_in(RadixWorkspace& workspace, std::size_t n) {
    Count* const words = workspace.segment_words();
    auto* const counts = reinterpret_cast<unsigned*>(words + 2);
    SegmentsByKind kinds{};
    kinds.longs = {
        .list = reinterpret_cast<LongSegment*>(words + kSegmentSums), .word = words, .keys = words + 1};
    auto* numbers = reinterpret_cast<std::uint32_t*>(words + kSegmentSums + 2 * (n / (kMediumSegment + 1)));
    for (int k = 0; k < kSegmentLists; ++k) {
        kinds.lists[k] = {.numbers = numbers, .count = counts + k, .more = kKinds[k], .most = kKinds[k + 1]};
        numbers += n / (kKinds[k] + 1);
    }
    return kinds;
}

// The host has only upper bounds for the numbers of long segments and of their keys. The kernels
// read the numbers on the device.
void sort_long_segments(const Segments& all, const LongSegments& longs, std::size_t n,
                        RadixWorkspace& workspace, cudaStream_t stream) {
    auto* const joined = static_cast<std::uint64_t*>(workspace.keys());
    auto* const other = joined + n;
    launch_join_long_segments(all, longs, joined, n, stream);
    CUDA_CHECK_LAUNCH();
    const std::size_t most = std::min(all.count, n / (kMediumSegment + 1));  // long segments
    const int passes = 4 + ceil_div(static_cast<int>(std::bit_width(most - 1)), 8);
    // The passes alternate between the two: an even number of them ends where it started.
    const bool ends_in_joined = passes % 2 == 0;
    auto* const sorted = ends_in_joined ? joined : other;
    const Arrays<std::uint64_t> arrays{.in = joined, .out = sorted, .spare = ends_in_joined ? other : joined};
    sweep<std::uint64_t, false, true>(arrays, n, longs.keys, {}, passes, workspace, stream);
    launch_split_long_segments(all, longs, sorted, n, stream);
    CUDA_CHECK_LAUNCH();
}

}  // namespace

std::size_t RadixWorkspace::shared_bytes_of_a_block() {
    int device = 0;
    int most = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return static_cast<std::size_t>(most);
}

RadixWorkspace::RadixWorkspace(std::size_t capacity, std::size_t key_bytes, bool with_values,
                               std::size_t shared_bytes)
    : capacity_(checked(capacity, key_bytes)),
      key_bytes_(key_bytes),
      shared_bytes_(shared_bytes),
      keys_(ceil_div<std::size_t>(capacity * key_bytes, sizeof(unsigned long long))),
      values_(with_values ? std::max<std::size_t>(capacity, 1) : 0),
      totals_(kMostPasses * kBins + kMostPasses / 2),
      words_(tiles_of(capacity, key_bytes) * kBins),
      segment_words_(key_bytes == 8 ? words_for_segments(capacity / 2) : 0) {}

template <class Key>
void sort_keys(DeviceSpan<const Key> in, DeviceSpan<Key> out, Direction direction, RadixWorkspace& workspace,
               cudaStream_t stream) {
    check_arguments(in, out, workspace, sizeof(Key));
    using Bits = BitsOf<Key>;
    const Arrays<Bits> arrays{
        .in = bits(in.data()), .out = bits(out.data()), .spare = static_cast<Bits*>(workspace.keys())};
    sweep<Bits, false>(arrays, in.size(), nullptr, key_code<Key>(direction), sizeof(Key), workspace, stream);
}

template <class Key>
void sort_pairs(DeviceSpan<const Key> in, DeviceSpan<const std::uint32_t> values_in, DeviceSpan<Key> out,
                DeviceSpan<std::uint32_t> values_out, Direction direction, RadixWorkspace& workspace,
                cudaStream_t stream) {
    check_arguments(in, out, workspace, sizeof(Key));
    require(values_in.size() == in.size() && values_out.size() == in.size(), "sort: values_in has ",
            values_in.size(), " and values_out ", values_out.size(), " values; expected one for each key, ",
            in.size());
    require(workspace.has_values(),
            "sort: the workspace has no room for values; expected one made with them");
    require(!overlap(values_in, values_out) && !overlap(in, values_out) && !overlap(values_in, out) &&
                !overlap(DeviceSpan<const Key>(out), values_out),
            "sort: an output overlaps another array; expected no element in common");
    using Bits = BitsOf<Key>;
    const Arrays<Bits> arrays{.in = bits(in.data()),
                              .values_in = values_in.data(),
                              .out = bits(out.data()),
                              .values_out = values_out.data(),
                              .spare = static_cast<Bits*>(workspace.keys()),
                              .spare_values = workspace.values()};
    sweep<Bits, true>(arrays, in.size(), nullptr, key_code<Key>(direction), sizeof(Key), workspace, stream);
}

template <class Key>
void sort_segments(DeviceSpan<const Key> in, DeviceSpan<const std::uint64_t> offsets, DeviceSpan<Key> out,
                   Direction direction, RadixWorkspace& workspace, cudaStream_t stream) {
    static_assert(sizeof(Key) == sizeof(std::uint32_t));
    const std::size_t n = in.size();
    require(out.size() == n, "sort: out has ", out.size(), " keys; expected as many as in, ", n);
    require(!overlap(in, out), "sort: out overlaps in; expected no key in common");
    require(workspace.key_bytes() == 8 && workspace.capacity() / 2 >= n, "sort: the workspace has room for ",
            workspace.capacity(), " keys of ", workspace.key_bytes(),
            " bytes; expected keys of 8 bytes, and twice as many as in has, ", 2 * n);
    require(!offsets.empty(),
            "sort: offsets is empty; expected one for each segment and one behind the last");
    const std::size_t segments = offsets.size() - 1;
    require(segments > 0 || n == 0, "sort: in has ", n, " keys and no segment; expected at least one");
    require(segments <= std::size_t{1} << 32, "sort: there are ", segments,
            " segments; expected at most 2^32");
    require(!overlap(offsets, out), "sort: out overlaps offsets; expected memory apart");
    if (n == 0) return;

    const Segments all{.in = bits(in.data()),
                       .out = bits(out.data()),
                       .offsets = offsets.data(),
                       .count = segments,
                       .code = key_code<Key>(direction)};
    // So few keys take one launch instead of one for each kind of length.
    if (n <= kMostFewKeys) {
        launch_sort_few_segments(all, n, stream);
        CUDA_CHECK_LAUNCH();
        return;
    }
    const SegmentsByKind kinds = kinds_in(workspace, n);
    CUDA_CHECK(cudaMemsetAsync(workspace.segment_words(), 0, kSegmentSums * sizeof(Count), stream));
    launch_sort_tiny_segments(all, kinds, stream);
    CUDA_CHECK_LAUNCH();
    const auto& [small, of_short, of_medium] = kinds.lists;
    if (n > small.more) {
        launch_sort_segments_by_warps(all, small, n, stream);
        CUDA_CHECK_LAUNCH();
    }
    if (n > of_short.more) launch_sort_segments_by_blocks<kShortEach>(all, of_short, n, stream);
    if (n > of_medium.more) launch_sort_segments_by_blocks<kMediumEach>(all, of_medium, n, stream);
    if (n > kMediumSegment) sort_long_segments(all, kinds.longs, n, workspace, stream);
}

void radix_8bit(DeviceSpan<const Key> in, DeviceSpan<Key> out, Workspace& workspace, cudaStream_t stream) {
    RadixWorkspace& radix = workspace.radix();
    check_arguments(in, out, radix, sizeof(Key));
    const std::size_t n = in.size();
    if (n == 0) return;
    const unsigned tiles = course::blocks_for(tiles_of(n, sizeof(Key)), 1);
    // Onesweep's words, 256 of 8 bytes for each tile, have room for as many counts and their sums.
    const std::size_t num_counts = std::size_t{tiles} * kBins;
    auto* const counts = reinterpret_cast<unsigned*>(radix.words());
    auto* const sums = reinterpret_cast<std::size_t*>(radix.words() + num_counts / 2);
    const std::size_t num_sums = ceil_div<std::size_t>(num_counts, kCountsPerSum) + 1;
    const Arrays<Key> arrays{.in = in.data(), .out = out.data(), .spare = static_cast<Key*>(radix.keys())};
    constexpr int kPasses = sizeof(Key);
    for (int pass = 0; pass < kPasses; ++pass) {
        const Pass<Key> p = arguments_of<Key>(arrays, n, nullptr, {}, pass, kPasses);
        launch_count_bytes(p.in, n, pass, counts, stream);
        CUDA_CHECK_LAUNCH();
        scan_counts(DeviceSpan<unsigned>::from_device_pointer(counts, num_counts),
                    DeviceSpan<std::size_t>::from_device_pointer(sums, num_sums), stream);
        launch_scatter_bytes(p.in, n, pass, counts, sums, p.out, stream);
    }
}

#define DAY19_KEYS(Key)                                                                                    \
    template void sort_keys<Key>(DeviceSpan<const Key>, DeviceSpan<Key>, Direction, RadixWorkspace&,       \
                                 cudaStream_t);                                                            \
    template void sort_pairs<Key>(DeviceSpan<const Key>, DeviceSpan<const std::uint32_t>, DeviceSpan<Key>, \
                                  DeviceSpan<std::uint32_t>, Direction, RadixWorkspace&, cudaStream_t);
DAY19_KEYS(std::int32_t)
DAY19_KEYS(std::uint32_t)
DAY19_KEYS(float)
DAY19_KEYS(std::int64_t)
DAY19_KEYS(std::uint64_t)
DAY19_KEYS(double)
#undef DAY19_KEYS
#define DAY19_SEGMENTS(Key)                                                                  \
    template void sort_segments<Key>(DeviceSpan<const Key>, DeviceSpan<const std::uint64_t>, \
                                     DeviceSpan<Key>, Direction, RadixWorkspace&, cudaStream_t);
DAY19_SEGMENTS(std::int32_t)
DAY19_SEGMENTS(std::uint32_t)
DAY19_SEGMENTS(float)
#undef DAY19_SEGMENTS

}  // namespace day19
