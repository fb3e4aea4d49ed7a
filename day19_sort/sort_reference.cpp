#include <algorithm>

#include "common/check/require.hpp"
#include "sort.hpp"

namespace day19 {

void sort_on_cpu(std::span<const Key> in, std::span<Key> out) {
    course::require(out.size() == in.size(), "sort_on_cpu: out has ", out.size(),
                    " keys; expected as many as in, ", in.size());
    std::ranges::copy(in, out.begin());
    std::ranges::stable_sort(out);
}

}  // namespace day19
