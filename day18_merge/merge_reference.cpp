#include "common/check/require.hpp"
#include "merge.hpp"

namespace day18 {

void merge_on_cpu(const SortedOnCpu& a, const SortedOnCpu& b, const OutputOnCpu& out) {
    const std::size_t m = a.keys.size();
    const std::size_t n = b.keys.size();
    const bool has_values = !out.values.empty();
    course::require(out.keys.size() == m + n, "merge_on_cpu: out has ", out.keys.size(),
                    " keys; expected as many as a and b together, ", m + n);
    course::require(a.values.size() == (has_values ? m : 0) && b.values.size() == (has_values ? n : 0) &&
                        out.values.size() == (has_values ? m + n : 0),
                    "merge_on_cpu: a, b and out have ", a.values.size(), ", ", b.values.size(), " and ",
                    out.values.size(), " values; expected as many as keys, or none");
    std::size_t i = 0;
    std::size_t j = 0;
    for (std::size_t k = 0; k < m + n; ++k) {
        const bool from_a = j == n || (i < m && a.keys[i] <= b.keys[j]);
        out.keys[k] = from_a ? a.keys[i] : b.keys[j];
        if (has_values) out.values[k] = from_a ? a.values[i] : b.values[j];
        ++(from_a ? i : j);
    }
}

}  // namespace day18
