// The results of an inspection: how the accesses of each source line use shared and global memory,
// and which mistakes were found in them. Plain data, and the functions that collect it; only
// programs of the `inspect` preset can call these.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuda_on_cpu {

enum class Space { kShared, kGlobal };
// kAtomic: reads and changes a word (atomicAdd, a compare-and-swap). Loads and stores of
// cuda::atomic_ref and their like are atomic, too, but a GPU serves them as other loads and stores.
enum class Operation { kLoad, kStore, kAtomic, kAsyncCopy, kMatrixLoad, kAtomicLoad, kAtomicStore };

constexpr bool is_atomic(Operation operation) {
    return operation == Operation::kAtomic || operation == Operation::kAtomicLoad ||
           operation == Operation::kAtomicStore;
}

constexpr bool writes(Operation operation) {
    return operation == Operation::kStore || operation == Operation::kAtomic ||
           operation == Operation::kAtomicStore;
}
constexpr bool reads(Operation operation) {
    return operation == Operation::kAtomic || !writes(operation);
}

inline constexpr std::array<std::string_view, 2> kSpaceNames = {"shared", "global"};
inline constexpr std::array<std::string_view, 7> kOperationNames = {
    "load", "store", "atomic", "async_copy", "matrix_load", "atomic_load", "atomic_store"};

// A line of a source file. The path is relative to the course's directory if the file is below it.
// Line 0: unknown.
struct SourceLine {
    std::string file;
    int line = 0;

    bool operator==(const SourceLine&) const = default;
};

// The request with the most transactions among those of a line.
struct WorstRequest {
    unsigned transactions = 0;
    unsigned active_lanes = 0;
    std::array<unsigned, 3> block{};
    unsigned warp = 0;
    // For each of the 32 lanes, the offset in bytes from the first byte of the array; -1: not
    // active. For a matrix load: the offsets of the rows.
    std::vector<std::int64_t> offsets;
    // The name of a shared array. For global memory, the kernel's parameters that point there, such
    // as "in"; if there are none, or if a parameter points to several allocations, "allocation of
    // 4096 bytes".
    std::string array;

    bool operator==(const WorstRequest&) const = default;
};

// All requests of one line with the same operation, memory space and size. A request is the access
// of a warp's lanes by one instruction. Transactions are wavefronts in shared memory and 32-byte
// sectors in global memory.
struct AccessLine {
    SourceLine source;
    Space space = Space::kGlobal;
    Operation operation = Operation::kLoad;
    // Per lane.
    unsigned bytes = 0;
    std::uint64_t requests = 0;
    std::uint64_t transactions = 0;
    // The fewest transactions that the same requests could take. Shared: active lanes * bytes /
    // 128, rounded up. Global: distinct bytes / 32, rounded up.
    std::uint64_t ideal = 0;
    std::uint64_t active_lanes = 0;
    // Distinct bytes, summed over the requests.
    std::uint64_t bytes_used = 0;
    WorstRequest worst;

    bool operator==(const AccessLine&) const = default;
};

// A step of a warp: a request, or a place where its lanes wait for each other or for the block.
struct TraceStep {
    SourceLine source;
    // The name of an Operation; "barrier" (of the block); "collective" (a shuffle, a vote,
    // __syncwarp, a matrix product); "arrival" and "wait" (named barriers, mbarriers,
    // cuda::barrier); "blocks_barrier" (of a cluster or the grid); "bulk_load", "bulk_store".
    // The fields after `repeats` are those of requests only, but bulk copies have `bytes`, too.
    std::string kind;
    // A bit for each lane that takes part.
    std::uint32_t lanes = 0;
    // The number of steps after this one that are not recorded, because enough steps like them are
    // (InspectionOptions::trace_alike).
    unsigned repeats = 0;
    Space space = Space::kGlobal;
    unsigned bytes = 0;
    unsigned transactions = 0;
    unsigned ideal = 0;
    // As in WorstRequest, but counted from the element to which the parameter `array` points, if
    // only one points into the allocation.
    std::vector<std::int64_t> offsets;
    std::string array;

