// Coalesced groups and tiles. A group inside a warp is a set of lanes, whose ranks count from the
// lowest lane. A tile of several warps consists of threads of consecutive rank.
#pragma once

#include <bit>
#include <type_traits>

#include "cuda_on_cpu/cooperative_groups_block.h"
#include "cuda_on_cpu/warp.h"

namespace cooperative_groups {
namespace details {

// What tiles and coalesced groups share: everything that follows from the set of lanes alone.
class LaneGroup : public thread_group {
  public:
    unsigned num_threads() const { return static_cast<unsigned>(std::popcount(lanes().mask)); }
    unsigned size() const { return num_threads(); }
    unsigned thread_rank() const { return rank_of(cuda_on_cpu::current_lane); }
    unsigned meta_group_rank() const { return lanes().meta_group_rank; }
    unsigned meta_group_size() const { return lanes().meta_group_size; }

    void sync(Site site = Site::here()) const {
        cuda_on_cpu::warp_collective(lanes().mask, nullptr, nullptr, "group.sync", site,
                                     cuda_on_cpu::Ended::allowed);
    }

    // If the source rank is outside the group, the thread gets its own value back.
    template <class T>
    T shfl_up(T value, unsigned delta, Site site = Site::here()) const {
        const unsigned rank = thread_rank();
        return from_rank(value, delta <= rank ? rank - delta : rank, "group.shfl_up", site);
    }
    template <class T>
    T shfl_down(T value, unsigned delta, Site site = Site::here()) const {
        const unsigned rank = thread_rank();
        return from_rank(value, delta < num_threads() - rank ? rank + delta : rank, "group.shfl_down", site);
    }

    int any(int predicate, Site site = Site::here()) const {
        return cuda_on_cpu::ballot(lanes().mask, predicate, "group.any", site) != 0;
    }
    int all(int predicate, Site site = Site::here()) const {
        return cuda_on_cpu::ballot(lanes().mask, predicate == 0, "group.all", site) == 0;
    }
    // Sets of threads, one bit per rank.
    unsigned ballot(int predicate, Site site = Site::here()) const {
        return ranks_of(cuda_on_cpu::ballot(lanes().mask, predicate, "group.ballot", site));
    }
    template <class T>
    unsigned match_any(T value, Site site = Site::here()) const {
        return ranks_of(cuda_on_cpu::match(lanes().mask, value, "group.match_any", site).same);
    }
    template <class T>
    unsigned match_all(T value, int& all_equal, Site site = Site::here()) const {
        const auto result = cuda_on_cpu::match(lanes().mask, value, "group.match_all", site);
        all_equal = result.same == result.lanes;
        return all_equal != 0 ? ranks_of(result.same) : 0;
    }

  protected:
    explicit LaneGroup(LaneSet lanes) : thread_group(GroupKind::lanes, lanes) {}

    template <class T>
    T from_rank(const T& value, unsigned rank, const char* name, Site site) const {
        return cuda_on_cpu::shuffle(lanes().mask, value, lane_of(rank), name, site);
    }

  private:
    unsigned lane_of(unsigned rank) const {
        unsigned left = lanes().mask;
        for (; rank > 0; --rank)
            left &= left - 1;
        return static_cast<unsigned>(std::countr_zero(left));
    }
    unsigned rank_of(unsigned lane) const {
        return static_cast<unsigned>(std::popcount(lanes().mask & ((1U << lane) - 1)));
    }
    unsigned ranks_of(unsigned some_lanes) const {
        unsigned ranks = 0;
        for (; some_lanes != 0; some_lanes &= some_lanes - 1) {
            ranks |= 1U << rank_of(static_cast<unsigned>(std::countr_zero(some_lanes)));
        }
        return ranks;
    }
    friend LaneSet lanes_of(const LaneGroup& group);
};

inline LaneSet lanes_of(const LaneGroup& group) {
    return group.lanes();
}

}  // namespace details

// --- Coalesced groups ------------------------------------------------------------------------------------------------

// Any set of lanes of a warp.
class coalesced_group : public details::LaneGroup {
  public:
    explicit coalesced_group(details::LaneSet lanes) : LaneGroup(lanes) {}

    template <class T>
    T shfl(T value, unsigned source_rank, Site site = Site::here()) const {
        if (source_rank >= num_threads()) {
            cuda_on_cpu::device_failure(
                cudaErrorLaunchFailure,
                "coalesced_group.shfl: the source rank is not below the size of the group", site);
        }
        return from_rank(value, source_rank, "group.shfl", site);
    }
};

// The lanes that execute this call together.
inline coalesced_group coalesced_threads(Site site = Site::here()) {
    return coalesced_group({.mask = cuda_on_cpu::converged_lanes(site)});
}

// --- Tiles -----------------------------------------------------------------------------------------------------------

namespace details {

// `Size` consecutive lanes, aligned to `Size`.
template <unsigned Size>
class Tile : public LaneGroup {
    static_assert(Size >= 1 && Size <= 32 && std::has_single_bit(Size));

