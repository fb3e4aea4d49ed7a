#include "common/check/require.hpp"
#include "vector_add.hpp"

namespace day01 {

// A float addition rounds once and correctly, on a CPU as on a GPU, so the reference needs no
// double.
void add_on_cpu(std::span<const float> a, std::span<const float> b, std::span<float> c) {
    course::require(a.size() == c.size() && b.size() == c.size(), "add_on_cpu: a, b and c have ", a.size(),
                    ", ", b.size(), " and ", c.size(), " elements; expected the same number");
    const auto n = static_cast<std::ptrdiff_t>(c.size());
#pragma omp parallel for simd
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        c[static_cast<std::size_t>(i)] = a[static_cast<std::size_t>(i)] + b[static_cast<std::size_t>(i)];
    }
}

}  // namespace day01
