// What a product of matrices says of two vectors: row i of op(A) and column j of op(B).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/device/device_view.hpp"
#include "common/device/factors.hpp"

namespace course {

enum class Metric {
    kDot,        // a . b
    kSquaredL2,  // |a|^2 + |b|^2 - 2 a . b, or 0 where rounding would leave less: nearly as fast as the product. Of two vectors much closer
                 // to each other than to the origin, little is left of their distance but rounding
                 // errors
    kDifferences,  // the same number as the sum of (a[k] - b[k])^2: an addition more for each k, and right for such vectors too
    kCosine,  // 1 - a . b / (|a| |b|); 1 where one of the two is 0
};

// "dot", "squared_l2", "differences", "cosine"
std::string name(Metric metric);

// The norms that kSquaredL2 and kCosine take: floats that `norms` must have, and how they are made. For kCosine, 1 / |x|, or 0 of a
// zero vector; for kSquaredL2, |x|^2. First those of the rows of op(A) of all products, then those of the columns of op(B).
std::size_t norms_size(Metric metric, std::size_t m, std::size_t n, std::size_t count);
void launch_norms(Metric metric, const Factors& factors, DeviceSpan<float> norms, cudaStream_t stream);

// Queues the matrices of distances of all products, packed and one behind another: m n count
// floats. `scratch` has room for the norms.
void launch_distances(Metric metric, const Factors& factors, std::uint64_t* scratch, float* distances,
                      cudaStream_t stream);

// The reference, in double, of packed matrices: op(A) is m x k, op(B) k x n. The magnitudes bound
// the rounding errors of each value, for verify(): so many roundings as a sum of k terms has, or
// one for each of the two norms.
struct DistancesOnCpu {
    std::vector<double> values;  // m x n
    std::vector<double> magnitudes;
};
DistancesOnCpu distances_on_cpu(Metric metric, std::size_t m, std::size_t n, std::size_t k,
                                std::span<const float> a, std::span<const float> b);

}  // namespace course
