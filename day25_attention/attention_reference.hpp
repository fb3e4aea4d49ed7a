// The references of day 25 on the CPU: plain loops in double, and for each value a bound of the
// error that FP32 may make.
//
// The reference follows the FP32 computation step by step. `error` bounds the distance of the FP32
// result from `value`, if every step before was within its own bound. With u = 2^-24, half the
// spacing of floats at 1:
//   product     |A| eB + eA |B| + eA eB + (depth + 10) u |A| |B|
//               (N. Higham, "Accuracy and Stability", 3.1 and 3.5); the 10: scaling, adding to C, and
//               the bits that splitting an operand into two TF32 numbers loses
//   softmax     README.md, "How exact?"
//   tanh        slope at most 1, two units in the last place
// That is Growth::kLinear, which always holds, and is wide after several long sums.
// Growth::kSquareRoot assumes independent errors, as random data have: min(n, 4 sqrt(n)) instead of
// n for a sum of n terms (N. Higham, T. Mary, SIAM J. Sci. Comput. 41, 2019; verify.hpp), and
// errors of different terms add in quadrature: for a product sqrt(sum (|A| eB)^2 + (eA |B|)^2 + (eA
// eB)^2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention.hpp"
#include "attention_layer.hpp"
#include "common/check/verify.hpp"
#include "scores.hpp"

namespace day25 {

// A row-major matrix of values, each with the bound of its FP32 error.
struct Bounded {
    std::size_t rows = 0;
    std::size_t cols = 0;
    std::vector<double> value{};
    std::vector<double> error{};
    course::Growth growth = course::Growth::kLinear;  // results computed from this inherit it

    Bounded() = default;
    Bounded(std::size_t row_count, std::size_t col_count, course::Growth how = course::Growth::kLinear);
    // Values that are exact in FP32. Throws std::invalid_argument unless there are rows x cols of
    // them.
    Bounded(std::size_t row_count, std::size_t col_count, std::span<const float> values,
            course::Growth how = course::Growth::kLinear);

    Bounded piece(std::size_t row, std::size_t row_count, std::size_t col, std::size_t col_count) const;
    void put(std::size_t row, std::size_t col, const Bounded& piece);
};

// alpha a b, or alpha a b^T; their growth must be the same. Uses all host cores.
Bounded multiply(const Bounded& a, const Bounded& b, bool transpose_b = false, double alpha = 1);
// a with `row` (one row) added to each of its rows.
Bounded add_to_rows(const Bounded& a, const Bounded& row);
Bounded tanh_of(const Bounded& a);

struct HostMask {
    bool causal = false;
    std::span<const std::uint8_t> padding{};  // of this batch: one per key, or none
};

// Softmax of each row over the keys that its query sees; the others are 0. Row i is query i.
Bounded masked_softmax(const Bounded& scores, const HostMask& mask);

// softmax(scale q k^T) v of one head of one batch.
Bounded attention(const Bounded& q, const Bounded& k, const Bounded& v, double scale, const HostMask& mask);

// All scores, as one row, from packed row-major inputs.
Bounded score_reference(Scoring scoring, const ScoreShape& shape, std::span<const float> hidden,
                        std::span<const float> states, std::span<const float> weight,
                        std::span<const float> v, course::Growth growth = course::Growth::kLinear);

// As SelfAttention, for packed row-major inputs. `padding`: batch x keys, or empty.
Bounded self_attention_reference(const AttentionShape& shape, std::span<const float> q,
                                 std::span<const float> k, std::span<const float> v, float scale, bool causal,
                                 std::span<const std::uint8_t> padding,
                                 course::Growth growth = course::Growth::kLinear);
// The same for inputs that have errors of their own: projections.
Bounded self_attention_reference(const AttentionShape& shape, const Bounded& q, const Bounded& k,
                                 const Bounded& v, double scale, bool causal,
                                 std::span<const std::uint8_t> padding);

// Is `got` within the bounds?
course::VerifyResult verify(std::span<const float> got, const Bounded& expected);

// AttentionLayer on the CPU, in double, with a bound of the error that FP32 may make.
class AttentionLayerOnCpu {
  public:
    // The same weights as AttentionLayer's with this seed.
    AttentionLayerOnCpu(const AttentionConfig& config, std::uint64_t seed);

    void set_weights(const AttentionWeights& weights);
    const AttentionWeights& weights() const { return weights_; }

    // As AttentionLayer's. Packed, row-major. `padding`: batch x keys, or empty. `growth`: of the
    // bound.
    Bounded forward(std::span<const float> query, std::span<const float> key, std::span<const float> value,
                    const TokenCounts& counts, bool causal, std::span<const std::uint8_t> padding,
                    course::Growth growth = course::Growth::kLinear) const;

  private:
    AttentionConfig config_;
    AttentionWeights weights_;
};

}  // namespace day25
