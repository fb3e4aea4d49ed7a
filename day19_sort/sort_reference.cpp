#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/check/require.hpp"
#include "sort.hpp"

namespace day19 {

// Each thread sorts a part; then neighbouring parts are merged until one is left.
void sort_on_cpu(std::span<const Key> in, std::span<Key> out) {
    course::require(out.size() == in.size(), "sort_on_cpu: out has ", out.size(),
                    " keys; expected as many as in, ", in.size());
    std::ranges::copy(in, out.begin());
    constexpr std::size_t kWorthwhile = std::size_t{1} << 16;  // keys for a thread
    const std::size_t threads = std::max(omp_get_max_threads(), 1);
    const std::size_t parts = std::clamp<std::size_t>(in.size() / kWorthwhile, 1, threads);
    std::vector<std::size_t> begins(parts + 1);
    for (std::size_t p = 0; p <= parts; ++p)
        begins[p] = in.size() / parts * p;
    begins[parts] = in.size();
    const auto at = [&](std::size_t part) { return out.begin() + static_cast<std::ptrdiff_t>(begins[part]); };

#pragma omp parallel for if (parts > 1)
    for (std::size_t p = 0; p < parts; ++p)
        std::stable_sort(at(p), at(p + 1));
    for (std::size_t width = 1; width < parts; width *= 2) {
#pragma omp parallel for
        for (std::size_t p = 0; p < parts - width; p += 2 * width)
            std::inplace_merge(at(p), at(p + width), at(std::min(p + 2 * width, parts)));
    }
}

}  // namespace day19
