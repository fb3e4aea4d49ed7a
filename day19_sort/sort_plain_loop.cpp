#include "sort_plain_loop.hpp"

#include <algorithm>
#include <parallel/algorithm>

namespace day19 {

void sort_plainly(std::span<const Key> in, std::span<Key> out, int threads) {
    std::ranges::copy(in, out.begin());
    if (threads == 1) {
        std::sort(out.begin(), out.end());
    } else {
        __gnu_parallel::sort(out.begin(), out.end(),
                             __gnu_parallel::default_parallel_tag(static_cast<unsigned short>(threads)));
    }
}

}  // namespace day19
