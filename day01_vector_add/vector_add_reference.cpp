#include <stdexcept>
#include <string>

#include "vector_add.hpp"

namespace day01 {

// One float addition rounds once and correctly, on a CPU as on a GPU: the reference needs no double to be exact.
void add_on_cpu(std::span<const float> a, std::span<const float> b, std::span<float> c) {
    if (a.size() != c.size() || b.size() != c.size()) {
        throw std::invalid_argument("add_on_cpu: a, b and c have " + std::to_string(a.size()) + ", " +
                                    std::to_string(b.size()) + " and " + std::to_string(c.size()) +
                                    " elements; expected the same number");
    }
    const auto n = static_cast<std::ptrdiff_t>(c.size());
#pragma omp parallel for simd
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        c[static_cast<std::size_t>(i)] = a[static_cast<std::size_t>(i)] + b[static_cast<std::size_t>(i)];
    }
}

}  // namespace day01
