// What a bench compares large products with: hundreds of millions of elements, for each version
// several times. Up to kMostOnHost multiply-adds the host works out everything and compares; above,
// the device does both, with kernels that share nothing with the lesson's. Either way every element
// of every product is compared with its sum in double.
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
#include "common/device/factors.hpp"

namespace course {

inline constexpr double kMostOnHost = 1e9;

class ExpectedProducts {
  public:
    // alpha op(A) op(B), of packed op(A) and op(B). On the CPU stand-in always on the host.
    ExpectedProducts(const ProductShape& shape, float alpha, std::span<const float> a,
                     std::span<const float> b);
    ExpectedProducts(const ProductShape& shape, float alpha, std::span<const float> a,
                     std::span<const float> b, bool on_host);

    // `fill` in place of elements where a byte of `keep` is 0: one for each element of all
    // products, or of one, for all the same.
    void fill_dropped(std::span<const std::uint8_t> keep, float fill);

    // C, packed, and what stands around it.
    VerifyResult verify(GuardedBuffer<float>& c) const;

  private:
    ProductShape shape_;
    bool on_host_;
    std::vector<double> product_, magnitude_;
    DeviceBuffer<double> product_on_device_, magnitude_on_device_;
};

// The same as fill_dropped(), of what is in device memory. Waits for the device.
void fill_dropped_on_device(DeviceSpan<const std::uint8_t> keep, double fill, DeviceSpan<double> product,
                            DeviceSpan<double> magnitude);

// `matrices` of rows x cols that follow each other, each of them transposed.
std::vector<float> each_transposed(std::span<const float> matrices, std::size_t rows, std::size_t cols);

}  // namespace course
