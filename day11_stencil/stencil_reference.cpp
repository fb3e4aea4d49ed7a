#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "common/check/require.hpp"
#include "stencil.hpp"

namespace day11 {
namespace {

using course::require;

// Where a point of the shape lies, counted in cells from the one in the middle.
std::vector<std::ptrdiff_t> points(Shape shape, const Extents& extents) {
    const auto row = static_cast<std::ptrdiff_t>(extents.nx);
    const auto plane = row * static_cast<std::ptrdiff_t>(extents.ny);
    std::vector<std::ptrdiff_t> all;
    if (shape == Shape::kBox27) {
        for (int i = 0; i < 27; ++i)
            all.push_back((i / 9 - 1) * plane + (i / 3 % 3 - 1) * row + (i % 3 - 1));
        return all;
    }
    all.push_back(0);
    for (const std::ptrdiff_t step : {std::ptrdiff_t{1}, row, plane}) {
        if (shape == Shape::kCross5 && all.size() == coefficients(shape)) break;
        for (std::size_t d = 1; d <= radius(shape); ++d) {
            all.push_back(-static_cast<std::ptrdiff_t>(d) * step);
            all.push_back(static_cast<std::ptrdiff_t>(d) * step);
        }
    }
    return all;
}

template <class T>
void sweep(const Stencil& stencil, const Extents& extents, std::span<const T> in, std::span<T> out) {
    const std::size_t points_of_shape = coefficients(stencil.shape);
    require(stencil.coefficient.size() == points_of_shape, "sweep_on_cpu: ", stencil.coefficient.size(),
            " coefficients for a ", name(stencil.shape), " stencil; expected ", points_of_shape);
    require(in.size() == cells(extents) && out.size() == in.size(), "sweep_on_cpu: in has ", in.size(),
            " and out ", out.size(), " elements; expected ", cells(extents), ", the cells of the grid");
    const std::vector<std::ptrdiff_t> at = points(stencil.shape, extents);
    const std::size_t edge = radius(stencil.shape);
    const auto within = [edge](std::size_t i, std::size_t extent) { return i >= edge && i + edge < extent; };
    const bool flat = stencil.shape == Shape::kCross5;
    const auto rows = static_cast<std::ptrdiff_t>(extents.ny * extents.nz);
#pragma omp parallel for
    for (std::ptrdiff_t row = 0; row < rows; ++row) {
        const std::size_t y = static_cast<std::size_t>(row) % extents.ny;
        const std::size_t z = static_cast<std::size_t>(row) / extents.ny;
        const bool row_within = within(y, extents.ny) && (flat || within(z, extents.nz));
        for (std::size_t x = 0; x < extents.nx; ++x) {
            const std::size_t i = static_cast<std::size_t>(row) * extents.nx + x;
            if (!row_within || !within(x, extents.nx)) {
                out[i] = in[i];
                continue;
            }
            T sum = 0;
            for (std::size_t p = 0; p < at.size(); ++p)
                sum = std::fma(static_cast<T>(stencil.coefficient[p]),
                               in[static_cast<std::size_t>(static_cast<std::ptrdiff_t>(i) + at[p])], sum);
            out[i] = sum;
        }
    }
}

template <class T>
std::vector<T> sweeps(const Stencil& stencil, const Extents& extents, std::vector<T> grid, unsigned steps) {
    std::vector<T> next(grid.size());
    for (unsigned step = 0; step < steps; ++step) {
        sweep<T>(stencil, extents, grid, next);
        std::swap(grid, next);
    }
    return grid;
}

}  // namespace

void sweep_on_cpu(const Stencil& stencil, const Extents& extents, std::span<const double> in,
                  std::span<double> out) {
    sweep<double>(stencil, extents, in, out);
}

std::vector<double> sweeps_on_cpu(const Stencil& stencil, const Extents& extents, std::span<const float> in,
                                  unsigned steps) {
    return sweeps<double>(stencil, extents, {in.begin(), in.end()}, steps);
}

std::vector<float> exact_on_cpu(const Stencil& stencil, const Extents& extents, std::span<const float> in,
                                unsigned steps) {
    return sweeps<float>(stencil, extents, {in.begin(), in.end()}, steps);
}

}  // namespace day11
