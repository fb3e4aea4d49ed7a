// Day 4's host code: argument checks and the lists of versions. The kernels and their launches are
// in memory_hierarchy.cuh and beyond/near_and_far.cuh.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "beyond/near_and_far.cuh"
#include "beyond/near_and_far.hpp"
#include "common/check/check.hpp"
#include "common/check/require.hpp"
#include "memory_hierarchy.cuh"
#include "memory_hierarchy.hpp"

namespace day04 {
namespace {

using course::DeviceSpan;
using course::require;

std::string fits_in_shared(const Chase& problem) {
    if (problem.lines <= kLinesInShared) return "";
    return "a list of " + std::to_string(problem.lines) + " lines is larger than 48 KB of shared memory, " +
           std::to_string(kLinesInShared) + " lines";
}

template <auto kLaunch>
void run_chase(DeviceSpan<const unsigned> next, unsigned start, unsigned steps, DeviceSpan<unsigned> last,
               cudaStream_t stream) {
    require(!next.empty() && next.size() % kLine == 0 && next.size() < (std::size_t{1} << 32),
            "chase: next has ", next.size(), " words; expected whole lines of ", kLine,
            ", at least one, and fewer than 2^32 words");
    require(start % kLine == 0 && start < next.size(), "chase: start is ", start,
            "; expected the first word of one of ", next.size() / kLine, " lines, a multiple of ", kLine);
    require(last.size() == 1, "chase: last has ", last.size(), " elements; expected 1");
    require(!overlap(next, last), "chase: last overlaps next; expected memory of its own");
    if constexpr (kLaunch == launch_chase_shared) {
        const std::string too_large = fits_in_shared({.lines = next.size() / kLine});
        require(too_large.empty(), "chase_shared: ", too_large);
    }
    kLaunch(next.data(), static_cast<unsigned>(next.size() / kLine), start, steps, last.data(), stream);
    CUDA_CHECK_LAUNCH();
}

template <auto kLaunch>
void run_read(DeviceSpan<const unsigned> x, unsigned blocks_per_sm, DeviceSpan<unsigned> sums,
              cudaStream_t stream) {
    const std::size_t threads = read_threads(blocks_per_sm);
    require(sums.size() == threads, "read: sums has ", sums.size(), " elements; expected ", threads,
            ", one for each thread");
    require(reinterpret_cast<std::uintptr_t>(x.data()) % sizeof(uint4) == 0,
            "read: x does not start at a multiple of 16 bytes, as cudaMalloc's memory does");
    require(!overlap(x, sums), "read: sums overlaps x; expected memory of its own");
    kLaunch(x.data(), x.size(), blocks_per_sm, sums.data(), stream);
    CUDA_CHECK_LAUNCH();
}

// --- Beyond --------------------------------------------------------------------------------------

std::size_t most_shared_bytes() {
    int device = 0;
    int most = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    return static_cast<std::size_t>(most);
}

std::string piece_fits_in_shared(const Again& problem) {
    if (problem.piece_bytes <= most_shared_bytes()) return "";
    return "a piece of " + std::to_string(problem.piece_bytes) + " bytes is larger than the " +
           std::to_string(most_shared_bytes()) + " bytes of shared memory that a block can have";
}

template <auto kLaunch>
void run_again(DeviceSpan<const unsigned> x, unsigned rounds, DeviceSpan<unsigned> sums,
               cudaStream_t stream) {
    const std::size_t pieces = course::multiprocessors();
    const std::size_t quads = x.size() / pieces / 4;
    require(x.size() == pieces * quads * 4 && quads < (std::size_t{1} << 31), "again: x has ", x.size(),
            " elements; expected the same number for each of ", pieces,
            " SMs, a multiple of 4 and less than 2^33");
    require(sums.size() == again_threads(), "again: sums has ", sums.size(), " elements; expected ",
            again_threads(), ", one for each thread");
    require(reinterpret_cast<std::uintptr_t>(x.data()) % sizeof(uint4) == 0,
            "again: x does not start at a multiple of 16 bytes, as cudaMalloc's memory does");
    require(!overlap(x, sums), "again: sums overlaps x; expected memory of its own");
    if constexpr (kLaunch == launch_again_shared) {
        const std::string too_large = piece_fits_in_shared({quads * sizeof(uint4), rounds});
        require(too_large.empty(), "again_shared: ", too_large);
    }
    kLaunch(reinterpret_cast<const uint4*>(x.data()), static_cast<unsigned>(quads), rounds, sums.data(),
            stream);
    CUDA_CHECK_LAUNCH();
}

std::string device_sets_l2_aside(const Lookup&) {
    int device = 0;
    int most = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxPersistingL2CacheSize, device));
    return most > 0 ? "" : "this device sets no part of L2 aside";
}

