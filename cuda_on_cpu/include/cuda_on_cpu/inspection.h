// What watching kernels run has shown: how the accesses of each source line hit shared and global
// memory, and what is wrong with them. Plain data, and how to get it; only programs of the
// `inspect` preset can.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cuda_on_cpu {

enum class Space { kShared, kGlobal };
enum class Operation { kLoad, kStore, kAtomic, kAsyncCopy, kMatrixLoad };

// A line of a source file; the file's path is relative to the course's directory where it is below
// it. Line 0: not known.
struct SourceLine {
    std::string file;
    int line = 0;

    bool operator==(const SourceLine&) const = default;
};

// The request of a line with the most transactions.
struct WorstRequest {
    unsigned transactions = 0;
    unsigned active_lanes = 0;
    std::array<unsigned, 3> block{};
    unsigned warp = 0;
    // Of each of the 32 lanes, in bytes from the first byte of the array; -1: not active. Of a
    // matrix load: the rows.
    std::vector<std::int64_t> offsets;
    // Of a shared array its name; of global memory the kernel's parameters that point there, "in";
    // else, or where a parameter points to several allocations, "allocation of 4096 bytes".
    std::string array;

    bool operator==(const WorstRequest&) const = default;
};

// All requests of one line with one operation, in one space, with one size. A request is what the
// lanes of a warp ask for with one instruction. Transactions: wavefronts in shared memory, 32-byte
// sectors in global memory.
struct AccessLine {
    SourceLine source;
    Space space = Space::kGlobal;
    Operation operation = Operation::kLoad;
    unsigned bytes = 0;  // of a lane
    std::uint64_t requests = 0;
    std::uint64_t transactions = 0;
    // Of the same requests at their best. Shared: active lanes * bytes / 128, rounded up. Global:
    // distinct bytes / 32, rounded up.
    std::uint64_t ideal = 0;
    std::uint64_t active_lanes = 0;
    std::uint64_t bytes_used = 0;  // distinct bytes asked for, summed over the requests
    WorstRequest worst;

    bool operator==(const AccessLine&) const = default;
};

// Something wrong, as often as it happened at these places.
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

// All launches of one kernel with one shape of block.
struct KernelInspection {
    std::string name;
    unsigned launches = 0;
    std::uint64_t blocks = 0;            // that have run
    std::uint64_t inspected_blocks = 0;  // and of them those that were watched; all figures below are theirs
    unsigned threads_per_block = 0;
    std::size_t static_shared = 0;
    std::size_t dynamic_shared = 0;
    std::uint64_t barriers = 0;
    std::uint64_t dropped_accesses =
        0;                           // of threads that have made too many without waiting: not in the lines
    bool all_memory_watched = true;  // for races between blocks; too much of it was touched otherwise
    std::uint64_t global_read_bytes = 0;  // in whole sectors
    std::uint64_t global_written_bytes = 0;
    std::uint64_t unique_read_bytes =
        0;  // the same, each sector counted once a launch: what a perfect cache would move
    std::uint64_t unique_written_bytes = 0;
    std::vector<AccessLine> lines;  // by file and line
    std::vector<Finding> findings;

    bool operator==(const KernelInspection&) const = default;
};

struct Inspection {
    std::vector<KernelInspection> kernels;  // in the order of their first launch

    bool operator==(const Inspection&) const = default;
};

struct InspectionOptions {
    // Of larger grids only so many blocks are watched: the first, the last, and others evenly
    // spread between them. 2 to 32768.
    std::uint64_t blocks_per_launch = 256;
    // Without, accesses are only counted, which is faster. Failures of kernels are findings all the
    // same.
    bool look_for_mistakes = true;
};

// Kernels launched from now on, by any host thread, are watched, until end_inspection() hands out
// what was seen. Implemented by the library cuda_on_cpu_inspector. Throws std::logic_error when one
// is under way already, or none is.
void begin_inspection(const InspectionOptions& options = {});
Inspection end_inspection();

}  // namespace cuda_on_cpu
