// Products of matrices of which only a minimum, a maximum or a sum of each row or column is needed,
// so that the product itself is never written.
//
//     along rows       values[i] = reduction over j of metric(row i of op(A), column j of op(B))
//     along columns    values[j] = reduction over i of the same
//
// The metrics are in distance.hpp. Any shape; 1,000,000 vectors against 10,000 take the memory of
// the vectors and of the results, where the matrix of their distances would take 40 GB.
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

namespace day46 {

// The extrema with their index. Of equal ones the lowest index counts, and NaN is before all
// numbers, as in PyTorch. The logarithm of the sum of exponentials does not overflow.
enum class Reduction { kMin, kMax, kSum, kLogSumExp };
enum class Along { kRows, kColumns };

// "min", "max", "sum", "logsumexp"
std::string name(Reduction reduction);

template <class T>
struct ReducedMatmulOf {
    course::OperandsOf<T> operands;
    course::Metric metric = course::Metric::kDot;
    Reduction reduction = Reduction::kMin;
    Along along = Along::kRows;
    course::DeviceSpan<float> values;             // one for each row (column) of each product
    course::DeviceSpan<std::uint32_t> indices{};  // of the extrema, as many; or none
    // At least scratch_size() elements, aligned to 8 bytes, any content; in use until the work is
    // done.
    course::DeviceSpan<std::uint64_t> scratch{};
};
using ReducedMatmul = ReducedMatmulOf<float>;

// op(A) is m x d, op(B) is d x n.
struct ReduceShape {
    std::size_t m = 0, n = 0, d = 0, count = 1;
    course::Metric metric = course::Metric::kDot;
    Reduction reduction = Reduction::kMin;
    Along along = Along::kRows;
};

struct Reducer {
    // Queues the work. Throws std::invalid_argument when shapes or sizes do not match, for an
    // extremum of no elements, and for indices of a reduction that has none; CudaError if a call to
    // CUDA fails.
    void (*launch)(const ReducedMatmul& matmul, cudaStream_t stream);
    // Elements of scratch memory, on the current device.
    std::size_t (*scratch_size)(const ReduceShape& shape);
};

// The versions, slow to fast.
using Reduce = course::Version<Reducer, ReduceShape>;
std::span<const Reduce> reduce_versions();

// The reference, from a matrix of distances. The indices are those of extrema; the magnitudes bound
// a value's rounding errors.
struct ReducedOnCpu {
    std::vector<double> values;
    std::vector<std::uint32_t> indices;
    std::vector<double> magnitudes;
};
ReducedOnCpu reduce_on_cpu(Reduction reduction, Along along, std::size_t m, std::size_t n,
                           const course::DistancesOnCpu& distances);

}  // namespace day46
