// CUB's merge, to measure against.
#pragma once

#include "common/bench/program.hpp"
#include "merge.hpp"

namespace day18 {

// cub::DeviceMerge::MergeKeys or MergePairs; the temporary storage is allocated here, once. Where
// CUB is missing, its `cannot_run` gives the reason.
course::Contestant cub_merge(Operation operation, const Sorted& a, const Sorted& b, const Output& out,
                             const course::Work& work);

}  // namespace day18
