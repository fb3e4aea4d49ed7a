// Host API of day 25's part 3: multi-head attention with its projections, forward. It computes the
// same as PyTorch's nn.MultiheadAttention (batch_first=True, no dropout), from the same weights:
//
//     q = query Wq^T + bq, k = key Wk^T + bk, v = value Wv^T + bv     width / heads columns per head
//     head = softmax(q k^T / sqrt(width / heads)) v                   for every head of every batch
//     out = heads Wo^T + bo                                           the heads' columns side by side
//
// AttentionLayer runs on the device. AttentionLayerOnCpu (attention_reference.hpp) is the
// reference.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention.hpp"
#include "common/device/device_buffer.hpp"

namespace day25 {

struct AttentionConfig {
    std::size_t width = 0;  // of the tokens, in and out; a multiple of heads
    std::size_t heads = 1;
    bool bias = true;
    Xavier initial = Xavier::kUniform;  // weights; PyTorch's are uniform, too
};

// Row-major, in the order of PyTorch's state_dict(). Without bias the last two are empty.
struct AttentionWeights {
    std::vector<float> in_weight;   // 3 width x width: Wq, Wk, Wv below each other          in_proj_weight
    std::vector<float> out_weight;  // width x width: Wo                                      out_proj.weight
    std::vector<float> in_bias;     // 3 width: bq, bk, bv                                    in_proj_bias
    std::vector<float> out_bias;    // width: bo                                              out_proj.bias
};

// Numbers of tokens. query has batch * queries rows, key and value have batch * keys, one batch
// after the other.
struct TokenCounts {
    std::size_t batch = 1;
    std::size_t queries = 0;
    std::size_t keys = 0;
};

class AttentionLayer {
  public:
    // Allocates memory for up to `most` tokens and draws Xavier's weights, of
    // config.initial; biases are 0. Wq, Wk and
    // Wv count as one matrix of `width` inputs and 3 `width` outputs, as in PyTorch. `version`: an
    // entry of versions().
    // Throws std::invalid_argument unless heads divide width and the version can do heads of this
    // width.
    AttentionLayer(const AttentionConfig& config, const TokenCounts& most, const Version& version,
                   std::uint64_t seed);

    // Copies before it returns; forward() must not be running on any stream. Throws
    // std::invalid_argument if a length does not fit.
    void set_weights(const AttentionWeights& weights);
    AttentionWeights weights() const;

    // Queues the layer on `stream`; one call at a time. query and out are batch queries x width,
    // key and value are batch keys x width. If query, key and value are the same matrix, or key and
    // value are, one product computes their projections. mask.padding: batch x keys, or empty. A
    // query that sees no key gets the bias of the output (PyTorch: NaN).
    // Throws std::invalid_argument if a shape does not fit `counts`, exceeds the constructor's, or
    // out overlaps an input.
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
    std::unique_ptr<MatmulBackend> backend_;
    // Transposed, width x 3 width and width x width, so that products load rows of both operands.
    course::DeviceBuffer<float> in_weight_, out_weight_, in_bias_, out_bias_;
    course::DeviceBuffer<float> projected_, heads_;
};

// The least work of forward(): two products with all pairs of tokens and four with the weights.
// Bytes: weights, biases, the result, and the tokens once, as in self-attention, where query, key
// and value are the same.
course::Work layer_work(const AttentionConfig& config, const TokenCounts& counts);

// Checks of both classes. They throw std::invalid_argument.
void check_config(const AttentionConfig& config);
void check_weights(const AttentionConfig& config, const AttentionWeights& weights);

}  // namespace day25