  public:
    static constexpr unsigned num_threads() { return Size; }
    static constexpr unsigned size() { return Size; }
    static unsigned thread_rank() { return cuda_on_cpu::current_lane % Size; }

    // Ranks wrap round, as lane numbers do in __shfl_sync.
    template <class T>
    T shfl(T value, unsigned source_rank, Site site = Site::here()) const {
        return this->from_rank(value, source_rank % Size, "tile.shfl", site);
    }
    template <class T>
    T shfl_xor(T value, unsigned rank_mask, Site site = Site::here()) const {
        const unsigned source = thread_rank() ^ rank_mask;
        return this->from_rank(value, source < Size ? source : thread_rank(), "tile.shfl_xor", site);
    }

  protected:
    explicit Tile(LaneSet lanes) : LaneGroup(lanes) {}
};

// A tile of several warps.
template <unsigned Size>
class WideTile {
    static_assert(Size >= 64 && Size <= 1024 && std::has_single_bit(Size),
                  "a tile has a power of two of threads, up to 1024");

  public:
    static constexpr unsigned num_threads() { return Size; }
    static constexpr unsigned size() { return Size; }
    static unsigned thread_rank() { return thread_block::thread_rank() % Size; }
    unsigned meta_group_rank() const { return lanes_.meta_group_rank; }
    unsigned meta_group_size() const { return lanes_.meta_group_size; }

    void sync(Site site = Site::here()) const {
        cuda_on_cpu::tile_collective(Size, nullptr, nullptr, "tile.sync", site);
    }
    // A broadcast: all threads must name the same rank of the tile. With different ranks, or a rank
    // outside the tile, the warps of a GPU wait forever for an arrival.
    template <class T>
    T shfl(T value, unsigned source_rank, Site site = Site::here()) const {
        static_assert(std::is_trivially_copyable_v<T>, "a shuffle moves bits");
        struct Broadcast {
            T value;
            unsigned source;
            bool agreed;
        };
        Broadcast own{value, source_rank, true};
        const auto exchange = [](void* const* operands, unsigned threads) {
            const auto operand_of = [&](unsigned rank) -> Broadcast& {
                return *static_cast<Broadcast*>(operands[rank]);
            };
            const unsigned source = operand_of(0).source;
            bool agreed = source < threads;
            for (unsigned rank = 1; rank < threads; ++rank)
                agreed = agreed && operand_of(rank).source == source;
            const T sent = operand_of(agreed ? source : 0).value;
            for (unsigned rank = 0; rank < threads; ++rank) {
                operand_of(rank).value = sent;
                operand_of(rank).agreed = agreed;
            }
        };
        cuda_on_cpu::tile_collective(Size, &own, exchange, "tile.shfl", site);
        if (!own.agreed) {
            cuda_on_cpu::device_failure(
                cudaErrorLaunchTimeout,
                "tile.shfl of a tile of more than 32 threads: not all threads name the same "
                "rank of the tile; a GPU waits for ever",
                site);
        }
        return own.value;
    }
    int any(int predicate, Site site = Site::here()) const {
        return count(predicate != 0, "tile.any", site) != 0;
    }
    int all(int predicate, Site site = Site::here()) const {
        return count(predicate == 0, "tile.all", site) == 0;
    }

  protected:
    explicit WideTile(LaneSet lanes) : lanes_(lanes) {}

  private:
    static unsigned count(bool holds, const char* name, Site site) {
        unsigned own = holds ? 1 : 0;
        const auto sum = [](void* const* operands, unsigned threads) {
            unsigned all = 0;
            for (unsigned rank = 0; rank < threads; ++rank)
                all += *static_cast<unsigned*>(operands[rank]);
            for (unsigned rank = 0; rank < threads; ++rank)
                *static_cast<unsigned*>(operands[rank]) = all;
        };
        cuda_on_cpu::tile_collective(Size, &own, sum, name, site);
        return own;
    }
    friend LaneSet lanes_of(const WideTile& tile) { return tile.lanes_; }

    // There is no mask: only the part and the number of parts are set.
    LaneSet lanes_;
};

template <unsigned Size>
using TileOf = std::conditional_t<(Size > 32), WideTile<Size>, Tile<Size>>;

// The lanes of the calling thread's tile; no lanes for a tile of several warps.
constexpr unsigned tile_mask(unsigned lane, unsigned size) {
    return size > 32 ? 0 : (~0U >> (32 - size)) << lane / size * size;
}

inline LaneSet tile_of(const thread_block&, unsigned size) {
    return {.mask = tile_mask(cuda_on_cpu::current_lane, size),
            .meta_group_rank = thread_block::thread_rank() / size,
            .meta_group_size = (thread_block::num_threads() + size - 1) / size};
}

}  // namespace details

// `Parent` is the group that was divided; `thread_block_tile<Size>` accepts a tile of any parent.
template <unsigned Size, class Parent = void>
class thread_block_tile : public details::TileOf<Size> {
  public:
    explicit thread_block_tile(details::LaneSet lanes) : details::TileOf<Size>(lanes) {}

