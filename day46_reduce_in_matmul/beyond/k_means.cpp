#include "k_means.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "k_means_step.hpp"

namespace day46 {
namespace {

constexpr std::uint32_t kNoCentre = 0xffffffff;

// How many vectors these are.
std::size_t vectors(std::span<const float> numbers, std::size_t d, std::string_view name) {
    course::require(d > 0 && numbers.size() % d == 0, "k_means: ", name, " has ", numbers.size(),
                    " numbers and d is ", d, "; expected whole vectors of d, at least 1");
    return numbers.size() / d;
}

// The largest magnitude. |a - b|^2 <= 4 d largest^2 must be finite.
float largest_of(std::span<const float> numbers, std::size_t d, const std::string& name) {
    const double most =
        std::sqrt(static_cast<double>(std::numeric_limits<float>::max()) / (4 * static_cast<double>(d)));
    float largest = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const float magnitude = std::abs(numbers[i]);
        if (!(static_cast<double>(magnitude) <= most)) {  // a NaN is not
            throw std::invalid_argument(
                fmt::format("k_means: {}[{}] is {}; expected a magnitude of at most {:.3g}, so that squared "
                            "distances are finite",
                            name, i, numbers[i], most));
        }
        largest = std::max(largest, magnitude);
    }
    return largest;
}

struct Problem {
    Problem(std::span<const float> points, std::span<const float> start, std::size_t d,
            std::size_t most_iterations)
        : n(vectors(points, d, "points")),
          k(vectors(start, d, "start")),
          largest(largest_of(points, d, "points")) {
        largest_of(start, d, "start");
        course::require(k > 0, "k_means: start has no centres; expected at least one");
        course::require(most_iterations > 0, "k_means: most_iterations is 0; expected at least 1");
    }

    std::size_t n, k;
    float largest;  // of the points
};

// A centre without points stays where it is.
template <class T>
std::vector<double> means_of(std::span<const float> points, std::span<const T> centres, std::size_t d,
                             std::span<const std::uint32_t> assignment) {
    std::vector<double> sums(centres.size());
    std::vector<std::size_t> count(centres.size() / d);
    for (std::size_t point = 0; point < assignment.size(); ++point) {
        const std::size_t centre = assignment[point];
        ++count[centre];
        for (std::size_t i = 0; i < d; ++i)
            sums[centre * d + i] += static_cast<double>(points[point * d + i]);
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const std::size_t points_of_centre = count[i / d];
        sums[i] = points_of_centre == 0 ? static_cast<double>(centres[i])
                                        : sums[i] / static_cast<double>(points_of_centre);
    }
    return sums;
}

}  // namespace

Clusters<float> k_means(std::span<const float> points, std::span<const float> start, std::size_t d,
                        const KMeansOptions& options) {
    const Problem problem(points, start, d, options.most_iterations);
    const std::size_t n = problem.n;
    const std::size_t k = problem.k;
    course::require(
        options.metric == course::Metric::kSquaredL2 || options.metric == course::Metric::kDifferences,
        "k_means: metric is ", name(options.metric),
        "; expected squared_l2 or differences, for a mean is nearest to its points by those alone");

    // Everything stays on the device; the host reads only the progress of an iteration.
    // The fused reduction, where the GPU has the shared memory for it.
    const Reduce& fused = find_version(reduce_versions(), "fused");
    const Reduce& reduce = fused.cannot_run({.m = n, .n = k, .d = d, .metric = options.metric}).empty()
                               ? fused
                               : find_version(reduce_versions(), "unfused");
    const course::DeviceBuffer<float> points_device(points);
    course::DeviceBuffer<float> centres(start);
    course::DeviceBuffer<float> moved(k * d);
    course::DeviceBuffer<std::uint32_t> before{
        std::span<const std::uint32_t>(std::vector<std::uint32_t>(n, kNoCentre))};
    course::DeviceBuffer<std::uint32_t> assignment(n);
    course::DeviceBuffer<float> squared_distances(n);
    course::DeviceBuffer<Progress> progress(progress_parts(n));
    course::DeviceBuffer<std::uint64_t> scratch(step_scratch_size(reduce, {n, k, d, options.metric}));
    Clusters<float> found;
    while (true) {
        launch_step(reduce,
                    {.points = points_device.matrix(n, d),
                     .centres = std::as_const(centres).matrix(k, d),
                     .largest = problem.largest,
                     .metric = options.metric,
                     .before = std::as_const(before).span(),
                     .assignment = assignment.span(),
                     .squared_distances = squared_distances.span(),
                     .progress = progress.span(),
                     .moved = moved.matrix(k, d),
                     .scratch = scratch.span()},
                    nullptr);
        const Progress sum = sum_of(progress.to_host());
        found.inertia.push_back(sum.inertia);
        found.is_stable = sum.changed == 0;
        if (found.is_stable || found.inertia.size() == options.most_iterations) break;
        std::swap(centres, moved);
        std::swap(before, assignment);
    }
    found.centres = centres.to_host();
    found.assignment = assignment.to_host();
    return found;
}

