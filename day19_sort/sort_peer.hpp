// CUB's radix sort, to measure against.
#pragma once

#include "common/bench/program.hpp"
#include "sort.hpp"

namespace day19 {

// cub::DeviceRadixSort::SortKeys and SortPairs; the temporary storage is allocated here, once.
// Where CUB is missing, their `cannot_run` gives the reason. K: std::uint32_t, std::uint64_t or
// float.
template <class K>
course::Contestant cub_sort(course::DeviceSpan<const K> in, course::DeviceSpan<K> out,
                            const course::Work& work);
course::Contestant cub_sort_pairs(course::DeviceSpan<const Key> in,
                                  course::DeviceSpan<const std::uint32_t> values_in,
                                  course::DeviceSpan<Key> out, course::DeviceSpan<std::uint32_t> values_out,
                                  const course::Work& work);

// cub::DeviceSegmentedSort::SortKeys, likewise. Segment s has the keys offsets[s] to offsets[s + 1]
// - 1.
course::Contestant cub_sort_segments(course::DeviceSpan<const Key> in,
                                     course::DeviceSpan<const std::uint64_t> offsets,
                                     course::DeviceSpan<Key> out, const course::Work& work);

}  // namespace day19
