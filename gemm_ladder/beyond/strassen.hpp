// One level of Strassen's method, in Winograd's variant, above the dispatcher (strassen.cu).
#pragma once

#include <cstddef>

#include "../sgemm.hpp"

namespace gemm {

// C = alpha A B + beta C by seven products of half the size. Any shape and alignment; its scratch
// memory is that of strassen().scratch(). Errors are bounded for the matrix, not for each element:
// strassen_error().
Kernel strassen();

// A bound of |computed - exact| of every element of A B when A is m x k and no element of A or B is
// larger than a_most and b_most (in absolute value): 18 k/2 (k/2 + 9) u a_most b_most, u = 2^-24,
// plus that of the up to 7 columns of A that do not fit into halves.
double strassen_error(std::size_t k, double a_most, double b_most);

// The same of a sum of k terms in any order: k^2 u a_most b_most.
double sum_error(std::size_t k, double a_most, double b_most);

}  // namespace gemm
