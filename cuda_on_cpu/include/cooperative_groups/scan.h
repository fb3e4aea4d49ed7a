// cooperative_groups::inclusive_scan and exclusive_scan: each thread gets the values of the threads
// up to, or before, it, combined in order of rank with an associative operation.
#pragma once

#include "cuda_on_cpu/macros_off.h"

#include "cooperative_groups.h"
#include "cuda_on_cpu/cooperative_groups_fold.h"

namespace cooperative_groups {

template <details::folds Group, class T, class Operation>
requires std::is_invocable_v<Operation&, T&, T&>
auto inclusive_scan(const Group& group, T&& value, Operation&& operation, Site site = Site::here()) {
    return details::fold<details::Portion::through, std::remove_cvref_t<T>>(group, value, operation,
                                                                            "inclusive_scan", site);
}
template <details::folds Group, class T>
auto inclusive_scan(const Group& group, T&& value, Site site = Site::here()) {
    return inclusive_scan(group, value, plus<std::remove_cvref_t<T>>{}, site);
}

// The first thread gets a zero, T{}, whatever the operation.
template <details::folds Group, class T, class Operation>
requires std::is_invocable_v<Operation&, T&, T&>
auto exclusive_scan(const Group& group, T&& value, Operation&& operation, Site site = Site::here()) {
    return details::fold<details::Portion::before, std::remove_cvref_t<T>>(group, value, operation,
                                                                           "exclusive_scan", site);
}
template <details::folds Group, class T>
auto exclusive_scan(const Group& group, T&& value, Site site = Site::here()) {
    return exclusive_scan(group, value, plus<std::remove_cvref_t<T>>{}, site);
}

}  // namespace cooperative_groups

#include "cuda_on_cpu/macros_back.h"
