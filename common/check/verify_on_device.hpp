// verify() for results that are too large to copy to the host for each version. The device
// compares, and the host examines only results with differences.
#pragma once

#include "common/check/verify.hpp"
#include "common/device/device_view.hpp"

namespace course {

// The same as verify(), with all arrays in device memory and a magnitude for each element. If the
// device finds a differing element, all arrays are copied to the host, and verify() decides. Waits
// for the device. Throws the same exceptions as verify().
VerifyResult verify_on_device(DeviceSpan<const float> got, DeviceSpan<const double> expected,
                              const Bound& bound, DeviceSpan<const double> magnitude, std::size_t cols = 0);

// The same as verify_exact(), with both arrays in device memory. T is an integer of 32 or 64 bits,
// or float for sums that are exact in any order; float is compared as by verify() with a bound of
// 0. Waits for the device.
template <class T>
VerifyResult verify_exact_on_device(DeviceSpan<const T> got, DeviceSpan<const T> expected);

}  // namespace course
