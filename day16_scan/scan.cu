// Day 16's host code: argument checks and the list of versions. The kernels and their launches are
// in scan.cuh and beyond/.
#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include "beyond/bulk_lookback.hpp"
#include "beyond/single_pass.cuh"
#include "beyond/three_kernels.cuh"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "common/device/grid.hpp"
#include "common/device/tensor_core_support.hpp"
#include "scan.cuh"
#include "scan.hpp"

namespace day16 {
namespace {

using course::ceil_div;
using course::DeviceSpan;
using course::require;

constexpr std::size_t kSmallestSection = kBlock;
constexpr std::size_t kSmallestTile = 2048;  // of one word: bulk_operator_scan has two for 4,608

template <class T>
void check_arguments(DeviceSpan<const T> in, DeviceSpan<T> out, const Workspace& workspace) {
    require(out.size() == in.size(), "scan: in has ", in.size(), " elements and out ", out.size(),
            "; expected the same number");
    require(in.data() == out.data() || !overlap(in, out),
            "scan: out overlaps in; expected in itself, or memory apart");
    require(workspace.capacity() >= in.size(), "scan: workspace has capacity ", workspace.capacity(),
            "; expected at least the length of in, ", in.size());
}

template <auto kLaunch>
void by_sections(DeviceSpan<const float> in, DeviceSpan<float> out, Workspace& workspace,
                 cudaStream_t stream) {
    check_arguments(in, out, workspace);
    if (in.empty()) return;
    kLaunch(in.data(), out.data(), in.size(), workspace.sums(), stream);
    CUDA_CHECK_LAUNCH();
}

template <class T, auto kLaunch>
void in_one_pass(DeviceSpan<const T> in, DeviceSpan<T> out, Workspace& workspace, cudaStream_t stream) {
    check_arguments(in, out, workspace);
    if (in.empty()) return;
    const Board board{workspace.ticket(), workspace.words(), workspace.words_capacity()};
    kLaunch(in.data(), out.data(), in.size(), board, stream);
    CUDA_CHECK_LAUNCH();
}

course::Work work(const std::size_t& n) {
    const auto elements = static_cast<double>(n);
    return {.bytes = 2 * sizeof(float) * elements, .written = sizeof(float) * elements, .flops = elements};
}

std::string needs_bulk_copies(const std::size_t&) {
    return course::why_no_bulk_copies();
}

// bulk_lookback where bulk copies are possible, else decoupled_lookback.
template <class T, bool kExclusive>
void launch_fastest(DeviceSpan<const T> in, DeviceSpan<T> out, Workspace& workspace, cudaStream_t stream) {
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(in.data()) % 16 == 0 &&
                            reinterpret_cast<std::uintptr_t>(out.data()) % 16 == 0;
    if (!is_aligned || !course::why_no_bulk_copies().empty())
        return in_one_pass<T, launch_decoupled_lookback<T, kExclusive>>(in, out, workspace, stream);
    check_arguments(in, out, workspace);
    if (in.empty()) return;
    launch_bulk_lookback<T, kExclusive>(in.data(), out.data(), in.size(), workspace, stream);
}

}  // namespace

Workspace::Workspace(std::size_t capacity)
    : capacity_(capacity),
      // n / 256 + n / 256^2 + ..., each rounded up
      sums_(ceil_div<std::size_t>(capacity, kSmallestSection) * 2 + 16),
      // The ticket and the words: all zero is what the first launch needs.
      board_(std::span<const unsigned long long>(
          std::vector<unsigned long long>(2 + ceil_div<std::size_t>(capacity, kSmallestTile)))),
      values_(4 * words_capacity()) {}

std::span<const Version> versions() {
    static const std::array<Version, 10> list = {{
        {"kogge_stone", "each step adds the value twice as far away", by_sections<launch_kogge_stone>, work},
        {"kogge_stone_double_buffer", "one barrier in each step",
         by_sections<launch_kogge_stone_double_buffer>, work},
        {"brent_kung", "a tree up, a tree down", by_sections<launch_brent_kung>, work},
        {"coarsened", "each thread scans eight elements by itself", by_sections<launch_coarsened>, work},
        {"warp_shuffle", "warps scan in registers", by_sections<launch_warp_shuffle>, work},
        {"scan_scan_add", "tiles of 20 elements per thread: 4 n of traffic",
         by_sections<launch_scan_scan_add>, work},
        {"reduce_scan_scan", "the sums first: 3 n of traffic", by_sections<launch_reduce_scan_scan>, work},
        {"domino", "one pass, each tile waits for the one before", in_one_pass<float, launch_domino>, work},
        {"decoupled_lookback", "one pass, tiles add up the sums before them",
         in_one_pass<float, launch_decoupled_lookback<float, false>>, work},
        {"bulk_lookback", "the next tile arrives during the look-back", launch_fastest<float, false>, work,
         needs_bulk_copies},
    }};
    return list;
}

// Signed overflow is undefined, so integers are added as unsigned ones: the same bits.
template <class T, bool kExclusive>
void launch_as_bits(DeviceSpan<const T> in, DeviceSpan<T> out, Workspace& workspace, cudaStream_t stream) {
    using Bits = std::conditional_t<std::is_integral_v<T>, std::uint32_t, T>;
    launch_fastest<Bits, kExclusive>(
        DeviceSpan<const Bits>::from_device_pointer(reinterpret_cast<const Bits*>(in.data()), in.size()),
        DeviceSpan<Bits>::from_device_pointer(reinterpret_cast<Bits*>(out.data()), out.size()), workspace,
        stream);
}

template <class T>
void inclusive_scan(DeviceSpan<const T> in, DeviceSpan<T> out, Workspace& workspace, cudaStream_t stream) {
    launch_as_bits<T, false>(in, out, workspace, stream);
}

template <class T>
void exclusive_scan(DeviceSpan<const T> in, DeviceSpan<T> out, Workspace& workspace, cudaStream_t stream) {
    launch_as_bits<T, true>(in, out, workspace, stream);
}

#define DAY16_INSTANTIATE(T)                                                                       \
    template void inclusive_scan<T>(DeviceSpan<const T>, DeviceSpan<T>, Workspace&, cudaStream_t); \
    template void exclusive_scan<T>(DeviceSpan<const T>, DeviceSpan<T>, Workspace&, cudaStream_t);
DAY16_INSTANTIATE(float)
DAY16_INSTANTIATE(std::int32_t)
DAY16_INSTANTIATE(std::uint32_t)
#undef DAY16_INSTANTIATE

}  // namespace day16
