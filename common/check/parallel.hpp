// Loops over long arrays on all of the host's cores, for test data and references. Hundreds of
// millions of elements would take one core seconds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/device/grid.hpp"
#include "common/device/random.hpp"

namespace course {

// How many elements one core takes at a time. A second core does not pay off for fewer.
inline constexpr std::size_t kParallelPart = std::size_t{1} << 16;

// Calls body(begin, end) for parts of [0, n). It must not throw.
template <class Body>
void for_each_part(std::size_t n, const Body& body) {
    const std::size_t parts = ceil_div(n, kParallelPart);
#pragma omp parallel for schedule(static) if (parts > 1)
    for (std::size_t part = 0; part < parts; ++part)
        body(part * kParallelPart, std::min(n, (part + 1) * kParallelPart));
}

// Calls body(i) for each i < n.
template <class Body>
void for_each_index(std::size_t n, const Body& body) {
    for_each_part(n, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            body(i);
    });
}

// Calls take(i, step(0) + ... + step(i)) for each i < n, and returns the sum of all steps, in the
// type Sum. Calls step() twice for each i.
template <class Sum, class Step, class Take>
Sum for_each_sum(std::size_t n, const Step& step, const Take& take) {
    // First the sum of each part, then the sum of all parts before it.
    std::vector<Sum> before(ceil_div(n, kParallelPart));
    for_each_part(n, [&](std::size_t begin, std::size_t end) {
        Sum sum = 0;
        for (std::size_t i = begin; i < end; ++i)
            sum += step(i);
        before[begin / kParallelPart] = sum;
    });
    Sum all = 0;
    for (Sum& part : before) {
        const Sum sum = part;
        part = all;
        all += sum;
    }
    for_each_part(n, [&](std::size_t begin, std::size_t end) {
        Sum sum = before[begin / kParallelPart];
        for (std::size_t i = begin; i < end; ++i)
            take(i, sum += step(i));
    });
    return all;
}

// `n` numbers in ascending order, distributed over 0 to 2^32 - 1 like sorted random numbers. They
// are sums of random gaps, so that no sort is needed.
inline std::vector<std::uint32_t> sorted_numbers(std::size_t n, std::uint64_t seed) {
    // The gaps have 24 bits, so that sums of up to 2^29 gaps are exact in double.
    const auto gap = [=](std::size_t i) { return static_cast<double>(Random(seed, i).next() >> 40); };
    // The sum includes a gap after the last number.
    const double sum_of_all = for_each_sum<double>(n + 1, gap, [](std::size_t, double) {});
    const double scale = 0x1p32 / (sum_of_all + 1);
    std::vector<std::uint32_t> numbers(n);
    for_each_sum<double>(
        n, gap, [&](std::size_t i, double sum) { numbers[i] = static_cast<std::uint32_t>(sum * scale); });
    return numbers;
}

}  // namespace course
