// The expected values of large matrix products. A benchmark compares hundreds of millions of
// elements with them, several times for each version. Up to kMostOnHost multiply-adds the host
// computes and compares them; above that the device does both, with kernels that share no code with
// the lesson's. Either way, every element of every product is compared with its sum in double.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/device_view.hpp"
#include "common/device/operands.hpp"

namespace course {

inline constexpr double kMostOnHost = 1e9;

class ExpectedProducts {
  public:
    // The expected values of alpha op(A) op(B), from packed op(A) and op(B). The CPU stand-in
    // always computes them on the host.
    ExpectedProducts(const ProductShape& shape, float alpha, std::span<const float> a,
                     std::span<const float> b);
    ExpectedProducts(const ProductShape& shape, float alpha, std::span<const float> a,
                     std::span<const float> b, bool on_host);

    // Replaces elements by `fill` where their byte in `keep` is 0. `keep` has one byte for each
    // element of all products, or for each element of one product and is then used for all of them.
    void fill_dropped(std::span<const std::uint8_t> keep, float fill);

    // Verifies packed C and the guards around it.
    VerifyResult verify(GuardedBuffer<float>& c) const;

  private:
    ProductShape shape_;
    bool on_host_;
    std::vector<double> product_, magnitude_;
    DeviceBuffer<double> product_on_device_, magnitude_on_device_;
};

// The same as fill_dropped() for arrays in device memory. Waits for the device.
void fill_dropped_on_device(DeviceSpan<const std::uint8_t> keep, double fill, DeviceSpan<double> product,
                            DeviceSpan<double> magnitude);

// Transposes each of the consecutive rows x cols matrices in `matrices`.
std::vector<float> each_transposed(std::span<const float> matrices, std::size_t rows, std::size_t cols);

}  // namespace course
