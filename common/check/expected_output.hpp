// The expected values of long outputs that must be exact. A benchmark compares each version with
// them several times. On a GPU the device compares, because copying 2^28 elements to the host takes
// far longer than the kernel.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/bench/machine.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/check/verify_on_device.hpp"
#include "common/device/device_buffer.hpp"

namespace course {

// T: as for verify_exact_on_device().
template <class T>
class ExpectedOutput {
  public:
    ExpectedOutput() = default;
    explicit ExpectedOutput(std::vector<T> values) : on_host_(std::move(values)) {
        if (!is_cpu_stand_in()) on_device_ = DeviceBuffer<T>(std::span<const T>(on_host_));
    }

    const std::vector<T>& on_host() const { return on_host_; }

    VerifyResult verify(const std::vector<T>& got) const {
        if constexpr (std::is_floating_point_v<T>) {
            return course::verify(got, std::vector<double>(on_host_.begin(), on_host_.end()), {.factor = 0});
        } else {
            return verify_exact(got, on_host_);
        }
    }

    // Verifies the output itself, not the guards around it.
    VerifyResult verify(GuardedBuffer<T>& out) const {
        if (is_cpu_stand_in()) return verify(out.to_host());
        return verify_exact_on_device<T>(out.span(), on_device_.span());
    }

  private:
    std::vector<T> on_host_;
    DeviceBuffer<T> on_device_;
};

}  // namespace course
