// CUB's reductions, to measure against.
#pragma once

#include "common/bench/program.hpp"
#include "common/device/device_view.hpp"
#include "reduction.hpp"

namespace day15 {

// cub::DeviceReduce of `in` into out[0]; its temporary storage is allocated here, once. For
// Sum<float>, Min<float> and Sum<std::int32_t> (added in 64 bits, as ours). Where CUB is missing,
// its `cannot_run` gives the reason.
template <class Op>
course::Contestant cub_reduction(course::DeviceSpan<const typename Op::Element> in,
                                 course::DeviceSpan<typename Op::Result> out, const course::Work& work);

}  // namespace day15
