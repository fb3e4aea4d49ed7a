// Host API of day 26: softmax(scale Q K^T) V without storing the scores.
//
//     out[b, h, i] = sum_j p[j] v[b, g, j]    p = softmax over j of scale (q[b, h, i] . k[b, g, j])
//
// with g = h / (heads / heads_kv): adjacent heads of Q share one head of K and V (grouped-query
// attention; heads_kv = heads is ordinary attention, heads_kv = 1 multi-query attention).
//
// Causal: row i sees the keys j <= i + length_k - length_q. The last row sees all keys, also if the
// lengths differ ("bottom-right"): queries are the newest tokens of a longer sequence. A row that
// sees no key becomes zeros, and so does a row whose scores are all -Inf.
//
// NaN and Inf: a value that a row does not see has no effect on it. A NaN in Q or K makes the rows
// that see it NaN. A NaN or Inf in V makes its column NaN or Inf, only in the rows that see it.
//
// Large scores: |scale q k| may be up to 2^20. There the spacing of FP32 is 1/16, and so is the
// error of a weight's exponent. From 2^24 on, weights are wrong by powers of two. If a score
// overflows, the row becomes NaN.
//
// Memory: only Q, K, V and out. Scores are in registers, for one tile of keys at a time.
//
// Methods: M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018; T. Dao, D.
// Y. Fu, S. Ermon, A. Rudra, C. Re, "FlashAttention", 2022; T. Dao, "FlashAttention-2", 2023; M. N.
// Rabe, C. Staats, "Self-attention does not need O(n^2) memory", 2021; J. Ainslie et al., "GQA",
// 2023.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <span>

#include "common/bench/attention.hpp"

namespace day26 {

using course::attention::Attention;
using course::attention::check_arguments;
using course::attention::Extents;
using course::attention::HeadsView;
using course::attention::kMaxDim;
using course::attention::Launcher;
using course::attention::name;
using course::attention::packed;
using course::attention::Precision;
using course::attention::reference_row;
using course::attention::ReferenceRow;
using course::attention::rows_are_aligned;
using course::attention::Shape;
using course::attention::Strides;
using course::attention::Version;
using course::attention::visible_keys;
using course::attention::work;

// The versions, slow to fast. float: three; __half and __nv_bfloat16: one.
template <class T>
std::span<const Version<T>> versions();

course::Work work_in_fp32(const Shape& shape);  // of versions without tensor cores

template <class T>
Precision precision(const Version<T>& version);

}  // namespace day26
