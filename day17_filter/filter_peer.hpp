// CUB's filters, to measure against.
#pragma once

#include "common/bench/program.hpp"
#include "filter.hpp"

namespace day17 {

// cub::DeviceSelect::If, cub::DeviceSelect::Unique or cub::DevicePartition::If; the temporary
// storage is allocated here, once. Where CUB is missing, its `cannot_run` gives the reason.
course::Contestant cub_filter(Operation operation, course::DeviceSpan<const std::int32_t> in,
                              std::int32_t threshold, course::DeviceSpan<std::int32_t> out,
                              course::DeviceSpan<Count> count, const course::Work& work);

}  // namespace day17
