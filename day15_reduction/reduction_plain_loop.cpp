#include "reduction_plain_loop.hpp"

#include <algorithm>

namespace day15 {
namespace {

template <class Result, class T>
Result sum(std::span<const T> in, int threads) {
    Result total = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : total)
    for (std::size_t i = 0; i < in.size(); ++i)
        total += in[i];
    return total;
}

}  // namespace

template <>
float reduce_plainly<Sum<float>>(std::span<const float> in, int threads) {
    return sum<float>(in, threads);
}
template <>
std::int64_t reduce_plainly<Sum<std::int32_t>>(std::span<const std::int32_t> in, int threads) {
    return sum<std::int64_t>(in, threads);
}
template <>
float reduce_plainly<Min<float>>(std::span<const float> in, int threads) {
    float least = Min<float>::identity();
#pragma omp parallel for num_threads(threads) reduction(min : least)
    for (std::size_t i = 0; i < in.size(); ++i)
        least = std::min(least, in[i]);
    return least;
}

}  // namespace day15
