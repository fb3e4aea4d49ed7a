#include "common/check/require.hpp"
#include "filter.hpp"

namespace day17 {

std::size_t filter_on_cpu(Operation operation, std::span<const std::int32_t> in, std::int32_t threshold,
                          std::span<std::int32_t> out) {
    course::require(out.size() == in.size(), "filter_on_cpu: in has ", in.size(), " elements and out ",
                    out.size(), "; expected the same number");
    std::size_t kept = 0;
    std::size_t rejected = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
        const bool keep = operation == Operation::kUnique ? i == 0 || in[i - 1] != in[i] : in[i] < threshold;
        if (keep) {
            out[kept++] = in[i];
        } else if (operation == Operation::kPartition) {
            out[in.size() - 1 - rejected++] = in[i];
        }
    }
    return kept;
}

}  // namespace day17
