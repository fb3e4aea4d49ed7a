// Day 51: the reference, sums in float on the CPU.
#include <cstddef>

#include "all_reduce.hpp"
#include "common/check/require.hpp"

namespace day51 {

std::vector<float> sums_on_cpu(std::span<const std::vector<float>> in, Order order) {
    course::require(!in.empty(), "sums_on_cpu: in has 0 arrays; expected at least 1");
    const std::size_t ranks = in.size();
    const std::size_t count = in[0].size();
    for (std::size_t r = 1; r < ranks; ++r)
        course::require(in[r].size() == count, "sums_on_cpu: in[", r, "] has ", in[r].size(),
                        " values; expected ", count);
    std::vector<float> sums(count);
    for (std::size_t number = 0; number < ranks; ++number) {
        const Part part = part_of(count, static_cast<int>(ranks), static_cast<int>(number));
        const std::size_t first = order == Order::kRing ? number : 0;
#pragma omp parallel for
        for (std::size_t i = part.begin; i < part.end; ++i) {
            float sum = in[first][i];
            for (std::size_t r = 1; r < ranks; ++r)
                sum += in[(first + r) % ranks][i];
            sums[i] = sum;
        }
    }
    return sums;
}

}  // namespace day51
