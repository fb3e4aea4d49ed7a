// The references of day 25, on the CPU: plain loops in double, and beside each value a bound for the error that FP32 may make.
//
// A FP32 computation is followed step by step. `error` bounds how far a FP32 result may be from `value` when every step before was
// within its own bound. With u = 2^-24, half the spacing of floats at 1:
//   product     |A| eB + eA |B| + eA eB + (depth + 10) u |A| |B|        N. Higham, "Accuracy and Stability", 3.1 and 3.5;
//               the 10: scaling, adding to what is there, and what is left of a factor split into two TF32 numbers
//   softmax     README.md, "How exact?"
//   tanh        slope at most 1, two units in the last place
// That is Growth::kLinear, which always holds. It is wide after several long sums. Growth::kSquareRoot takes errors as independent, which
// those of random data are: of a sum of n terms min(n, 4 sqrt(n)) instead of n (N. Higham, T. Mary, SIAM J. Sci. Comput. 41, 2019; verify.hpp),
// and errors of different terms in quadrature: of a product sqrt(sum (|A| eB)^2 + (eA |B|)^2 + (eA eB)^2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention.hpp"
#include "common/check/verify.hpp"
#include "scores.hpp"
#include "self_attention.hpp"

namespace day25 {

// A row-major matrix of values, each within `error` of what FP32 makes of it.
struct Bounded {
    std::size_t rows = 0;
    std::size_t cols = 0;
    std::vector<double> value{};
    std::vector<double> error{};
    course::Growth growth = course::Growth::kLinear;  // what is computed from this takes it over

    Bounded() = default;
    Bounded(std::size_t row_count, std::size_t col_count, course::Growth how = course::Growth::kLinear);
    // Numbers that are exact in FP32. Throws std::invalid_argument when there are not rows x cols of them.
    Bounded(std::size_t row_count, std::size_t col_count, std::span<const float> values,
            course::Growth how = course::Growth::kLinear);

    Bounded piece(std::size_t row, std::size_t row_count, std::size_t col, std::size_t col_count) const;
    void put(std::size_t row, std::size_t col, const Bounded& piece);
};

// alpha a b, or alpha a b^T; their growth must be the same. Over the host's cores.
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

// All scores, one row: as scorers() compute them from packed row-major inputs.
Bounded score_reference(Scoring scoring, const ScoreShape& shape, std::span<const float> hidden,
                        std::span<const float> states, std::span<const float> weight,
                        std::span<const float> v, course::Growth growth = course::Growth::kLinear);

// As SelfAttention, for packed row-major inputs. `padding`: batch x keys, or empty.
Bounded self_attention_reference(const AttentionShape& shape, std::span<const float> q,
                                 std::span<const float> k, std::span<const float> v, float scale, bool causal,
                                 std::span<const std::uint8_t> padding,
                                 course::Growth growth = course::Growth::kLinear);
// The same for projections, which have errors of their own.
Bounded self_attention_reference(const AttentionShape& shape, const Bounded& q, const Bounded& k,
                                 const Bounded& v, double scale, bool causal,
                                 std::span<const std::uint8_t> padding);

// Is `got` within the bounds?
course::VerifyResult verify(std::span<const float> got, const Bounded& expected);

}  // namespace day25
