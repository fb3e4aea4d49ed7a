// Fused attention for days that use it without teaching it. Day 26 defines it; link
// course::fused_attention.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "common/device/device_view.hpp"

namespace course {

inline constexpr std::size_t kMostFusedColumns = 128;

// For every head of every batch, out = softmax(scale q k^T) v. The tokens of a batch are
// consecutive rows, and the columns of a head are adjacent: q and out are (batch queries) x (heads
// width), k and v are (batch keys) x (heads width). Causal: query i sees the keys 0 to i, counted
// from the first one, as PyTorch's is_causal does.
struct TokenAttention {
    DeviceMatrix<const float> q;
    DeviceMatrix<const float> k;
    DeviceMatrix<const float> v;
    DeviceMatrix<float> out;
    std::size_t batch = 1;
    std::size_t heads = 1;
    std::size_t queries = 0;
    std::size_t keys = 0;
    std::size_t width = 0;  // columns of a head, at most kMostFusedColumns
    float scale = 1;
    bool causal = false;
};

// Queues the work on `stream`; no memory is allocated. A query that sees no key gets zeros. Throws
// std::invalid_argument for shapes that do not fit together; a width above kMostFusedColumns; 2^30
// queries or keys or more; a scale that is not a finite number above 0; and an `out` whose memory,
// from the first element to the last, overlaps that of an input. Throws CudaError if a launch
// fails.
void fused_attention(const TokenAttention& attention, cudaStream_t stream);

}  // namespace course