template <auto kLaunch>
void run_lookup(DeviceSpan<const unsigned> records, DeviceSpan<const unsigned> table,
                DeviceSpan<unsigned> sums, cudaStream_t stream) {
    require(records.size() % 32 == 0, "lookup: records has ", records.size(),
            " words; expected whole records of 32");
    require(std::has_single_bit(table.size()) && table.size() <= std::size_t{1} << 32, "lookup: table has ",
            table.size(), " words; expected a power of two of at most 2^32");
    require(sums.size() == lookup_threads(), "lookup: sums has ", sums.size(), " elements; expected ",
            lookup_threads(), ", one for each thread");
    require(reinterpret_cast<std::uintptr_t>(records.data()) % sizeof(uint4) == 0,
            "lookup: records does not start at a multiple of 16 bytes, as cudaMalloc's memory does");
    require(!overlap(records, sums) && !overlap(table, sums),
            "lookup: sums overlaps an input; expected memory of its own");
    kLaunch(reinterpret_cast<const uint4*>(records.data()), records.size() / 4, table.data(),
            static_cast<unsigned>(table.size() - 1), sums.data(), stream);
    CUDA_CHECK_LAUNCH();
}

void run_chase_far(DeviceSpan<const unsigned long long> next, unsigned long long start, unsigned steps,
                   DeviceSpan<unsigned long long> last, cudaStream_t stream) {
    require(start < next.size(), "chase_far: start is ", start, "; expected one of ", next.size(), " words");
    require(last.size() == 1, "chase_far: last has ", last.size(), " elements; expected 1");
    require(!overlap(next, last), "chase_far: last overlaps next; expected memory of its own");
    launch_chase_far(next.data(), start, steps, last.data(), stream);
    CUDA_CHECK_LAUNCH();
}

template <auto kLaunch, unsigned kThreads>
void run_waves(unsigned steps, DeviceSpan<unsigned> values, DeviceSpan<Stay> stays, cudaStream_t stream) {
    require(!values.empty() && values.size() % 1024 == 0 && values.size() < (std::size_t{1} << 32),
            "waves: values has ", values.size(), " elements; expected a multiple of 1024 of at least 1024, ",
            "and fewer than 2^32");
    require(stays.size() == values.size() / kThreads, "waves: stays has ", stays.size(),
            " elements; expected ", values.size() / kThreads, ", one for each block");
    kLaunch(static_cast<unsigned>(values.size()), steps, values.data(), stays.data(), stream);
    CUDA_CHECK_LAUNCH();
}

// Of each step the 4 bytes that are loaded, although a line moves.
course::Work work_of_chase(const Chase& problem) {
    return {.bytes = 4.0 * problem.steps};
}
course::Work work_of_read(const Read& problem) {
    return {.bytes = 4.0 * static_cast<double>(problem.elements)};
}

course::Work work_of_again(const Again& problem) {
    const double once = static_cast<double>(problem.piece_bytes) * course::multiprocessors();
    return {.bytes = once, .requested = problem.rounds * once};
}

course::Work work_of_lookup(const Lookup& problem) {
    return {.bytes = 128.0 * static_cast<double>(problem.records)};
}

course::Work work_of_far_chase(const FarChase& problem) {
    return {.bytes = 8.0 * problem.steps};
}

course::Work work_of_waves(const Waves& problem) {
    return {.bytes = 4.0 * static_cast<double>(problem.threads),
            .written = 4.0 * static_cast<double>(problem.threads)};
}

}  // namespace

