// The reference for every matrix multiplication of the course: plain loops in double, on all of
// the host's cores.
#pragma once

#include <cstddef>
#include <span>

namespace course {

// All packed, row-major: a is rows x depth, b is depth x cols.
//   product:    alpha a b + beta product, element by element (beta = 0: what stood there is not read; alpha = 0: neither are a and b)
//   magnitude:  |alpha| |a| |b| + |beta product|, which bounds the rounding errors of that sum (see verify.hpp)
// Throws std::invalid_argument when a length does not match.
void multiply_on_cpu(std::size_t rows, std::size_t cols, std::size_t depth, float alpha,
                     std::span<const float> a, std::span<const float> b, float beta,
                     std::span<double> product, std::span<double> magnitude);

// The same for `count` consecutive products.
void multiply_batch_on_cpu(std::size_t count, std::size_t rows, std::size_t cols, std::size_t depth,
                           float alpha, std::span<const float> a, std::span<const float> b, float beta,
                           std::span<double> product, std::span<double> magnitude);

}  // namespace course
