// Settings that are read from environment variables.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace cuda_on_cpu {

// When work in streams runs (CUDA_ON_CPU_STREAMS), and the order in which the blocks of a grid
// start (CUDA_ON_CPU_BLOCKS).
enum class IssueOrder { issue, late, random };
enum class BlockOrder { ascending, descending, random };

// A word, and the seed of `random:SEED`.
template <class Word>
struct Seeded {
    Word order{};
    std::uint64_t seed = 0;
};

// A compute capability: "8.6".
struct Capability {
    int major;
    int minor;
    auto operator<=>(const Capability&) const = default;
};

// Threads of a block may meet at different __syncthreads() with `any`. With `whole`, a thread that
// has come to one may not end while others come to a further one.
enum class BarrierRule { same, any, whole };

// A kind of calls, of which CUDA_ON_CPU_REFUSE=cudaMemcpy:2 refuses the second; 0: none.
enum class RefusedCall { allocation, copy, launch };

struct Refusal {
    RefusedCall call{};
    unsigned number = 0;
};

inline constexpr Capability kNewest{12, 0};

inline constexpr int kMostDevices = 64;

struct Environment {
    unsigned devices;              // CUDA_ON_CPU_DEVICES: how many there are (default 1)
    Capability capability;         // CUDA_ON_CPU_CAPABILITY: of the devices (default 9.0)
    unsigned threads;              // CUDA_ON_CPU_THREADS: OS threads that run blocks (default: one per core)
    bool descending;               // CUDA_ON_CPU_ORDER=descending: lanes and warps run last to first
    std::chrono::seconds timeout;  // CUDA_ON_CPU_TIMEOUT: how long a block may only poll memory (default 30)
    unsigned notice;               // CUDA_ON_CPU_NOTICE: see slow_launch.hpp; 0: never
    bool named_lines;  // CUDA_ON_CPU_PRINTF=threads: each line that a kernel prints names its thread
    bool rows;         // CUDA_ON_CPU_LOOPS=off: the scheduler runs each thread by itself
    bool late_stores;  // CUDA_ON_CPU_STORES=late: see inspector/late_stores.cpp
    // CUDA_ON_CPU_FINDINGS=off: an inspection only counts accesses, without looking for mistakes.
    bool findings;
    BarrierRule barriers;  // CUDA_ON_CPU_BARRIERS
    bool lockstep;         // CUDA_ON_CPU_LOCKSTEP=1: warp-synchronous code runs as on GPUs before Volta
    bool hints;            // CUDA_ON_CPU_HINTS=off: see exit_report.hpp
    unsigned limit;        // CUDA_ON_CPU_LIMIT: seconds that a launch may take; 0: any number
    bool notice_is_set;
    // CUDA_ON_CPU_LEAKS=on: the end reports allocations that were never freed, and handles that
    // were never destroyed.
    bool leaks;
    unsigned first_blocks;  // CUDA_ON_CPU_FIRST_BLOCKS: of each grid only the first so many run; 0: all
    bool kernel_lines;  // CUDA_ON_CPU_LINES=kernel: what was inlined from a header is a line of the .cu file
    bool closes_device_memory;   // CUDA_ON_CPU_HOST_ACCESS=allowed: the host may use device pointers
    bool watches_managed;        // CUDA_ON_CPU_MANAGED=watched: see managed_watch.hpp
    bool tells_shuffles;         // CUDA_ON_CPU_SHUFFLES=tell: see note_undefined_shuffle()
    Refusal refusal;             // CUDA_ON_CPU_REFUSE
    Seeded<IssueOrder> streams;  // CUDA_ON_CPU_STREAMS: see work_queue.hpp
    Seeded<BlockOrder> blocks;   // CUDA_ON_CPU_BLOCKS
    bool early_children;         // CUDA_ON_CPU_CHILDREN=early: see child_grids.hpp
    unsigned inspect_blocks;     // CUDA_ON_CPU_INSPECT_BLOCKS: see InspectionOptions
    bool atomic_volatile;        // CUDA_ON_CPU_VOLATILE=atomic: see inspector/checks.hpp
};

// The variables are read once. An invalid value ends the program with a message.
const Environment& environment();

// Does a debugger run this process?
bool is_debugged();

}  // namespace cuda_on_cpu
