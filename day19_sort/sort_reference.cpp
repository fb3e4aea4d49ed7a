#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <parallel/algorithm>

#include "common/check/require.hpp"
#include "sort.hpp"

namespace day19 {

void sort_on_cpu(std::span<const Key> in, std::span<Key> out) {
    course::require(out.size() == in.size(), "sort_on_cpu: out has ", out.size(),
                    " keys; expected as many as in, ", in.size());
    std::ranges::copy(in, out.begin());
    // Fewer keys are not worth the start of threads.
    constexpr std::size_t kWorthwhile = std::size_t{1} << 17;
    if (in.size() < kWorthwhile) {
        std::stable_sort(out.begin(), out.end());
    } else {
        __gnu_parallel::stable_sort(out.begin(), out.end());
    }
}

}  // namespace day19
