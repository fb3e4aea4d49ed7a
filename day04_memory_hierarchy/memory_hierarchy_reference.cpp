#include <algorithm>
#include <numeric>

#include "beyond/near_and_far.hpp"
#include "common/check/require.hpp"
#include "common/device/random.hpp"
#include "memory_hierarchy.hpp"

namespace day04 {

Ring random_ring(std::size_t lines, std::uint64_t seed) {
    course::require(lines > 0 && lines < (std::size_t{1} << 27), "random_ring: there are ", lines,
                    " lines; expected 1 to 2^27 - 1");
    Ring ring{std::vector<unsigned>(lines), std::vector<unsigned>(lines)};
    std::iota(ring.order.begin(), ring.order.end(), 0U);
    course::Random random(seed);
    for (std::size_t i = lines - 1; i > 0; --i)  // Fisher and Yates
        std::swap(ring.order[i], ring.order[random.below(i + 1)]);
    for (std::size_t rank = 0; rank < lines; ++rank)
        ring.next[ring.order[rank]] = ring.after(rank, 1);
    return ring;
}

unsigned Ring::after(std::size_t rank, std::size_t steps) const {
    return 32 * order[(rank + steps) % order.size()];
}

unsigned sum_on_cpu(std::span<const unsigned> x) {
    unsigned sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(x.size()); ++i)
        sum += x[static_cast<std::size_t>(i)];
    return sum;
}

unsigned lookup_on_cpu(std::span<const unsigned> records, std::span<const unsigned> table) {
    unsigned sum = sum_on_cpu(records);
    for (std::size_t i = 0; i < records.size(); i += 32)
        sum += table[records[i] % table.size()];
    return sum;
}

unsigned value_after(unsigned value, unsigned steps) {
    for (unsigned step = 0; step < steps; ++step)
        value = value * value + 1;
    return value;
}

double empty_share(std::span<const Stay> stays, std::size_t sms, std::size_t blocks_per_sm) {
    unsigned long long begin = stays[0].begin;
    unsigned long long end = stays[0].end;
    double used = 0;
    for (const Stay& stay : stays) {
        begin = std::min(begin, stay.begin);
        end = std::max(end, stay.end);
        used += static_cast<double>(stay.end - stay.begin);
    }
    const double all = static_cast<double>(end - begin) * static_cast<double>(sms * blocks_per_sm);
    return all == 0 ? 0 : 1 - used / all;
}

}  // namespace day04
