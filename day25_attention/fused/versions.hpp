// What the versions share on the host; each has a file of its own.
#pragma once

#include <type_traits>

#include "common/device/pack.cuh"
#include "fused_attention.hpp"

namespace day25::fused {

FusedAttention<float> row_per_warp();
FusedAttention<float> register_tiles();
FusedAttention<float> tf32x3();
template <class T>
FusedAttention<T> tensor_cores();

// Throws std::invalid_argument unless the arguments are as fused_attention.hpp says. False when nothing is to be written.
template <class T>
bool check_arguments(const Attention<T>& attention);

// May rows be read and written 16 bytes at a time? What lies behind dim in the last pack is neither read nor written.
template <class T>
bool rows_are_aligned(const Attention<T>& attention) {
    const auto aligned = [](const auto& view) {
        const Strides strides = view.strides();
        constexpr std::size_t kPack = 16 / sizeof(T);
        return course::is_aligned(view.data(), 16) && strides.batch % kPack == 0 &&
               strides.head % kPack == 0 && strides.row % kPack == 0;
    };
    return aligned(attention.q) && aligned(attention.k) && aligned(attention.v) && aligned(attention.out);
}

// Calls `launch` with the first of DIMS, in ascending order, that has room for `dim`, as a compile-time constant.
template <int FIRST, int... MORE, class Launch>
void with_dim(std::size_t dim, Launch launch) {
    if constexpr (sizeof...(MORE) > 0) {
        if (dim > FIRST) {
            with_dim<MORE...>(dim, launch);
            return;
        }
    }
    launch(std::integral_constant<int, FIRST>());
}

}  // namespace day25::fused
