// The limits of this machine: measured, not taken from a data sheet. "% of limit" is relative to
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
    // Memory bandwidth is highest for reads alone or writes alone, because switching the direction
    // of the bus takes time. So each mix of the two has its own limit: the rate of the best of
    // several kernels with that mix. Ordered by written_share.
    std::vector<StreamRate> streams;
    double flops_per_second = 0;  // FP32 multiply-adds on registers, two operations each
    std::size_t l2_bytes = 0;

    // Bytes per second for a mix with this share of writes, in [0, 1]: time per byte interpolated
    // between the two nearest.
    double memory_rate(double written_share) const;
};

// The limits of the current device. The first call measures them (some tenths of a second, up to 3
// GiB of memory); later calls return the same values. Empty on the CPU stand-in, where such limits
// are meaningless.
const std::optional<MachineLimits>& machine_limits();

// The measurement itself. `stream_bytes`: size of each of the three arrays; it should be many times
// the L2 cache.
MachineLimits measure_machine_limits(std::size_t stream_bytes, int fma_rounds);

struct LimitCheck {
    // Percent of the nearer limit, memory or arithmetic; empty where neither applies.
    std::optional<double> percent;
    std::string violation;        // why the figure cannot be true; empty if it can
    double bytes_per_second = 0;  // the limits themselves: memory for this mix of reads and writes,
    double flops_per_second = 0;  // and FP32 arithmetic
};

// Compares a time with the limits. A figure more than 3 % above a limit is an error: work was left
// out, bytes or operations were counted wrongly, or something else was timed.
//
// The memory limit applies only to bytes that must cross the memory bus. With an L2 cache of size
// C, a warm run may find up to C of its input in the cache and leave up to C of its output there,
// so bytes - 2 C must cross the bus. A flushed run finds none of its input there, so bytes - C must
// cross. Only this remainder is compared with the limit, because small problems may run from the
// cache. Where the cache can supply all bytes (warm, bytes <= 2 C), or where it explains a rate
// above the limit, there is no percentage.
LimitCheck check_against_limits(const Work& work, double milliseconds, L2State l2,
                                const std::optional<MachineLimits>& limits);

}  // namespace course
