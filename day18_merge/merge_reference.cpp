#include <algorithm>

#include "common/check/parallel.hpp"
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
    course::for_each_part(m + n, [&](std::size_t begin, std::size_t end) {
        // Of the first `begin` elements, i come from a: those that are not larger than what they
        // meet.
        std::size_t i = begin > n ? begin - n : 0;
        for (std::size_t most = std::min(begin, m); i < most;) {
            const std::size_t middle = i + (most - i) / 2;
            if (a.keys[middle] <= b.keys[begin - 1 - middle]) {
                i = middle + 1;
            } else {
                most = middle;
            }
        }
        std::size_t j = begin - i;
        for (std::size_t k = begin; k < end; ++k) {
            const bool from_a = j == n || (i < m && a.keys[i] <= b.keys[j]);
            out.keys[k] = from_a ? a.keys[i] : b.keys[j];
            if (has_values) out.values[k] = from_a ? a.values[i] : b.values[j];
            ++(from_a ? i : j);
        }
    });
}

}  // namespace day18
