#include "nearest_neighbours.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string_view>

#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "top_k.hpp"

namespace day48 {
namespace {

// How many vectors these are.
std::size_t vectors(std::span<const float> numbers, std::size_t d, std::string_view name) {
    course::require(d > 0 && numbers.size() % d == 0, "nearest_neighbours: ", name, " has ", numbers.size(),
                    " numbers and d is ", d, "; expected whole vectors of d, at least 1");
    return numbers.size() / d;
}

}  // namespace

Neighbours nearest_neighbours(std::span<const float> queries, std::span<const float> points, std::size_t d,
                              std::size_t k) {
    const TopKShape shape{
        .m = vectors(queries, d, "queries"), .n = vectors(points, d, "points"), .d = d, .k = k};
    const TopKSelector& fused = course::find_version(top_k_versions(), "fused").launcher;
    course::DeviceBuffer<std::uint64_t> scratch(fused.scratch_size(shape));
    const course::DeviceBuffer<float> a(queries);
    const course::DeviceBuffer<float> b(points);
    course::DeviceBuffer<float> values(shape.m * k);
    course::DeviceBuffer<std::uint32_t> indices(shape.m * k);
    fused.launch(
        {.operands =
             {.a = {a.matrix(shape.m, d)},
              .b = {b.matrix(shape.n, d)},
              .op_b =
                  course::Op::kTranspose},  // a row of the product for each query, a column for each point
         .k = k,
         .values = values.span(),
         .indices = indices.span(),
         .scratch = scratch.span()},
        nullptr);
    return {k, indices.to_host(), values.to_host()};
}

Neighbours nearest_neighbours_on_cpu(std::span<const float> queries, std::span<const float> points,
                                     std::size_t d, std::size_t k) {
    const std::size_t m = vectors(queries, d, "queries");
    const std::size_t n = vectors(points, d, "points");
    course::require(k <= n, "nearest_neighbours_on_cpu: k is ", k, " and there are ", n,
                    " points; expected at most as many");
    Neighbours nearest{k, std::vector<std::uint32_t>(m * k), std::vector<float>(m * k)};
#pragma omp parallel for
    for (std::ptrdiff_t signed_query = 0; signed_query < static_cast<std::ptrdiff_t>(m); ++signed_query) {
        const auto query = static_cast<std::size_t>(signed_query);
        const float* const a = queries.data() + query * d;
        std::vector<double> distances(n);
        for (std::size_t point = 0; point < n; ++point) {
            const float* const b = points.data() + point * d;
            double sum = 0;
            for (std::size_t i = 0; i < d; ++i) {
                const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
                sum += difference * difference;
            }
            distances[point] = sum;
        }
        std::vector<std::uint32_t> order(n);
        std::iota(order.begin(), order.end(), 0u);
        std::ranges::partial_sort(
            order, order.begin() + static_cast<std::ptrdiff_t>(k), [&](std::uint32_t x, std::uint32_t y) {
                return distances[x] != distances[y] ? distances[x] < distances[y] : x < y;
            });
        for (std::size_t i = 0; i < k; ++i) {
            nearest.indices[query * k + i] = order[i];
            nearest.squared_distances[query * k + i] = static_cast<float>(distances[order[i]]);
        }
    }
    return nearest;
}

double recall(const Neighbours& found, const Neighbours& nearest) {
    const std::size_t queries = nearest.k == 0 ? 0 : nearest.indices.size() / nearest.k;
    if (found.indices.size() != queries * found.k) {
        throw std::invalid_argument("recall: there are " + std::to_string(found.indices.size()) +
                                    " indices found, " + std::to_string(found.k) + " for each query, and " +
                                    std::to_string(queries) + " queries; expected as many queries");
    }
    if (queries == 0) return 1;
    std::size_t right = 0;
    for (std::size_t query = 0; query < queries; ++query) {
        const auto of_query = [&](const Neighbours& neighbours) {
            const auto begin = neighbours.indices.begin() + static_cast<std::ptrdiff_t>(query * neighbours.k);
            std::vector<std::uint32_t> sorted(begin, begin + static_cast<std::ptrdiff_t>(neighbours.k));
            std::ranges::sort(sorted);
            return sorted;
        };
        const auto all = of_query(nearest);
        const auto of_found = of_query(found);
        right += static_cast<std::size_t>(std::ranges::count_if(
            all, [&](std::uint32_t index) { return std::ranges::binary_search(of_found, index); }));
    }
    return static_cast<double>(right) / static_cast<double>(nearest.indices.size());
}

}  // namespace day48
