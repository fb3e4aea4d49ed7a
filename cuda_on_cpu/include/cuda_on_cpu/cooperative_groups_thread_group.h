// The base class of all groups of cooperative_groups.h.
#pragma once

#include "cuda_on_cpu/thread.h"

namespace cooperative_groups {

using cuda_on_cpu::Site;

namespace details {

enum class GroupKind { lanes, block, cluster, grid };

// A set of lanes of a warp, with its index among the groups of the same partition and their number
// (CUDA's "meta group").
struct LaneSet {
    unsigned mask = 0;
    unsigned meta_group_rank = 0;
    unsigned meta_group_size = 1;
};

// x varies fastest.
template <class Number = unsigned>
constexpr Number linear(uint3 index, dim3 extent) {
    return (static_cast<Number>(index.z) * extent.y + index.y) * extent.x + index.x;
}
template <class Number = unsigned>
constexpr Number volume(dim3 extent) {
    return static_cast<Number>(extent.x) * extent.y * extent.z;
}

}  // namespace details

// Any group, for code that accepts every kind: a parameter `thread_group g` takes blocks, tiles,
// coalesced groups... It is copied by value, so the base class stores the complete state of the
// group.
class thread_group {
  public:
    unsigned long long size() const;
    unsigned long long thread_rank() const;
    void sync(Site site = Site::here()) const;

  protected:
    explicit thread_group(details::GroupKind kind, details::LaneSet lanes = {})
        : kind_(kind), lanes_(lanes) {}

    const details::LaneSet& lanes() const { return lanes_; }

  private:
    // Calls the visitor with the group that this one was made from.
    template <class Visitor>
    auto visit(Visitor visitor) const;
    friend thread_group tiled_partition(const thread_group& parent, unsigned size, Site site);

    details::GroupKind kind_;
    details::LaneSet lanes_;
};

}  // namespace cooperative_groups
