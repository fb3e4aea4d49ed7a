// The host API of what day 4 has beyond its core. The kernels are in near_and_far.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

#include "common/bench/version.hpp"
#include "common/device/device_view.hpp"
#include "memory_hierarchy.hpp"

namespace day04 {

// --- Near: a piece of x for each SM, which its block adds up again and again ----------------------

struct Again {
    std::size_t piece_bytes = 0;  // a multiple of 16
    unsigned rounds = 1;
};

// Threads of a launch: as many as `sums` has elements.
std::size_t again_threads();

// Enqueues the kernel. x has a piece for each SM, all of the same size, and starts at a multiple of
// 16 bytes. All sums together are `rounds` times the sum of x, modulo 2^32. Throws
// std::invalid_argument for a bad argument, CudaError when the launch fails.
using AgainLauncher = void (*)(course::DeviceSpan<const unsigned> x, unsigned rounds,
                               course::DeviceSpan<unsigned> sums, cudaStream_t stream);
using AgainVersion = course::Version<AgainLauncher, Again>;
std::span<const AgainVersion> again_versions();

// --- L2: records that pass by a table -------------------------------------------------------------

struct Lookup {
    std::size_t records = 0;      // of 32 words
    std::size_t table_words = 1;  // a power of two
};

// Threads of a launch: as many as `sums` has elements.
std::size_t lookup_threads();

// Enqueues the kernel. All sums together are lookup_on_cpu(). `records` starts at a multiple of 16
// bytes. Throws as above.
using LookupLauncher = void (*)(course::DeviceSpan<const unsigned> records,
                                course::DeviceSpan<const unsigned> table, course::DeviceSpan<unsigned> sums,
                                cudaStream_t stream);
struct LookupVersion : course::Version<LookupLauncher, Lookup> {
    bool persists = false;  // needs a part of L2 that is set aside, or it is no faster than `lookup`
};
std::span<const LookupVersion> lookup_versions();

// The sum of all words of all records, and for each record of the word of the table that its first
// word leads to; modulo 2^32.
unsigned lookup_on_cpu(std::span<const unsigned> records, std::span<const unsigned> table);

// While it exists, a part of the device's L2 is set aside for lines that persist: `bytes`, or as
// much as the device allows.
class L2SetAside {
  public:
    explicit L2SetAside(std::size_t bytes);
    ~L2SetAside();
    L2SetAside(const L2SetAside&) = delete;
    L2SetAside& operator=(const L2SetAside&) = delete;
};

// --- L2: how much it fetches ----------------------------------------------------------------------

// Further versions of read_versions(), whose warps read adjacent elements.
std::span<const ReadVersion> stretch_versions();

// --- Far: a list whose lines are as far apart as pages --------------------------------------------

struct FarChase {
    std::size_t words = 0;  // of 8 bytes, from the first line to the last
    unsigned steps = 0;
};

// Enqueues `steps` steps from word `start` of `next`; *last is then the word that was reached.
// Throws as above.
using FarChaseLauncher = void (*)(course::DeviceSpan<const unsigned long long> next, unsigned long long start,
                                  unsigned steps, course::DeviceSpan<unsigned long long> last,
                                  cudaStream_t stream);
using FarChaseVersion = course::Version<FarChaseLauncher, FarChase>;
std::span<const FarChaseVersion> far_chase_versions();

// --- Which block runs on which SM, and when -------------------------------------------------------

// Where a block ran, and from when to when, in ns.
struct Stay {
    unsigned long long begin;
    unsigned long long end;
    unsigned sm;
};

struct Waves {
    std::size_t threads = 0;  // a multiple of 1,024, less than 2^32
    unsigned steps = 0;
};

// Enqueues the kernel. values[t] is then value_after(t, steps), stays[b] the stay of block b.
// Throws as above.
using WavesLauncher = void (*)(unsigned steps, course::DeviceSpan<unsigned> values,
                               course::DeviceSpan<Stay> stays, cudaStream_t stream);
struct WavesVersion : course::Version<WavesLauncher, Waves> {
    unsigned block = 1024;  // threads
};
std::span<const WavesVersion> waves_versions();

// The number after `steps` steps from `value`.
unsigned value_after(unsigned value, unsigned steps);

// The share of the places for a block that were empty between the begin of the first block and the
// end of the last, on `sms` SMs with room for `blocks_per_sm` blocks.
double empty_share(std::span<const Stay> stays, std::size_t sms, std::size_t blocks_per_sm);

}  // namespace day04
