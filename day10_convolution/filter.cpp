// Filters and the names of borders: what is computed once, before any kernel runs.
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/check/nearest.hpp"
#include "common/check/require.hpp"
#include "convolution.hpp"

namespace day10 {
namespace {

using course::require;
using course::shape_text;

constexpr std::string_view kNames[] = {"replicate", "reflect", "constant", "wrap"};

bool is_odd(std::size_t size) {
    return size % 2 == 1;
}

void require_odd(std::size_t rows, std::size_t cols) {
    require(is_odd(rows) && is_odd(cols), "filter: ", shape_text(rows, cols),
            "; expected odd numbers, so that there is a middle");
}

std::vector<float> outer_product(const std::vector<float>& column, const std::vector<float>& row) {
    std::vector<float> product;
    for (const float down : column) {
        for (const float across : row)
            product.push_back(down * across);
    }
    return product;
}

course::DeviceBuffer<float> joined_on_device(const std::vector<float>& weights,
                                             const std::vector<float>& column,
                                             const std::vector<float>& row) {
    std::vector<float> all = weights;
    all.insert(all.end(), column.begin(), column.end());
    all.insert(all.end(), row.begin(), row.end());
    return course::DeviceBuffer<float>(std::span<const float>(all));
}

}  // namespace

std::string_view name(BorderKind kind) {
    return kNames[static_cast<int>(kind)];
}

BorderKind border_named(std::string_view name) {
    for (const BorderKind kind : kBorderKinds) {
        if (day10::name(kind) == name) return kind;
    }
    throw std::invalid_argument(
        course::unknown_name("border", name, std::vector<std::string>(std::begin(kNames), std::end(kNames))));
}

Filter::Filter(std::size_t rows, std::size_t cols, std::vector<float> weights, std::vector<float> column,
               std::vector<float> row)
    : rows_(rows),
      cols_(cols),
      weights_(std::move(weights)),
      column_(std::move(column)),
      row_(std::move(row)),
      on_device_(joined_on_device(weights_, column_, row_)) {}

Filter Filter::general(std::size_t rows, std::size_t cols, std::vector<float> weights) {
    require_odd(rows, cols);
    require(weights.size() == rows * cols, "filter: ", weights.size(), " weights for ",
            shape_text(rows, cols), "; expected their product");
    return Filter(rows, cols, std::move(weights), {}, {});
}

Filter Filter::separable(std::vector<float> column, std::vector<float> row) {
    require_odd(column.size(), row.size());
    return Filter(column.size(), row.size(), outer_product(column, row), column, row);
}

double Filter::weight(std::size_t dy, std::size_t dx) const {
    if (is_separable()) return static_cast<double>(column_[dy]) * static_cast<double>(row_[dx]);
    return static_cast<double>(weights_[dy * cols_ + dx]);
}

std::vector<float> gaussian_weights(std::size_t size, double sigma) {
    require(is_odd(size), "gaussian filter: size ", size, "; expected an odd number");
    require(std::isfinite(sigma) && sigma > 0, "gaussian filter: sigma ", sigma,
            "; expected a finite number > 0");
    std::vector<double> exact(size);
    for (std::size_t i = 0; i < size; ++i) {
        const double z = (static_cast<double>(i) - static_cast<double>(size / 2)) / sigma;
        exact[i] = std::exp(-z * z / 2);
    }
    const double sum = std::accumulate(exact.begin(), exact.end(), 0.0);
    std::vector<float> weights(size);
    for (std::size_t i = 0; i < size; ++i)
        weights[i] = static_cast<float>(exact[i] / sum);
    return weights;
}

Filter gaussian_filter(std::size_t size, double sigma) {
    return Filter::separable(gaussian_weights(size, sigma), gaussian_weights(size, sigma));
}

std::size_t gaussian_size(double sigma) {
    require(std::isfinite(sigma) && sigma > 0 && sigma <= 10000, "gaussian filter: sigma ", sigma,
            "; expected a number > 0, at most 10000");
    return 2 * static_cast<std::size_t>(std::ceil(3 * sigma)) + 1;
}

}  // namespace day10
