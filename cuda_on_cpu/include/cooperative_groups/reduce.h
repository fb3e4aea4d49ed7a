// cooperative_groups::reduce: combines the values of all threads of a tile or coalesced group; each
// gets the result.
#pragma once

#include "cuda_on_cpu/macros_off.h"

#include "cooperative_groups.h"
#include "cuda_on_cpu/cooperative_groups_fold.h"

namespace cooperative_groups {

// The operation must be associative and commutative: a GPU combines in the order that suits it.
template <details::folds Group, class T, class Operation>
auto reduce(const Group& group, T&& value, Operation&& operation, Site site = Site::here()) {
    return details::fold<details::Portion::all, std::remove_cvref_t<T>>(group, value, operation, "reduce",
                                                                        site);
}

}  // namespace cooperative_groups

#include "cuda_on_cpu/macros_back.h"
