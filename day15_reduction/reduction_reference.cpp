#include <algorithm>
#include <cmath>
#include <limits>

#include "reduction.hpp"

namespace day15 {
namespace {

// Signed indices, as OpenMP's loops like them.
std::ptrdiff_t length(std::size_t size) {
    return static_cast<std::ptrdiff_t>(size);
}

template <class Total, class T>
Total sum(std::span<const T> in) {
    const T* const data = in.data();
    Total total = 0;
#pragma omp parallel for simd reduction(+ : total)
    for (std::ptrdiff_t i = 0; i < length(in.size()); ++i)
        total += static_cast<Total>(data[i]);
    return total;
}

template <class T>
bool any_nan(std::span<const T> in) {
    const T* const data = in.data();
    bool found = false;
#pragma omp parallel for reduction(|| : found)
    for (std::ptrdiff_t i = 0; i < length(in.size()); ++i)
        found = found || std::isnan(data[i]);
    return found;
}

template <class T>
T minimum(std::span<const T> in, T least) {
    const T* const data = in.data();
#pragma omp parallel for reduction(min : least)
    for (std::ptrdiff_t i = 0; i < length(in.size()); ++i)
        least = std::min(least, data[i]);
    return least;
}

template <class T>
T maximum(std::span<const T> in, T greatest) {
    const T* const data = in.data();
#pragma omp parallel for reduction(max : greatest)
    for (std::ptrdiff_t i = 0; i < length(in.size()); ++i)
        greatest = std::max(greatest, data[i]);
    return greatest;
}

}  // namespace

template <>
double reduce_on_cpu<Sum<float>>(std::span<const float> in) {
    return sum<double>(in);
}
template <>
std::int64_t reduce_on_cpu<Sum<std::int32_t>>(std::span<const std::int32_t> in) {
    return sum<std::int64_t>(in);
}
template <>
std::int64_t reduce_on_cpu<Sum<std::int64_t>>(std::span<const std::int64_t> in) {
    return static_cast<std::int64_t>(sum<std::uint64_t>(in));
}

template <>
double reduce_on_cpu<Min<float>>(std::span<const float> in) {
    using Limits = std::numeric_limits<float>;
    return static_cast<double>(any_nan(in) ? Limits::quiet_NaN() : minimum(in, Limits::infinity()));
}
template <>
std::int32_t reduce_on_cpu<Min<std::int32_t>>(std::span<const std::int32_t> in) {
    return minimum(in, INT32_MAX);
}
template <>
std::int64_t reduce_on_cpu<Min<std::int64_t>>(std::span<const std::int64_t> in) {
    return minimum(in, std::int64_t{INT64_MAX});
}

template <>
double reduce_on_cpu<Max<float>>(std::span<const float> in) {
    using Limits = std::numeric_limits<float>;
    return static_cast<double>(any_nan(in) ? Limits::quiet_NaN() : maximum(in, -Limits::infinity()));
}
template <>
std::int32_t reduce_on_cpu<Max<std::int32_t>>(std::span<const std::int32_t> in) {
    return maximum(in, INT32_MIN);
}
template <>
std::int64_t reduce_on_cpu<Max<std::int64_t>>(std::span<const std::int64_t> in) {
    return maximum(in, std::int64_t{INT64_MIN});
}

float sum_in_order(std::span<const float> in) {
    float total = 0;
    for (const float x : in)
        total += x;
    return total;
}

// The rounding error of an addition, (total + y) - total - y, is known exactly while |total| >= |y|.
// It is subtracted from the next element.
float sum_kahan(std::span<const float> in) {
    float total = 0;
    float lost = 0;
    for (const float x : in) {
        const float y = x - lost;
        const float next = total + y;
        lost = (next - total) - y;
        total = next;
    }
    return total;
}

}  // namespace day15
