// The point spread function, the product by F^H F, and conjugate gradients as cases of the day's
// program.
#pragma once

#include <cstddef>
#include <string>

#include "common/bench/program.hpp"
#include "grid.hpp"
#include "mri.hpp"

namespace day37 {

// With more samples only gridding runs: scatter_atomic would take minutes.
inline constexpr std::size_t kMostDirect = 100'000;

// Four numbers: voxels in x, y and z, and samples.
Problem problem_of(const course::Dims& size);
// "64x64x64 voxels".
std::string name_of(const Grid& grid);
// Why gridding cannot run on a grid, or "".
std::string why_no_gridding(const Grid& grid);

// Without contestants for a grid that the operator is not for, or more than kMostDirect samples.
// The time of a product, and that of a step of conjugate gradients, does not depend on the number
// of samples, and so these cases have a few samples only.
course::Case make_point_spread_case(const course::Dims& size);
course::Case make_product_case(const course::Dims& size);
course::Case make_gradients_case(const course::Dims& size);

}  // namespace day37
