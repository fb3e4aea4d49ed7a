// Host API of day 44: softmax(scale Q K^T) V with 8-bit operands (E4M3) and a scale for each head.
//
//     out[b, h, i] = sum_j p[j] v[b, g, j] v_scale[b, g]
//     p = softmax over j of scale q_scale[b, h] k_scale[b, g] (q[b, h, i] . k[b, g, j])
//
// with g = h / (heads / heads_kv), as in common/bench/attention.hpp; that header also defines
// "causal". The result is BF16.
//
// dim is a multiple of 16, at most 128, and rows of Q, K, V and out start at multiples of 16 bytes.
// Scales may be any floats, of either sign, or 0. If scale q_scale k_scale is not finite, or is not
// a finite float times log2(e), the rows of that head that see a key are NaN. A v_scale of Inf or
// NaN is a factor of such rows as in the formula, where 0 times Inf is NaN. Rows that see no key
// are zeros in any case. `scale` itself, which the host knows, must be finite; other values are
// rejected. NaN in Q or K makes the rows that see it NaN; NaN in V makes its column NaN in all rows
// whose tile of keys contains it.
//
// Large scores, as in day 26: |scale q_scale k_scale (q . k)| may be up to 2^20, where the spacing of
// FP32 is 1/16. Beyond that, weights are wrong by powers of two, and as E4M3 they may all become 0
// or NaN.
//
// Memory: the transposed V, dim x (length_k rounded up to 128) bytes for each head of K, and four
// bytes, from the stream's memory pool.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <span>
#include <string>

#include "common/bench/attention.hpp"
#include "common/device/device_view.hpp"

namespace day44 {

using course::attention::HeadsView;
using course::attention::Shape;
using E4m3 = __nv_fp8_e4m3;
using Result = __nv_bfloat16;

struct Attention {
    HeadsView<const E4m3> q;                  // [batch, heads, length_q, dim]
    HeadsView<const E4m3> k;                  // [batch, heads_kv, length_k, dim]
    HeadsView<const E4m3> v;                  // as k
    course::DeviceSpan<const float> q_scale;  // [batch, heads]
    course::DeviceSpan<const float> k_scale;  // [batch, heads_kv]
    course::DeviceSpan<const float> v_scale;  // as k_scale
    HeadsView<Result> out;                    // as q
    float scale = 1;                          // usually 1 / sqrt(dim)
    bool causal = false;
};

// Queues the work on `stream`. Extents may be 0. Throws std::invalid_argument for what does not fit
// together, and CudaError if a launch fails.
using Launcher = void (*)(const Attention& attention, cudaStream_t stream);
using Version = course::Version<Launcher, Shape>;

std::span<const Version> versions();

// What each rounding may lose, for course::attention::reference_row.
course::attention::Precision precision();

}  // namespace day44
