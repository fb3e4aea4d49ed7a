#include "merge_plain_loop.hpp"

#include <algorithm>

namespace day18 {
namespace {

// How many of the first `count` elements of the result come from a: a binary search.
std::size_t count_from_a(std::span<const Key> a, std::span<const Key> b, std::size_t count) {
    std::size_t least = count > b.size() ? count - b.size() : 0;
    std::size_t most = std::min(count, a.size());
    while (least < most) {
        const std::size_t middle = least + (most - least) / 2;
        if (a[middle] <= b[count - 1 - middle]) {
            least = middle + 1;
        } else {
            most = middle;
        }
    }
    return least;
}

template <bool kPairs>
void merge(const SortedOnCpu& a, const SortedOnCpu& b, const OutputOnCpu& out, int threads) {
    const auto parts = static_cast<std::size_t>(threads);
#pragma omp parallel for num_threads(threads)
    for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t begin = out.keys.size() * part / parts;
        const std::size_t end = out.keys.size() * (part + 1) / parts;
        std::size_t i = count_from_a(a.keys, b.keys, begin);
        std::size_t j = begin - i;
        for (std::size_t k = begin; k < end; ++k) {
            const bool from_a = j == b.keys.size() || (i < a.keys.size() && a.keys[i] <= b.keys[j]);
            out.keys[k] = from_a ? a.keys[i] : b.keys[j];
            if constexpr (kPairs) out.values[k] = from_a ? a.values[i] : b.values[j];
            ++(from_a ? i : j);
        }
    }
}

}  // namespace

void merge_plainly(const SortedOnCpu& a, const SortedOnCpu& b, const OutputOnCpu& out, int threads) {
    if (out.values.empty()) {
        merge<false>(a, b, out, threads);
    } else {
        merge<true>(a, b, out, threads);
    }
}

}  // namespace day18
