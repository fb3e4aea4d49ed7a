// Metrics of two vectors of d numbers, row i of op(A) and column j of op(B), computed by a matrix
// product.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/device/device_view.hpp"
#include "common/device/operands.hpp"

namespace course {

enum class Metric {
    // a . b
    kDot,
    // |a|^2 + |b|^2 - 2 a . b, or 0 if rounding makes it negative. Nearly as fast as the product. If two vectors are much closer to each other than to the origin, the result is mostly rounding error (cancellation).
    kSquaredL2,
    // The same distance as the sum of (a[i] - b[i])^2. It costs one more addition for each i, and
    // is accurate for such vectors, too.
    kDifferences,
    // 1 - a . b / (|a| |b|); 1 if one of the two is 0.
    kCosine,
};

// "dot", "squared_l2", "differences", "cosine"
std::string name(Metric metric);

// The norms that kSquaredL2 and kCosine need: the number of floats that `norms` must have, and the
// launch of their kernels. For kSquaredL2 |x|^2; for kCosine 1 / |x|, or 0 for a zero vector. The norms of the rows of op(A) of all products come first, then those of the columns of op(B).
std::size_t norms_size(Metric metric, std::size_t m, std::size_t n, std::size_t count);
// T: float, __half or __nv_bfloat16; the sums are in FP32.
template <class T>
void launch_norms(Metric metric, const OperandsOf<T>& operands, DeviceSpan<float> norms, cudaStream_t stream);

// Queues the matrices of distances of all products, packed and one after the other: m n count
// floats. `scratch` has room for the norms.
void launch_distances(Metric metric, const Operands& operands, std::uint64_t* scratch, float* distances,
                      cudaStream_t stream);

// The reference, in double, of packed matrices: op(A) is m x d, op(B) d x n. The magnitudes bound
// the rounding errors of each value, for verify(): as many roundings as a sum of d terms has, or
// one for each of the two norms.
struct DistancesOnCpu {
    std::vector<double> values;  // m x n
    std::vector<double> magnitudes;
};
DistancesOnCpu distances_on_cpu(Metric metric, std::size_t m, std::size_t n, std::size_t d,
                                std::span<const float> a, std::span<const float> b);

}  // namespace course
