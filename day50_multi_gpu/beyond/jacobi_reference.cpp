// Day 50: the reference of Jacobi's method, one grid on the CPU.
#include <cmath>
#include <cstddef>
#include <utility>

#include "beyond/jacobi.hpp"
#include "common/check/require.hpp"

namespace day50 {

JacobiResult jacobi_on_cpu(const Extents& extents, std::vector<float>& grid, const Stop& stop) {
    course::require(grid.size() == extents.cells(), "jacobi_on_cpu: grid has ", grid.size(),
                    " cells; expected ", extents.cells());
    const std::size_t columns = extents.nx;
    std::vector<float> after = grid;
    JacobiResult result;
    while (result.steps < stop.most_steps) {
        double sum = 0;
        for (std::size_t row = 1; row + 1 < extents.nz; ++row) {
            for (std::size_t column = 1; column + 1 < columns; ++column) {
                const std::size_t i = row * columns + column;
                after[i] = 0.25f * ((grid[i - 1] + grid[i + 1]) + (grid[i - columns] + grid[i + columns]));
                const double residual = static_cast<double>(after[i]) - grid[i];
                sum += residual * residual;
            }
        }
        std::swap(grid, after);
        ++result.steps;
        if (result.steps % stop.every != 0 && result.steps != stop.most_steps) continue;
        result.norm = std::sqrt(sum);
        if (result.norm <= stop.tolerance) break;
    }
    return result;
}

}  // namespace day50
