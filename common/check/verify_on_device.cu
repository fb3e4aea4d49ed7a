#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "common/check/check.hpp"
#include "common/check/verify_on_device.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"

namespace course {
namespace {

constexpr int kThreads = 256;
constexpr std::size_t kForEach = 64;  // elements per thread, so that there are few atomic operations

// The outcome of a comparison. Errors are not negative, so their bits, read as integers, have the
// same order as the errors.
struct Found {
    unsigned long long differing;
    unsigned long long largest_error;
};

__device__ bool is_right(double got, double expected, double allowed) {
    if (isfinite(got) && isfinite(expected)) return isfinite(allowed) && fabs(got - expected) <= allowed;
    return (isnan(got) && isnan(expected)) || (isinf(expected) && got == expected);
}

// Idea: each thread compares some elements, a grid apart.
// Cost removed: the copy to the host, which takes five times as long as the comparison there.
// Still limits it: memory.
__global__ void compare(DeviceSpan<const float> got, DeviceSpan<const double> expected,
                        DeviceSpan<const double> magnitude, double scale, double smallest, Found* found) {
    unsigned long long differing = 0;
    double largest = 0;
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < got.size(); i += step) {
        const auto value = static_cast<double>(got[i]);
        if (!is_right(value, expected[i], scale * magnitude[i] + smallest)) ++differing;
        const double error = fabs(value - expected[i]);
        if (isfinite(error) && error > largest) largest = error;
    }
    if (differing != 0) atomicAdd(&found->differing, differing);
    atomicMax(&found->largest_error, static_cast<unsigned long long>(__double_as_longlong(largest)));
}

// The same for exact comparison: only the expected value is right.
template <class T>
__global__ void compare_exactly(DeviceSpan<const T> got, DeviceSpan<const T> expected,
                                unsigned long long* differing) {
    unsigned long long mine = 0;
    const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < got.size(); i += step)
        mine += got[i] == expected[i] ? 0 : 1;
    if (mine != 0) atomicAdd(differing, mine);
}

template <class T>
std::vector<T> to_host(const DeviceSpan<const T>& values) {
    std::vector<T> host(values.size());
    copy_device_to_host(host.data(), host.size(), values.data(), values.size(), sizeof(T), nullptr);
    return host;
}

}  // namespace

VerifyResult verify_on_device(DeviceSpan<const float> got, DeviceSpan<const double> expected,
                              const Bound& bound, DeviceSpan<const double> magnitude, std::size_t cols) {
    detail::require_lengths(got.size(), expected.size(), magnitude.size());
    VerifyResult result;
    result.compared = got.size();
    result.cols = cols;
    if (got.empty()) return result;
    DeviceBuffer<Found> found(1);
    CUDA_CHECK(cudaMemset(found.data(), 0, found.bytes()));
    compare<<<blocks_for(ceil_div(got.size(), kForEach), kThreads), kThreads>>>(
        got, expected, magnitude, bound.roundings() * FloatTraits<float>::kEpsilon,
        bound.roundings() * FloatTraits<float>::kSmallest, found.data());
    CUDA_CHECK_LAUNCH();
    const Found all = found.to_host().front();
    if (all.differing != 0) return verify(to_host(got), to_host(expected), bound, to_host(magnitude), cols);
    std::memcpy(&result.max_error, &all.largest_error, sizeof(double));
    return result;
}

template <class T>
VerifyResult verify_exact_on_device(DeviceSpan<const T> got, DeviceSpan<const T> expected) {
    detail::require_lengths(got.size(), expected.size(), 0);
    VerifyResult result;
    result.compared = got.size();
    if (got.empty()) return result;
    DeviceBuffer<unsigned long long> differing(1);
    CUDA_CHECK(cudaMemset(differing.data(), 0, differing.bytes()));
    compare_exactly<<<blocks_for(ceil_div(got.size(), kForEach), kThreads), kThreads>>>(got, expected,
                                                                                        differing.data());
    CUDA_CHECK_LAUNCH();
    if (differing.to_host().front() == 0) return result;
    const std::vector<T> values = to_host(got);
    const std::vector<T> right = to_host(expected);
    if constexpr (std::is_floating_point_v<T>) {
        return verify(values, std::vector<double>(right.begin(), right.end()), {.factor = 0});
    } else {
        return verify_exact(values, right);
    }
}

template VerifyResult verify_exact_on_device(DeviceSpan<const std::int32_t>, DeviceSpan<const std::int32_t>);
template VerifyResult verify_exact_on_device(DeviceSpan<const std::uint32_t>,
                                             DeviceSpan<const std::uint32_t>);
template VerifyResult verify_exact_on_device(DeviceSpan<const std::int64_t>, DeviceSpan<const std::int64_t>);
template VerifyResult verify_exact_on_device(DeviceSpan<const std::uint64_t>,
                                             DeviceSpan<const std::uint64_t>);
template VerifyResult verify_exact_on_device(DeviceSpan<const float>, DeviceSpan<const float>);

}  // namespace course
