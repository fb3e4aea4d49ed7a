// Day 29, beyond: multi-head latent attention (MLA). Keys and values of all heads are linear
// functions of one short vector for each token, its latent, so the cache holds only latents.
//
// With k = U c of a head, the score q . (U c) is (U^T q) . c: the query is projected once, instead
// of every key (the absorbed form). Likewise the weighted sum of values V c is V times the weighted
// sum of latents. A part of the key carries the position and is shared by all heads; it follows the
// latent in memory. So attention itself has one key for all heads, of rank + 64 numbers, whose
// first `rank` numbers are also the value.
//
// Method: DeepSeek-AI, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts
// Language Model", 2024.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <string>

#include "common/bench/version.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"
#include "decoding_attention.hpp"

namespace day29 {

inline constexpr std::size_t kRope = 64;  // numbers of a key that depend on the position

struct LatentShape {
    std::size_t batch = 1;
    std::size_t heads = 1;
    std::size_t capacity = 0;  // tokens for which a sequence has memory
    std::size_t rank = 512;    // numbers of a latent: 128 or 512

    std::size_t width() const { return rank + kRope; }
    std::size_t q_elements() const { return batch * heads * width(); }
    std::size_t cache_elements() const { return batch * capacity * width(); }
    std::size_t out_elements() const { return batch * heads * rank; }
};

// "64x128:1x4096x576": batch x heads:1 x capacity x numbers of a key.
std::string name(const LatentShape& shape);

// One query for each sequence and head. All arrays are packed, in the order of the extents.
struct LatentDecoding {
    using T = __nv_bfloat16;

    LatentShape shape;
    course::DeviceSpan<const T> q;      // [batch, heads, width], projected to the latent
    course::DeviceSpan<const T> cache;  // [batch, capacity, width]
    // [batch]: tokens in the cache. A length outside of 0 to capacity is clamped to that range.
    course::DeviceSpan<const int> lengths;
    course::DeviceSpan<T> out;  // [batch, heads, rank]: the weighted sum of latents
    float scale = 1;
};

// Device memory for the parts of rows; `blocks` as in Workspace. Throws std::invalid_argument for a
// shape that launchers refuse; CudaError.
class LatentWorkspace {
  public:
    explicit LatentWorkspace(const LatentShape& shape, unsigned blocks = 0);

    const LatentShape& shape() const { return shape_; }
    unsigned blocks() const { return blocks_; }
    float* parts() { return parts_.data(); }

  private:
    LatentShape shape_;
    unsigned blocks_;
    course::DeviceBuffer<float> parts_;
};

// Queues the work on `stream`. Throws std::invalid_argument for extents that do not fit together; a
// rank other than 128 and 512; arrays that are not 16-byte aligned; a scale that is not a finite
// number above 0; an out that overlaps an input; and a workspace for another shape. Throws
// CudaError if a launch fails.
using LatentLauncher = void (*)(const LatentDecoding& decoding, LatentWorkspace& workspace,
                                cudaStream_t stream);

// A shape and the number of tokens in all sequences together, which determine the bytes.
struct LatentLoad {
    LatentShape shape;
    std::size_t tokens = 0;
};

// The versions, slow to fast.
using LatentVersion = course::Version<LatentLauncher, LatentLoad>;
std::span<const LatentVersion> latent_versions();

// The roundings of a version that differ, for reference_row(), whose keys and values are the cache.
Precision latent_precision(const LatentVersion& version);

}  // namespace day29
