// CUB's radix sort, to measure against.
#pragma once

#include "common/bench/program.hpp"
#include "sort.hpp"

namespace day19 {

// cub::DeviceRadixSort::SortKeys; the temporary storage is allocated here, once. Its `cannot_run`
// says why where CUB is not.
course::Contestant cub_sort(course::DeviceSpan<const Key> in, course::DeviceSpan<Key> out,
                            const course::Work& work);

}  // namespace day19