    template <class Other>
    requires std::is_void_v<Parent> thread_block_tile(const thread_block_tile<Size, Other>& other)
        : details::TileOf<Size>(lanes_of(other)) {}
};

namespace details {

template <unsigned Size, class Parent>
struct StaticPartition {
    static_assert(std::is_void_v<Parent>,
                  "tiled_partition<Size>: the parent must be a thread_block or a tile");
};
template <unsigned Size>
struct StaticPartition<Size, thread_block> {
    static LaneSet of(const thread_block& parent) { return tile_of(parent, Size); }
};
template <unsigned Size, unsigned ParentSize, class Grandparent>
struct StaticPartition<Size, thread_block_tile<ParentSize, Grandparent>> {
    static_assert(Size < ParentSize, "tiled_partition<Size>: a part must be smaller than its parent");

    static LaneSet of(const thread_block_tile<ParentSize, Grandparent>& parent) {
        return {.mask = tile_mask(cuda_on_cpu::current_lane, Size),
                .meta_group_rank = parent.thread_rank() / Size,
                .meta_group_size = ParentSize / Size};
    }
};

inline void check_partition(unsigned size, Site site) {
    if (size == 0 || size > 32 || !std::has_single_bit(size)) {
        cuda_on_cpu::device_failure(cudaErrorLaunchFailure,
                                    "tiled_partition: the size of a part must be 1, 2, 4, 8, 16 or 32", site);
    }
}

}  // namespace details

// --- Partitions ------------------------------------------------------------------------------------------------------

template <unsigned Size, class Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent& parent) {
    return thread_block_tile<Size, Parent>(details::StaticPartition<Size, Parent>::of(parent));
}

// A group of the calling thread alone.
inline thread_block_tile<1> this_thread() {
    return thread_block_tile<1>({.mask = 1U << cuda_on_cpu::current_lane});
}

// Parts of `size` threads of consecutive rank; the last part may be smaller.
inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size,
                                       Site site = Site::here()) {
    details::check_partition(size, site);
    if (parent.num_threads() <= size) return parent;
    const unsigned part = parent.thread_rank() / size;
    details::LaneSet lanes{.meta_group_rank = part,
                           .meta_group_size = (parent.num_threads() + size - 1) / size};
    unsigned rank = 0;
    for (unsigned left = details::lanes_of(parent).mask; left != 0; left &= left - 1) {
        if (rank++ / size == part) lanes.mask |= left & ~(left - 1);
    }
    return coalesced_group(lanes);
}
inline thread_group tiled_partition(const thread_block& parent, unsigned size, Site site = Site::here()) {
    details::check_partition(size, site);
    details::LaneSet lanes = details::tile_of(parent, size);
    const unsigned first_of_warp = parent.thread_rank() - cuda_on_cpu::current_lane;
    if (const unsigned exist = parent.num_threads() - first_of_warp; exist < 32)
        lanes.mask &= (1U << exist) - 1;
    return coalesced_group(lanes);
}
thread_group tiled_partition(const thread_group& parent, unsigned size, Site site = Site::here());

// Two parts: the threads for which `predicate` holds, and the others.
inline coalesced_group binary_partition(const details::LaneGroup& parent, bool predicate,
                                        Site site = Site::here()) {
    const unsigned all = details::lanes_of(parent).mask;
    const unsigned chosen = cuda_on_cpu::ballot(all, predicate, "binary_partition", site);
    if (chosen == all || chosen == 0) return coalesced_group({.mask = all});
    return coalesced_group({.mask = predicate ? chosen : all & ~chosen,
                            .meta_group_rank = predicate ? 1U : 0U,
                            .meta_group_size = 2});
}

// One part for each value of `label`, in the order of their first threads.
template <class Label>
coalesced_group labeled_partition(const details::LaneGroup& parent, Label label, Site site = Site::here()) {
    if constexpr (std::is_same_v<Label, bool>) {
        return binary_partition(parent, label, site);
    } else {
        const unsigned all = details::lanes_of(parent).mask;
        const unsigned part = cuda_on_cpu::match(all, label, "labeled_partition", site).same;
        const unsigned first = part & ~(part - 1);
        const bool is_first = first == 1U << cuda_on_cpu::current_lane;
        const unsigned firsts = cuda_on_cpu::ballot(all, is_first, "labeled_partition", site);
        return coalesced_group({.mask = part,
                                .meta_group_rank = static_cast<unsigned>(std::popcount(firsts & (first - 1))),
                                .meta_group_size = static_cast<unsigned>(std::popcount(firsts))});
    }
}

}  // namespace cooperative_groups
