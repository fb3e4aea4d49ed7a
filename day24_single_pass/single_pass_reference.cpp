#include "common/check/parallel.hpp"
#include "common/check/require.hpp"
#include "single_pass.hpp"

namespace day24 {
namespace {

void check(const char* name, std::size_t in, std::size_t out) {
    course::require(in == out, name, ": in has ", in, " elements and out ", out,
                    "; expected the same number");
}

}  // namespace

void scan_on_cpu(std::span<const std::int32_t> in, std::span<std::int32_t> out) {
    check("scan_on_cpu", in.size(), out.size());
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < in.size(); ++i)
        out[i] = sum += in[i];
}

// for_each_sum() uses OpenMP.
void scan_on_all_cores(std::span<const std::int32_t> in, std::span<std::int32_t> out) {
    check("scan_on_all_cores", in.size(), out.size());
    course::for_each_sum<std::int32_t>(
        in.size(), [&](std::size_t i) { return in[i]; },
        [&](std::size_t i, std::int32_t sum) { out[i] = sum; });
}

std::size_t filter_on_cpu(std::span<const std::int32_t> in, std::int32_t threshold,
                          std::span<std::int32_t> out) {
    check("filter_on_cpu", in.size(), out.size());
    return course::for_each_sum<std::size_t>(
        in.size(), [&](std::size_t i) { return in[i] < threshold ? 1 : 0; },
        [&](std::size_t i, std::size_t kept) {
            if (in[i] < threshold) out[kept - 1] = in[i];
        });
}

}  // namespace day24
