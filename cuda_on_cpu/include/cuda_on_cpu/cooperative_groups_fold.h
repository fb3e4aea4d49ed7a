// What reduce.h and scan.h share: the named operations, and the loop over a group's values.
#pragma once

#include <type_traits>
#include <utility>

#include "cuda_on_cpu/cooperative_groups_lanes.h"

namespace cooperative_groups {

template <class T>
struct plus {
    T operator()(T a, T b) const { return static_cast<T>(a + b); }
};
// The smaller value, and the greater one.
template <class T>
struct less {
    T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
    T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
    T operator()(T a, T b) const { return static_cast<T>(a & b); }
};
template <class T>
struct bit_or {
    T operator()(T a, T b) const { return static_cast<T>(a | b); }
};
template <class T>
struct bit_xor {
    T operator()(T a, T b) const { return static_cast<T>(a ^ b); }
};

namespace details {

// The values are combined in order of rank. A thread gets the combination of those before its own
// (exclusive scan), of those up to its own (inclusive scan), or of all (reduction).
enum class Portion { before, through, all };

// The operand of one thread.
template <class T, class Operation>
struct FoldOperand {
    static_assert(std::is_trivially_copyable_v<T>, "values travel between threads as bits");
    static_assert(
        std::is_same_v<std::remove_cvref_t<std::invoke_result_t<Operation&, const T&, const T&>>, T>,
        "the operation must return the type of its operands");
    T value;
    Operation* operation;
    T result;
};

// `next` calls its argument with one operand after the other.
template <Portion portion, class T, class Operation, class Next>
void fold_all(Next next) {
    T so_far{};
    bool first = true;
    next([&](FoldOperand<T, Operation>& operand) {
        if constexpr (portion == Portion::before) operand.result = so_far;
        so_far = first ? operand.value : (*operand.operation)(so_far, operand.value);
        if constexpr (portion == Portion::through) operand.result = so_far;
        first = false;
    });
    if constexpr (portion == Portion::all)
        next([&](FoldOperand<T, Operation>& operand) { operand.result = so_far; });
}

template <Portion portion, class T, class Operation>
T fold(const LaneGroup& group, const T& value, Operation& operation, const char* name, Site site) {
    using Operand = FoldOperand<T, Operation>;
    Operand own{value, &operation, T{}};
    cuda_on_cpu::warp_collective(
        lanes_of(group).mask, &own,
        [](const cuda_on_cpu::Lanes& lanes) {
            fold_all<portion, T, Operation>([&](auto visit) {
                for (unsigned left = lanes.mask; left != 0; left &= left - 1)
                    visit(lanes.at<Operand>(static_cast<unsigned>(std::countr_zero(left))));
            });
        },
        name, site);
    return own.result;
}
template <Portion portion, class T, unsigned Size, class Operation>
T fold(const WideTile<Size>&, const T& value, Operation& operation, const char* name, Site site) {
    using Operand = FoldOperand<T, Operation>;
    Operand own{value, &operation, T{}};
    cuda_on_cpu::tile_collective(
        Size, &own,
        [](void* const* operands, unsigned threads) {
            fold_all<portion, T, Operation>([&](auto visit) {
                for (unsigned rank = 0; rank < threads; ++rank)
                    visit(*static_cast<Operand*>(operands[rank]));
            });
        },
        name, site);
    return own.result;
}

template <class Group>
inline constexpr bool is_wide_tile = false;
template <unsigned Size, class Parent>
inline constexpr bool is_wide_tile<thread_block_tile<Size, Parent>> = Size > 32;

// Groups whose values can be combined: tiles and coalesced groups.
template <class Group>
concept folds = std::is_base_of_v<LaneGroup, Group> || is_wide_tile<Group>;

}  // namespace details
}  // namespace cooperative_groups
