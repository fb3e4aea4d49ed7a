// The k best elements of each row of a matrix product.
//
//     values[i][0 ... k - 1], indices[i][0 ... k - 1]      the k best of d(row i of op(A), column j of op(B)) over
//                                                          all j, the best first
//
// d is a metric (distance.hpp). With the queries as rows of A and the points as rows of B (op_b =
// kTranspose), these are the nearest neighbours of each query (nearest_neighbours.hpp). Any shape,
// k up to 1024.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/bench/version.hpp"
#include "common/device/operands.hpp"
#include "common/tile/distance.hpp"

namespace day48 {

inline constexpr std::size_t kMostBest = 1024;  // the largest k

// Which elements are the best. Of equal ones (-0 and 0 are equal) the one with the lowest index.
// NaN comes after all numbers in both orders.
enum class Order { kSmallest, kLargest };

// "smallest", "largest"
std::string name(Order order);

template <class T>
struct TopKMatmulOf {
    course::OperandsOf<T> operands;
    course::Metric metric = course::Metric::kSquaredL2;
    Order order = Order::kSmallest;
    std::size_t k = 1;                          // 1 to kMostBest, and at most as many as op(B) has columns
    course::DeviceSpan<float> values;           // k for each row of each product, the best first
    course::DeviceSpan<std::uint32_t> indices;  // their columns, as many
    // At least scratch_size() elements with any content. Used until the work has finished.
    course::DeviceSpan<std::uint64_t> scratch{};
};
using TopKMatmul = TopKMatmulOf<float>;

// op(A) is m x d, op(B) is d x n: m queries and n points of d numbers.
struct TopKShape {
    std::size_t m = 0, n = 0, d = 0, count = 1;
    std::size_t k = 1;
    course::Metric metric = course::Metric::kSquaredL2;
    Order order = Order::kSmallest;
};

struct TopKSelector {
    // Queues the work. Throws std::invalid_argument when shapes or sizes do not match, or k is out
    // of range; CudaError if a call to CUDA fails.
    void (*launch)(const TopKMatmul& matmul, cudaStream_t stream);
    // Elements of scratch memory, on the current device. Throws std::invalid_argument for a k out
    // of range.
    std::size_t (*scratch_size)(const TopKShape& shape);
};

// "k_minima", "unfused", "fused_own_bounds", "fused", "fused_wgmma"
using TopK = course::Version<TopKSelector, TopKShape>;
std::span<const TopK> top_k_versions();

// The reference, from a matrix of distances: m x k values, indices and magnitudes. A magnitude
// bounds the rounding errors of a value. It is the largest of the row, since rounding may change
// which element has that rank.
struct TopKOnCpu {
    std::vector<double> values;
    std::vector<std::uint32_t> indices;
    std::vector<double> magnitudes;
};
TopKOnCpu top_k_on_cpu(Order order, std::size_t k, std::size_t m, std::size_t n,
                       const course::DistancesOnCpu& distances);

}  // namespace day48
