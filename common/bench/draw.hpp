// Draws the parameters of random problems (`--random N --seed S`): extents of any magnitude, odd
// and aligned ones, choices. They depend on the seed, the number of the problem and the limit
// alone, and are the same from every compiler: integers only.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

#include "common/device/random.hpp"

namespace course {

class Draw {
  public:
    // `limit`: the most work that a problem may have, in the units of its distribution; at least 1.
    Draw(std::uint64_t seed, std::uint64_t index, std::size_t limit)
        : random_(Random(seed).next(), index << 32), limit_(limit) {}

    std::size_t limit() const { return limit_; }

    // An integer in [low, high], both included, each equally likely; low <= high.
    std::size_t uniform(std::size_t low, std::size_t high);

    // An integer in [low, high], both included, 1 <= low <= high. n is 1 / n as likely as 1, so any
    // factor of two is as likely as another.
    std::size_t log_uniform(std::size_t low, std::size_t high);

    // n, or the next smaller number that is odd, prime, or a multiple of a power of two from 8 to
    // 512, each as likely. n itself where there is none; n >= 1.
    std::size_t jittered(std::size_t n);

    // One of the choices, each equally likely.
    template <class Choices>
    auto one_of(const Choices& choices) {
        return *std::next(std::begin(choices),
                          static_cast<std::ptrdiff_t>(uniform(0, std::size(choices) - 1)));
    }
    template <class T>
    T one_of(std::initializer_list<T> choices) {
        return *(choices.begin() + uniform(0, choices.size() - 1));
    }

    // The extents, of which the largest is halved until `factor` times their product is at most the
    // limit, or all are 1. Odd ones stay odd.
    std::vector<std::size_t> fitted(std::vector<std::size_t> extents, std::size_t factor = 1) const;

  private:
    Random random_;
    std::size_t limit_;
};

// The extents of a problem, and of which kind they are: "thin with a deep K".
struct DrawnSize {
    std::string kind;
    std::vector<std::size_t> size;
};

// For a problem of one extent, the limit of `draw` at most: any, tiny (up to 1,024), large (a 16th
// of the limit or more).
DrawnSize draw_length(Draw& draw);

// rows x columns: any, square, a few long rows, many short rows, odd ones.
DrawnSize draw_matrix(Draw& draw);

// m x n x k of a product: layers of language and vision models, any extents, thin with a deep K,
// skinny, tiny, odd. All are multiples of `multiple`.
DrawnSize draw_product(Draw& draw, std::size_t multiple = 1);
inline constexpr const char* kProductsText =
    "m x n x k: layers of language and vision models, any, thin with a deep K, skinny, tiny, odd";

// count x m x n x k of a batch of products: heads of attention, any extents, many tiny ones, odd
// ones.
DrawnSize draw_batch(Draw& draw);

// batch x heads x tokens x head dimension, for attention of tokens to each other: any, short
// sequences, a single long one. Batch x heads x tokens^2 x dimension keep within the limit.
DrawnSize draw_attention(Draw& draw);
inline constexpr const char* kAttentionText =
    "batch x heads x tokens x head dimension: any, short sequences, one long sequence";

}  // namespace course