    bool operator==(const TraceStep&) const = default;
};

// What one warp did, in an order in which a GPU may have executed it: of the watched warps of all
// launches of the kernel the one with the most recorded requests, the first of these.
struct WarpTrace {
    std::array<unsigned, 3> block{};
    unsigned warp = 0;
    // All steps of the warp; `recorded` has the first of them, without those that repeat others.
    std::uint64_t steps = 0;
    std::vector<TraceStep> recorded;

    bool operator==(const WarpTrace&) const = default;
};

// A mistake, and how often it happened at these places.
struct Finding {
    // "race", "race_between_blocks", "out_of_bounds", "misaligned", "use_after_free",
    // "uninitialised_read", "missing_wait", "divergent_barrier", "deadlock", ...
    std::string kind;
    SourceLine source;
    std::string message;  // one line
    std::string why;      // a short explanation in plain language
    std::array<unsigned, 3> block{};
    std::array<unsigned, 3> thread{};
    std::optional<SourceLine> other;  // the second place of a race
    std::array<unsigned, 3> other_block{};
    std::array<unsigned, 3> other_thread{};
    std::uint64_t count = 0;

    bool operator==(const Finding&) const = default;
};

// All launches of one kernel with the same shape of block.
struct KernelInspection {
    std::string name;
    unsigned launches = 0;
    // Blocks that have run.
    std::uint64_t blocks = 0;
    // The watched blocks among them; all numbers below are of these.
    std::uint64_t inspected_blocks = 0;
    unsigned threads_per_block = 0;
    std::size_t static_shared = 0;
    std::size_t dynamic_shared = 0;
    std::uint64_t barriers = 0;
    // Accesses of threads that made too many without waiting; they are missing in `lines`.
    std::uint64_t dropped_accesses = 0;
    // False: the kernels accessed too much memory to find all races between blocks.
    bool all_memory_watched = true;
    std::uint64_t global_read_bytes = 0;  // in whole sectors
    std::uint64_t global_written_bytes = 0;
    // The same, with each sector counted once per launch: the traffic with a perfect cache.
    std::uint64_t unique_read_bytes = 0;
    std::uint64_t unique_written_bytes = 0;
    std::vector<AccessLine> lines;  // by file and line
    std::vector<Finding> findings;
    // Only if InspectionOptions::trace_steps asks for it.
    std::optional<WarpTrace> trace{};

    bool operator==(const KernelInspection&) const = default;
};

struct Inspection {
    std::vector<KernelInspection> kernels;  // in the order of their first launch
    // Copies from the device to the host whose calls returned only when the data was there, and
    // their bytes.
    std::uint64_t awaited_copies = 0;
    std::uint64_t awaited_copy_bytes = 0;

    bool operator==(const Inspection&) const = default;
};

struct InspectionOptions {
    // The most blocks that are watched in one launch. In a larger grid these are pairs of
    // neighbours: the first two, the last two, and others evenly spread between them (2 or 3: no
    // pairs). 2 to 32768. In place of kBlocksPerLaunch CUDA_ON_CPU_INSPECT_BLOCKS counts, if set.
    static constexpr std::uint64_t kBlocksPerLaunch = 256;
    std::uint64_t blocks_per_launch = kBlocksPerLaunch;
    // If false, accesses are only counted, which is faster. Failures of kernels are reported as
    // findings in either case.
    bool look_for_mistakes = true;
    // The most steps that are recorded of one warp of each kernel; 0: no trace.
    unsigned trace_steps = 0;
    // The most steps of a trace that are alike: of the same line and kind, with the same lanes and
    // as many transactions. Further ones are counted (TraceStep::repeats), so that a long loop does
    // not fill the trace. 0: no limit.
    unsigned trace_alike = 0;
};

// begin_inspection() watches all kernels that any host thread launches from then on;
// end_inspection() returns what was recorded. Implemented by the library cuda_on_cpu_inspector.
// Throws std::logic_error when an inspection is already running, or when there is none to end.
void begin_inspection(const InspectionOptions& options = {});
Inspection end_inspection();

}  // namespace cuda_on_cpu
