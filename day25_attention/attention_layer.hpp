// Multi-head attention with its projections, forward: the host API of day 25's third part. What PyTorch's nn.MultiheadAttention
// computes (batch_first=True, no dropout), with the same weights:
//
//     q = query Wq^T + bq    k = key Wk^T + bk    v = value Wv^T + bv         each of `width` columns, width / heads to a head
//     head = softmax(q k^T / sqrt(width / heads)) v                           masked, for every head of every batch
//     out = heads Wo^T + bo                                                   heads side by side
//
// AttentionLayer runs on the device, AttentionLayerOnCpu is the same class on the CPU, in double, with a bound of FP32's error.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention.hpp"
#include "attention_reference.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "multiplier.hpp"
#include "self_attention.hpp"

namespace day25 {

struct AttentionConfig {
    std::size_t width = 0;  // of the tokens, in and out; a multiple of heads
    std::size_t heads = 1;
    bool bias = true;
};

// Row-major, as PyTorch has them in its state_dict(). Without bias the last two are empty.
struct AttentionWeights {
    std::vector<float> in_weight;   // 3 width x width: Wq, Wk, Wv below each other          in_proj_weight
    std::vector<float> out_weight;  // width x width: Wo                                      out_proj.weight
    std::vector<float> in_bias;     // 3 width: bq, bk, bv                                    in_proj_bias
    std::vector<float> out_bias;    // width: bo                                              out_proj.bias
};

// How many tokens there are. query has batch * queries rows, key and value batch * keys, one batch after the other.
struct TokenCounts {
    std::size_t batch = 1;
    std::size_t queries = 0;
    std::size_t keys = 0;
};

// Xavier's uniform distribution (X. Glorot, Y. Bengio, 2010): +-sqrt(6 / (inputs + outputs)), which keeps variances as they are from
// layer to layer. Wq, Wk and Wv are taken together as one matrix of `width` inputs and 3 `width` outputs, as PyTorch does.
float xavier_bound(std::size_t inputs, std::size_t outputs);

// The weight with this number: the same on the CPU and on the device, whoever computes it first.
__host__ __device__ inline float xavier_weight(std::uint64_t seed, std::uint64_t number, float bound) {
    return bound == 0 ? 0.0f : course::Random(seed, number).uniform(-bound, bound);
}

class AttentionLayer {
  public:
    // Memory for up to `most` tokens, all of it made here, and Xavier's weights; biases are 0. `method`: an entry of methods().
    // Throws std::invalid_argument unless heads divide width, and when the method cannot do heads of such a width.
    AttentionLayer(const AttentionConfig& config, const TokenCounts& most, const Method& method,
                   std::uint64_t seed);

    // Copies at once, while forward() must not be running on any stream. Throws std::invalid_argument when a length does not fit.
    void set_weights(const AttentionWeights& weights);
    AttentionWeights weights() const;

    // Queues the layer on `stream`; one call at a time. query is batch queries x width, key and value batch keys x width, out as
    // query. Where query, key and value are one matrix, or key and value, their projections are one product.
    // mask.padding: batch x keys, or empty. What a query that sees nothing gets: the output's bias (PyTorch: NaN).
    // Throws std::invalid_argument when a shape is not as `counts` says or beyond the constructor's, or out overlaps an input.
    void forward(course::DeviceMatrix<const float> query, course::DeviceMatrix<const float> key,
                 course::DeviceMatrix<const float> value, course::DeviceMatrix<float> out,
                 const TokenCounts& counts, const Mask& mask, cudaStream_t stream);

  private:
    // out = in W^T + bias, with columns [first, first + out.cols()) of W^T.
    void project(course::DeviceMatrix<const float> in, course::DeviceMatrix<const float> weight_transposed,
                 course::DeviceSpan<const float> bias, std::size_t first, course::DeviceMatrix<float> out,
                 cudaStream_t stream);

    AttentionConfig config_;
    TokenCounts most_;
    SelfAttention attention_;
    std::unique_ptr<Multiplier> multiplier_;
    // Transposed, width x 3 width and width x width: the products then read both factors row by row.
    course::DeviceBuffer<float> in_weight_, out_weight_, in_bias_, out_bias_;
    course::DeviceBuffer<float> projected_, heads_;
};

class AttentionLayerOnCpu {
  public:
    // The same weights as AttentionLayer's with this seed.
    AttentionLayerOnCpu(const AttentionConfig& config, std::uint64_t seed);

    void set_weights(const AttentionWeights& weights);
    const AttentionWeights& weights() const { return weights_; }

    // As AttentionLayer's. Packed, row-major. `padding`: batch x keys, or empty. `growth`: of the bound.
    Bounded forward(std::span<const float> query, std::span<const float> key, std::span<const float> value,
                    const TokenCounts& counts, bool causal, std::span<const std::uint8_t> padding,
                    course::Growth growth = course::Growth::kLinear) const;

  private:
    AttentionConfig config_;
    AttentionWeights weights_;
};

// What forward() has to do, at least: two products with all pairs of tokens and four with the weights. Bytes: weights, biases, the
// tokens once, as in self-attention, where query, key and value are the same, and the result.
course::Work layer_work(const AttentionConfig& config, const TokenCounts& counts);

// What both classes check. Throw std::invalid_argument.
void check_config(const AttentionConfig& config);
void check_weights(const AttentionConfig& config, const AttentionWeights& weights);

}  // namespace day25
