// The references of the mysteries, and how much memory each needs for n.
#pragma once

#include <cstddef>
#include <span>

#include "profiling.hpp"

namespace day07 {

using Input = std::span<const float>;
using Output = std::span<double>;

// Of mystery 1, 2, ...
Layout particles_layout(std::size_t n);
Layout running_sums_layout(std::size_t n);
Layout readings_layout(std::size_t n);
Layout matrices_layout(std::size_t n);
Layout asteroids_layout(std::size_t n);
Layout positive_layout(std::size_t n);
Layout first_layout(std::size_t n);
Layout signal_layout(std::size_t n);

void particles_on_cpu(std::size_t n, Input in, Output out, Output magnitude);
void running_sums_on_cpu(std::size_t n, Input in, Output out, Output magnitude);
void readings_on_cpu(std::size_t n, Input in, Output out, Output magnitude);
void matrices_on_cpu(std::size_t n, Input in, Output out, Output magnitude);
void asteroids_on_cpu(std::size_t n, Input in, Output out, Output magnitude);
void positive_on_cpu(std::size_t n, Input in, Output out, Output magnitude);
void first_on_cpu(std::size_t n, Input in, Output out, Output magnitude);
void signal_on_cpu(std::size_t n, Input in, Output out, Output magnitude);

}  // namespace day07
