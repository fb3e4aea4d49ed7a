// CUB's scan, to measure against.
#pragma once

#include <cstdint>

#include "common/bench/program.hpp"
#include "common/device/device_view.hpp"

namespace day16 {

// cub::DeviceScan::InclusiveSum of `in` into `out`; its temporary storage is allocated here, once.
// For float, std::int32_t and std::int64_t. `cannot_run` has the reason where there is no CUB.
template <class T>
course::Contestant cub_scan(course::DeviceSpan<const T> in, course::DeviceSpan<T> out,
                            const course::Work& work);
// The same for cub::DeviceScan::InclusiveSumByKey.
course::Contestant cub_scan_by_key(course::DeviceSpan<const std::int32_t> keys,
                                   course::DeviceSpan<const float> in, course::DeviceSpan<float> out,
                                   const course::Work& work);

}  // namespace day16
