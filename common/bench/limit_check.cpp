#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "common/bench/machine_limits.hpp"

namespace course {
namespace {

constexpr double kTolerated = 1.03;  // the limits themselves are measured, and clocks vary

}  // namespace

LimitCheck check_against_limits(const Work& work, double milliseconds, L2State l2,
                                const std::optional<MachineLimits>& limits) {
    if (!limits) return {};
    if (!(milliseconds >= 0) || !(work.bytes >= 0) || !(work.flops >= 0) ||
        !(work.written >= 0 && work.written <= work.bytes)) {
        throw std::invalid_argument(
            fmt::format("check_against_limits: expected bytes, written <= bytes, flops and time of 0 or "
                        "more, got {}, {}, {} and {} ms",
                        work.bytes, work.written, work.flops, milliseconds));
    }
    const double seconds = milliseconds * 1e-3;
    const auto cache = static_cast<double>(limits->l2_bytes);
    const double crossing = std::max(0.0, work.bytes - (l2 == L2State::kWarm ? 2 : 1) * cache);
    const double flops = work.arithmetic == Arithmetic::kFp32 ? work.flops : 0;

    const double memory_rate = limits->memory_rate(work.bytes > 0 ? work.written / work.bytes : 0);

    // Times are compared, not rates: then 0 ms is too fast, and causes no division by zero.
    LimitCheck result;
    result.bytes_per_second = memory_rate;
    result.flops_per_second = limits->flops_per_second;
    if (seconds * kTolerated < crossing / memory_rate) {
        result.violation = fmt::format(
            "{:.4g} GB in {:.4g} ms is more than the {:.4g} GB/s measured here for this mix of reads and "
            "writes",
            work.bytes * 1e-9, milliseconds, memory_rate * 1e-9);
        return result;
    }
    if (seconds * kTolerated < flops / limits->flops_per_second) {
        result.violation =
            fmt::format("{:.4g} GFLOP in {:.4g} ms is more than the {:.4g} TFLOP/s measured here (FP32 FMA)",
                        flops * 1e-9, milliseconds, limits->flops_per_second * 1e-12);
        return result;
    }
    if (seconds == 0) return result;

    const double memory = work.bytes / memory_rate / seconds;
    const double arithmetic = flops / limits->flops_per_second / seconds;
    if (arithmetic >= memory) {
        if (arithmetic > 0) result.percent = 100 * arithmetic;
    } else if ((l2 == L2State::kFlushed || work.bytes > 2 * cache) && memory <= kTolerated) {
        result.percent = 100 * memory;
    }
    return result;
}

}  // namespace course
