// CUB's scan and filter, to measure against.
#pragma once

#include <cstdint>

#include "common/bench/program.hpp"
#include "common/device/device_view.hpp"

namespace day24 {

// cub::DeviceScan::InclusiveSum of `in` into `out`; its temporary storage is allocated here, once.
// `cannot_run` has the reason where there is no CUB.
course::Contestant cub_scan(course::DeviceSpan<const std::int32_t> in, course::DeviceSpan<std::int32_t> out,
                            const course::Work& work);
// The same for cub::DeviceSelect::If, of the elements below the threshold.
course::Contestant cub_filter(course::DeviceSpan<const std::int32_t> in, std::int32_t threshold,
                              course::DeviceSpan<std::int32_t> out, course::DeviceSpan<std::uint32_t> count,
                              const course::Work& work);

}  // namespace day24
