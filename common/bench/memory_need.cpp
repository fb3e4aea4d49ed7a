#include "common/bench/memory_need.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <exception>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/bench/machine_memory.hpp"
#include "common/check/bytes.hpp"
#include "common/device/device_buffer.hpp"

namespace course {
namespace {

constexpr double kNumbers = 1 << 21;  // product of the varied extents of a small case
constexpr double kNoise =
    0.01;  // share of the largest small case below which memory does not belong to an array

// Counts what operator new allocates during its lifetime.
class Count {
  public:
    Count() : device_before_(device_buffer_bytes()) {
        host_memory_count.now = 0;
        host_memory_count.most = 0;
        host_memory_count.counts = true;
    }
    ~Count() { host_memory_count.counts = false; }
    Count(const Count&) = delete;
    Count& operator=(const Count&) = delete;

    MemoryNeed so_far() const {
        return {static_cast<double>(host_memory_count.most),
                static_cast<double>(device_buffer_bytes()) - static_cast<double>(device_before_)};
    }

  private:
    std::size_t device_before_;
};

MemoryNeed need_of_small(const std::function<Case(const Dims&)>& make, const Dims& size) {
    const Count count;
    const Case problem = make(size);
    return count.so_far();
}

// The value at `at` of the multilinear function that has `values` at the corners of [small, 2
// small]: values[c] is the value where extent i is doubled if bit i of c is set.
double extrapolated(std::vector<double> values, const std::vector<double>& small,
                    const std::vector<double>& at) {
    const double noise = kNoise * *std::ranges::max_element(values);
    // Convert the values to coefficients of the products of (x_i - small_i) / small_i, one extent
    // after the other.
    for (std::size_t i = 0; i < small.size(); ++i) {
        for (std::size_t corner = 0; corner < values.size(); ++corner) {
            if ((corner >> i & 1) != 0) values[corner] -= values[corner ^ std::size_t{1} << i];
        }
    }
    double sum = 0;
    for (std::size_t corner = 0; corner < values.size(); ++corner) {
        if (std::abs(values[corner]) < noise) continue;
        double term = values[corner];
        for (std::size_t i = 0; i < small.size(); ++i) {
            if ((corner >> i & 1) != 0) term *= (at[i] - small[i]) / small[i];
        }
        sum += term;
    }
    return sum;
}

}  // namespace

MemoryNeed memory_need(const std::function<Case(const Dims&)>& make, const Dims& size) {
    const auto side = std::bit_floor(
        static_cast<std::size_t>(std::lround(std::pow(kNumbers, 1.0 / static_cast<double>(size.size())))));
    std::vector<std::size_t> varied;  // the others are small already
    for (std::size_t i = 0; i < size.size(); ++i) {
        if (size[i] > 2 * side) varied.push_back(i);
    }
    const std::vector<double> small(varied.size(), static_cast<double>(side));
    std::vector<double> at;
    for (const std::size_t i : varied)
        at.push_back(static_cast<double>(size[i]));
    std::vector<double> host;
    std::vector<double> device;
    try {
        const auto small_case = [&](std::size_t corner) {
            Dims dims = size;
            for (std::size_t i = 0; i < varied.size(); ++i)
                dims[varied[i]] = (corner >> i & 1) != 0 ? 2 * side : side;
            return need_of_small(make, dims);
        };
        small_case(0);  // allocate what is allocated only once, so that it is not counted below
        for (std::size_t corner = 0; corner < std::size_t{1} << varied.size(); ++corner) {
            const MemoryNeed need = small_case(corner);
            host.push_back(need.host);
            device.push_back(need.device);
        }
    } catch (const std::exception&) {
        return {};
    }
    return {extrapolated(host, small, at), extrapolated(device, small, at)};
}

std::string text_of_missing_memory(const MemoryNeed& need) {
    const auto text = [](double bytes) { return text_of_bytes(static_cast<std::size_t>(bytes)); };
    const auto host_free = static_cast<double>(available_machine_memory());
    const std::string host_has =
        fmt::format("{}, of which {} are free", text_of_bytes(machine_memory()), text(host_free));
    if (is_cpu_stand_in()) {
        const double sum = need.host + need.device;
        return sum <= host_free ? ""
                                : fmt::format("needs about {}; this machine has {}", text(sum), host_has);
    }
    std::size_t free = 0;
    std::size_t total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess ||
        (need.host <= host_free && need.device <= static_cast<double>(free)))
        return "";
    return fmt::format(
        "needs about {} on the device, which has {}, of which {} are free, and {} on the host, which has {}",
        text(need.device), text_of_bytes(total), text_of_bytes(free), text(need.host), host_has);
}

}  // namespace course