std::span<const ChaseVersion> chase_versions() {
    static const std::array<ChaseVersion, 3> list = {{
        {"chase", "one thread follows a list", run_chase<launch_chase>, work_of_chase},
        {"chase_l2", "its loads do not look at L1", run_chase<launch_chase_l2>, work_of_chase},
        {"chase_shared", "the list is in shared memory", run_chase<launch_chase_shared>, work_of_chase,
         fits_in_shared},
    }};
    return list;
}

std::size_t read_threads(unsigned blocks_per_sm) {
    require(blocks_per_sm >= 1 && blocks_per_sm <= 8, "read: blocks_per_sm is ", blocks_per_sm,
            "; expected 1 to 8");
    return std::size_t{course::multiprocessors()} * blocks_per_sm * kBlock;
}

std::span<const ReadVersion> read_versions() {
    static const std::array<ReadVersion, 3> list = {{
        {{"read_one", "one load of 4 bytes in flight", run_read<launch_read_one>, work_of_read}, 4},
        {{"read_four", "four loads of 4 bytes in flight", run_read<launch_read_four>, work_of_read}, 16},
        {{"read_wide", "one load of 16 bytes in flight", run_read<launch_read_wide>, work_of_read}, 16},
    }};
    return list;
}

// --- Beyond --------------------------------------------------------------------------------------

std::size_t again_threads() {
    return std::size_t{course::multiprocessors()} * kPieceBlock;
}

std::span<const AgainVersion> again_versions() {
    static const std::array<AgainVersion, 3> list = {{
        {"again_l1", "each SM reads its own bytes again and again", run_again<launch_again_l1>,
         work_of_again},
        {"again_small_l1", "with the largest carveout for shared memory", run_again<launch_again_small_l1>,
         work_of_again},
        {"again_shared", "from shared memory", run_again<launch_again_shared>, work_of_again,
         piece_fits_in_shared},
    }};
    return list;
}

std::size_t lookup_threads() {
    return std::size_t{course::multiprocessors()} * 8 * kBlock;
}

std::span<const LookupVersion> lookup_versions() {
    static const std::array<LookupVersion, 3> list = {{
        {{"lookup", "records pass by a table", run_lookup<launch_lookup>, work_of_lookup}},
        {{"lookup_streaming", "records are evicted first", run_lookup<launch_lookup_streaming>,
          work_of_lookup}},
        {{"lookup_window", "the table persists in L2", run_lookup<launch_lookup_window>, work_of_lookup,
          device_sets_l2_aside},
         true},
    }};
    return list;
}

L2SetAside::L2SetAside(std::size_t bytes) {
    int device = 0;
    int most = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxPersistingL2CacheSize, device));
    set_l2_aside(std::min(bytes, static_cast<std::size_t>(most)));
}

L2SetAside::~L2SetAside() {
    try {
        set_l2_aside(0);
    } catch (const course::CudaError&) {
        // The device has failed, which the next call reports, too.
    }
}

std::span<const FarChaseVersion> far_chase_versions() {
    static const std::array<FarChaseVersion, 1> list = {{
        {"chase_far", "lines that are as far apart as pages", run_chase_far, work_of_far_chase},
    }};
    return list;
}

std::span<const WavesVersion> waves_versions() {
    static const std::array<WavesVersion, 2> list = {{
        {{"large_blocks", "blocks of 1,024 threads", run_waves<launch_large_blocks, 1024>, work_of_waves},
         1024},
        {{"small_blocks", "blocks of 128 threads", run_waves<launch_small_blocks, 128>, work_of_waves}, 128},
    }};
    return list;
}

std::span<const ReadVersion> stretch_versions() {
    static const std::array<ReadVersion, 2> list = {{
        {{"stretch", "each warp reads adjacent elements", run_read<launch_stretch>, work_of_read}, 4},
        {{"stretch_ahead", "L2 fetches 256 bytes for a load", run_read<launch_stretch_ahead>, work_of_read},
         4},
    }};
    return list;
}

}  // namespace day04