Clusters<double> k_means_on_cpu(std::span<const float> points, std::span<const float> start, std::size_t d,
                                std::size_t most_iterations) {
    const Problem problem(points, start, d, most_iterations);
    const std::size_t n = problem.n;
    const std::size_t k = problem.k;
    Clusters<double> found{.centres = {start.begin(), start.end()},
                           .assignment = std::vector<std::uint32_t>(n, kNoCentre)};
    std::vector<double> squared_distances(n);
    while (true) {
        const std::vector<std::uint32_t> before = found.assignment;
#pragma omp parallel for
        for (std::ptrdiff_t signed_point = 0; signed_point < static_cast<std::ptrdiff_t>(n); ++signed_point) {
            const auto point = static_cast<std::size_t>(signed_point);
            double nearest = std::numeric_limits<double>::infinity();
            for (std::size_t centre = 0; centre < k; ++centre) {
                double sum = 0;
                for (std::size_t i = 0; i < d; ++i) {
                    const double difference =
                        static_cast<double>(points[point * d + i]) - found.centres[centre * d + i];
                    sum += difference * difference;
                }
                if (sum >= nearest) continue;
                nearest = sum;
                found.assignment[point] = static_cast<std::uint32_t>(centre);
            }
            squared_distances[point] = nearest;
        }
        double inertia = 0;
        for (const double squared : squared_distances)
            inertia += squared;
        found.inertia.push_back(inertia);
        found.is_stable = found.assignment == before;
        if (found.is_stable || found.inertia.size() == most_iterations) return found;
        found.centres = means_of<double>(points, found.centres, d, found.assignment);
    }
}

BoundedOnCpu distances_to_own_on_cpu(course::Metric metric, std::span<const float> points,
                                     std::span<const float> centres, std::size_t d,
                                     std::span<const std::uint32_t> assignment) {
    const std::size_t n = assignment.size();
    BoundedOnCpu own{std::vector<double>(n, std::numeric_limits<double>::quiet_NaN()),
                     std::vector<double>(n)};
#pragma omp parallel for
    for (std::ptrdiff_t signed_point = 0; signed_point < static_cast<std::ptrdiff_t>(n); ++signed_point) {
        const auto point = static_cast<std::size_t>(signed_point);
        if (assignment[point] >= centres.size() / d) continue;
        const auto centre = centres.subspan(assignment[point] * d, d);
        const auto distance = course::distances_on_cpu(metric, 1, 1, d, points.subspan(point * d, d), centre);
        own.values[point] = distance.values[0];
        own.magnitudes[point] = distance.magnitudes[0];
    }
    return own;
}

BoundedOnCpu means_on_cpu(std::span<const float> points, std::span<const float> centres, std::size_t d,
                          std::span<const std::uint32_t> assignment) {
    BoundedOnCpu means{means_of(points, centres, d, assignment), std::vector<double>(centres.size())};
    double largest = 0;
    for (const float x : points)
        largest = std::max(largest, static_cast<double>(std::abs(x)));
    // Beside the rounding of the mean, 2^-24 of it, each term has one to whole units
    // (k_means_step.cu), and one of the sum in double here.
    const double count = static_cast<double>(assignment.size());
    const double of_terms = largest * count * (0x1p-61 + 0x1p-53);
    for (std::size_t i = 0; i < means.values.size(); ++i)
        means.magnitudes[i] = std::abs(means.values[i]) + of_terms * 0x1p24;
    return means;
}

}  // namespace day46
