// CUB's histogram, which comes with the CUDA Toolkit, to measure against.
#pragma once

#include <cstdint>
#include <span>

#include "common/bench/program.hpp"
#include "common/device/device_view.hpp"
#include "histogram.hpp"

namespace day12 {

// cub::DeviceHistogram::HistogramEven with the same bins and its usual 32-bit counters. Contestants
// for the day's program, without `work` and `verify`. `values` and `counts` must outlive them.
course::Contestant cub_histogram(course::DeviceSpan<const std::uint8_t> values, Range range,
                                 course::DeviceSpan<std::uint32_t> counts);
course::Contestant cub_histogram(course::DeviceSpan<const std::int32_t> values, Range range,
                                 course::DeviceSpan<std::uint32_t> counts);

}  // namespace day12
