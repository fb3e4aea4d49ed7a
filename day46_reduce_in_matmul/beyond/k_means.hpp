// The worked example of reduce_in_matmul.hpp: k-means (S. Lloyd, "Least squares quantization in
// PCM", IEEE Trans. Inf. Theory 28, 1982). It looks for k centres such that the inertia is small:
// the sum of the squared distances of all points to their nearest centres.
//
//     assign    each point to its nearest centre: the minimum of the distances with its index, a fused
//               reduction
//     update    each centre to the mean of the points that are assigned to it (k_means_step.hpp)
//
// Apart from rounding, neither can make the inertia larger. So it falls from iteration to iteration
// until no point changes its centre.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/tile/distance.hpp"

namespace day46 {

// These belong together: the points have been assigned to these centres, and inertia.back() is the
// sum of their squared distances.
template <class T>
struct Clusters {
    std::vector<T> centres;  // vectors of d numbers, one after the other
    // The nearest centre of each point; of equally near ones the first.
    std::vector<std::uint32_t> assignment;
    std::vector<double> inertia{};  // of each iteration, the first one with the centres of the start
    bool is_stable = false;         // no point changed its centre in the last iteration
};

struct KMeansOptions {
    std::size_t most_iterations = 100;
    // kSquaredL2, or kDifferences for points much closer to each other than to the origin
    // (distance.hpp).
    course::Metric metric = course::Metric::kSquaredL2;
};

// Starts with the centres `start`. A centre without points stays where it is. The result is the
// same in every run, to the last bit; centres and assignment do not depend on the order of the
// points either. Points and centres are vectors of d numbers, one after the other. Throws
// std::invalid_argument when they are not whole vectors, for d = 0, without centres or iterations,
// for other metrics, and for numbers that are not finite or whose squared distances might not be.
Clusters<float> k_means(std::span<const float> points, std::span<const float> start, std::size_t d,
                        const KMeansOptions& options = {});

// The reference, in double: plain loops, the same rules.
Clusters<double> k_means_on_cpu(std::span<const float> points, std::span<const float> start, std::size_t d,
                                std::size_t most_iterations = 100);

// The references of one iteration, in double; with bounds of their rounding errors, for verify().
struct BoundedOnCpu {
    std::vector<double> values;
    std::vector<double> magnitudes;
};
// Each point's squared distance to the centre that it is assigned to, NaN if there is no such
// centre: d + 4 roundings.
BoundedOnCpu distances_to_own_on_cpu(course::Metric metric, std::span<const float> points,
                                     std::span<const float> centres, std::size_t d,
                                     std::span<const std::uint32_t> assignment);
// The means, or of a centre without points the centre: one rounding to the nearest float, that is a
// Bound with factor 1/2.
BoundedOnCpu means_on_cpu(std::span<const float> points, std::span<const float> centres, std::size_t d,
                          std::span<const std::uint32_t> assignment);

}  // namespace day46
