// What reduce.h and scan.h share: the named operations, and the one loop over a group's values.
#pragma once

#include <type_traits>
#include <utility>

#include "cuda_on_cpu/cooperative_groups_lanes.h"

namespace cooperative_groups {

template <class T>
struct plus {
    T operator()(T a, T b) const { return static_cast<T>(a + b); }
};
// The smaller of the two, and the greater.
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

// Of the values combined in order of rank, a thread gets: those before its own, those up to its
// own, or all.
enum class Portion { before, through, all };

template <Portion portion, class T, class Operation>
T fold(const LaneGroup& group, const T& value, Operation& operation, const char* name, Site site) {
    static_assert(std::is_trivially_copyable_v<T>, "values travel between threads as bits");
    static_assert(
        std::is_same_v<std::remove_cvref_t<std::invoke_result_t<Operation&, const T&, const T&>>, T>,
        "the operation must return the type of its operands");
    struct Operand {
        T value;
        Operation* operation;
        T result;
    };
    Operand own{value, &operation, T{}};
    cuda_on_cpu::warp_collective(
        lanes_of(group).mask, &own,
        [](const cuda_on_cpu::Lanes& lanes) {
            T so_far{};
            bool first = true;
            for (unsigned left = lanes.mask; left != 0; left &= left - 1) {
                auto& operand = lanes.at<Operand>(static_cast<unsigned>(std::countr_zero(left)));
                if constexpr (portion == Portion::before) operand.result = so_far;
                so_far = first ? operand.value : (*operand.operation)(so_far, operand.value);
                if constexpr (portion == Portion::through) operand.result = so_far;
                first = false;
            }
            if constexpr (portion == Portion::all) {
                for (unsigned left = lanes.mask; left != 0; left &= left - 1) {
                    lanes.at<Operand>(static_cast<unsigned>(std::countr_zero(left))).result = so_far;
                }
            }
        },
        name, site);
    return own.result;
}

}  // namespace details
}  // namespace cooperative_groups
