// What this machine can do at best, measured, not read from a data sheet: "% of limit" is against
// these figures.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/bench/benchmark.hpp"
#include "common/bench/work.hpp"

namespace course {

struct StreamRate {
    std::string pattern;       // "read", "triad", "copy", "cudaMemcpy", "write"
    double written_share = 0;  // of the bytes it moves
    double bytes_per_second = 0;
};

struct MachineLimits {
    // Memory gives most when it only reads or only writes; turning the bus round costs. So there is
    // a limit for each mix of the two: what the best of several kernels with that mix reached.
    // Ordered by written_share.
    std::vector<StreamRate> streams;
    double flops_per_second = 0;  // FP32 multiply-adds out of registers, two operations each
    std::size_t l2_bytes = 0;

    // Bytes per second for a mix with this share of writes, in [0, 1]: time per byte interpolated
    // between the two nearest.
    double memory_rate(double written_share) const;
};

// Of the current device; measured on the first call (some tenths of a second, up to 3 GiB), the
// same from then on. Empty on the CPU stand-in, whose speed limits no kernel.
const std::optional<MachineLimits>& machine_limits();

// The measurement itself. `stream_bytes`: size of each of the three arrays; it should be many times
// the L2 cache.
MachineLimits measure_machine_limits(std::size_t stream_bytes, int fma_rounds);

struct LimitCheck {
    std::optional<double>
        percent;            // of the limit that is nearer, memory or arithmetic; empty where neither applies
    std::string violation;  // why the figure cannot be true; empty if it can
    double bytes_per_second = 0;  // the limits themselves: memory for this mix of reads and writes,
    double flops_per_second = 0;  // and FP32 arithmetic
};

// Compares a time with the limits. A figure more than 3 % above a limit is a mistake: work left
// out, bytes or operations counted wrong, or the wrong thing timed.
//
// The memory limit binds only bytes that must cross the memory bus. With an L2 of size C, a warm
// run finds up to C of its input in the cache and leaves up to C of its output there: bytes - 2 C
// must cross. A flushed run finds nothing: bytes - C. Only that remainder is held against the
// limit; small problems may run from the cache, and do. Where all bytes can come from there (warm,
// bytes <= 2 C), or the cache explains a rate above the limit, there is no percentage.
LimitCheck check_against_limits(const Work& work, double milliseconds, L2State l2,
                                const std::optional<MachineLimits>& limits);

}  // namespace course
