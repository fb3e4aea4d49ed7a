#include "filter_plain_loop.hpp"

#include <omp.h>

#include <vector>

namespace day17 {
namespace {

bool is_kept(Operation operation, std::span<const std::int32_t> in, std::int32_t threshold, std::size_t i) {
    return operation == Operation::kUnique ? i == 0 || in[i - 1] != in[i] : in[i] < threshold;
}

// Filters the elements from begin to end - 1; `kept` were kept of those before.
template <Operation kOperation>
void filter_part(std::span<const std::int32_t> in, std::int32_t threshold, std::span<std::int32_t> out,
                 std::size_t begin, std::size_t end, std::size_t kept) {
    for (std::size_t i = begin; i < end; ++i) {
        if (is_kept(kOperation, in, threshold, i)) {
            out[kept++] = in[i];
        } else if (kOperation == Operation::kPartition) {
            out[in.size() - 1 - (i - kept)] = in[i];
        }
    }
}

template <Operation kOperation>
void filter(std::span<const std::int32_t> in, std::int32_t threshold, std::span<std::int32_t> out,
            int threads) {
    if (threads == 1) return filter_part<kOperation>(in, threshold, out, 0, in.size(), 0);
    // Each thread counts what its part keeps, and writes it once the counts of all parts before it
    // are known.
    std::vector<std::size_t> before(static_cast<std::size_t>(threads) + 1);
#pragma omp parallel num_threads(threads)
    {
        const auto part = static_cast<std::size_t>(omp_get_thread_num());
        const auto parts = static_cast<std::size_t>(omp_get_num_threads());
        const std::size_t begin = in.size() * part / parts;
        const std::size_t end = in.size() * (part + 1) / parts;
        std::size_t count = 0;
        for (std::size_t i = begin; i < end; ++i)
            count += is_kept(kOperation, in, threshold, i);
        before[part + 1] = count;
#pragma omp barrier
#pragma omp single
        for (std::size_t p = 0; p < parts; ++p)
            before[p + 1] += before[p];
        filter_part<kOperation>(in, threshold, out, begin, end, before[part]);
    }
}

}  // namespace

void filter_plainly(Operation operation, std::span<const std::int32_t> in, std::int32_t threshold,
                    std::span<std::int32_t> out, int threads) {
    switch (operation) {
        case Operation::kSelect:
            return filter<Operation::kSelect>(in, threshold, out, threads);
        case Operation::kUnique:
            return filter<Operation::kUnique>(in, threshold, out, threads);
        case Operation::kPartition:
            return filter<Operation::kPartition>(in, threshold, out, threads);
    }
}

}  // namespace day17
