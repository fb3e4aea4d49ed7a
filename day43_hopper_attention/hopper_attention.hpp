// Host API of day 43: attention with TMA and wgmma. The problem is that of day 26
// (common/bench/attention.hpp), for __half and __nv_bfloat16.
//
// dim is a multiple of 8, at most 128, and all rows must be 16-byte aligned, because TMA requires
// it. Launchers throw std::invalid_argument, with the reason, for other problems.
//
// NaN and Inf: a NaN in Q or K makes the rows that see it NaN. A NaN or Inf in V makes its column
// NaN or Inf in the rows that see it, and NaN in all rows of each block that loads its tile of 128
// keys, since 0 times NaN is NaN. (Day 26 has an exact rule, at a cost.)
//
// Memory: `persistent` takes four bytes of the stream's memory pool.
//
// Methods: J. Shah, G. Bikshandi, Y. Zhang, V. Thakkar, P. Ramani, T. Dao, "FlashAttention-3",
// 2024.
#pragma once

#include <span>
#include <string>

#include "common/bench/attention.hpp"

namespace day43 {

using course::attention::Attention;
using course::attention::Extents;
using course::attention::HeadsView;
using course::attention::Shape;
using course::attention::Version;

// The versions, slow to fast, of T: __half or __nv_bfloat16.
template <class T>
std::span<const Version<T>> versions();

// Why no version takes this problem, or "".
template <class T>
std::string why_not(const Attention<T>& attention);

}  // namespace day43
