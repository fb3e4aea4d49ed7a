#include "common/check/parallel.hpp"
#include "common/check/require.hpp"
#include "filter.hpp"

namespace day17 {

std::size_t filter_on_cpu(Operation operation, std::span<const std::int32_t> in, std::int32_t threshold,
                          std::span<std::int32_t> out) {
    course::require(out.size() == in.size(), "filter_on_cpu: in has ", in.size(), " elements and out ",
                    out.size(), "; expected the same number");
    const auto keep = [&](std::size_t i) {
        return operation == Operation::kUnique ? i == 0 || in[i - 1] != in[i] : in[i] < threshold;
    };
    // The running sum of what is kept: the elements up to i.
    return course::for_each_sum<std::size_t>(
        in.size(), [&](std::size_t i) { return keep(i) ? 1 : 0; },
        [&](std::size_t i, std::size_t kept) {
            if (keep(i)) {
                out[kept - 1] = in[i];
            } else if (operation == Operation::kPartition) {
                out[in.size() - 1 - (i - kept)] = in[i];
            }
        });
}

}  // namespace day17
