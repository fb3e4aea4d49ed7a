// Cooperative groups: groups of threads as objects, which can be divided, passed to functions and
// synchronised. Namespace and names are those of the CUDA C++ Programming Guide, "Cooperative
// Groups".
//
// Not provided (using them does not compile): the *_async and *_update forms of reduce and scan,
// and a grid barrier in two halves.
#pragma once

#include "cuda_on_cpu/macros_off.h"

#include <chrono>  // NVIDIA's brings it along
#include <functional>
#include <type_traits>
#include <utility>

#include "cuda_on_cpu/cooperative_groups_block.h"
#include "cuda_on_cpu/cooperative_groups_lanes.h"
#include "cuda_on_cpu/cooperative_groups_thread_group.h"

namespace cooperative_groups {

// --- thread_group ----------------------------------------------------------------------------------------------------

template <class Visitor>
auto thread_group::visit(Visitor visitor) const {
    switch (kind_) {
        case details::GroupKind::block:
            return visitor(thread_block());
        case details::GroupKind::cluster:
            return visitor(cluster_group());
        case details::GroupKind::grid:
            return visitor(grid_group());
        case details::GroupKind::lanes:
            break;
    }
    return visitor(coalesced_group(lanes_));
}

inline unsigned long long thread_group::size() const {
    return visit([](const auto& group) -> unsigned long long { return group.num_threads(); });
}
inline unsigned long long thread_group::thread_rank() const {
    return visit([](const auto& group) -> unsigned long long { return group.thread_rank(); });
}
// A grid that was converted to a thread_group does not synchronise on a GPU either, but there
// without a message.
inline void thread_group::sync(Site site) const {
    if (kind_ == details::GroupKind::grid) {
        cuda_on_cpu::device_failure(cudaErrorLaunchFailure,
                                    "a grid as thread_group cannot sync(); use grid_group", site);
    }
    visit([site](const auto& group) { group.sync(site); });
}

inline thread_group tiled_partition(const thread_group& parent, unsigned size, Site site) {
    switch (parent.kind_) {
        case details::GroupKind::block:
            return tiled_partition(thread_block(), size, site);
        case details::GroupKind::lanes:
            return tiled_partition(coalesced_group(parent.lanes_), size, site);
        default:
            break;
    }
    cuda_on_cpu::device_failure(cudaErrorLaunchFailure,
                                "tiled_partition: the parent must be a block, a tile or a coalesced group",
                                site);
}

// --- The same, as functions ------------------------------------------------------------------------------------------

template <class Group>
void sync(const Group& group, Site site = Site::here()) {
    group.sync(site);
}
template <class Group>
auto thread_rank(const Group& group) -> decltype(group.thread_rank()) {
    return group.thread_rank();
}
template <class Group>
auto group_size(const Group& group) -> decltype(group.num_threads()) {
    return group.num_threads();
}

// --- One thread for all --------------------------------------------------------------------------

// Any one thread of the group calls the function. The others do not wait for it.
template <class Group, class Function, class... Arguments>
void invoke_one(const Group& group, Function&& function, Arguments&&... arguments) {
    if (group.thread_rank() == 0) {
        std::invoke(std::forward<Function>(function), std::forward<Arguments>(arguments)...);
    }
}

// The same for tiles and coalesced groups; all threads get the result.
template <class Group, class Function, class... Arguments>
requires std::is_base_of_v<details::LaneGroup, Group>
auto invoke_one_broadcast(const Group& group, Function&& function, Arguments&&... arguments) {
    using Result = std::remove_cvref_t<std::invoke_result_t<Function, Arguments...>>;
    static_assert(!std::is_void_v<Result>, "a function without a result is for invoke_one");
    Result result{};
    if (group.thread_rank() == 0) {
        result = std::invoke(std::forward<Function>(function), std::forward<Arguments>(arguments)...);
    }
    return group.shfl(result, 0);
}

}  // namespace cooperative_groups

#include "cuda_on_cpu/macros_back.h"
